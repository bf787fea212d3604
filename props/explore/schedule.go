package explore

import (
	"bytes"
	"fmt"

	"fencepost/model"
	"fencepost/props/sim"
)

// schedule is the actions that lead along a path of states, in a World that
// began as every run does.
func (s *system) schedule(path [][]byte, last func(w *sim.World, do func(*sim.Action) bool) bool) ([]sim.Action, error) {
	w := s.start
	next := new(sim.World)
	space := s.space()
	var actions []sim.Action
	var key []byte
	for i := 1; i < len(path); i++ {
		found := false
		s.moves(&w, int32(len(actions)+1), nil, func(a *sim.Action) bool {
			next.CopyFrom(&w)
			if !next.Apply(a) || next.Violated() != 0 {
				return true
			}
			if key = space.AppendKey(key[:0], next); !bytes.Equal(key, path[i]) {
				return true
			}
			actions, found = append(actions, *a), true
			w.CopyFrom(next)
			return false
		})
		if !found {
			return nil, fmt.Errorf("step %d of a path cannot be replayed: two worlds with one key differ", i)
		}
	}
	do := func(a *sim.Action) bool {
		a.ID = int32(len(actions) + 1)
		actions = append(actions, *a)
		w.Apply(a)
		return w.Violated() != 0
	}
	if last != nil && !last(&w, do) {
		return nil, fmt.Errorf("the last step of a path does not fail where it should: two worlds with one key differ")
	}
	return actions, nil
}

// fail does the step of kind label that breaks something.
func (s *system) fail(label uint8) func(*sim.World, func(*sim.Action) bool) bool {
	return func(w *sim.World, do func(*sim.Action) bool) bool {
		switch sim.Kind(label) {
		case sim.Calm:
			a := s.fair
			return do(&a)
		case sim.Read:
			for key := range uint8(s.o.Keys) {
				if w.Value(key) != w.Landed(key) {
					a := sim.Action{Kind: sim.Read, Who: sim.RawNode(0), Key: key}
					do(&a)
					return do(&sim.Action{Kind: sim.Deliver, Msg: model.Msg{Action: a.ID}})
				}
			}
			return false
		}
		failing, found := sim.Action{}, false
		next := new(sim.World)
		s.moves(w, 1<<20, nil, func(a *sim.Action) bool {
			if a.Kind != sim.Kind(label) {
				return true
			}
			next.CopyFrom(w)
			next.Apply(a)
			if found = next.Violated() != 0; found {
				failing = *a
			}
			return !found
		})
		return found && do(&failing)
	}
}
