package clock

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// foreign is a clock of which this package knows only the interface.
type foreign struct{ Clock }

// rigs are all the ways in which a clock of this package can be moved by a test. Each
// reads an arbitrary instant at first. move has let everything settle when it returns;
// every rig runs in a synctest bubble, which also fails a test that leaks a goroutine.
var rigs = []struct {
	name string
	make func() (c Clock, move func(time.Duration))
}{
	{"Manual", func() (Clock, func(time.Duration)) {
		m := NewManual(-3 * time.Second)
		return m, settled(m.Advance)
	}},
	{"Monotonic", func() (Clock, func(time.Duration)) {
		return Monotonic(), settled(time.Sleep) // the bubble's time
	}},
	{"Drifting over Manual", func() (Clock, func(time.Duration)) {
		m := NewManual(5)
		return NewDrifting(m, 2*True, 11), settled(func(d time.Duration) { moveTwice(m, d) })
	}},
	{"Drifting over Drifting", func() (Clock, func(time.Duration)) {
		m := NewManual(0)
		return NewDrifting(NewDrifting(m, 4*True, 0), True/2, -time.Hour), settled(func(d time.Duration) { moveTwice(m, d) })
	}},
	{"Drifting over Monotonic", func() (Clock, func(time.Duration)) {
		return NewDrifting(Monotonic(), True, 0), settled(time.Sleep)
	}},
	{"Drifting over a foreign clock", func() (Clock, func(time.Duration)) {
		m := NewManual(0)
		return NewDrifting(foreign{m}, True, time.Minute), settled(m.Advance)
	}},
}

func settled(move func(time.Duration)) func(time.Duration) {
	return func(d time.Duration) {
		move(d)
		synctest.Wait()
	}
}

// moveTwice moves a clock that runs at twice m's rate by d, which must be even.
func moveTwice(m *Manual, d time.Duration) {
	if d%2 != 0 {
		panic("odd move")
	}
	m.Advance(d / 2)
}

func onEveryClock(t *testing.T, rule func(t *testing.T, c Clock, move func(time.Duration))) {
	for _, rig := range rigs {
		t.Run(rig.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, move := rig.make()
				rule(t, c, move)
			})
		})
	}
}

func received(timer Timer) bool {
	select {
	case _, open := <-timer.C():
		if !open {
			panic("C was closed")
		}
		return true
	default:
		return false
	}
}

func wantFiring(t *testing.T, timer Timer, when string) {
	t.Helper()
	if !received(timer) {
		t.Fatalf("no firing %s", when)
	}
	wantNone(t, timer, when+", once received")
}

func wantNone(t *testing.T, timer Timer, when string) {
	t.Helper()
	if received(timer) {
		t.Fatalf("a firing %s", when)
	}
}

func TestClockMovesByWhatItIsMoved(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		start := c.Now()
		move(1500 * time.Millisecond)
		if got := c.Now() - start; got != 1500*time.Millisecond {
			t.Fatalf("moved by %v, want 1.5s", got)
		}
	})
}

func TestTimerFiresAtItsInstantNotBefore(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		timer := c.Timer(c.Now() + time.Second)
		defer timer.Stop()
		wantNone(t, timer, "when created")
		move(time.Second - 2)
		wantNone(t, timer, "2 ns early")
		move(2)
		wantFiring(t, timer, "at the instant")
		move(time.Hour)
		wantNone(t, timer, "without a second arming")
	})
}

func TestTimerFiresThoughItsInstantIsSkipped(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		timer := c.Timer(c.Now() + time.Second)
		defer timer.Stop()
		move(time.Minute)
		wantFiring(t, timer, "after the instant")
	})
}

func TestTimerForAReachedInstantFiresAtOnce(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		move(time.Second)
		for _, ago := range []time.Duration{0, 1, time.Second, time.Hour} {
			timer := c.Timer(c.Now() - ago)
			wantFiring(t, timer, "when created for "+ago.String()+" ago")
			timer.Reset(c.Now() - ago)
			wantFiring(t, timer, "when reset to "+ago.String()+" ago")
			timer.Stop()
		}
	})
}

func TestResetReplacesTheInstant(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		start := c.Now()
		timer := c.Timer(start + 4*time.Second)
		defer timer.Stop()
		timer.Reset(start + 8*time.Second)
		move(6 * time.Second)
		wantNone(t, timer, "at an instant that was replaced by a later one")
		timer.Reset(start + 7*time.Second)
		move(time.Second)
		wantFiring(t, timer, "at an instant that replaced a later one")
		move(time.Second)
		wantNone(t, timer, "at an instant that was replaced by an earlier one")
	})
}

func TestResetDiscardsAnUnreceivedFiring(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		timer := c.Timer(c.Now())
		defer timer.Stop()
		timer.Reset(c.Now() + time.Second)
		wantNone(t, timer, "of the arming before")
		move(time.Second)
		timer.Reset(c.Now() + time.Second)
		wantNone(t, timer, "of the arming before, by the clock's moving")
		move(time.Second)
		wantFiring(t, timer, "of the last arming")
	})
}

func TestEachArmingFiresOnce(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		timer := c.Timer(c.Now())
		defer timer.Stop()
		timer.Reset(c.Now())
		timer.Reset(c.Now())
		wantFiring(t, timer, "of three armings of which nobody received two")
		timer.Reset(c.Now() + time.Second)
		timer.Reset(c.Now() + time.Second)
		move(time.Second)
		wantFiring(t, timer, "of two armings for one instant")
	})
}

func TestNothingArrivesAfterStop(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		fired := c.Timer(c.Now())
		fired.Stop()
		wantNone(t, fired, "of a stopped timer that had fired")
		armed := c.Timer(c.Now() + time.Second)
		armed.Stop()
		armed.Stop()
		move(time.Second)
		wantNone(t, armed, "of a stopped timer")
	})
}

func TestStoppedTimerCanBeReset(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		timer := c.Timer(c.Now() + time.Second)
		channel := timer.C()
		timer.Stop()
		timer.Reset(c.Now() + 2*time.Second)
		defer timer.Stop()
		if timer.C() != channel {
			t.Fatal("another channel than before")
		}
		move(time.Second)
		wantNone(t, timer, "of the arming that was stopped")
		move(time.Second)
		wantFiring(t, timer, "of the arming after Stop")
	})
}

func TestTimersOfOneClockAreIndependent(t *testing.T) {
	onEveryClock(t, func(t *testing.T, c Clock, move func(time.Duration)) {
		start := c.Now()
		late, early, gone := c.Timer(start+2*time.Second), c.Timer(start+time.Second), c.Timer(start+time.Second)
		defer late.Stop()
		defer early.Stop()
		gone.Stop()
		move(time.Second)
		wantFiring(t, early, "of the early one")
		wantNone(t, late, "of the late one, early")
		wantNone(t, gone, "of the stopped one")
		move(time.Second)
		wantFiring(t, late, "of the late one")
		wantNone(t, early, "of the early one, again")
	})
}

// scripted is an alarm that leaves waking to the test, and remembers what it was set for.
type scripted struct{ at []time.Duration }

func (s *scripted) set(at time.Duration) (due bool) { s.at = append(s.at, at); return false }
func (s *scripted) close()                          {}

func TestTimerTrustsNoWake(t *testing.T) {
	var s scripted
	now := time.Duration(0)
	timer := newTimer(func() time.Duration { return now }, func(func()) alarm { return &s }, 5)
	now = 4
	timer.wake()
	wantNone(t, timer, "by an early wake")
	if !slices.Equal(s.at, []time.Duration{5, 5}) {
		t.Fatalf("alarm set for %d, want for 5 again after the early wake", s.at)
	}
	now = 5
	timer.wake()
	timer.wake()
	wantFiring(t, timer, "by a wake in time, or the second one")
	timer.wake()
	wantNone(t, timer, "by a third wake")
	timer.Reset(7)
	timer.Stop()
	now = 7
	timer.wake()
	wantNone(t, timer, "by a wake after Stop")
}

// While one goroutine moves the clock (and bends it), what another receives after a
// Reset must be due to that Reset, and nothing may come after a Stop. A wake that gets
// lost shows as a receive that does not end.
func TestNoStaleFiringWhileTheClockMoves(t *testing.T) {
	m := NewManual(0)
	over := func(base Clock) *Drifting { return NewDrifting(base, True, 0) }
	plain, relayed, inner := over(m), over(foreign{m}), over(m)
	outer := over(inner)
	for _, x := range []struct {
		name  string
		clock Clock
		bent  []*Drifting
	}{
		{"Manual", m, nil},
		{"Drifting over Manual", plain, []*Drifting{plain}},
		{"Drifting over Drifting", outer, []*Drifting{inner, outer}},
		{"Drifting over a foreign clock", relayed, []*Drifting{relayed}},
	} {
		t.Run(x.name, func(t *testing.T) {
			finished := make(chan struct{})
			var movers sync.WaitGroup
			for i := range 2 {
				movers.Go(func() {
					for r := rand.New(rand.NewPCG(1, uint64(i))); ; {
						select {
						case <-finished:
							return
						default:
							m.Advance(time.Duration(r.IntN(40)))
							for _, d := range x.bent {
								d.SetRate(Rate(r.IntN(3)) * True / 2)
							}
							runtime.Gosched() // or a single processor is all ours
						}
					}
				})
			}
			defer movers.Wait()
			defer close(finished)
			timer := x.clock.Timer(x.clock.Now())
			r := rand.New(rand.NewPCG(2, 0))
			for range 1000 {
				at := x.clock.Now() + time.Duration(r.IntN(100))
				timer.Reset(at)
				if r.IntN(4) == 0 {
					timer.Stop()
					for range 10 {
						wantNone(t, timer, "after Stop")
					}
					continue
				}
				<-timer.C()
				if now := x.clock.Now(); now < at {
					t.Fatalf("fired at %d for %d", now, at)
				}
			}
			timer.Stop()
		})
	}
}

// One timer, many hands: no order of calls may block, and the last Stop silences it.
func TestTimerIsSafeForConcurrentUse(t *testing.T) {
	m := NewManual(0)
	for _, x := range []struct {
		name  string
		clock Clock
	}{
		{"Manual", m},
		{"Monotonic", Monotonic()},
		{"Boot", Boot()},
		{"Drifting over Manual", NewDrifting(m, True, 0)},
		{"Drifting over a foreign clock", NewDrifting(foreign{m}, True, 0)},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := x.clock
			timer := c.Timer(c.Now())
			var hands sync.WaitGroup
			for i := range 4 {
				hands.Go(func() {
					r := rand.New(rand.NewPCG(3, uint64(i)))
					for range 500 {
						switch r.IntN(4) {
						case 0:
							timer.Stop()
						case 1:
							received(timer)
						case 2:
							m.Advance(time.Duration(r.IntN(10)))
						default:
							timer.Reset(c.Now() + time.Duration(r.IntN(20)))
						}
					}
				})
			}
			hands.Wait()
			timer.Stop()
			m.Advance(time.Second)
			wantNone(t, timer, "after the last Stop")
		})
	}
}
