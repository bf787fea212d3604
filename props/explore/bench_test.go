package explore

import (
	"testing"

	"fencepost/model"
)

func BenchmarkExplore(b *testing.B) {
	for _, c := range []struct {
		name string
		set  func(*Options)
	}{
		{"safety", func(o *Options) { o.Judged = Judgeable &^ model.SetOf(model.Availability, model.Lockstep) }},
		{"all", func(*Options) {}},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := Default()
			o.Workers = 1
			c.set(&o)
			var states, transitions uint64
			for b.Loop() {
				x, err := Run(b.Context(), o)
				if err != nil || x.Verdict != Holds {
					b.Fatal(err)
				}
				states, transitions = states+x.Found.States, transitions+x.Found.Transitions
			}
			b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
			b.ReportMetric(float64(transitions)/b.Elapsed().Seconds(), "transitions/s")
		})
	}
}
