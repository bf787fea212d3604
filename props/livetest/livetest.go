// Package livetest checks a lease store, or a fenced storage, on a real server
// and in real time: what props.TestLiveStore and props.TestLiveStorage run.
//
// It must not know any server: how to open, restart and tamper with one is
// given to it in its options. Nor does it judge what a simulated clock could:
// that an expiry is exact to the nanosecond is for package storetest.
//
// Start at [StoreChecks] and [StorageChecks].
//
// # How real time convicts
//
// Nobody knows when, between its call and its return, a request took effect. So
// a check says at each step what a correct store answers, and where the answer
// is another, asks the timed specification ([model.TimedParams], by way of
// linearizability) whether any instants explain all that was answered. Only
// where none do is the store convicted: a machine that is slow makes more
// answers right, and the step is then made again with a longer TTL, up to three
// times, before the check says that nothing is known. What is wrong at any
// instant, such as a refusal that names the wrong holder, convicts at once.
//
// The specification allows for [Options].Late, Granularity and Latency on top of
// each TTL, and for clocks that differ in rate by 0.1%; for nothing below a TTL.
package livetest

import (
	"cmp"
	"context"
	"fmt"
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
	// that is less; at most a minute. The checks take about twenty of them, and a
	// few restarts.
	TTL time.Duration
	// Latency is how long a call may take when nothing is wrong, with all that
	// the machine is busy with besides. Default 500 ms. A lease may be held for as
	// much longer than its TTL before that convicts, and hints may take some of
	// it; a call that takes longer convicts nobody.
	Latency time.Duration
	// Restart kills the server (kill -9 where that is possible) and starts it
	// again from what it has kept, and returns once it answers. Nil: restarts
	// are not tested, and NoRestart says why.
	Restart   func(ctx context.Context) error
	NoRestart string
	// Delete removes the lease object of a resource as an operator would, behind
	// the store's back. Nil: the store's own, if it is a [kit.Deleter], which is
	// also what watchers have to be told of; with neither, deletion is not tested.
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
	// TTL of those leases. Default ten seconds: long enough for a check, each of
	// which has leases of its own.
	TTL time.Duration
	// Restart is as in [Options].
	Restart   func(ctx context.Context) error
	NoRestart string
}

// Validate returns a *[kit.OptionsError] for the first field that makes no
// sense, or nil.
func (o Options) Validate() error {
	bad := func(field, reason string) error { return &kit.OptionsError{Field: field, Reason: reason} }
	if err := o.Options.Validate(); err != nil {
		return err
	}
	switch {
	case o.TTL < 0 || o.TTL > time.Minute:
		return bad("TTL", fmt.Sprintf("%v is not between 0 and a minute: the checks take some dozens of them", o.TTL))
	case o.TTL > 0 && o.TTL < o.MinTTL:
		return bad("TTL", fmt.Sprintf("%v is less than MinTTL, %v", o.TTL, o.MinTTL))
	case o.Latency < 0 || o.Latency > time.Minute:
		return bad("Latency", fmt.Sprintf("%v is not between 0 and a minute", o.Latency))
	case o.Restart != nil && o.NoRestart != "":
		return bad("NoRestart", "Restart is set: restarts are tested")
	}
	return nil
}

// Validate returns a *[kit.OptionsError] for the first field that makes no
// sense, or nil.
func (o StorageOptions) Validate() error {
	bad := func(field, reason string) error { return &kit.OptionsError{Field: field, Reason: reason} }
	switch {
	case (o.Lease == nil) != (o.Resource == ""):
		return bad("Resource", "it is that of the tokens which Lease grants: set both or none")
	case o.TTL < 0 || o.TTL > time.Hour:
		return bad("TTL", fmt.Sprintf("%v is not between 0 and an hour", o.TTL))
	case o.NoRead && o.NoFence:
		return bad("NoRead", "without Read and Fence nothing is left to check but a refusal")
	case o.Restart != nil && o.NoRestart != "":
		return bad("NoRestart", "Restart is set: restarts are tested")
	}
	return nil
}

// withDefaults is o with what was left open filled in.
func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, max(o.MinTTL, time.Second))
	o.Latency = cmp.Or(o.Latency, 500*time.Millisecond)
	return o
}
