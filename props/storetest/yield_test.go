package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"fencepost/impl/clock"
)

func TestCallersMeetAtTheGate(t *testing.T) {
	const callers, times = 3, 200
	var g gate
	apart := 0
	for range times {
		// Each says that it has come, passes, and counts who had come by then.
		var come atomic.Int64
		var seen [callers]int64
		g.enter(callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				defer g.leave()
				come.Add(1)
				g.pass()
				seen[i] = come.Load()
			})
		}
		wg.Wait()
		if seen != [callers]int64{callers, callers, callers} {
			apart++
		}
	}
	// One whose thread is kept waiting by the machine is not waited for.
	if apart > times/2 {
		t.Errorf("in %d of %d rounds some did not wait for the others", apart, times)
	}
	if g.callers != 0 || g.waiting != 0 {
		t.Errorf("%d callers and %d waiting are left", g.callers, g.waiting)
	}
}

func TestTheLastCallerInsideWaitsForNobody(t *testing.T) {
	var g gate
	g.enter(2)
	g.leave()
	g.pass() // the other has left
	if g.met.Load() != 1 || g.waiting != 0 {
		t.Errorf("met %d times, %d waiting", g.met.Load(), g.waiting)
	}
	g.leave()
	g.pass() // somebody who is no caller, such as a goroutine of the store
	if g.met.Load() != 2 || g.waiting != 0 {
		t.Errorf("met %d times, %d waiting", g.met.Load(), g.waiting)
	}
}

func TestAGateOpensForThoseWhoWaitWhenTheLastLeaves(t *testing.T) {
	var g gate
	g.enter(2)
	g.waiting = 1 // one waits
	g.leave()     // and the other leaves the store
	if g.met.Load() != 1 || g.waiting != 0 {
		t.Errorf("met %d times, %d waiting", g.met.Load(), g.waiting)
	}
}

func TestACallerThatNobodyJoinsGivesUp(t *testing.T) {
	var g gate
	g.enter(2) // the other never comes: it waits for a lock that this one has
	g.pass()
	if g.met.Load() != 0 || g.waiting != 0 {
		t.Errorf("met %d times, %d waiting", g.met.Load(), g.waiting)
	}
}

func TestTheClockAndTheContextPassTheGate(t *testing.T) {
	var g gate
	clk := gatedClock{clock.NewManual(5), &g}
	ctx := gatedContext{context.WithValue(context.Background(), &g, "v"), &g}
	for i, look := range []func() bool{
		func() bool { return clk.Now() == 5 },
		func() bool { timer := clk.Timer(5); defer timer.Stop(); <-timer.C(); return true },
		func() bool { return ctx.Err() == nil },
		func() bool { return ctx.Done() == nil },
		func() bool { return ctx.Value(&g) == "v" },
	} {
		before := g.met.Load()
		if !look() {
			t.Errorf("look %d: not what is behind the gate", i)
		}
		if g.met.Load() == before {
			t.Errorf("look %d: did not pass the gate", i)
		}
		g.off.Store(true)
		if before = g.met.Load(); !look() || g.met.Load() != before {
			t.Errorf("look %d: passes a gate that is off", i)
		}
		g.off.Store(false)
	}
}
