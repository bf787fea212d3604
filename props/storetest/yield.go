package storetest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
)

// patience is how often a caller lets others run while it waits at a gate. A
// store that holds a lock while it reads its clock lets nobody else arrive, so
// that the wait must end; without such a lock the others are a few steps away.
const patience = 64

// gate is where the callers of a store meet: at each reading of the clock, and
// each look at the context, a caller waits until all others have come to one
// too, or have left the store, or have had time enough. A store that decides
// before the meeting and acts after it without a lock has decided for all of
// them by then.
//
// Measured on two processors, 20,000 rounds each: of a store whose acquire
// checks, reads the clock and sets, each step by itself under a lock, 99.8% of
// the rounds with two to four acquires at once show more than one winner, and
// 0.04% of those that do not yield; of one that looks at its context in between,
// 99.9% and 0.4%. A renewal that checks and then sets brings a released tenure
// back in 25% of the rounds that race it or a retry against a release, and in
// none of 20,000 otherwise: it must have been first at a lock that the release
// holds. BenchmarkRounds measures it anew.
//
// Where a store touches neither its clock nor its context between the check and
// the act, as when it reads the clock first of all, there is nowhere to meet: see
// [Concurrency] for what is done about those.
type gate struct {
	// off lets everybody pass. Meeting is synchronization, and hides data races
	// from the race detector: some rounds go without.
	off atomic.Bool
	// stall is for how many nanoseconds to keep the next one who comes here,
	// and nobody else; kept says that one was, since somebody began stalling.
	stall          atomic.Int64
	stalling, kept atomic.Bool

	mu      sync.Mutex
	callers int           // inside the store
	waiting int           // of these, at the gate
	met     atomic.Uint64 // how often all have met
}

// enter counts n more callers in, before the first of them calls.
func (g *gate) enter(n int) {
	g.mu.Lock()
	g.callers += n
	g.mu.Unlock()
}

// leave counts a caller out: nobody waits for it any more.
func (g *gate) leave() {
	g.mu.Lock()
	g.callers--
	g.open()
	g.mu.Unlock()
}

// open lets through all who wait, if nobody else is to come.
func (g *gate) open() {
	if g.waiting > 0 && g.waiting >= g.callers {
		g.waiting = 0
		g.met.Add(1)
	}
}

// pass waits for the others. Goroutines of the store may pass too: they are
// taken for a caller, which at worst opens the gate too soon.
func (g *gate) pass() {
	if d := g.stall.Load(); d > 0 && g.stall.CompareAndSwap(d, 0) {
		g.kept.Store(true)
		time.Sleep(time.Duration(d))
	}
	if g.off.Load() {
		return
	}
	g.mu.Lock()
	met := g.met.Load()
	g.waiting++
	g.open()
	g.mu.Unlock()
	for range patience {
		if g.met.Load() != met {
			return
		}
		runtime.Gosched()
	}
	g.mu.Lock()
	if g.met.Load() == met {
		g.waiting--
	}
	g.mu.Unlock()
}

// gatedClock is a clock behind a gate.
type gatedClock struct {
	clock.Clock
	gate *gate
}

func (c gatedClock) Now() time.Duration {
	c.gate.pass()
	return c.Clock.Now()
}

func (c gatedClock) Timer(at time.Duration) clock.Timer {
	c.gate.pass()
	return c.Clock.Timer(at)
}

// gatedContext is a context behind a gate, for a store that looks at its
// context between one step and the next.
type gatedContext struct {
	context.Context
	gate *gate
}

func (c gatedContext) Done() <-chan struct{} {
	c.gate.pass()
	return c.Context.Done()
}

func (c gatedContext) Err() error {
	c.gate.pass()
	return c.Context.Err()
}

func (c gatedContext) Value(key any) any {
	c.gate.pass()
	return c.Context.Value(key)
}
