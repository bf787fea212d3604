package explore

import (
	"fmt"

	"fencepost/props/sim"
)

// Twins lets tests that know planted bugs, which know this package, compare
// worlds that a key takes for one.
type Twins struct {
	x       *twins
	w, next sim.World
}

// NewTwins is for the worlds of o.
func NewTwins(o Options, space sim.SpaceOptions) (*Twins, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := newSystem(&o)
	if err != nil {
		return nil, err
	}
	return &Twins{x: newTwins(s, space)}, nil
}

// Walk takes steps that pick chooses, compares every World that it comes to with
// the one that is made from its key, and gives how many it compared until two of
// them part.
//
// Each walk has likings of its own, for kinds of actions and for the messages
// sent last: what takes many steps of one sort, such as a write that outlives
// its term in the network, walks without any hardly come to (Groce et al. 2012,
// "Swarm testing").
func (t *Twins) Walk(steps int, pick func(n int) int) (pairs int, err error) {
	s := t.x.s
	weight := map[sim.Kind]int{}
	of := func(k sim.Kind) int {
		n, drawn := weight[k]
		if !drawn {
			n = weightOf(k) * pick(3)
			switch k {
			case sim.Deliver, sim.Tick, sim.Advance: // without which nothing goes on
				n += weights[k]
			}
			weight[k] = n
		}
		return n
	}
	eager := pick(2) == 1
	t.w.CopyFrom(&s.start)
	for pairs < steps {
		pairs++
		if err := t.x.differ(&t.w); err != nil {
			return pairs, fmt.Errorf("after %d actions: %w", pairs-1, err)
		}
		can := choose(s.enabled(nil, &t.w, &t.next, int32(pairs)), of, pick)
		if len(can) == 0 {
			break
		}
		a := &can[pick(len(can))]
		if eager && a.Kind == sim.Deliver && pick(8) > 0 {
			for i := range can {
				if can[i].Msg.Action > a.Msg.Action {
					a = &can[i]
				}
			}
		}
		t.w.Apply(a)
	}
	return pairs, nil
}
