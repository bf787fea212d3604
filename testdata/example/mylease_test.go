package mylease

import (
	"testing"

	"fencepost/impl/lease"
	"fencepost/props"
)

// The rows are kept by fencepost from one process of the store to the next, as
// a disk keeps them: what a process had in memory is gone.
func TestTable(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		disk := props.Durable(e, "rows", func() map[string]Row { return map[string]Row{} })
		return NewTable(e.Clock.Now, disk)
	}, props.Options{})
}

// Files are kept in a directory, and a store need not know of fencepost: its
// methods are plain functions.
func TestFiles(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		f, err := OpenFiles(e.Dir(), e.Clock.Now, true) // each process has a clock of its own, as after a reboot
		if err != nil {
			e.Fatal(err)
		}
		return props.Funcs{Acquire: f.Acquire, Renew: f.Renew, Release: f.Release}.Store()
	}, props.Options{Calls: 2_000}) // a call takes a tenth of a millisecond
}

// A registry forgets everything with its process, and says so.
func TestRegistry(t *testing.T) {
	props.TestStore(t, func(e props.Env) lease.Store {
		r := NewRegistry(e.Context, e.Clock.Now)
		return props.Funcs{Acquire: r.Acquire, Renew: r.Renew, Release: r.Release}.Store()
	}, props.Options{Volatile: true})
}

// A client needs no change to be tested: its time is that of a testing/synctest
// bubble, and what it believes shows by the work that it starts and stops.
func TestClient(t *testing.T) {
	props.TestElector(t, func(e props.ElectorEnv) props.Candidate {
		c := &Client{
			Store: e.Store, Resource: e.Resource, Node: e.Node, Nonce: e.Nonce,
			TTL: e.Config.TTL, Window: e.Config.Window, Lead: e.Lead,
		}
		return props.Candidate{Run: c.Run}
	}, props.ElectorOptions{})
}
