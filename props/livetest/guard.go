package livetest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"fencepost/impl/clock"
	"fencepost/props/kit"
)

// patience is how long a call gets until its context ends, and then once more
// until it is told that it never returns.
const patience = 10 * time.Second

// hungError is a call that did not return although its context had ended.
type hungError struct{ after time.Duration }

func (e *hungError) Error() string {
	return fmt.Sprintf("did not return in %v, long after its context had ended", e.after)
}

// panicError is a call that panicked.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded calls the code under test in f, whose context ends after limit. A call
// that ignores that is left behind, which nothing can help: f writes what it
// finds only to what nobody reads after an error.
func guarded(ctx context.Context, clk clock.Clock, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := error(&panicError{value: "the goroutine was ended from inside, as testing.T.FailNow does: to give up, call Env.Fatal"})
		defer func() {
			if r := recover(); r != nil {
				if setup, ok := r.(*kit.SetupError); ok {
					err = setup
				} else {
					err = &panicError{r, kit.Inside(string(debug.Stack()))}
				}
			}
			done <- err
		}()
		err = f(ctx)
	}()
	late := clk.Timer(clk.Now() + 2*limit)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C():
		return &hungError{2 * limit}
	}
}

// fault is the failure that err is whatever was asked, nil if it is none.
func fault(asked string, err error) *kit.Failure {
	f := &kit.Failure{What: fmt.Sprintf("%q: %v", asked, err), Read: readStore}
	if p, ok := errors.AsType[*panicError](err); ok {
		f.Rule, f.Says, f.More = kit.RulePanic, kit.NoPanic, p.stack
		return f
	}
	if _, ok := errors.AsType[*hungError](err); ok {
		f.Rule, f.Says = kit.RuleReturns, "A call returns in the end, whatever comes of it, and soon once its context has ended. Else a candidate waits for ever."
		return f
	}
	return nil
}

// sleep returns once clk reads at.
func sleep(clk clock.Clock, at time.Duration) {
	t := clk.Timer(at)
	defer t.Stop()
	<-t.C()
}
