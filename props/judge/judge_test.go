package judge_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

func noClock() time.Duration { return 0 }

func sweep(subject sim.Subject, schedules int) judge.Sweep {
	return judge.Sweep{Subject: subject, Profiles: []sim.Profile{sim.Chaos(), sim.Raw()}, Seed: 11,
		Schedules: schedules, MinSteps: 100, MaxSteps: 150, Want: judge.All}
}

func bug(t testing.TB, name string) sim.Subject {
	t.Helper()
	s, err := mutant.Subject("mutant:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuiltinHoldsEverything(t *testing.T) {
	schedules := 2000
	if raceDetector || testing.Short() {
		schedules = 300
	}
	done := new(atomic.Int64)
	s := sweep(sim.Builtin(), schedules)
	s.Done = done
	r := s.Run(t.Context(), noClock)
	if r.Failure != nil {
		t.Fatalf("schedule %d: %v", r.Failure.Number, r.Failure.Result.First.Describe(sim.Names()))
	}
	if n := int64(schedules); r.Counts.Runs != n || r.Histories != n || done.Load() != n {
		t.Errorf("ran %d, checked %d histories, counted %d; want %d each", r.Counts.Runs, r.Histories, done.Load(), n)
	}
	if effective, all := r.Counts.Actions(); all < 100*int64(schedules) || float64(effective) < 0.9*float64(all) {
		t.Errorf("%d of %d actions are effective; want at least 90%% of at least 100 a schedule", effective, all)
	}
}

// TestSweepDoesNotDependOnTheCores runs the same sweep on one core and on all.
func TestSweepDoesNotDependOnTheCores(t *testing.T) {
	all := sweep(sim.Builtin(), 200).Run(t.Context(), noClock)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := sweep(sim.Builtin(), 200).Run(t.Context(), noClock)
	if one.Counts.Effective != all.Counts.Effective || one.Counts.Answers != all.Counts.Answers || one.Counts.Terms != all.Counts.Terms {
		t.Errorf("one core reached %+v\nall reached %+v", one.Counts, all.Counts)
	}
}

// TestSweepReportsTheFirstFailure: which failure is reported must not depend on
// which core was faster.
func TestSweepReportsTheFirstFailure(t *testing.T) {
	subject := bug(t, "retry-keeps-old-expiry")
	first := sweep(subject, 5000).Run(t.Context(), noClock).Failure
	if first == nil {
		t.Fatal("the planted bug was missed")
	}
	for range 5 {
		f := sweep(subject, 5000).Run(t.Context(), noClock).Failure
		if f == nil || f.Number != first.Number || !slices.Equal(f.Schedule.Actions, first.Schedule.Actions) {
			t.Fatalf("reported %+v, then %+v", first, f)
		}
	}
	min := first.Minimize(subject, judge.All)
	if got := judge.Run(min, subject, judge.All); got.First.Invariant != first.Result.First.Invariant {
		t.Errorf("minimised from %v to %v", first.Result.First.Invariant, got.First.Invariant)
	}
	if got := judge.Run(min, sim.Builtin(), judge.All); got.Violated != 0 {
		t.Errorf("the minimised schedule violates %v on the built-in implementation", got.Violated)
	}
}

func TestSweepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := sweep(sim.Builtin(), 0).Run(ctx, noClock); r.Counts.Runs != 0 {
		t.Errorf("ran %d schedules after the end", r.Counts.Runs)
	}
}

// TestWantedInvariantsAreJudgedAlone: a bug that breaks one invariant earlier
// than another must not hide the other.
func TestWantedInvariantsAreJudgedAlone(t *testing.T) {
	subject := bug(t, "countdown-from-reply")
	s := sweep(subject, 5000)
	s.Want = model.SetOf(model.BeliefSafety)
	f := s.Run(t.Context(), noClock).Failure
	if f == nil || f.Result.Violated != s.Want {
		t.Fatalf("want belief-safety alone, got %+v", f)
	}
}

// TestClientHistoriesRaiseNoFalseAlarm checks what the clients themselves could
// have recorded of legal runs: drift, delay, loss, duplicates, restarts, and
// outcomes that nobody learned.
func TestClientHistoriesRaiseNoFalseAlarm(t *testing.T) {
	histories := 100_000
	if raceDetector || testing.Short() {
		histories = 2000
		t.Logf("with the race detector or -short only %d of 100000 histories", histories)
	}
	var next, operations, unknown, restarts, drifting, undecided atomic.Int64
	chaos, raw := sim.Chaos(), sim.Raw()
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(histories) && !t.Failed(); i = next.Add(1) - 1 {
				src := judge.Source(5, int(i))
				cfg := sim.RandomConfig(src)
				p := &chaos
				if i%2 == 1 {
					p = &raw
				}
				var trace sim.Trace
				w, err := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Trace: &trace})
				if err != nil {
					t.Error(err)
					return
				}
				sim.Generate(src, p, &w, 60, nil)
				h := linearizability.FromTrace(trace.Events, sim.Names(), judge.Meta(trace.Events, &cfg, model.Promise{}))
				v, err := linearizability.Check(t.Context(), h, linearizability.Options{
					Model: linearizability.Model{Name: linearizability.ModelFencepost}, Memory: 64 << 20})
				if err != nil {
					t.Errorf("history %d: %v", i, err)
					return
				}
				for _, p := range v.Partitions {
					operations.Add(int64(p.Operations))
					unknown.Add(int64(p.Unknown))
					switch p.Result {
					case linearizability.Violated:
						t.Errorf("history %d of a correct run is violated: %v", i, v)
					case linearizability.Unknown:
						undecided.Add(1)
					}
				}
				restarts.Add(w.Counts().StoreRestarts)
				drifting.Add(min(h.Meta.Drift, 1))
			}
		})
	}
	wg.Wait()
	t.Logf("%d histories: %d operations, %d with unknown outcome, %d store restarts, the store's clock off in %d; undecided: %d",
		histories, operations.Load(), unknown.Load(), restarts.Load(), drifting.Load(), undecided.Load())
	for what, n := range map[string]int64{"unknown outcomes": unknown.Load(), "store restarts": restarts.Load(), "drifting stores": drifting.Load()} {
		if n < int64(histories)/100 {
			t.Errorf("only %d %s: the check was not put to the test", n, what)
		}
	}
	if n := undecided.Load(); n > int64(histories)/1000 {
		t.Errorf("%d of %d histories were left undecided", n, histories)
	}
}

// TestUnlinearizableRunsAreCaught: the same check must not be one that cannot
// fail.
func TestUnlinearizableRunsAreCaught(t *testing.T) {
	for _, name := range []string{"refuses-equal-token", "stale-read", "lock-delay-skipped"} {
		s := sweep(bug(t, name), 5000)
		s.Want = model.SetOf(model.Linearizability)
		f := s.Run(t.Context(), noClock).Failure
		if f == nil {
			t.Errorf("%s passes", name)
			continue
		}
		min := f.Minimize(s.Subject, s.Want)
		if !judge.Run(min, s.Subject, s.Want).Violated.Has(model.Linearizability) || len(min.Actions) > 20 {
			t.Errorf("%s: minimised to %d actions that violate %v", name, len(min.Actions), judge.Run(min, s.Subject, s.Want).Violated)
		}
	}
}
