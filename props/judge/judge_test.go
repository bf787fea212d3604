package judge

import (
	"context"
	"fmt"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/sim"
)

func TestScratch(t *testing.T) {
	t0 := time.Now()
	for _, want := range []model.Set{All &^ model.SetOf(model.Linearizability), All} {
		s := Sweep{Subject: sim.Builtin(), Profiles: []sim.Profile{sim.Chaos(), sim.Raw()}, Seed: 5, Schedules: 2000, MinSteps: 100, MaxSteps: 150, Want: want}
		r := s.Run(context.Background(), func() time.Duration { return time.Since(t0) })
		_, n := r.Counts.Actions()
		fmt.Println(r.Counts.Runs, n, r.Histories, r.Elapsed)
		if r.Failure != nil {
			fmt.Println(r.Failure.Number, r.Failure.Result.First.Describe(sim.Names()))
			m := r.Failure.Minimize(sim.Builtin(), want)
			b, _ := m.MarshalJSON()
			fmt.Println(string(b))
			var tr sim.Trace
			m.Run(sim.Builtin(), sim.Options{Monitor: true, Trace: &tr})
			for i := range tr.Events {
				fmt.Println(sim.Line(&tr.Events[i]))
			}
			h := History("x", tr.Events, &m.Config)
			fmt.Printf("%+v\n", h.Meta)
		}
	}
}
