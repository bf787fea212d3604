package script

import (
	"context"
	"slices"
	"strings"
	"testing"

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
	// Of two steps each second one is reached by a replay of the first, but
	// for the first of each.
	if want := 3 + (3 + 25 - 3) + 25; x.Calls > want {
		t.Errorf("%d calls, want at most %d", x.Calls, want)
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
		if x.Bounded != "calls" || x.Calls != 500 || x.Depth < 1 || x.Depth > 3 || x.Failure != nil {
			t.Errorf("%s: %v", name, x)
		}
		if !strings.Contains(x.String(), "bounded at 500 calls") {
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

// Both ways play the same steps, so that what one reaches the other does.
func TestSnapshotsReachWhatSequencesDo(t *testing.T) {
	reached := func(open Open) []string {
		var all []string
		x := Explore(t.Context(), open, kit.Options{}, ExploreOptions{Depth: 3})
		for k, n := range x.Transitions {
			if n > 0 {
				all = append(all, Kind(k).String())
			}
		}
		return all
	}
	if one, two := reached(rig{}.open), reached(rig{snap: true}.open); !slices.Equal(one, two) {
		t.Errorf("%v, and %v", one, two)
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
