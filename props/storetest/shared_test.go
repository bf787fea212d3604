package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// database is a database that several processes use at once.
type database struct {
	mu   sync.Mutex
	rows map[string]lease.Record
}

// library is a process's view of the database: right, unless it remembers.
type library struct {
	lease.Handler
	env      kit.Env
	database *database
	cache    map[string]lease.Record // nil: it looks at the database each time
}

func openLibrary(caches bool) script.Open {
	return func(e kit.Env) lease.Store {
		l := &library{env: e, database: kit.Durable(e, "database", func() *database { return &database{rows: map[string]lease.Record{}} })}
		if caches {
			l.cache = map[string]lease.Record{}
		}
		l.Handler = l.handle
		return l
	}
}

func (l *library) handle(_ context.Context, c lease.Call) (lease.Reply, error) {
	l.database.mu.Lock()
	defer l.database.mu.Unlock()
	row, known := l.cache[c.Resource]
	if !known {
		row = l.database.rows[c.Resource]
	}
	row, rep := row.Handle(l.env.Clock.Now(), 0, c.Request)
	l.database.rows[c.Resource] = row
	if l.cache != nil {
		l.cache[c.Resource] = row
	}
	return rep, nil
}

func TestAStoreThatLooksAtTheSharedStatePasses(t *testing.T) {
	o := kit.Options{Shared: true, SteadyClock: true}
	for _, c := range Checks(openLibrary(false), o, kit.Effort{Seed: 1}) {
		if out := c.Run(); out.Failure != nil || out.Unknown != "" {
			t.Errorf("%s: %s%v", c.Name, out.Unknown, out.Failure)
		}
	}
}

// One that remembers what it read is right by itself, and wrong beside another.
func TestAStoreThatCachesASharedRowIsConvicted(t *testing.T) {
	o := kit.Options{Shared: true, SteadyClock: true}
	convicted := map[string]bool{}
	for _, c := range Checks(openLibrary(true), o, kit.Effort{Seed: 1}) {
		f := c.Run().Failure
		if f == nil {
			continue
		}
		convicted[c.Name] = true
		if n := len(f.Story); !strings.HasPrefix(c.Name, "shared/") || n < 3 || n > 11 {
			t.Errorf("%s convicts it, in %d lines: %v", c.Name, n, f)
		}
	}
	for _, name := range []string{"shared/requests", "shared/linearizability"} {
		if !convicted[name] {
			t.Errorf("%s lets it pass", name)
		}
	}
}

func TestWithoutSharedOneProcessHasItAll(t *testing.T) {
	for _, c := range Shared(openLibrary(true), kit.Options{SteadyClock: true}, kit.Effort{Seed: 1}) {
		if out := c.Run(); out.Skipped == "" {
			t.Errorf("%s: %+v", c.Name, out)
		}
	}
}
