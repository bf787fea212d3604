// Package livetest checks a lease store, or a fenced storage, on a real server
// and in real time: what props.TestLiveStore and props.TestLiveStorage run.
//
// It must not know any server: how to open, restart and tamper with one is
// given to it in its options. Nor does it judge what a simulated clock could:
// that an expiry is exact to the nanosecond is for package storetest.
//
// Start at [StoreChecks] and [StorageChecks].
package livetest

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Env is the world of one process of the code under test. Several live at once,
// on one server.
type Env struct {
	// Context ends when the process does.
	Context context.Context
	// Logger is shown with a failure.
	Logger *slog.Logger
}

// Fatal gives up: the code under test could not be set up. It does not return.
func (e Env) Fatal(err error) { panic(&kit.SetupError{Err: err}) }

// Options are what a store promises, and how to get at its server.
type Options struct {
	// Options are the promises. SteadyClock is the usual one for a server whose
	// clock goes on while it restarts; Calls is not used.
	kit.Options
	// TTL is the one that most checks use. Default MinTTL, or a second where
	// that is less. The checks take some dozens of them.
	TTL time.Duration
	// Latency is how long a call may take when nothing is wrong, with all that
	// the machine is busy with besides. Default 500 ms. Whatever a check concludes from
	// real time allows for it.
	Latency time.Duration
	// Restart kills the server (kill -9 where that is possible) and starts it
	// again from what it has kept, and returns once it answers. Nil: restarts
	// are not tested, and NoRestart says why.
	Restart   func(ctx context.Context) error
	NoRestart string
	// Delete removes the lease object of a resource as an operator would, behind
	// the store's back. Nil: the store's own, if it is a [kit.Deleter]; else deletion is
	// not tested.
	Delete func(ctx context.Context, resource string) error
}

// StorageOptions are what a fenced storage promises, and how to get at its
// server.
type StorageOptions struct {
	// Volatile, NoRead and NoFence are as those of package storagetest.
	Volatile, NoRead, NoFence bool
	// Lease opens the store whose tokens the storage compares with, on the same
	// server: each token is then granted for Resource before anybody writes under it. Nil:
	// the storage looks at no lease, and tokens are counted from 1.
	Lease func(Env) lease.Store
	// Resource is the lease that a storage under test belongs to, where Lease is
	// set.
	Resource string
	// TTL of those leases. Default ten seconds: long enough for a check.
	TTL time.Duration
	// Restart is as in [Options].
	Restart   func(ctx context.Context) error
	NoRestart string
}

// withDefaults is o with what was left open filled in.
func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, max(o.MinTTL, time.Second))
	o.Latency = cmp.Or(o.Latency, 500*time.Millisecond)
	return o
}
