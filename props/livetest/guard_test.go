package livetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/props/kit"
)

func TestACallThatNeverReturnsIsToldAndNotWaitedFor(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	err := guarded(t.Context(), clock.Monotonic(), 10*time.Millisecond, func(context.Context) error { <-block; return nil })
	if f := fault("a acquires", err); f == nil || f.Rule != kit.RuleReturns {
		t.Errorf("came to %v, %+v", err, f)
	}
}

func TestACallThatPanicsIsToldWithItsStack(t *testing.T) {
	err := guarded(t.Context(), clock.Monotonic(), time.Minute, func(context.Context) error { panic("busy") })
	if f := fault("a acquires", err); f == nil || f.Rule != kit.RulePanic || f.More == "" {
		t.Errorf("came to %v, %+v", err, f)
	}
}

func TestACallThatIsGivenUpIsNoFault(t *testing.T) {
	err := guarded(t.Context(), clock.Monotonic(), 100*time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if !errors.Is(err, context.DeadlineExceeded) || fault("a acquires", err) != nil {
		t.Errorf("came to %v", err)
	}
}

// The first that is run waits for all; one that is run again runs them again.
func TestGatheredTasksRunAtOnce(t *testing.T) {
	var both, runs = make(chan struct{}, 2), 0
	meet := func() kit.Outcome {
		both <- struct{}{}
		for len(both) < 2 {
			time.Sleep(time.Millisecond) // for the other
		}
		return kit.Outcome{Covered: "met"}
	}
	ended := 0
	checks := gathered([]task{{"a", meet}, {"b", meet}}, func() { runs++; both = make(chan struct{}, 2) }, func() { ended++ })
	for i, want := range []int{1, 1, 2, 2} {
		if out := checks[i%2].Run(); out.Covered != "met" || runs != want || ended != want {
			t.Errorf("run %d: %+v, after %d runs, %d ended; want %d", i, out, runs, ended, want)
		}
	}
}
