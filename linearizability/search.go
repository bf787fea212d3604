package linearizability

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// segmentLen is how many known operations a segment has, at least. Porcupine
// takes memory in the square of the operations it is given.
const segmentLen = 1024

// search looks for one order of a partition's actions that its machine can
// run: the algorithm of Wing & Gong (1993) with Lowe's cache (2017), as
// porcupine has it.
//
// A long partition is cut where no known operation is under way. Each segment
// starts in a state in which the one before can end; where it fails, the one
// before is asked for the other states in which it can end.
type search struct {
	ctx      context.Context
	machine  machine
	actions  []action // in the order of their calls
	lanes    [][2]lane
	width    int // how many lanes there are
	segments []segment
	memory   int64
	bad      []map[uint64][]*node // by segment, the states from which it fails

	steps   int    // tried
	stopped string // why the search gave up; empty if it did not
	deepest int    // the last segment that was entered
	entry   *node  // the state in which it was first entered
}

// segment is a run of known actions. Which unknown actions it has besides
// depends on those that the segments before it have used.
type segment struct {
	known []int // positions in the actions
	until int64 // place of the last return
}

// node is a state of the search: the machine's, and what else decides which
// action may come next. Equal sets of actions have equal left and next, so that
// porcupine needs to compare only the machine's.
type node struct {
	state any
	left  int      // known actions of the segment still to come
	next  []uint32 // by lane, the rank of the action that comes next
}

// newSearch prepares a search that gives up when ctx ends, or when the cache
// of a segment would take more than the given bytes, about.
func newSearch(ctx context.Context, h *History, p *partition, memory int64) *search {
	s := &search{ctx: ctx, machine: p.machine, actions: p.actions, memory: memory}
	s.lanes, s.width = lanes(h, p.actions)
	now := segment{}
	for i := range s.actions {
		a := &s.actions[i]
		if a.unknown {
			continue
		}
		if len(now.known) >= segmentLen && a.call > now.until {
			s.segments = append(s.segments, now)
			now = segment{}
		}
		now.known = append(now.known, i)
		now.until = max(now.until, a.ret)
	}
	if len(now.known) > 0 {
		s.segments = append(s.segments, now)
	}
	s.bad = make([]map[uint64][]*node, len(s.segments))
	return s
}

// run searches. The result is porcupine.Unknown if it gave up.
func (s *search) run() porcupine.CheckResult {
	ok := s.from(0, &node{state: s.machine.init, next: make([]uint32, s.width)})
	switch {
	case s.stopped != "":
		return porcupine.Unknown
	case ok:
		return porcupine.Ok
	}
	return porcupine.Illegal
}

// from reports whether segment k, and all after it, can be run from a state.
func (s *search) from(k int, start *node) bool {
	if k == len(s.segments) {
		return true
	}
	if err := s.ctx.Err(); err != nil {
		s.stopped = fmt.Sprintf("no time to look: %v", context.Cause(s.ctx))
	}
	if s.stopped != "" || s.isBad(k, start) {
		return false
	}
	if s.entry == nil || k > s.deepest {
		s.deepest, s.entry = k, start
	}
	ends := s.ends(k, start, false)
	for _, end := range ends {
		if s.from(k+1, end) {
			return true
		}
	}
	if len(ends) > 0 { // one was not all
		for _, end := range s.ends(k, start, true) {
			if s.from(k+1, end) {
				return true
			}
		}
	}
	if s.bad[k] == nil {
		s.bad[k] = make(map[uint64][]*node)
	}
	hash := s.hash(start.state)
	s.bad[k][hash] = append(s.bad[k][hash], start)
	return false
}

func (s *search) isBad(k int, n *node) bool {
	return s.has(s.bad[k][s.hash(n.state)], n)
}

func (s *search) has(set []*node, n *node) bool {
	return slices.ContainsFunc(set, func(m *node) bool { return s.equal(m.state, n.state) && slices.Equal(m.next, n.next) })
}

func (s *search) equal(a, b any) bool {
	if s.machine.equal != nil {
		return s.machine.equal(a, b)
	}
	return a == b
}

func (s *search) hash(state any) uint64 {
	if s.machine.hash != nil {
		return s.machine.hash(state)
	}
	return 0
}

// ends returns states in which segment k can end if it begins in start: all of
// them, or one if there is one.
func (s *search) ends(k int, start *node, all bool) []*node {
	model, ops := s.porcupine(k, start)
	var found []*node
	byHash := make(map[uint64][]*node)
	configs, limit := 0, int(s.memory)/(160+len(ops)/8+4*s.width+s.machine.bytes)
	step := model.Step
	model.Step = func(state, input, output any) (ok bool, next any) {
		if s.stopped != "" {
			return false, nil // nothing is possible any more: the search ends soon
		}
		if s.steps++; s.steps&1023 == 0 && s.ctx.Err() != nil {
			s.stopped = fmt.Sprintf("gave up after %d steps: %v", s.steps, context.Cause(s.ctx))
			return false, nil
		}
		defer func() {
			// Porcupine runs this on a goroutine of its own, where a panic would
			// end the process.
			if r := recover(); r != nil {
				s.stopped = fmt.Sprintf("the model failed: %v", r)
				ok, next = false, nil
			}
		}()
		ok, next = step(state, input, output)
		if !ok {
			return false, nil
		}
		if configs++; configs > limit {
			s.stopped = fmt.Sprintf("gave up after %d steps: more would take too much memory", s.steps)
			return false, nil
		}
		n := next.(*node)
		if n.left > 0 || state.(*node).left == 0 {
			return true, next
		}
		if !all {
			found = []*node{n}
			return true, next
		}
		hash := s.hash(n.state)
		if !s.has(byHash[hash], n) {
			byHash[hash] = append(byHash[hash], n)
			found = append(found, n)
		}
		return false, nil
	}
	porcupine.CheckOperations(model, ops)
	return found
}

// porcupine makes what porcupine needs to run segment k from a state.
//
// An unknown action is one that may come at any place after its call, or not at
// all. Porcupine knows nothing of the kind, but every unknown action returns
// after all others: it happened if it comes before the last known action, and
// else did not, and has no effect. So the machine needs not guess, and an
// action whose effect is impossible where the search stands is cut off there.
func (s *search) porcupine(k int, start *node) (porcupine.Model, []porcupine.Operation) {
	seg := s.segments[k]
	ops := make([]porcupine.Operation, 0, len(seg.known)+s.width)
	for _, i := range seg.known {
		ops = append(ops, porcupine.Operation{Input: i, Call: s.actions[i].call, Return: s.actions[i].ret})
	}
	if s.width > 0 {
		for i := range s.actions {
			a, l := &s.actions[i], s.lanes[i][1]
			if a.unknown && a.call < seg.until && uint32(l.rank) >= start.next[l.id] {
				ops = append(ops, porcupine.Operation{Input: i, Call: a.call, Return: math.MaxInt64})
			}
		}
	}
	begin := &node{state: start.state, left: len(seg.known), next: start.next}
	return porcupine.Model{
		Init:  func() any { return begin },
		Equal: func(a, b any) bool { return s.equal(a.(*node).state, b.(*node).state) },
		Hash:  func(a any) uint64 { return s.hash(a.(*node).state) },
		Step: func(state, input, _ any) (bool, any) {
			next := s.step(state.(*node), input.(int))
			return next != nil, next
		},
		DescribeState: func(a any) string { return s.machine.show(a.(*node).state) },
	}, ops
}

// step runs one action; nil if it cannot come next.
func (s *search) step(n *node, i int) *node {
	if n.left == 0 {
		return n // unknown, and did not happen
	}
	for _, l := range s.lanes[i] {
		if l.id != noLane && n.next[l.id] != uint32(l.rank) {
			return nil
		}
	}
	a := &s.actions[i]
	state, ok := s.machine.step(n.state, a)
	if !ok {
		return nil
	}
	m := &node{state: state, left: n.left, next: n.next}
	if !a.unknown {
		m.left--
	}
	for j, l := range s.lanes[i] {
		if l.id == noLane {
			continue
		}
		if j == 0 || s.lanes[i][0].id == noLane {
			m.next = slices.Clone(m.next)
		}
		m.next[l.id]++
	}
	return m
}
