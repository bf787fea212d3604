package clock

import (
	"sync"
	"time"
)

// An alarm calls the wake function it was made with, some time after its clock has
// reached the instant it was last set for.
//
// A wake is only a hint to look at the clock. It may come early, twice, or for an
// instant that was since replaced; it must not fail to come. That is what lets each
// clock use whatever can wake it, and keeps the rules of firing in one place, timer.
type alarm interface {
	// set replaces the instant. If the clock has reached at already, set may return
	// due instead of waking: wake takes locks that the caller of set holds.
	set(at time.Duration) (due bool)

	// close releases the alarm, which is not set again, and waits for the goroutine that
	// serves it, if there is one.
	close()
}

// timer implements Timer for every clock of this package.
//
// Locks are taken in the order timer, Drifting (outer before base), Manual, so that
// no clock may call wake while it holds its own.
type timer struct {
	now   func() time.Duration
	alarm func(wake func()) alarm // makes one on this timer's clock
	ch    chan struct{}

	mu    sync.Mutex
	at    time.Duration
	armed bool  // false: fired or stopped. Whenever armed, ch is empty
	bell  alarm // nil once stopped
}

func newTimer(now func() time.Duration, alarm func(wake func()) alarm, at time.Duration) *timer {
	t := &timer{now: now, alarm: alarm, ch: make(chan struct{}, 1)}
	t.Reset(at)
	return t
}

func (t *timer) C() <-chan struct{} { return t.ch }

func (t *timer) Reset(at time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	t.at, t.armed = at, true
	if t.bell == nil {
		t.bell = t.alarm(t.wake)
	}
	t.look()
}

func (t *timer) Stop() {
	t.mu.Lock()
	t.drain()
	t.armed = false
	bell := t.bell
	t.bell = nil
	t.mu.Unlock()
	// Without the lock: close may wait for a goroutine that is about to wake us.
	if bell != nil {
		bell.close()
	}
}

// wake is the alarm's call. It cannot trust the reason for it, so it looks itself.
func (t *timer) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.look()
}

// look fires if it is time to, and otherwise sees to it that somebody wakes us then.
func (t *timer) look() {
	for t.armed {
		if t.now() >= t.at {
			t.armed = false
			t.ch <- struct{}{} // does not block: ch is empty while armed
			return
		}
		if !t.bell.set(t.at) {
			return
		}
	}
}

func (t *timer) drain() {
	select {
	case <-t.ch:
	default:
	}
}

// relay is an alarm on a clock of which nothing is known but its interface: one timer
// of that clock, and one goroutine that waits for it.
type relay struct {
	base  Clock
	wake  func()
	timer Timer // nil until first set
	quit  chan struct{}
	done  sync.WaitGroup
}

func (r *relay) set(at time.Duration) (due bool) {
	if r.timer != nil {
		r.timer.Reset(at)
		return false
	}
	r.timer = r.base.Timer(at)
	r.quit = make(chan struct{})
	r.done.Go(r.run)
	return false
}

func (r *relay) run() {
	for {
		select {
		case <-r.timer.C():
			r.wake()
		case <-r.quit:
			return
		}
	}
}

func (r *relay) close() {
	if r.timer == nil {
		return
	}
	close(r.quit)
	r.done.Wait()
	r.timer.Stop()
}

// sleeper is an alarm by Go's own timers, for a clock that reads now.
type sleeper struct {
	now   func() time.Duration
	wake  func()
	most  time.Duration // longest sleep before another look at the clock
	timer *time.Timer   // nil until first set
}

func (s *sleeper) set(at time.Duration) (due bool) {
	d := min(at-s.now(), s.most)
	if s.timer != nil {
		s.timer.Reset(d)
	} else {
		s.timer = time.AfterFunc(d, s.wake)
	}
	return false
}

func (s *sleeper) close() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
