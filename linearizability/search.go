package linearizability

import (
	"cmp"
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
	lanes    []lane
	width    int   // how many lanes there are
	unknown  []int // positions of the unknown actions
	segments []segment
	memory   int64                // bytes that the cache of a segment may take, about
	limit    int                  // of moves
	eager    bool                 // answers that change nothing come first
	keep     bool                 // the order that was found
	recent   int                  // unknown actions that a segment tries, those called last; 0: all
	patient  bool                 // and unknown actions late: it finds an order sooner, or none though there is one
	bad      []map[uint64][]*node // by segment, the states from which it fails

	steps   int    // tried
	moves   int    // of these, possible
	stopped string // why the search gave up; empty if it did not
	partial bool   // it left out unknown actions: it may miss an order
	deepest int    // the last segment that was entered
	entry   *node  // the state in which it was first entered
	last    *node  // the end of the order that was found
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
	// An eager search follows which known actions of the segment have come, and
	// how many of the first have; if one is forced, it comes next.
	done   []uint64
	low    int
	forced int // position in the actions, or none
	// In a patient search no unknown action comes while the known one that
	// returns first can.
	patient bool
	order   *link // if it is kept
}

const none = -1

// came reports whether the known action at a position of the segment has come.
func (n *node) came(at int) bool { return n.done[at/64]>>(at%64)&1 != 0 }

// newSearch prepares a search that gives up when ctx ends, or when the cache
// of a segment would take more than the given bytes, about.
func newSearch(ctx context.Context, meta *Meta, p *partition, memory int64) *search {
	s := &search{ctx: ctx, machine: p.machine, actions: p.actions, memory: memory, limit: math.MaxInt}
	s.lanes, s.width = lanes(meta, p.actions)
	for i := range p.actions {
		if p.actions[i].unknown {
			s.unknown = append(s.unknown, i)
		}
	}
	s.cut(segmentLen)
	return s
}

// cut divides the known actions into segments of at least the given length.
func (s *search) cut(length int) {
	s.segments = nil
	now := segment{}
	for i := range s.actions {
		a := &s.actions[i]
		if a.unknown {
			continue
		}
		if len(now.known) >= length && a.call > now.until {
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
}

// run searches. The result is porcupine.Unknown if it gave up.
func (s *search) run() porcupine.CheckResult {
	ok := s.from(s.begin())
	switch {
	case s.stopped != "":
		return porcupine.Unknown
	case ok:
		return porcupine.Ok
	case s.partial:
		s.stopped = "too many operations have an unknown outcome"
		return porcupine.Unknown
	}
	return porcupine.Illegal
}

// begin is the state before the first segment.
func (s *search) begin() *node {
	return &node{state: s.machine.init, next: make([]uint32, s.width)}
}

// entered is a segment under way: the state in which it began, and those in
// which it can end that are still to be tried.
type entered struct {
	start *node
	ends  []*node
	found bool // one of them, at least
	all   bool // these are all, not one
}

// from reports whether all segments can be run, the first from the given state.
func (s *search) from(start *node) bool {
	var under []entered
	for next := start; ; {
		if k := len(under); next != nil {
			if k == len(s.segments) {
				s.last = next
				return true
			}
			if err := s.ctx.Err(); err != nil {
				s.stopped = fmt.Sprintf("no time to look: %v", context.Cause(s.ctx))
				return false
			}
			if !s.covered(next, s.bad[k][s.hash(next.state)]) {
				if s.entry == nil || k > s.deepest {
					s.deepest, s.entry = k, next
				}
				under = append(under, entered{start: next, ends: s.ends(k, next, false)})
			}
			next = nil
		}
		if s.stopped != "" || len(under) == 0 {
			return false
		}
		k := len(under) - 1
		switch e := &under[k]; {
		case len(e.ends) > 0:
			next, e.ends, e.found = e.ends[0], e.ends[1:], true
		case e.found && !e.all: // one was not all
			e.ends, e.all = s.ends(k, e.start, true), true
		default:
			if s.bad[k] == nil {
				s.bad[k] = make(map[uint64][]*node)
			}
			hash := s.hash(e.start.state)
			s.bad[k][hash] = append(s.bad[k][hash], e.start)
			under = under[:k]
		}
	}
}

// covered reports whether a set of states before one segment has one from which
// everything can follow that can follow n: the same, with no unknown action
// used that n has not.
func (s *search) covered(n *node, set []*node) bool {
	return slices.ContainsFunc(set, func(m *node) bool {
		if !s.equal(m.state, n.state) {
			return false
		}
		for id, next := range m.next {
			if next > n.next[id] {
				return false
			}
		}
		return true
	})
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
	configs, limit := 0, int(s.memory)/(200+len(ops)/4+4*s.width+s.machine.bytes)
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
		s.moves++
		if configs++; configs > limit {
			s.stopped = fmt.Sprintf("gave up after %d steps: more would take too much memory", s.steps)
			return false, nil
		}
		if s.moves > s.limit {
			s.stopped = fmt.Sprintf("gave up after %d steps: too many operations overlap, or have an unknown outcome", s.steps)
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
		if !s.covered(n, byHash[hash]) {
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
	ops := make([]porcupine.Operation, 0, len(seg.known)+min(s.width, 256))
	for _, i := range seg.known {
		ops = append(ops, porcupine.Operation{Input: i, Call: s.actions[i].call, Return: s.actions[i].ret})
	}
	end, _ := slices.BinarySearchFunc(s.unknown, seg.until, func(i int, until int64) int { return cmp.Compare(s.actions[i].call, until) })
	for _, i := range slices.Backward(s.unknown[:end]) {
		if l := s.lanes[i]; uint32(l.rank) < start.next[l.id] {
			continue // it has come
		}
		if s.recent > 0 && len(ops) == len(seg.known)+s.recent {
			s.partial = true
			break
		}
		ops = append(ops, porcupine.Operation{Input: i, Call: s.actions[i].call, Return: math.MaxInt64})
	}
	slices.Reverse(ops[len(seg.known):])
	spread(ops)
	begin := &node{state: start.state, left: len(seg.known), next: start.next, forced: none, order: start.order}
	if s.eager {
		begin.done = make([]uint64, (len(seg.known)+63)/64)
		s.force(seg, begin)
	}
	return porcupine.Model{
		Init:  func() any { return begin },
		Equal: func(a, b any) bool { return s.equal(a.(*node).state, b.(*node).state) },
		Hash:  func(a any) uint64 { return s.hash(a.(*node).state) },
		Step: func(state, input, _ any) (bool, any) {
			next := s.step(seg, state.(*node), input.(int))
			return next != nil, next
		},
		DescribeState: func(a any) string { return s.machine.show(a.(*node).state) },
	}, ops
}

// spread puts the operations that are called between the same two returns in
// the order of their own returns, which is that in which porcupine tries them.
// They may come in any order all the same.
func spread(ops []porcupine.Operation) {
	returns := make([]int64, 0, len(ops))
	for _, op := range ops {
		returns = append(returns, op.Return)
	}
	slices.Sort(returns)
	returns = slices.Compact(returns)
	gap := func(place int64) int64 {
		i, _ := slices.BinarySearch(returns, place)
		return int64(i)
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int {
		return cmp.Or(cmp.Compare(gap(a.Call), gap(b.Call)), cmp.Compare(a.Return, b.Return))
	})
	wide := int64(len(ops) + 2)
	for i := range ops {
		op := &ops[i]
		op.Call = gap(op.Call)*wide + int64(i) + 1
		if op.Return != math.MaxInt64 {
			op.Return = (gap(op.Return) + 1) * wide
		}
	}
}

// step runs one action; nil if it cannot come next.
func (s *search) step(seg segment, n *node, i int) *node {
	if n.left == 0 {
		return n // unknown, and did not happen
	}
	if n.forced != none && n.forced != i {
		return nil
	}
	l := s.lanes[i]
	if l.id != noLane && n.next[l.id] != uint32(l.rank) {
		return nil
	}
	a := &s.actions[i]
	if n.patient && a.unknown {
		return nil
	}
	state, ok := s.machine.step(n.state, a)
	if !ok || a.unknown && s.equal(state, n.state) {
		return nil // an unknown action that changes nothing may as well not happen
	}
	m := &node{state: state, left: n.left, next: n.next, done: n.done, low: n.low, forced: none}
	if !a.unknown {
		m.left--
	}
	if s.keep {
		m.order = &link{action: int32(i), before: n.order}
	}
	if l.id != noLane {
		m.next = slices.Clone(n.next)
		m.next[l.id]++
	}
	if s.eager {
		if !a.unknown {
			at, _ := slices.BinarySearch(seg.known, i)
			m.done = slices.Clone(n.done)
			m.done[at/64] |= 1 << (at % 64)
		}
		s.force(seg, m)
	}
	return m
}

// force finds an answer that may come next and leaves the state as it is. It
// may as well come now: whatever else can follow can follow it too. That spares
// the search the orders in which it comes later.
func (s *search) force(seg segment, n *node) {
	for n.low < len(seg.known) && n.came(n.low) {
		n.low++
	}
	// An action may come unless one that has not come returned before its call.
	returns := int64(Unbounded)
	end := n.low
	for ; end < len(seg.known); end++ {
		a := &s.actions[seg.known[end]]
		if a.call > returns {
			break
		}
		if !n.came(end) {
			returns = min(returns, a.ret)
		}
	}
	for at := n.low; at < end; at++ {
		i := seg.known[at]
		a, l := &s.actions[i], s.lanes[i]
		if n.came(at) || !a.answer || a.call > returns || l.id != noLane && n.next[l.id] != uint32(l.rank) {
			continue
		}
		if state, ok := s.machine.step(n.state, a); ok && s.equal(state, n.state) {
			n.forced = i
			return
		}
	}
	if s.patient {
		for at := n.low; at < end; at++ {
			if a := &s.actions[seg.known[at]]; a.ret == returns && !n.came(at) {
				_, n.patient = s.machine.step(n.state, a)
				return
			}
		}
	}
}

// explained reports whether the given order of calls explains the partition: it
// has every known action, respects the times at which they ran, and the machine
// can run it.
func (p *partition) explained(calls []int) bool {
	if len(calls) == 0 {
		return false
	}
	at := make(map[int]*action, len(p.actions))
	known := 0
	for i := range p.actions {
		at[p.actions[i].Call] = &p.actions[i]
		if !p.actions[i].unknown {
			known++
		}
	}
	state, called := p.machine.init, int64(0)
	for _, call := range calls {
		a := at[call]
		if a == nil {
			continue // of another partition, or explains nothing
		}
		if called = max(called, a.call); called > a.ret {
			return false
		}
		if a.unknown && p.machine.maybe != nil {
			state = p.machine.maybe(state, a)
			continue
		}
		next, ok := p.machine.step(state, a)
		if !ok {
			return false
		}
		state = next
		if !a.unknown {
			known--
		}
	}
	return known == 0
}
