package sqllease

import (
	"context"
	"database/sql"
	"os"
	"testing"

	_ "modernc.org/sqlite"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props"
)

// database is one that outlives the processes which use it, as a server does.
// It has one connection, so that an in-memory one has one memory; statements of
// several callers still come between one another.
func database(e props.Env, schema string) *sql.DB {
	return props.Durable(e, "database", func() *sql.DB {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			e.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if _, err := db.Exec(schema); err != nil {
			e.Fatal(err)
		}
		return db
	})
}

// A statement takes tens of microseconds, against one for a map.
var options = props.Options{Calls: 4_000}

// steady are those of the ordinary case: the server's clock goes on while the
// server restarts, and is never set back.
var steady = props.Options{Calls: 4_000, SteadyClock: true}

func TestLeases(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		s := Leases{DB: database(e, LeasesSchema), Now: e.Clock.Now}
		return props.Funcs{Acquire: s.Acquire, Renew: s.Renew, Release: s.Release, Get: s.Get}.Store()
	}, steady)
}

// Without a steady clock each process has one of its own: that is a database
// which comes back with its clock set.
func TestLeasesThatRecover(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		s := Leases{DB: database(e, LeasesSchema), Now: e.Clock.Now}
		if err := s.Recover(context.Background()); err != nil {
			e.Fatal(err)
		}
		return props.Funcs{Acquire: s.Acquire, Renew: s.Renew, Release: s.Release, Get: s.Get}.Store()
	}, options)
}

func TestTable(t *testing.T) {
	props.TestStorage(t, func(e props.Env) fence.KV {
		s := Table{DB: database(e, TableSchema)}
		return props.StorageFuncs{Write: s.Write, Fence: s.Fence, Read: s.Read}.KV()
	}, props.StorageOptions{Calls: 4_000})
}

// The three steps are to fail: see each for where.
func TestWrong(t *testing.T) {
	if os.Getenv("WRONG") == "" {
		t.Skip("these stores are wrong, and their tests fail: WRONG=1 go test shows how")
	}
	// What comes of a restart is for when the rest is right.
	o := options
	o.Volatile = true
	t.Run("Step1", func(t *testing.T) {
		props.TestStore(t, func(e props.Env) lease.Store {
			s := Step1{DB: database(e, Step1Schema), Now: e.Clock.Now}
			return props.Funcs{Acquire: s.Acquire, Renew: s.Renew, Release: s.Release}.Store()
		}, o)
	})
	t.Run("Step2", func(t *testing.T) {
		props.TestStore(t, func(e props.Env) lease.Store {
			s := Step2{DB: database(e, Step2Schema), Now: e.Clock.Now}
			return props.Funcs{Acquire: s.Acquire, Renew: s.Renew, Release: s.Release}.Store()
		}, o)
	})
	t.Run("Step3", func(t *testing.T) {
		props.TestStore(t, func(e props.Env) lease.Store {
			s := Step3{DB: database(e, Step3Schema), Now: e.Clock.Now}
			return props.Funcs{Acquire: s.Acquire, Renew: s.Renew, Release: s.Release}.Store()
		}, o)
	})
}
