package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost/model"
	"fencepost/props/sim"
)

func outcomes(s *system, space *sim.Space, w *sim.World) []string {
	var out []string
	self := space.AppendKey(nil, w)
	next := new(sim.World)
	next.CopyFrom(w)
	s.moves(w, 1<<20, nil, func(a *sim.Action) bool {
		if !next.Apply(a) {
			return true
		}
		key := space.AppendKey(nil, next)
		if next.Violated() != 0 {
			key = []byte(fmt.Sprint(next.Violated()))
		}
		if !slices.Equal(self, key) {
			out = append(out, fmt.Sprintf("%v %x", a.Kind, key))
		}
		next.CopyFrom(w)
		return true
	})
	next.CopyFrom(w)
	next.Apply(&s.fair)
	out = append(out, fmt.Sprintf("calm %v", next.Violated()))
	slices.Sort(out)
	return slices.Compact(out)
}

func walkTest(t *testing.T, o Options, n int) {
	s, err := newSystem(&o)
	if err != nil {
		t.Fatal(err)
	}
	space := s.space()
	rnd := rand.New(rand.NewPCG(1, 2))
	pairs := 0
	for pairs < n {
		w := s.start
		var acts []sim.Action
		for range 60 {
			key := space.AppendKey(nil, &w)
			d := new(sim.World)
			space.Decode(key, d)
			if k2 := space.AppendKey(nil, d); !slices.Equal(key, k2) {
				t.Fatalf("decoded world has another key\n%x\n%x\nafter %v", key, k2, acts)
			}
			pairs++
			if a, b := outcomes(s, space, &w), outcomes(s, space, d); !slices.Equal(a, b) {
				for _, x := range a {
					if !slices.Contains(b, x) {
						t.Log("only concrete:", x)
					}
				}
				for _, x := range b {
					if !slices.Contains(a, x) {
						t.Log("only decoded: ", x)
					}
				}
				for _, x := range acts {
					t.Log(x)
				}
				t.Logf("key %x", key)
				var tr sim.Trace
				cw, _ := sim.NewWorld(o.Config(), o.Subject, sim.Options{Monitor: true, Trace: &tr})
				for _, x := range acts {
					cw.Apply(&x)
				}
				x := sim.Action{ID: 99, Kind: sim.Deliver, Msg: w.Message(0)}
				cw.Apply(&x)
				for i := range tr.Events {
					t.Log(sim.Line(&tr.Events[i]))
				}
				t.Log(cw.Violated(), cw.First())
				t.Fatal("differ")
			}
			// a random effective move
			var can []sim.Action
			next := new(sim.World)
			next.CopyFrom(&w)
			s.moves(&w, int32(len(acts)+1), nil, func(a *sim.Action) bool {
				if next.Apply(a) {
					if next.Violated() == 0 {
						can = append(can, *a)
					}
					next.CopyFrom(&w)
				}
				return true
			})
			byKind := map[sim.Kind][]sim.Action{}
			var kinds []sim.Kind
			for _, a := range can {
				if byKind[a.Kind] == nil {
					kinds = append(kinds, a.Kind)
				}
				byKind[a.Kind] = append(byKind[a.Kind], a)
			}
			as := byKind[kinds[rnd.IntN(len(kinds))]]
			a := as[rnd.IntN(len(as))]
			acts = append(acts, a)
			w.Apply(&a)
		}
	}
}

func TestEquiv(t *testing.T) {
	walkTest(t, Default(), 20000)
}

var _ = model.MaxNodes
