package explore

import (
	"fmt"
	"testing"

	"fencepost/model"
)

// BenchmarkExplore explores the default worlds: the search alone, with the
// invariants judged at every step, and the whole of [Run], which gives every
// state fair time besides and compares worlds with those that stand for them.
//
//	go test -run '^$' -bench Explore -benchtime 4x ./props/explore
func BenchmarkExplore(b *testing.B) {
	search := func(b *testing.B, o Options) model.Exploration {
		s, err := newSystem(&o)
		if err != nil {
			b.Fatal(err)
		}
		s.waits = false
		return model.Explore(b.Context(), s, model.ExploreOptions{Workers: o.Workers, Sometimes: someCount})
	}
	whole := func(b *testing.B, o Options) model.Exploration {
		r, err := Run(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		return r.Found
	}
	for _, c := range []struct {
		name string
		run  func(*testing.B, Options) model.Exploration
	}{{"search", search}, {"whole", whole}} {
		for workers := 1; workers <= 2; workers++ {
			b.Run(fmt.Sprintf("%s/workers=%d", c.name, workers), func(b *testing.B) {
				o := Default()
				o.Workers = workers
				var states, transitions, memory float64
				for b.Loop() {
					x := c.run(b, o)
					if !x.Complete {
						b.Fatalf("failed %v, bounded %q", x.Failed, x.Bounded)
					}
					states, transitions = states+float64(x.States), transitions+float64(x.Transitions)
					memory = float64(x.Memory) / float64(x.States)
				}
				b.ReportMetric(states/b.Elapsed().Seconds(), "states/s")
				b.ReportMetric(transitions/b.Elapsed().Seconds(), "transitions/s")
				b.ReportMetric(memory, "B/state")
			})
		}
	}
}
