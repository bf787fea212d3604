package kit_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/props/kit"
)

// lift is something to call, which may wait.
type lift struct{ wait bool }

func (l *lift) up() {
	if l.wait {
		select {}
	}
}

func openLift(wait bool) func(kit.Env) *lift {
	return func(kit.Env) *lift { return &lift{wait} }
}

// ride is a check that calls what open makes, and tells of it.
func ride(open func(kit.Env) *lift) func() kit.Outcome {
	return func() kit.Outcome {
		lab := kit.NewLab(open, nil)
		defer lab.Close()
		lab.Tell(func(within string) *kit.Failure {
			return &kit.Failure{What: "the lift", Says: "A lift comes.", Story: []string{"a presses the button  no answer  ◄" + within}}
		})
		lab.Call(func() { lab.Thing().up() })
		return kit.Outcome{Covered: "1 ride"}
	}
}

func TestACallThatNeverReturnsIsConvictedAndNoneIsMadeAfterIt(t *testing.T) {
	const limit = 100 * time.Millisecond
	w := kit.NewWatch(limit)
	ran := false
	checks := w.Over([]kit.Check{
		{Name: "first", Run: ride(kit.Watched(w, openLift(false)))},
		{Name: "second", Run: ride(kit.Watched(w, openLift(true)))},
		{Name: "third", Run: func() kit.Outcome { ran = true; return kit.Outcome{} }},
	})
	if out := checks[0].Run(); out.Covered != "1 ride" {
		t.Errorf("what returns came to %+v", out)
	}
	for range 2 {
		f := checks[1].Run().Failure
		if f == nil || f.Rule != kit.RuleReturns || f.What != "the lift did not return in 100ms" || f.Says != "A lift comes." ||
			!slices.Equal(f.Story, []string{"a presses the button  no answer  ◄"}) {
			t.Fatalf("told %+v", f)
		}
		if !strings.Contains(f.More, "kit_test.(*lift).up") || strings.Contains(f.More, "kit.(*Watch)") {
			t.Errorf("the stack is\n%s", f.More)
		}
	}
	if out := checks[2].Run(); ran || out.Skipped != "not reached: an earlier call never returned, see second" {
		t.Errorf("after it, %+v", out)
	}
}

// What callers do in goroutines of their own is seen too, and whose call is not
// under way is not shown.
func TestTheStacksAreThoseOfTheCallers(t *testing.T) {
	w := kit.NewWatch(100 * time.Millisecond)
	open := kit.Watched(w, openLift(true))
	f := w.Run(func() kit.Outcome {
		lab := kit.NewLab(open, nil)
		defer lab.Close()
		idle := make(chan struct{})
		defer close(idle)
		go func() { <-idle }()
		for range 2 {
			go func() { lab.Call(func() { lab.Thing().up() }) }()
		}
		<-idle
		return kit.Outcome{}
	}).Failure
	if f == nil || strings.Count(f.More, "goroutine ") != 2 || strings.Count(f.More, "kit_test.(*lift).up") != 2 {
		t.Errorf("told %+v", f)
	}
}

// A check may think for as long as it likes, and calls may be slow.
func TestOnlySilenceDuringACallConvicts(t *testing.T) {
	for name, f := range map[string]func(*kit.Lab[*lift]){
		"an hour between calls": func(lab *kit.Lab[*lift]) { time.Sleep(time.Hour) },
		"slow calls": func(lab *kit.Lab[*lift]) {
			for range 100 {
				lab.Call(func() { time.Sleep(kit.Silence - time.Second) })
			}
		},
		"one that waits for others": func(lab *kit.Lab[*lift]) {
			lab.Call(func() {
				for range 100 {
					lab.Call(func() { time.Sleep(kit.Silence / 2) })
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := kit.NewWatch(kit.Silence)
				out := w.Run(func() kit.Outcome {
					lab := kit.NewLab(kit.Watched(w, openLift(false)), nil)
					defer lab.Close()
					f(lab)
					return kit.Outcome{Covered: name}
				})
				if out.Covered != name {
					t.Errorf("came to %+v", out)
				}
			})
		})
	}
}

func TestWhatEndsACheckIsAnOutcome(t *testing.T) {
	w := kit.NewWatch(kit.Silence)
	for says, open := range map[string]func(kit.Env) *lift{
		"could not be set up: no server": func(e kit.Env) *lift { e.Fatal(errors.New("no server")); return nil },
		"call Env.Fatal":                 func(kit.Env) *lift { runtime.Goexit(); return nil },
		"open returned a nil *kit_test":  func(kit.Env) *lift { return nil },
	} {
		if out := w.Run(ride(kit.Watched(w, open))); !strings.Contains(out.Unknown, says) || out.Failure != nil {
			t.Errorf("came to %+v, want: %s", out, says)
		}
	}
	out := w.Run(ride(kit.Watched(w, func(kit.Env) *lift { panic("no lift") })))
	if f := out.Failure; f == nil || f.Rule != kit.RulePanic || f.What != "panic: no lift" || !strings.HasPrefix(f.More, "panic(") {
		t.Errorf("came to %+v", out)
	}
	if out := w.Run(ride(kit.Watched(w, openLift(false)))); out.Covered != "1 ride" {
		t.Errorf("after all that, %+v", out)
	}
}

// The second check waits for a lift that does not come.
func ExampleWatch() {
	w := kit.NewWatch(100 * time.Millisecond)
	for _, c := range w.Over([]kit.Check{
		{Name: "a-lift-comes", Run: ride(kit.Watched(w, openLift(false)))},
		{Name: "a-lift-comes-again", Run: ride(kit.Watched(w, openLift(true)))},
		{Name: "a-lift-goes", Run: ride(kit.Watched(w, openLift(true)))},
	}) {
		out := c.Run()
		switch {
		case out.Failure != nil:
			fmt.Println(out.Failure)
		case out.Skipped != "":
			fmt.Println(out.Skipped)
		default:
			fmt.Println(out.Covered)
		}
	}
	// Output:
	// 1 ride
	// every-call-returns: the lift did not return in 100ms
	// not reached: an earlier call never returned, see a-lift-comes-again
}
