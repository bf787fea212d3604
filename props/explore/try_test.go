package explore

import (
	"fencepost/model"
	"fencepost/props/sim"
	"fmt"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	o := Default()
	o.Workers = 1
	o.MaxStates = 3_000_000
	begin := time.Now()
	x, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	el := time.Since(begin)
	fmt.Println(x.States, x.Transitions, x.Depth, x.Complete, x.Bounded, x.Failed, x.FailDepth, el, "mem/state", float64(x.Memory)/float64(x.States), float64(x.Transitions)/el.Seconds()/1e6)
	for _, l := range x.Levels {
		fmt.Print(l.States, " ")
	}
	fmt.Println()
	if x.Failed {
		s, _ := newSystem(&o)
		p, ok := model.Shortest(t.Context(), s, model.ExploreOptions{Sometimes: someCount})
		fmt.Println(ok, len(p.States))
		acts, err := s.schedule(p.States, s.fail(p.Steps[len(p.Steps)-1].Label))
		if err != nil {
			t.Error(err)
		}
		sch := sim.Schedule{Name: "x", Subject: "builtin", Config: o.Config(), Actions: acts}
		r := sch.Run(o.Subject, sim.Options{Monitor: true})
		fmt.Println(r.First.Describe(sim.Names()), r.Violated)
		for _, a := range acts {
			fmt.Println(a)
		}
	}
}
