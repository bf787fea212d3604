package script

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

func TestExploringFindsAShortestScriptForEachWrongStore(t *testing.T) {
	for _, w := range wrongs() {
		t.Run(w.name, func(t *testing.T) {
			again := w
			again.snap = true
			for name, open := range map[string]Open{"sequences": w.open, "snapshots": again.open} {
				x := Explore(t.Context(), open, w.o, ExploreOptions{Depth: 5})
				if x.Failure == nil {
					t.Fatalf("%s: not found: %v", name, x)
				}
				story := strings.Join(Story(*x.Failure), "\n")
				if len(x.Failure.Lines) > w.steps {
					t.Errorf("%s: %d steps, not %d:\n%s", name, len(x.Failure.Lines), w.steps, story)
				}
				if x.Depth != len(x.Failure.Lines)-1 {
					t.Errorf("%s: %d steps, but complete to %d", name, len(x.Failure.Lines), x.Depth)
				}
				t.Logf("%s: %v\n%s", name, &x, story)
			}
		})
	}
}

func TestExploringPassesRightStores(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			x := Explore(t.Context(), v.open, v.o, ExploreOptions{Depth: 3})
			if x.Failure != nil {
				t.Fatalf("%v\n%s", x.Failure.Breach.Rule, strings.Join(Story(*x.Failure), "\n"))
			}
			if x.Depth != 3 || x.Bounded != "depth" || x.Unfaithful != nil {
				t.Errorf("%v", x)
			}
			for _, k := range []Kind{Acquire, Renew, Release, Advance} {
				if x.Transitions[k] == 0 {
					t.Errorf("no %v: %v", k, x)
				}
			}
			t.Logf("%v", x)
		})
	}
}

// Without what the alphabet leaves out there would be more; with less there
// would be fewer. Counted by hand for two steps:
//
//	acquire a, get, restart                                    3 first ones
//	after acquire a: acquire a, b, a.2 and a for 1s, advance 2, renew a twice,
//	                 b and a.2 under its token, a under none that was granted,
//	                 release a, b, a.2 and a likewise, get, restart
//	                                                           4 + 2 + 5 + 4 + 2 = 17
//	after get: acquire a, restart                              2
//	after restart: acquire a, get, restart                     3
func TestSequencesAreCountedByHand(t *testing.T) {
	x := Explore(t.Context(), without(memory), kit.Options{}, ExploreOptions{Depth: 2})
	if want := 3 + 17 + 2 + 3; x.Sequences != want || x.Total() != want {
		t.Errorf("%v, want %d", &x, want)
	}
	// Steps played: 2 requests and 1 restart, then 2 for each of 15 pairs of
	// requests; the rest is by what befalls the store, once for all: the two
	// passages after acquire a (2 each), a restart after it and after get (3),
	// acquire a and get after a restart (3), and two restarts (2).
	if want := 3 + 30 + 4 + 3 + 3 + 2; x.Calls != want {
		t.Errorf("%d calls, want %d", x.Calls, want)
	}
}

func TestExploringIsTheSameEveryTime(t *testing.T) {
	for _, open := range []Open{memory, rig{snap: true}.open} {
		one := Explore(t.Context(), open, kit.Options{}, ExploreOptions{Depth: 3})
		two := Explore(t.Context(), open, kit.Options{}, ExploreOptions{Depth: 3})
		if one.String() != two.String() || one.Calls != two.Calls {
			t.Errorf("%v, then %v", one, two)
		}
	}
}

func TestBoundsEndAnExploration(t *testing.T) {
	for name, open := range map[string]Open{"sequences": memory, "snapshots": rig{snap: true}.open} {
		x := Explore(t.Context(), open, kit.Options{}, ExploreOptions{MaxCalls: 500})
		if x.Bounded != "calls" || x.Calls > 500 || x.Calls < 490 || x.Depth < 1 || x.Depth > 3 || x.Failure != nil {
			t.Errorf("%s: %v", name, x)
		}
		if !strings.Contains(x.String(), fmt.Sprintf("bounded at %d calls", x.Calls)) {
			t.Errorf("%s: it says %v", name, x)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if x := Explore(ctx, open, kit.Options{}, ExploreOptions{}); x.Bounded != "time" || x.Depth != 0 {
			t.Errorf("%s: %v", name, x)
		}
	}
}

// forgetful leaves the lease out of what it puts back.
type forgetful struct{ snapped }

func (s forgetful) Restore([]byte) { clear(s.recs); clear(s.disk) }

func TestSnapshotsThatKeepTooLittleAreFoundOut(t *testing.T) {
	open := func(e kit.Env) lease.Store { return forgetful{rig{snap: true}.open(e).(snapped)} }
	x := Explore(t.Context(), open, kit.Options{}, ExploreOptions{})
	if x.Failure != nil || len(x.Unfaithful) != 2 || !strings.Contains(x.String(), "nothing is known") {
		t.Errorf("%v, %v", &x, x.Unfaithful)
	}
}

// closing takes down the states that it is left in.
type closing struct {
	*rigged
	seen map[string]bool
}

func (s closing) Close() { s.seen[string(snapped{s.rigged}.Snapshot())] = true }

// noting takes down the states that it is asked for.
type noting struct {
	snapped
	seen map[string]bool
}

func (s noting) Snapshot() []byte {
	b := s.snapped.Snapshot()
	s.seen[string(b)] = true
	return b
}

// Sequences leave out what cannot show anything new, and states are followed
// once: either way the store gets into the same states.
func TestSequencesAndSnapshotsReachTheSameStates(t *testing.T) {
	depth, atLeast := 3, 10
	if os.Getenv("FENCEPOST_LONG") != "" {
		depth, atLeast = 5, 40
	}
	for _, o := range []kit.Options{{}, {LockDelay: 5 * time.Second}} {
		r := rig{delay: o.LockDelay}
		played, restored := map[string]bool{}, map[string]bool{}
		e := newExplorer(t.Context(), func(e kit.Env) lease.Store { return closing{r.open(e).(*rigged), played} }, o, ExploreOptions{Depth: depth})
		e.series.most = 1
		e.sequences()
		x := e.x
		r.snap = true
		y := Explore(t.Context(), func(e kit.Env) lease.Store { return noting{r.open(e).(snapped), restored} }, o, ExploreOptions{Depth: depth})
		if x.Depth != depth || y.Depth != depth || len(played) < atLeast || !maps.Equal(played, restored) {
			t.Errorf("%d states of %v, and %d of %v", len(played), x, len(restored), y)
		}
	}
}

func BenchmarkExplore(b *testing.B) {
	for _, c := range []struct {
		name string
		open Open
	}{{"memory", memory}, {"sequences", rig{}.open}, {"snapshots", rig{snap: true}.open}} {
		b.Run(c.name, func(b *testing.B) {
			calls, total := 0, 0
			for b.Loop() {
				x := Explore(b.Context(), c.open, kit.Options{}, ExploreOptions{Depth: 4})
				calls += x.Calls
				total = x.Total()
			}
			b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64(total), "transitions")
		})
	}
}
