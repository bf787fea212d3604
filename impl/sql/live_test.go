package leasesql_test

import (
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
	"fencepost/impl/sql/postgres"
	"fencepost/props"
)

// live checks everything on one server: a store and both guards, each of their
// processes with connections of its own.
func live(t *testing.T, s server) {
	s.created(t)
	process := func(e props.LiveEnv) *leasesql.Store {
		store, err := leasesql.New(s.open(t), s.dialect, leasesql.Options{})
		if err != nil {
			e.Fatal(err)
		}
		return store
	}
	noRestart := ""
	if s.restart == nil {
		noRestart = "there is no server: a process that dies is checked by itself"
	}
	leases := props.LiveOptions{Restart: s.restart, NoRestart: noRestart}
	leases.SteadyClock = true
	t.Run("store", func(t *testing.T) {
		props.TestLiveStore(t, func(e props.LiveEnv) lease.Store {
			if s.driver != "pgx" {
				return process(e)
			}
			store, err := postgres.New(s.open(t), leasesql.Options{})
			if err != nil {
				e.Fatal(err)
			}
			return store
		}, leases)
	})
	t.Run("table above which nobody knows tokens", func(t *testing.T) { protectedTable(t, s) })
	t.Run("storage", func(t *testing.T) {
		props.TestLiveStorage(t, func(e props.LiveEnv) fence.KV { return process(e).KV("highest seen") },
			props.LiveStorageOptions{Restart: s.restart, NoRestart: noRestart})
	})
	t.Run("storage beside the lease", func(t *testing.T) {
		props.TestLiveStorage(t, func(e props.LiveEnv) fence.KV { return process(e).CarriedKV("carried") },
			props.LiveStorageOptions{
				Lease:    func(e props.LiveEnv) lease.Store { return process(e) },
				Resource: "carried", Restart: s.restart, NoRestart: noRestart,
			})
	})
}

func TestLivePostgreSQL(t *testing.T) { live(t, postgreSQL(t)) }
func TestLiveMariaDB(t *testing.T)    { live(t, mariaDB(t)) }
func TestLiveSQLite(t *testing.T)     { live(t, file(t)) }
