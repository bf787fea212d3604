package clock

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestManualZeroValueReadsZero(t *testing.T) {
	var m Manual
	if m.Now() != 0 {
		t.Fatalf("reads %v, want 0", m.Now())
	}
	timer := m.Timer(time.Second)
	defer timer.Stop()
	m.Advance(time.Second)
	wantFiring(t, timer, "on a zero Manual")
}

func TestManualReadsWhereItWasMoved(t *testing.T) {
	m := NewManual(-time.Second)
	m.Advance(0)
	if m.Now() != -time.Second {
		t.Fatalf("reads %v, want -1s", m.Now())
	}
	m.Advance(3 * time.Second)
	if m.Now() != 2*time.Second {
		t.Fatalf("reads %v, want 2s", m.Now())
	}
	m.Set(2 * time.Second)
	m.Set(time.Minute)
	if m.Now() != time.Minute {
		t.Fatalf("reads %v, want 1m", m.Now())
	}
}

func TestManualEndsAtTheLastInstant(t *testing.T) {
	m := NewManual(math.MaxInt64 - 1)
	last := m.Timer(math.MaxInt64)
	defer last.Stop()
	m.Advance(math.MaxInt64)
	if m.Now() != math.MaxInt64 {
		t.Fatalf("reads %d, want the largest duration", m.Now())
	}
	wantFiring(t, last, "at the last instant")
}

func TestManualNeverGoesBack(t *testing.T) {
	m := NewManual(time.Second)
	wantPanic(t, "Advance(-1ns)", func() { m.Advance(-1) })
	wantPanic(t, "Set(999.999ms) at 1s", func() { m.Set(time.Second - 1000) })
	m.Advance(1) // the clock is not left locked
	if m.Now() != time.Second+1 {
		t.Fatalf("reads %v, want 1.000000001s", m.Now())
	}
}

func TestManualFiresInOrderOfDeadlineThenOfCreation(t *testing.T) {
	var m Manual
	var order []string
	make := func(name string) alarm { return m.alarm(func() { order = append(order, name) }) }
	a, b, c, d, gone := make("a"), make("b"), make("c"), make("d"), make("gone")
	c.set(1)
	b.set(2)
	a.set(2)
	gone.set(1)
	d.set(9)
	d.set(1)
	gone.close()
	m.Advance(5)
	m.Advance(5) // d's replaced instant
	if want := []string{"c", "d", "a", "b"}; !slices.Equal(order, want) {
		t.Fatalf("woken in order %v, want %v", order, want)
	}
}

// The clock may move between a timer's look at it and its setting of the alarm.
func TestManualAlarmForAReachedInstantIsDue(t *testing.T) {
	m := NewManual(2)
	a := m.alarm(func() { t.Error("woken, though told that it is due") })
	defer a.close()
	for _, at := range []time.Duration{3, 1, 2} { // the first is replaced
		if due := a.set(at); due != (at < 3) {
			t.Errorf("set for %d at 2: due %t", at, due)
		}
	}
	m.Advance(1)
}

// A goroutine that waits for several timers gets the earliest deadline, and reads the
// instant that the clock was moved to, however the scheduler runs it.
func TestManualWakesAWaiterDeterministically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Manual
		late, early := m.Timer(2*time.Second), m.Timer(time.Second)
		defer late.Stop()
		defer early.Stop()
		var first string
		var read time.Duration
		go func() {
			select {
			case <-late.C():
				first = "late"
			case <-early.C():
				first = "early"
			}
			read = m.Now()
		}()
		synctest.Wait() // it waits for both
		m.Advance(time.Minute)
		synctest.Wait()
		if first != "early" || read != time.Minute {
			t.Fatalf("woken by the %s timer at %v, want by the early one at 1m", first, read)
		}
	})
}

func wantPanic(t *testing.T, message string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got, _ := recover().(string); !strings.Contains(got, message) {
			t.Fatalf("panic %q, want one with %q", got, message)
		}
	}()
	f()
}
