package leasesql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
	"fencepost/impl/sql/postgres"
)

// await asks until query answers true.
func await(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		var yes bool
		if err := db.QueryRowContext(ctx, query).Scan(&yes); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if yes {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("never true: %s", query)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A renewal comes in time, waits for somebody's lock on the row until the tenure
// has run out, and is judged only then. Whoever reads the clock before the wait
// grants it: somebody else may have been told meanwhile that nobody has the lease.
// The lock is on the row as it stands: had it changed, PostgreSQL would look at
// the clock again by itself.
func TestTheClockIsReadAfterTheLock(t *testing.T) {
	s := postgreSQL(t)
	db := s.created(t)
	a := lease.Holder{Node: "a", Seq: 1}
	one := func(now string) func(*leasesql.Store, string) error {
		return func(_ *leasesql.Store, resource string) error {
			res, err := db.ExecContext(t.Context(), `UPDATE fencepost_lease SET expires = `+now+` + 60000000000
				WHERE resource = $1 AND holder = $2 AND token = 1 AND status = 1 AND expires > `+now, resource, a.String())
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); n == 0 || err != nil {
				return errors.Join(lease.ErrNotHeld, err)
			}
			return nil
		}
	}
	for i, c := range []struct {
		name    string
		dialect leasesql.Dialect
		renew   func(s *leasesql.Store, resource string) error
		granted bool
	}{
		{"the store", s.dialect, func(s *leasesql.Store, resource string) error {
			_, err := s.Renew(t.Context(), resource, a, 1, time.Minute)
			return err
		}, false},
		{"the store, without its statement", leasesql.WithoutStatement(s.dialect), func(s *leasesql.Store, resource string) error {
			_, err := s.Renew(t.Context(), resource, a, 1, time.Minute)
			return err
		}, false},
		{"a release", s.dialect, func(s *leasesql.Store, resource string) error {
			return s.Release(t.Context(), resource, a, 1)
		}, false},
		{"wrong: clock_timestamp() in the part that waits", s.dialect, one(leasesql.PostgresNow), true},
		{"wrong: now()", s.dialect, one(`(extract(epoch FROM now()) * 1000000)::bigint * 1000`), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, err := leasesql.New(db, c.dialect, leasesql.Options{})
			if err != nil {
				t.Fatal(err)
			}
			resource := fmt.Sprint("p", i)
			if _, err := store.Acquire(t.Context(), resource, a, time.Second); err != nil {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(t.Context(), `SELECT 1 FROM fencepost_lease WHERE resource = $1 FOR UPDATE`, resource); err != nil {
				t.Fatal(err)
			}
			answered := make(chan error, 1)
			go func() { answered <- c.renew(store, resource) }()
			await(t, db, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted`)
			await(t, db, `SELECT `+leasesql.PostgresNow+` > expires FROM fencepost_lease WHERE resource = '`+resource+`'`)
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			err = <-answered
			if granted := err == nil; granted != c.granted || err != nil && !errors.Is(err, lease.ErrNotHeld) {
				t.Errorf("answered %v after the lapse; granted should be %v", err, c.granted)
			}
		})
	}
}

// A watch is not silent for want of a connection: it ends, and can be begun anew.
func TestAWatchEndsWithItsConnection(t *testing.T) {
	s := postgreSQL(t)
	db := s.created(t)
	store, err := postgres.New(db, leasesql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	watch := func() <-chan struct{} {
		hints, err := store.Watch(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		return hints
	}
	ended := func(why string, hints <-chan struct{}) {
		t.Helper()
		select {
		case _, ok := <-hints:
			if ok {
				t.Errorf("a hint of nothing: %s", why)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the watch goes on: %s", why)
		}
	}
	first, second := watch(), watch()
	var n int
	err = db.QueryRowContext(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`).Scan(&n)
	if n != 1 || err != nil {
		t.Fatalf("two watches have %d connections (%v)", n, err)
	}
	ended("the connection is lost", first)
	ended("the connection is lost", second)
	third := watch()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	ended("the store is closed", third)
	if _, err := store.Watch(t.Context(), "p"); !errors.Is(err, postgres.ErrClosed) {
		t.Errorf("a closed store watches: %v", err)
	}
}
