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
	process   int64
	call, ret int64
}

// spans gives the operations of h their places, in the order of their calls.
// The order of the events is real where time stamps have no error; elsewhere
// events closer than twice the error are unordered, and only the process of each
// still orders its own.
func (h *History) spans() []span {
	ops := h.Ops()
	spans := make([]span, len(ops))
	if h.Meta.Eps == 0 {
		for i, op := range ops {
			spans[i] = span{op, h.Events[op.Call].Process, int64(op.Call) + 1, int64(op.Return) + 1}
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
		spans[i] = span{Op: op, process: h.Events[op.Call].Process, ret: Unbounded}
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

// lane makes some actions happen in a fixed order. Where time stamps have an
// error, so that they do not order all operations of a process, they are those
// of one process. Elsewhere they are equal actions, of which the one that was
// called and returned first may as well have happened first: that turns the
// 2^n sets of n equal operations under way at once into n+1.
type lane struct {
	id   int // from 0, or noLane
	rank int // place in the lane, from 0
}

const noLane = -1

// laner assigns lanes.
type laner struct {
	actions []action
	of      []lane
	size    []int   // by lane: its actions so far
	until   []int64 // by lane: the last place at which one of its actions may happen
	ending  []int   // the lanes of known actions
}

// lanes returns the lane of each action, and how many there are.
func lanes(meta *Meta, actions []action) ([]lane, int) {
	l := laner{actions: actions, of: make([]lane, len(actions))}
	for i := range l.of {
		l.of[i].id = noLane
	}
	if meta.Eps > 0 {
		l.processes()
	} else {
		l.equals()
	}
	return l.of, len(l.size)
}

func (l *laner) processes() {
	lanes := make(map[int64]int)
	for i := range l.actions {
		p := l.actions[i].process
		id, ok := lanes[p]
		if !ok {
			id = l.open()
			lanes[p] = id
		}
		l.join(i, id)
	}
}

// equals makes lanes of equal actions that may be under way at once. If in some
// order the one that was called and returned later comes first, each may take
// the place of the other: nothing else changes. A lane is used again once all its
// actions must have happened.
func (l *laner) equals() {
	tails := make(map[class][]int) // the last action of each lane in the making
	for i := range l.actions {
		a := &l.actions[i]
		if a.alone {
			if a.unknown {
				l.join(i, l.open())
			}
			continue
		}
		// Of the lanes it can follow, the one that ends last.
		tail := tails[a.class]
		best := none
		for t, j := range tail {
			p := &l.actions[j]
			if p.unknown == a.unknown && p.ret <= a.ret && p.since <= a.since && p.until <= a.until &&
				(best == none || p.ret > l.actions[tail[best]].ret) {
				best = t
			}
		}
		if best == none || l.actions[tail[best]].ret < a.call {
			// In order by itself.
			if best != none {
				tail[best] = i
			} else {
				tails[a.class] = append(tail, i)
			}
			if a.unknown {
				// Whether it happened is to be known where it may matter later.
				l.join(i, l.open())
			}
			continue
		}
		j := tail[best]
		tail[best] = i
		id := l.of[j].id
		if id == noLane {
			again := slices.IndexFunc(l.ending, func(id int) bool { return l.until[id] < l.actions[j].call })
			if again >= 0 {
				id = l.ending[again]
			} else if id = l.open(); !a.unknown {
				l.ending = append(l.ending, id)
			}
			l.join(j, id)
		}
		l.join(i, id)
	}
}

func (l *laner) open() int {
	l.size, l.until = append(l.size, 0), append(l.until, 0)
	return len(l.size) - 1
}

func (l *laner) join(i, id int) {
	l.of[i] = lane{id, l.size[id]}
	l.size[id]++
	l.until[id] = max(l.until[id], l.actions[i].ret)
}
