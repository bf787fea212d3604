package electortest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Env is the world that one process of the client under test lives in. All of
// it belongs to a testing/synctest bubble, in which package time is fake: a
// client that calls time.Now, time.After or context.WithTimeout needs no
// change. It must wait on nothing that was made outside, such as a channel in a
// package variable, nor on the network.
type Env struct {
	// Store is what the client is to use: a fake one, whose calls fail, hang,
	// and are refused. Most of its calls heed their context; some do not.
	Store lease.Store
	// Clock is the bubble's time, for a client that takes its clock from
	// outside.
	Clock clock.Clock
	// Config is the timing to use: how long to ask for, and how far the
	// store's clock may be off. It is [Options].Config.
	Config lease.Config
	// Resource is what to campaign for. Store has no other lease.
	Resource string
	// Node is the name of this candidate. Two processes may share it, as those
	// before and after a restart do; Nonce is what tells them apart.
	Node  string
	Nonce uint64
	// Storage is what the leader writes to. Use of it is optional; with
	// [Options].Fences the client must fence its token there before it leads.
	Storage fence.KV
	// Logger is shown with a failure.
	Logger *slog.Logger
	// Lead is the work: the client calls it for each term, with the token of
	// the term and a context that ends when the term does. It returns nil once
	// that has ended, and in some stories a while later, for work takes time to
	// stop. A client that has no such thing leaves it alone and gives
	// [Candidate].IsLeader.
	Lead func(ctx context.Context, token uint64) error
}

// Candidate is a client under test. What it believes must show: by IsLeader, by
// calls of [Env].Lead, or both.
type Candidate struct {
	// Run campaigns, and campaigns again after a term, until ctx ends. It must
	// leave no goroutine behind. Required.
	Run func(ctx context.Context) error
	// IsLeader says whether the client may act as leader at this instant. It
	// is asked while Run runs and after, and must neither call the store nor
	// wait for a call.
	IsLeader func() bool
}

// Options are what a client promises where correct ones differ. The zero
// Options suit most.
type Options struct {
	// Config is the timing that the client is given. The zero value is a TTL
	// of 10s, a MaxDriftRate of 0.1, a SafetyMargin of 1s, a RenewFraction of
	// 1/4 and a RetryInterval of 1s: a window of 8s. A client with a TTL of its
	// own says so here. Barrier is ignored: see Fences.
	//
	// No client is held to the window. What is asked is that belief ends
	// before the tenure can have, by a store's clock that is as fast as
	// MaxDriftRate allows; so SafetyMargin is the time that a client has to
	// notice.
	Config lease.Config
	// TakeoverWithin is how soon a waiting candidate must lead once the lease
	// is free and the store well. Default two TTLs.
	TakeoverWithin time.Duration
	// Exits says that Run may return when a term ends: somebody starts the
	// process anew. The checks do the same.
	Exits bool
	// NoRelease says that the client lets the lease lapse when it stops.
	NoRelease bool
	// FullTTL says that a grant is always for as long as was asked for, as where
	// [Env.Funcs] is used, which cannot tell: shorter ones are not tested.
	FullTTL bool
	// Fences says that the client fences its token at [Env].Storage before it
	// leads.
	Fences bool
	// Plans is how many random plans the quick mode plays, and the long mode a
	// hundred times as many; fewer where a client makes very many calls.
	// Default 100.
	Plans int

	// patience is how many tenths of a second of real time may pass in one
	// instant of the bubble before the client is said to be stuck; 0: 50.
	patience int
}

func (o Options) withDefaults() Options {
	if o.Config == (lease.Config{}) {
		o.Config = lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.1, SafetyMargin: time.Second, RenewFraction: 0.25, RetryInterval: time.Second}
	}
	o.Config.Barrier = o.Fences
	if o.TakeoverWithin == 0 {
		o.TakeoverWithin = 2 * o.Config.TTL
	}
	if o.Plans == 0 {
		o.Plans = 100
	}
	if o.patience == 0 {
		o.patience = 50
	}
	return o
}

// The shortest TTL keeps the parts into which the stories divide it apart; the
// longest keeps all sums far from overflow.
const (
	shortestTTL = time.Millisecond
	longestTTL  = 24 * time.Hour
	// worstDrift is a store's clock ten times as fast, or as slow.
	worstDrift = 0.9
)

// Validate returns a *[kit.OptionsError] for the first field that makes no
// sense, or nil.
func (o Options) Validate() error {
	o = o.withDefaults()
	bad := func(field, format string, args ...any) error {
		return &kit.OptionsError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case o.Config.TTL < shortestTTL || o.Config.TTL > longestTTL:
		return bad("Config", "a TTL of %v is not between %v and %v", o.Config.TTL, shortestTTL, longestTTL)
	case o.Config.MaxDriftRate > worstDrift:
		return bad("Config", "a MaxDriftRate of %v is above %v", o.Config.MaxDriftRate, worstDrift)
	case o.TakeoverWithin < 0 || o.TakeoverWithin > 100*o.Config.TTL:
		return bad("TakeoverWithin", "%v is not between 0 and a hundred TTLs, %v", o.TakeoverWithin, 100*o.Config.TTL)
	case o.Plans < 0:
		return bad("Plans", "%d is negative", o.Plans)
	}
	if err := o.Config.Validate(); err != nil {
		return bad("Config", "%v", err)
	}
	return nil
}

// Check is one thing to ask of a client.
type Check struct {
	// Name is that of the subtest, in groups: "belief/ends-at-a-refusal".
	Name string
	// Run asks, in bubbles of its own, for which it needs a t; it does not
	// fail it. It may be called again, and does the same again, except that
	// once a client got stuck in one check, the others of its Checks are
	// skipped.
	Run func(t *testing.T) kit.Outcome
}

// Checks are all checks of the client that start makes for each process of it.
// It panics with the error of [Options.Validate].
func Checks(start func(Env) Candidate, o Options, e kit.Effort) []Check {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	// A client that is stuck takes real time, and would be in every check.
	var stuck atomic.Pointer[string]
	unlessStuck := func(name string, run func(*testing.T) kit.Outcome) Check {
		return Check{Name: name, Run: func(t *testing.T) kit.Outcome {
			if where := stuck.Load(); where != nil && *where != name {
				return kit.Outcome{Skipped: "the client got stuck in " + *where}
			}
			out := run(t)
			if out.Failure != nil && out.Failure.Rule == rules[kindStuck].name || strings.HasPrefix(out.Unknown, stuckOutside) {
				stuck.CompareAndSwap(nil, &name)
			}
			return out
		}}
	}
	var checks []Check
	for _, s := range stories(o) {
		checks = append(checks, unlessStuck(s.name, func(t *testing.T) kit.Outcome { return s.play(t, start, o) }))
	}
	return append(checks, unlessStuck(randomName, func(t *testing.T) kit.Outcome { return random(t, start, o, e) }))
}
