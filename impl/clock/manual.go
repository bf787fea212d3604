package clock

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Manual is a clock that stands still until it is told to move: the clock of tests
// and simulations. The zero Manual is ready to use and reads zero. It must not be
// copied.
type Manual struct {
	turn sync.Mutex // held by whoever moves the clock, until the last timer has fired

	mu      sync.Mutex
	now     time.Duration  // written only with turn held too
	made    uint64         // alarms made so far
	pending []*manualAlarm // set and not due, in firing order
}

// NewManual returns a Manual that reads start, which may be negative.
func NewManual(start time.Duration) *Manual { return &Manual{now: start} }

// Now returns the instant that the clock was last moved to.
func (m *Manual) Now() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Timer returns a timer that fires when the clock is moved to at or beyond.
func (m *Manual) Timer(at time.Duration) Timer { return newTimer(m.Now, m.alarm, at) }

// Advance moves the clock by d, at most to the last instant there is, some 292 years
// after the origin. It panics if d is negative.
//
// All timers that are due have fired when Advance returns, in the order of their
// deadlines, and those with one deadline in the order in which they were created (or
// first reset after a Stop). Now reads the new instant before the first of them fires,
// so what a woken goroutine reads does not depend on the scheduler; to stop at instants
// in between, advance to each of them.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("clock: Manual.Advance(%v): a clock never goes back; make a new one", d))
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	m.moveTo(saturatingAdd(m.Now(), d))
}

// Set moves the clock to at, as [Manual.Advance] does. It panics if at has passed.
func (m *Manual) Set(at time.Duration) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if now := m.Now(); at < now {
		panic(fmt.Sprintf("clock: Manual.Set(%v) at %v: a clock never goes back; make a new one", at, now))
	}
	m.moveTo(at)
}

// moveTo is called with turn held, and so ends: now stands, and nothing that is due
// becomes pending.
func (m *Manual) moveTo(at time.Duration) {
	m.mu.Lock()
	m.now = at
	m.mu.Unlock()
	for wake := m.nextDue(); wake != nil; wake = m.nextDue() {
		wake()
	}
}

func (m *Manual) nextDue() (wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending) == 0 || m.pending[0].at > m.now {
		return nil
	}
	wake = m.pending[0].wake
	m.pending = slices.Delete(m.pending, 0, 1)
	return wake
}

func (m *Manual) alarm(wake func()) alarm {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	return &manualAlarm{clock: m, wake: wake, number: m.made}
}

type manualAlarm struct {
	clock  *Manual
	wake   func()
	number uint64        // order of creation
	at     time.Duration // changed only while not pending, which is sorted by it
}

// firingOrder is total, for numbers are unique: it finds an alarm itself.
func firingOrder(a, b *manualAlarm) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
}

func (a *manualAlarm) set(at time.Duration) (due bool) {
	m := a.clock
	m.mu.Lock()
	defer m.mu.Unlock()
	a.remove()
	if at <= m.now {
		return true
	}
	a.at = at
	i, _ := slices.BinarySearchFunc(m.pending, a, firingOrder)
	m.pending = slices.Insert(m.pending, i, a)
	return false
}

func (a *manualAlarm) close() {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.remove()
}

// remove is called with the clock locked.
func (a *manualAlarm) remove() {
	m := a.clock
	if i, pending := slices.BinarySearchFunc(m.pending, a, firingOrder); pending {
		m.pending = slices.Delete(m.pending, i, i+1)
	}
}

func saturatingAdd(a, b time.Duration) time.Duration {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}
