package storetest

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"fencepost/impl/lease"
)

// A store that unlocks between the check and the act, and does nothing else in
// between, has no place where the callers could be made to meet: only the
// scheduler can bring another one into those few nanoseconds. What helps is many
// tries at little cost, and different ones, as it depends on the machine and on
// what else runs there which of them are good for anything.
//
// A burst is one: each of several callers walks over the same leases in the same
// order, and calls for each; what came of it is judged afterwards, lease by
// lease.
const (
	burstLeases = 32
	// burstsPerStore: as labRounds.
	burstsPerStore = 8
	// burstFactor and burstTime let a game have more bursts than its calls
	// allow, where calls cost next to nothing: as many calls times that at most,
	// for that long. They decide how likely a wrong store is found out, and
	// about no right one.
	burstFactor = 32
	burstTime   = 25 * time.Millisecond
)

// bursts plays a game's bursts until a number of calls was made.
func (g game) bursts(h *hammer, budget int) *breach {
	began := time.Now()
	first := h.made + len(h.calls)
	for n := 0; ; n++ {
		made := h.made + len(h.calls) - first
		if n > 0 && made >= budget && (made >= burstFactor*budget || time.Since(began) > burstTime) {
			return nil
		}
		if n%burstsPerStore == 0 {
			h.boot()
		}
		h.begin()
		h.burst = n
		h.gate.off.Store(true)
		if b := g.burst(h); b != nil {
			h.calls = slices.DeleteFunc(h.calls, func(c *call) bool { return c.resource != b.at.resource })
			return b
		}
	}
}

// stalled says that the burst is about one lease, for whose calls the callers
// queue behind another one, who is kept where it reads the clock for a
// different lease. If it has the store's lock there, they wait for longer than
// the millisecond after which a sync.Mutex is starving; when they wake up, it
// has the lock again. From then on the lock goes from each of them to the next
// at every unlock, and nobody does two steps in a row, on however few
// processors.
func (h *hammer) stalled() bool { return h.burst < 2*len(stallers) }

func (h *hammer) leases() int {
	if h.stalled() {
		return 1
	}
	return burstLeases
}

// How long the one who keeps others waiting is kept at its first call, and at
// its second, at which they must wake up.
const (
	stallFirst  = 1500 * time.Microsecond
	stallSecond = 500 * time.Microsecond
)

// stallers are the calls that may read the clock under the lock, where those
// that are raced do not.
var stallers = [...]lease.Op{lease.OpGet, lease.OpAcquire, lease.OpRenew, lease.OpRelease}

// staller keeps the others waiting.
func (h *hammer) staller() {
	defer h.gate.stalling.Store(false) // nobody waits for it any more
	defer h.gate.stall.Store(0)
	x := h.candidate("x")
	resource := h.resource("x")
	for _, d := range [...]time.Duration{stallFirst, stallSecond} {
		h.gate.stall.Store(int64(d))
		switch stallers[h.burst%len(stallers)] {
		case lease.OpGet:
			if !h.o.NoGet {
				h.store.Get(h.ctx, resource)
			}
		case lease.OpAcquire:
			h.store.Acquire(h.ctx, resource, x, h.ttl)
		case lease.OpRenew:
			h.store.Renew(h.ctx, resource, x, 1, h.ttl)
		case lease.OpRelease:
			h.store.Release(h.ctx, resource, x, 1)
		}
	}
}

// walk makes calls at once: each lane is the calls of one caller, of which the
// n-th of all lanes are for one lease.
func (h *hammer) walk(lanes [][]*call) {
	places := make([]place, len(lanes))
	fs := make([]func(), len(lanes))
	for i, calls := range lanes {
		h.calls = append(h.calls, calls...)
		rng := rand.New(rand.NewPCG(h.rng.Uint64(), 0))
		fs[i] = func() {
			defer places[i].n.Store(math.MaxInt64) // also where the store ends the goroutine
			for range 1 << 16 {                    // until the one who stalls is kept, or is through
				if !h.gate.stalling.Load() || h.gate.kept.Load() {
					break
				}
				runtime.Gosched()
			}
			for n, c := range calls {
				switch h.burst / 2 % 4 {
				case 0: // as fast as they can
				case 1:
					runtime.Gosched()
				default:
					places[i].n.Store(int64(n))
					abreast(places, int64(n))
					// One who finds the lock taken waits for a microsecond, in
					// which the other has finished: it must come at the instant
					// of the unlock, and nobody knows when that is.
					loiter(rng.IntN(8 << (2 * (h.burst / 8 % 4))))
				}
				h.make(c)
			}
		}
	}
	if h.stalled() {
		h.gate.kept.Store(false)
		h.gate.stalling.Store(true)
		fs = append(fs, h.staller)
	}
	h.together(fs...)
}

// place is how far a caller has come, on a cache line of its own.
type place struct {
	n atomic.Int64
	_ [56]byte
}

// abreast waits until nobody is behind n: without giving up the processor at
// first, so that all go on within nanoseconds.
func abreast(places []place, n int64) {
	tries := 0
	for i := range places {
		for places[i].n.Load() < n {
			if tries++; tries > 500 {
				runtime.Gosched()
			}
		}
	}
}

// loiter passes a little time.
func loiter(n int) {
	var nothing atomic.Int32
	for range n {
		nothing.Load()
	}
}

// granted grants a few leases that nobody had to the holder, one after another.
// Those of which that is not sure are left out.
func (h *hammer) granted(holder lease.Holder) ([]*call, *breach) {
	calls := make([]*call, h.leases())
	for i := range calls {
		calls[i] = h.acquire(h.numbered(i), holder)
	}
	h.inTurn(calls)
	for _, c := range calls {
		if c.refused() {
			return nil, c.breaks("%s was refused a lease that nobody had", c.who())
		}
	}
	return slices.DeleteFunc(calls, func(c *call) bool { return !c.ok() }), nil
}

// inTurn makes calls one after another.
func (h *hammer) inTurn(calls []*call) {
	h.calls = append(h.calls, calls...)
	h.together(func() {
		for _, c := range calls {
			h.make(c)
		}
	})
}

// acquiresAtOnce is a burst of acquires of free leases.
func (h *hammer) acquiresAtOnce() *breach {
	lanes := make([][]*call, 2+h.burst%3)
	for i := range lanes {
		for n := range h.leases() {
			lanes[i] = append(lanes[i], h.acquire(h.numbered(n), h.candidate(nodes[i])))
		}
	}
	h.walk(lanes)
	for n := range h.leases() {
		if _, b := h.winner(nth(lanes, n)); b != nil {
			return b
		}
	}
	return nil
}

// nth are the calls for the n-th lease.
func nth(lanes [][]*call, n int) []*call {
	calls := make([]*call, len(lanes))
	for i := range lanes {
		calls[i] = lanes[i][n]
	}
	return calls
}

// releasesAtOnce is a burst of releases and acquires of leases that are held.
func (h *hammer) releasesAtOnce() *breach {
	held, b := h.granted(h.candidate("a"))
	if b != nil {
		return b
	}
	lanes := make([][]*call, 3)
	for _, a := range held {
		lanes[0] = append(lanes[0], h.release(a))
		lanes[1] = append(lanes[1], h.release(a))
		lanes[2] = append(lanes[2], h.acquire(a.resource, h.candidate("b")))
	}
	h.walk(lanes)
	// In all of them whoever was granted the lease must have it afterwards.
	next := make([]*call, len(held))
	for n, a := range held {
		won, b := h.handedOver(a, []*call{lanes[0][n], lanes[1][n]}, []*call{lanes[2][n]})
		if b != nil {
			return b
		}
		next[n] = h.acquire(a.resource, h.candidate("d"))
		if won != nil {
			next[n] = h.renew(won)
		}
	}
	return h.settle(held, next, lanes)
}

// renewalsAtOnce is a burst of renewals and releases of leases that are held, in
// every other one with acquires.
func (h *hammer) renewalsAtOnce() *breach {
	held, b := h.granted(h.candidate("a"))
	if b != nil {
		return b
	}
	h.lab.Advance(1) // so that a renewal changes something
	lanes := make([][]*call, 3)
	for _, a := range held {
		lanes[0] = append(lanes[0], h.renew(a))
		lanes[1] = append(lanes[1], h.release(a))
		if h.burst%2 == 0 {
			lanes[2] = append(lanes[2], h.renew(a))
		} else {
			lanes[2] = append(lanes[2], h.acquire(a.resource, h.candidate("b")))
		}
	}
	h.walk(lanes)
	next := make([]*call, len(held))
	for n, a := range held {
		release, other := lanes[1][n], lanes[2][n]
		if release.refused() {
			return release.breaks("a had the lease, and could not release it")
		}
		next[n] = h.acquire(a.resource, h.candidate("d"))
		if other.op == lease.OpAcquire && other.ok() {
			next[n] = h.renew(other)
		}
	}
	return h.settle(held, next, lanes)
}

// settle asks what became of leases of which a had each and has released it: the
// next call for each is a renewal of whom it was granted to, or an acquire.
func (h *hammer) settle(held, next []*call, lanes [][]*call) *breach {
	h.inTurn(next)
	for n, c := range next {
		if unsure(append(nth(lanes, n), c)) != nil {
			continue
		}
		switch {
		case c.ok() && c.op == lease.OpAcquire:
			if b := h.rises(held[n], c); b != nil {
				return b
			}
		case c.ok():
		case c.op == lease.OpAcquire:
			return c.breaks("a has released it, and %s is refused the lease", c.who())
		default:
			return c.breaks("%s was granted the lease under token %d, and does not have it", c.who(), c.token)
		}
	}
	return nil
}
