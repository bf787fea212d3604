package explore

import (
	"fencepost/model"
	"fencepost/props/sim"
	"fmt"
	"testing"
)

func TestDbg(t *testing.T) {
	o := Default()
	s, _ := newSystem(&o)
	p, _ := model.Shortest(t.Context(), s, model.ExploreOptions{Sometimes: someCount})
	n := len(p.States)
	fmt.Printf("%x label %v\n", p.States[n-1], sim.Kind(p.Steps[n-1].Label))
	d := new(sim.World)
	sp := s.space()
	sp.Decode(p.States[n-1], d)
	s.moves(d, 1000, nil, func(a *sim.Action) bool {
		x := new(sim.World)
		x.CopyFrom(d)
		if x.Apply(a); x.Violated() != 0 {
			fmt.Println(a, x.Violated(), x.First().Describe(sim.Names()))
		}
		return true
	})
	x := new(sim.World)
	x.CopyFrom(d)
	x.Apply(&s.fair)
	fmt.Println(x.Violated(), x.First().Describe(sim.Names()))
	acts, err := s.schedule(p.States, nil)
	fmt.Println(err)
	for _, a := range acts {
		fmt.Println(a)
	}
}
