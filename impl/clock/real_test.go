package clock

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMonotonicCountsFromItsOwnOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := Monotonic()
		time.Sleep(time.Second)
		b := Monotonic()
		if a.Now() != time.Second || b.Now() != 0 {
			t.Fatalf("read %v and %v, want 1s and 0s", a.Now(), b.Now())
		}
	})
}

// suspendable stands in for the boot clock of a machine that refuses timerfds: it goes
// on during a suspend, while Go's timers, the bubble's here, stand still.
type suspendable struct {
	awake     Clock
	suspended atomic.Int64
}

func (s *suspendable) Now() time.Duration {
	return s.awake.Now() + time.Duration(s.suspended.Load())
}

func TestSleeperNoticesASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &suspendable{awake: Monotonic()}
		const most = 100 * time.Millisecond
		timer := newTimer(c.Now, func(wake func()) alarm {
			return &sleeper{now: c.Now, wake: wake, most: most}
		}, 10*time.Second)
		defer timer.Stop()
		time.Sleep(time.Second)
		synctest.Wait()
		wantNone(t, timer, "9 s early")
		c.suspended.Store(int64(time.Hour))
		<-timer.C()
		if late := c.awake.Now() - time.Second; late > most {
			t.Fatalf("fired %v after the suspend, want within %v", late, most)
		}
	})
}

type named struct {
	name  string
	clock Clock
}

func benchmarked() []named {
	return []named{{"Boot", Boot()}, {"Monotonic", Monotonic()}, {"Manual", NewManual(0)}}
}

func BenchmarkNow(b *testing.B) {
	drifting := NewDrifting(NewManual(0), 999_800, time.Minute)
	drifting.base.(*Manual).Advance(time.Hour)
	for _, x := range append(benchmarked(), named{"DriftingOverManual", drifting}) {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				x.clock.Now()
			}
		})
	}
}

func BenchmarkTimerReset(b *testing.B) {
	for _, x := range benchmarked() {
		b.Run(x.name, func(b *testing.B) {
			c := x.clock
			timer := c.Timer(c.Now() + time.Hour)
			defer timer.Stop()
			for b.Loop() {
				timer.Reset(c.Now() + time.Hour)
			}
		})
	}
}
