package leasesql_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
	"fencepost/props"
)

// memory is a database in memory that outlives the processes which use it: one
// connection, or each would have a memory of its own.
func memory(e props.Env) *sql.DB {
	return props.Durable(e, "database", func() *sql.DB { return open(e, ":memory:", 1) })
}

func onDisk(e props.Env) *sql.DB {
	return props.Durable(e, "database", func() *sql.DB {
		return open(e, "file:"+filepath.Join(e.Dir(), "leases.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=busy_timeout(20000)", 0)
	})
}

func open(e props.Env, dsn string, conns int) *sql.DB {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		e.Fatal(err)
	}
	db.SetMaxOpenConns(conns)
	return db
}

func store(e props.Env, db *sql.DB, boot string, o leasesql.Options) *leasesql.Store {
	o.Clock, o.Boot = e.Clock, boot
	s, err := leasesql.New(db, leasesql.SQLite(), o)
	if err != nil {
		e.Fatal(err)
	}
	if err := s.Create(e.Context); err != nil {
		e.Fatal(err)
	}
	return s
}

// The same on disk, where each transaction has a connection of its own.
func TestOneBootOnDisk(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		return store(e, onDisk(e), "boot", leasesql.Options{LockDelay: 3 * time.Second})
	}, props.Options{Calls: 2_000, SteadyClock: true, LockDelay: 3 * time.Second})
}

// Processes come and go, and the machine stays up.
func TestOneBoot(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		return store(e, memory(e), "boot", leasesql.Options{})
	}, props.Options{Calls: 4_000, SteadyClock: true, Shared: true})
}

// The machine boots before each process.
func TestABootForEachProcess(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		boots := props.Durable(e, "boots", func() *int { return new(int) })
		*boots++
		return store(e, memory(e), fmt.Sprint("boot ", *boots), leasesql.Options{})
	}, props.Options{Calls: 4_000})
}

func TestStorage(t *testing.T) {
	props.TestStorage(t, func(e props.Env) fence.KV {
		return store(e, memory(e), "boot", leasesql.Options{}).KV("jobs")
	}, props.StorageOptions{Calls: 3_000})
}
