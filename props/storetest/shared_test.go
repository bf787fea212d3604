package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

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
		return l
	}
}

func (l *library) handle(resource string, req lease.Request) (lease.Reply, error) {
	l.database.mu.Lock()
	defer l.database.mu.Unlock()
	row, known := l.cache[resource]
	if !known {
		row = l.database.rows[resource]
	}
	row, rep := row.Handle(l.env.Clock.Now(), 0, req)
	l.database.rows[resource] = row
	if l.cache != nil {
		l.cache[resource] = row
	}
	return rep, rep.Err(resource)
}

func (l *library) grant(resource string, req lease.Request) (lease.Grant, error) {
	rep, err := l.handle(resource, req)
	if err != nil {
		return lease.Grant{}, err
	}
	return lease.Grant{Resource: resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}, nil
}

func (l *library) Acquire(_ context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return l.grant(resource, lease.Request{Op: lease.OpAcquire, Holder: h, TTL: ttl})
}

func (l *library) Renew(_ context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	return l.grant(resource, lease.Request{Op: lease.OpRenew, Holder: h, Token: t, TTL: ttl})
}

func (l *library) Release(_ context.Context, resource string, h lease.Holder, t lease.Token) error {
	_, err := l.handle(resource, lease.Request{Op: lease.OpRelease, Holder: h, Token: t})
	return err
}

func (l *library) Get(_ context.Context, resource string) (lease.Observation, error) {
	rep, err := l.handle(resource, lease.Request{Op: lease.OpGet})
	return lease.Observation{Resource: resource, Holder: rep.Current, Token: rep.Token, Remaining: rep.Remaining}, err
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
