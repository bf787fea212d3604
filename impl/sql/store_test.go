package leasesql_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

func TestNewNamesWhatMakesNoSense(t *testing.T) {
	db := file(t).open(t)
	for field, f := range map[string]func() (*leasesql.Store, error){
		"db":      func() (*leasesql.Store, error) { return leasesql.New(nil, leasesql.SQLite(), leasesql.Options{}) },
		"dialect": func() (*leasesql.Store, error) { return leasesql.New(db, leasesql.Dialect{}, leasesql.Options{}) },
		"LockDelay": func() (*leasesql.Store, error) {
			return leasesql.New(db, leasesql.SQLite(), leasesql.Options{LockDelay: -1})
		},
		"FirstToken": func() (*leasesql.Store, error) {
			return leasesql.New(db, leasesql.SQLite(), leasesql.Options{FirstToken: math.MaxInt64 + 1})
		},
		"Boot": func() (*leasesql.Store, error) {
			return leasesql.New(db, leasesql.SQLite(), leasesql.Options{Clock: clock.Boot()})
		},
	} {
		_, err := f()
		if e, ok := errors.AsType[*lease.ConfigError](err); !ok || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The counter of a column ends before that of a token does.
func TestNoTokenIsGrantedThatTheColumnCannotHold(t *testing.T) {
	s := file(t)
	store, err := leasesql.New(s.created(t), s.dialect, leasesql.Options{FirstToken: math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	g, err := store.Acquire(t.Context(), "p", a, time.Hour)
	if g.Token != math.MaxInt64 || err != nil {
		t.Fatalf("granted %d, %v", g.Token, err)
	}
	if err := store.Release(t.Context(), "p", a, g.Token); err != nil {
		t.Fatal(err)
	}
	if g, err := store.Acquire(t.Context(), "p", b, time.Hour); lease.Refusal(err) != lease.CodeInvalid {
		t.Errorf("granted %d, %v", g.Token, err)
	}
}

// A database in memory has its one connection: no call that is given up may cost
// it.
func TestACallThatIsGivenUpKeepsTheConnection(t *testing.T) {
	db, store := database()
	defer db.Close()
	if _, err := store.Acquire(t.Context(), "p", a, time.Hour); err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context()) // the only one, so that the next call waits
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { _, err := store.Renew(ctx, "p", a, 1, time.Hour); answered <- err }()
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing done") {
		t.Errorf("answered %v", err)
	}
	conn.Close()
	if g, err := store.Renew(t.Context(), "p", a, 1, time.Hour); g.Token != 1 || err != nil {
		t.Errorf("then answered %v, %v", g, err)
	}
}

// While somebody else writes, an attempt waits, and ends with its context.
func TestABusyDatabaseIsTriedAgain(t *testing.T) {
	s := file(t)
	s.dsn = strings.Replace(s.dsn, "busy_timeout(5000)", "busy_timeout(0)", 1)
	db := s.created(t)
	store, err := leasesql.New(s.open(t), s.dialect, leasesql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	exec := func(query string) {
		if _, err := other.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	exec(`BEGIN IMMEDIATE`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := store.Acquire(ctx, "p", a, time.Hour); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nothing done") {
		t.Errorf("answered %v", err)
	}
	answered := make(chan error, 1)
	go func() { _, err := store.Acquire(t.Context(), "p", b, time.Hour); answered <- err }()
	exec(`COMMIT`)
	if err := <-answered; err != nil {
		t.Errorf("answered %v", err)
	}
}

// A guard that refuses changes nothing that its transaction would keep, and
// refuses token 0 as none.
func TestAGuardRefusesWhatNoLeaseGranted(t *testing.T) {
	db, store := database()
	defer db.Close()
	for _, guard := range []func(context.Context, leasesql.Querier, leasesql.Dialect, string, lease.Token) error{leasesql.Fence, leasesql.Carried} {
		if err := guard(t.Context(), db, leasesql.SQLite(), "p", 0); !errors.Is(err, fence.ErrStale) {
			t.Errorf("token 0: %v", err)
		}
	}
	if err := leasesql.Carried(t.Context(), db, leasesql.SQLite(), "p", 1); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a lease that nobody ever held: %v", err)
	}
	if err := leasesql.Fence(t.Context(), db, leasesql.SQLite(), "p", 1<<63); err == nil || errors.Is(err, fence.ErrStale) {
		t.Errorf("a token that no column holds: %v", err)
	}
	if _, ok, err := store.KV("p").Read(t.Context(), "x"); ok || err != nil {
		t.Errorf("x is there: %v, %v", ok, err)
	}
}

var _ leasesql.Querier = (*sql.Tx)(nil)
