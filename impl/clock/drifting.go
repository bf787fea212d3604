package clock

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Drifting is a clock that runs slow, fast, or not at all against another, its base.
// It stands in for the bad oscillator that a drift bound must allow for, and for the
// one that breaks the bound; its timers drift with it.
//
// However often the rate changes, the reading is the exact rational value rounded
// down to a nanosecond, once. Nothing accumulates, so a simulated hour at a wrong rate
// is wrong by that rate and by nothing else.
//
// A Drifting must be made by [NewDrifting], and not copied. It fires its timers in the
// same call that moves the base when the base is a [Manual], or a Drifting over one.
type Drifting struct {
	base Clock

	mu     sync.Mutex
	line   line
	alarms []*driftingAlarm // all open ones, in order of creation: no map, for its order would show
}

// NewDrifting returns a clock that reads base.Now()+offset now, and from now on moves
// at rate against base. An offset is harmless to whoever compares instants of one clock
// only; it is here to show that. A reading outside the range of a [time.Duration] is
// the nearest one inside.
//
// NewDrifting panics if rate is negative.
func NewDrifting(base Clock, rate Rate, offset time.Duration) *Drifting {
	rate.mustRunForward()
	now := base.Now()
	return &Drifting{base: base, line: line{from: now, read: saturatingAdd(now, offset), rate: rate}}
}

// Now returns the base's movement since the clock was made, each part of it times the
// rate of its time, added to the clock's first reading.
func (d *Drifting) Now() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, _ := d.line.reading(d.base.Now())
	return now
}

// SetRate changes the rate from now on. The reading does not jump. Timers that are
// armed fire by the new rate; at rate 0, not until it rises again. SetRate panics if
// rate is negative.
func (d *Drifting) SetRate(rate Rate) {
	rate.mustRunForward()
	for _, wake := range d.setRate(rate) {
		wake()
	}
}

// setRate returns the wakes that have become due meanwhile, to be called without the lock.
func (d *Drifting) setRate(rate Rate) (due []func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.line = d.line.bend(d.base.Now(), rate)
	for _, a := range d.alarms {
		// Those whose instant has passed are being woken by the base already.
		if a.at > d.line.read && a.arm() {
			due = append(due, a.wake)
		}
	}
	return due
}

// Timer returns a timer that fires when this clock, not its base, reads at.
func (d *Drifting) Timer(at time.Duration) Timer { return newTimer(d.Now, d.alarm, at) }

func (d *Drifting) alarm(wake func()) alarm {
	a := &driftingAlarm{clock: d, wake: wake, at: math.MinInt64}
	// Manual and Drifting are known by type and not by having an alarm method: that
	// would also be found in a foreign clock that embeds one of them and reads otherwise.
	switch base := d.base.(type) {
	case *Manual:
		a.base = base.alarm(wake)
	case *Drifting:
		a.base = base.alarm(wake)
	default:
		a.base = &relay{base: base, wake: wake}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alarms = append(d.alarms, a)
	return a
}

// driftingAlarm is an alarm of the base, set for the base's instant at which the clock
// will read at.
type driftingAlarm struct {
	clock *Drifting
	base  alarm
	wake  func()
	at    time.Duration // guarded by the clock's lock; the least there is until first set
}

func (a *driftingAlarm) set(at time.Duration) (due bool) {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	a.at = at
	return a.arm()
}

// arm is called with the clock locked. It leaves the base's alarm alone if at is out of
// reach at this rate: what that was set for before may still wake the timer, which will
// look, and find nothing due.
func (a *driftingAlarm) arm() (due bool) {
	base, ever := a.clock.line.reaches(a.at)
	return ever && a.base.set(base)
}

func (a *driftingAlarm) close() {
	d := a.clock
	d.mu.Lock()
	d.alarms = slices.DeleteFunc(d.alarms, func(b *driftingAlarm) bool { return a == b })
	d.mu.Unlock()
	// Without the lock: the base may wait for a goroutine that is about to take it.
	a.base.close()
}
