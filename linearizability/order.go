package linearizability

import (
	"cmp"
	"slices"
)

// span is an operation with its place in the order of the history: it took
// effect somewhere from call to ret. Places are numbers without a unit; one
// operation precedes another if its ret is the lower. An operation with unknown
// outcome has no end: its ret is Unbounded.
type span struct {
	Op
	call, ret int64
}

// spans gives the operations of h their places, in the order of their calls. The order of the events is real where time
// stamps have no error; elsewhere events closer than twice the error are
// unordered, and only the process of each still orders its own.
func (h *History) spans() []span {
	ops := h.Ops()
	spans := make([]span, len(ops))
	if h.Meta.Eps == 0 {
		for i, op := range ops {
			spans[i] = span{op, int64(op.Call) + 1, int64(op.Return) + 1}
			if op.Type == Info {
				spans[i].ret = Unbounded
			}
		}
		return spans
	}
	type end struct {
		time int64
		call bool
		op   int
	}
	ends := make([]end, 0, 2*len(ops))
	for i, op := range ops {
		spans[i] = span{Op: op, ret: Unbounded}
		ends = append(ends, end{h.Events[op.Call].Time - h.Meta.Eps, true, i})
		if op.Type != Info {
			ends = append(ends, end{h.Events[op.Return].Time + h.Meta.Eps, false, i})
		}
	}
	// Two events exactly 2 eps apart are ordered: returns go first on a tie.
	slices.SortStableFunc(ends, func(a, b end) int {
		switch c := cmp.Compare(a.time, b.time); {
		case c != 0 || a.call == b.call:
			return c
		case a.call:
			return 1
		}
		return -1
	})
	for place, e := range ends {
		if e.call {
			spans[e.op].call = int64(place) + 1
		} else {
			spans[e.op].ret = int64(place) + 1
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.call, b.call) })
	return spans
}

// before returns the history of which only what lies before the given place is
// known: operations that had not returned are unknown.
func before(spans []span, place int64) []span {
	var cut []span
	for _, s := range spans {
		if s.call > place {
			continue
		}
		if s.ret > place {
			s.Return, s.Type, s.ret = -1, Info, Unbounded
		}
		cut = append(cut, s)
	}
	return cut
}

// lane makes some actions happen in a fixed order: those of one process where
// time stamps do not order them, and unknown actions that do the same, of which
// the one called first may as well be the one that happened first. The latter
// turns 2^n sets of n equal actions into n+1.
type lane struct {
	id   int // from 0
	rank int // place in the lane, from 0
}

const noLane = -1

// lanes assigns at most two lanes to each action: its process's, and its
// equals'. It returns them by action, and how many there are.
func lanes(h *History, actions []action) ([][2]lane, int) {
	assigned := make([][2]lane, len(actions))
	var size []int
	join := func(i, which, id int) {
		assigned[i][which] = lane{id, size[id]}
		size[id]++
	}
	processes := make(map[int64]int)
	type equal struct {
		kind         uint8
		a, b         int32
		token, limit uint64
	}
	equals := make(map[equal]int)
	for i := range actions {
		a := &actions[i]
		assigned[i] = [2]lane{{id: noLane}, {id: noLane}}
		if h.Meta.Eps > 0 {
			p := h.Events[a.Call].Process
			if _, ok := processes[p]; !ok {
				processes[p] = len(size)
				size = append(size, 0)
			}
			join(i, 0, processes[p])
		}
		if a.unknown {
			k := equal{a.kind, a.a, a.b, a.token, a.limit}
			if _, ok := equals[k]; !ok {
				equals[k] = len(size)
				size = append(size, 0)
			}
			join(i, 1, equals[k])
		}
	}
	return assigned, len(size)
}
