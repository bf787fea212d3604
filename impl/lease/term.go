package lease

import (
	"context"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
)

// Term is one uninterrupted belief to hold a lease, under one token. The zero
// Term was never valid.
type Term struct {
	Resource string
	Holder   Holder
	Token    Token // write with this
	belief   *belief
}

// Valid reports whether the holder may act under the term at this instant. It
// looks at the clock and makes no call. What is sent while it is valid may still
// arrive after: only a storage that checks the token covers that gap.
func (t Term) Valid() bool {
	// The deadline first: should it move after, the answer is merely cautious.
	return t.belief != nil && !t.belief.cut() && t.belief.deadline() > t.belief.clk.Now()
}

// Deadline is the instant, on the elector's clock, at which the term ends unless
// it is renewed, or has ended. Renewals move it, forwards.
func (t Term) Deadline() time.Duration {
	switch b := t.belief; {
	case b == nil:
		return 0
	case b.cut():
		return min(b.deadline(), b.clk.Now())
	default:
		return b.deadline()
	}
}

// belief is the one thing that those who keep a term share with those who ask: the
// deadline. An end before the deadline moves it back to that instant.
type belief struct {
	clk clock.Clock
	run context.Context // belief ends with it, before anybody is woken; nil: none
	at  atomic.Int64
}

func (b *belief) deadline() time.Duration { return time.Duration(b.at.Load()) }

func (b *belief) set(at time.Duration) { b.at.Store(int64(at)) }

// cut reports whether the context of Run has ended. That of the work ends a moment
// later, as it is derived from it.
func (b *belief) cut() bool { return b.run != nil && b.run.Err() != nil }
