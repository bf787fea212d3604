package explore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

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
		return nil, errors.New("the last step of a path does not fail where it should: two worlds with one key differ")
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

// inTurn is the actions along a path to a state that breaks something in fair
// time, where the clients take their turns one after the other: as that depends
// on which of them is which, under whatever names it breaks.
func (s *system) inTurn(path [][]byte) ([]sim.Action, error) {
	actions, err := s.schedule(path, nil)
	if err != nil {
		return nil, err
	}
	names := make([]int, s.o.Clients)
	for i := range names {
		names[i] = i
	}
	for more := true; more; more = nextOrder(names) {
		w := s.start
		renamed := make([]sim.Action, 0, len(actions)+1)
		for _, a := range actions {
			b := a
			for i, j := range names {
				if a.Who == sim.ClientNode(i) {
					b.Who = sim.ClientNode(j)
				}
				b.Rates[sim.ClientNode(j)] = a.Rates[sim.ClientNode(i)]
			}
			w.Apply(&b)
			renamed = append(renamed, b)
		}
		fair := s.fair
		fair.ID = int32(len(renamed) + 1)
		if w.Apply(&fair); w.Violated() != 0 {
			return append(renamed, fair), nil
		}
	}
	return nil, errors.New("it breaks in fair time under no names of the clients")
}

// nextOrder goes on to the next permutation in lexicographic order, if there is
// one.
func nextOrder(x []int) bool {
	i := len(x) - 2
	for i >= 0 && x[i] >= x[i+1] {
		i--
	}
	if i < 0 {
		return false
	}
	j := len(x) - 1
	for x[j] <= x[i] {
		j--
	}
	x[i], x[j] = x[j], x[i]
	slices.Reverse(x[i+1:])
	return true
}
