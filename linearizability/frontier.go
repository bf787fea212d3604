package linearizability

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/anishathalye/porcupine"
)

// frontier decides a partition in one walk through its calls and returns, with
// all the ways at once in which what came so far can have happened. When a known
// operation returns, each way is led on, by whatever is under way, until that
// one has happened (Lowe, "Testing for linearizability", 2017, calls it
// just-in-time linearization). Where no way is left, that return is the first
// that has no explanation.
//
// A search in depth explains a correct history sooner, because it needs one way
// only. It shows that there is none at the cost of trying all of them again for
// each choice made before; a frontier pays for each only once, and forgets what
// is behind it.
type frontier struct {
	ctx     context.Context
	machine *machine
	actions []action
	pred    []int32 // by action, the one before it in its lane, or none
	memory  int64   // bytes that the ways may take, about
	limit   int     // of steps
	keep    bool    // the order of each way

	known   []int32  // under way
	unknown []int32  // called, and some way may still use them
	slot    []int32  // by action under way, its bit
	free    []uint64 // bits that no action under way has
	maybe   []uint64 // bits of the unknown ones

	joinEvery int
	nextJoin  int
	asks      []int64   // what strays ask for
	strayed   []strayed // if orders are kept

	now, next, seen ways
	queue           []*way

	steps   int
	late    int    // ways made in hindsight
	decided int    // known operations that returned so far
	stopped string // why it gave up; empty if it did not
	place   int64  // all that returned before it is explained
	stuck   int32  // the action whose return no way explains, or none
}

// forward is what a machine may know that spares a frontier work. All of it is
// optional.
type forward struct {
	// parts are the alternatives that a state stands for. What follows is asked
	// of them alone.
	parts func(state any) []any
	// covers reports that whatever can follow b can follow a: by default, that
	// they are equal.
	covers func(a, b any) bool
	// kin is equal for states of which one covers the other: by default, the
	// hash.
	kin func(state any) uint64
	// past reports that an unknown action can change nothing any more, neither
	// in the state nor in one that follows.
	past func(state any, a *action) bool
	// by reports whether a state can have come about by the instant until which
	// an action may take effect.
	by func(state any, until int64) bool
	// idle reports that the step of an unknown action would lead nowhere, but
	// for what it does late.
	idle func(state any, a *action) bool
	// may reports whether an action can have led from a state to another by its
	// own step, as far as the rest of the history tells.
	may func(before, after any, a *action) bool
	// late reports that an unknown action may prolong what a state is in, and
	// needs to only right before an action that the state cuts; then it is done
	// in hindsight, as of any instant that allows it.
	late      func(state any, a *action) bool
	hindsight func(state any, a *action) (any, bool)
	cuts      func(state any, a *action) bool
	// strays tells which unknown actions nothing tells apart; nil if it cannot.
	strays *strayRules
}

// way is how what came so far can have happened: the state it led to, and which
// of the actions under way it has used. An unknown action that can change
// nothing any more counts as used.
type way struct {
	state any
	used  []uint64 // by slot
	kin   uint64
	gone  bool // another covers it
	spare spare
	order *link
}

func (w *way) has(slot int32) bool { return w.used[slot/64]>>(slot%64)&1 != 0 }

func (w *way) use(slot int32) { w.used[slot/64] |= 1 << (slot % 64) }

// newFrontier prepares a walk that gives up when ctx ends, or when its ways
// would take more than the given bytes, about.
func newFrontier(ctx context.Context, meta *Meta, p *partition, memory int64, limit int) *frontier {
	f := &frontier{
		ctx: ctx, machine: &p.machine, actions: p.actions, memory: memory, limit: limit, stuck: none, joinEvery: joinEvery,
		pred: make([]int32, len(p.actions)), slot: make([]int32, len(p.actions)),
	}
	lanes, width := lanes(meta, p.actions)
	last := make([]int32, width)
	for i := range last {
		last[i] = none
	}
	for i, l := range lanes {
		f.pred[i], f.slot[i] = none, none
		if l.id != noLane {
			f.pred[i] = last[l.id]
			last[l.id] = int32(i)
		}
	}
	return f
}

// run walks. The result is porcupine.Unknown if it gave up.
func (f *frontier) run() porcupine.CheckResult {
	returns := make([]int32, 0, len(f.actions))
	for i := range f.actions {
		if !f.actions[i].unknown {
			returns = append(returns, int32(i))
		}
	}
	slices.SortStableFunc(returns, func(a, b int32) int { return cmp.Compare(f.actions[a].ret, f.actions[b].ret) })
	for _, state := range f.parts(f.machine.init) {
		f.now.add(f, &way{state: state, kin: f.kin(state)})
	}
	if f.ctx.Err() != nil {
		f.stop(context.Cause(f.ctx).Error())
		return porcupine.Unknown
	}
	call := 0
	for _, x := range returns {
		for ; call < len(f.actions) && f.actions[call].call <= f.actions[x].ret; call++ {
			f.called(int32(call))
		}
		f.place = f.actions[x].ret
		f.returned(x)
		switch {
		case f.stopped != "":
			return porcupine.Unknown
		case len(f.now.list) == 0:
			f.stuck = x
			return porcupine.Illegal
		}
		f.decided++
		f.join()
	}
	return porcupine.Ok
}

// called gives an action a slot.
func (f *frontier) called(i int32) {
	word := slices.IndexFunc(f.free, func(w uint64) bool { return w != 0 })
	if word < 0 {
		word = len(f.free)
		f.free, f.maybe = append(f.free, ^uint64(0)), append(f.maybe, 0)
		for _, w := range f.now.list {
			w.used = append(w.used, 0)
		}
	}
	bit := bits.TrailingZeros64(f.free[word])
	f.free[word] &^= 1 << bit
	f.slot[i] = int32(64*word + bit)
	if f.actions[i].unknown {
		f.maybe[word] |= 1 << bit
		f.unknown = append(f.unknown, i)
	} else {
		f.known = append(f.known, i)
	}
}

// release takes the slot of an action that all ways have used.
func (f *frontier) release(i int32) {
	word, mask := f.slot[i]/64, uint64(1)<<(f.slot[i]%64)
	for _, w := range f.now.list {
		w.used[word] &^= mask
	}
	f.free[word] |= mask
	f.maybe[word] &^= mask
	f.slot[i] = none
}

// returned leads all ways on until x has happened.
func (f *frontier) returned(x int32) {
	f.next.reset()
	f.seen.reset()
	f.queue = f.queue[:0]
	for _, w := range f.now.list {
		if w.has(f.slot[x]) {
			f.next.add(f, w)
			continue
		}
		f.settle(w)
		f.enter(x, w)
	}
	for k := 0; k < len(f.queue) && f.stopped == ""; k++ {
		w := f.queue[k]
		f.queue[k] = nil
		if !w.gone {
			f.lead(x, w)
		}
	}
	f.now, f.next = f.next, f.now
	f.release(x)
	f.known = slices.DeleteFunc(f.known, func(i int32) bool { return i == x })
	if len(f.unknown) > 0 && len(f.now.list) > 0 {
		all := slices.Clone(f.now.list[0].used)
		for _, w := range f.now.list[1:] {
			for i := range all {
				all[i] &= w.used[i]
			}
		}
		f.unknown = slices.DeleteFunc(f.unknown, func(u int32) bool {
			if all[f.slot[u]/64]>>(f.slot[u]%64)&1 == 0 {
				return false
			}
			f.release(u)
			return true
		})
	}
}

// enter takes up a way: it is led on if x has not happened on it.
func (f *frontier) enter(x int32, w *way) {
	if w.has(f.slot[x]) {
		f.next.add(f, w)
	} else if f.seen.add(f, w) {
		f.queue = append(f.queue, w)
	}
	if f.memory < int64(len(f.next.list)+len(f.seen.list))*int64(f.machine.bytes+128+8*len(f.free)+4*maxStrays*len(f.asks)) {
		f.stop("more would take too much memory")
	}
}

// lead goes on from w by each action that can come next.
func (f *frontier) lead(x int32, w *way) {
	for _, i := range f.known {
		f.try(x, w, i, false)
	}
	late := len(w.spare.owners) > 0 && f.leadStrays(x, w)
	for _, i := range f.unknown {
		if !f.open(w, i) {
			continue
		}
		a := &f.actions[i]
		late = late || f.machine.late != nil && f.machine.late(w.state, a)
		if f.machine.idle == nil || !f.machine.idle(w.state, a) {
			f.try(x, w, i, false)
		}
	}
	if !late || !f.cut(w) {
		return
	}
	for _, i := range f.unknown {
		if f.machine.late(w.state, &f.actions[i]) {
			f.try(x, w, i, true)
		}
	}
	f.strayInHindsight(x, w)
}

// open reports whether w can use an action next, as far as the order goes.
func (f *frontier) open(w *way, i int32) bool {
	if w.has(f.slot[i]) {
		return false
	}
	p := f.pred[i]
	return p == none || f.slot[p] == none || w.has(f.slot[p])
}

// cut reports whether an action that may come next would rather find a tenure
// prolonged.
func (f *frontier) cut(w *way) bool {
	cuts := func(i int32) bool { return f.open(w, i) && f.machine.cuts(w.state, &f.actions[i]) }
	return slices.ContainsFunc(f.known, cuts) || slices.ContainsFunc(f.unknown, cuts)
}

// try goes on from w by one action.
func (f *frontier) try(x int32, w *way, i int32, hindsight bool) {
	if !f.open(w, i) || !f.step() {
		return
	}
	a := &f.actions[i]
	step := f.machine.step
	if hindsight {
		step = f.machine.hindsight
	}
	state, ok := step(w.state, a)
	if !ok {
		return
	}
	for _, part := range f.parts(state) {
		switch {
		case a.unknown && f.covers(w.state, part), // it may as well not have happened
			f.machine.by != nil && !f.machine.by(part, f.actions[x].until),
			f.machine.may != nil && !hindsight && !f.machine.may(w.state, part, a):
			continue
		}
		if hindsight {
			f.late++
		}
		n := &way{state: part, used: slices.Clone(w.used), kin: f.kin(part), order: w.order, spare: w.spare}
		f.append(n, i, hindsight)
		f.arrive(x, n)
	}
}

// step counts one, and reports whether it may be made.
func (f *frontier) step() bool {
	if f.stopped != "" {
		return false
	}
	if f.steps++; f.steps&1023 == 0 && f.ctx.Err() != nil {
		f.stop(context.Cause(f.ctx).Error())
	} else if f.steps > f.limit {
		f.stop("too many operations overlap, or have an unknown outcome")
	}
	return f.stopped == ""
}

// append uses an action.
func (f *frontier) append(w *way, i int32, late bool) {
	w.use(f.slot[i])
	if !f.keep {
		return
	}
	w.order = &link{action: i, late: late, before: w.order}
}

// settle uses what makes no difference to w: an unknown action that can change
// nothing any more, and an answer that leaves the state as it is. Such an answer
// may as well come now: whatever else can follow can follow it too.
func (f *frontier) settle(w *way) {
	if f.machine.past != nil {
		for _, i := range f.unknown {
			if !w.has(f.slot[i]) && f.machine.past(w.state, &f.actions[i]) {
				w.use(f.slot[i])
			}
		}
	}
	for _, i := range f.known {
		a := &f.actions[i]
		if !a.answer || !f.open(w, i) {
			continue
		}
		f.steps++
		if state, ok := f.machine.step(w.state, a); ok && f.equal(state, w.state) {
			f.append(w, i, false)
		}
	}
}

func (f *frontier) stop(why string) {
	if f.stopped == "" {
		f.stopped = fmt.Sprintf("gave up after %d steps, having explained %d operations: %s", f.steps, f.decided, why)
	}
}

func (f *frontier) parts(state any) []any {
	if f.machine.parts != nil {
		return f.machine.parts(state)
	}
	return []any{state}
}

func (f *frontier) equal(a, b any) bool {
	if f.machine.equal != nil {
		return f.machine.equal(a, b)
	}
	return a == b
}

func (f *frontier) covers(a, b any) bool {
	if f.machine.covers != nil {
		return f.machine.covers(a, b)
	}
	return f.equal(a, b)
}

func (f *frontier) kin(state any) uint64 {
	switch {
	case f.machine.kin != nil:
		return f.machine.kin(state)
	case f.machine.hash != nil:
		return f.machine.hash(state)
	}
	return 0
}

// ways is a set of ways of which none covers another: one covers another if its
// state does, it used the same known actions, no unknown one that the other did
// not, and has no less strays left.
type ways struct {
	list  []*way
	index map[uint64][]*way // by kin and known actions, once they are many
}

// fewWays are looked through one by one.
const fewWays = 12

func (s *ways) reset() {
	clear(s.list)
	s.list, s.index = s.list[:0], nil
}

// add reports whether w was added: none in the set covers it.
func (s *ways) add(f *frontier, w *way) bool {
	if s.index == nil && len(s.list) > fewWays {
		s.index = make(map[uint64][]*way, 4*len(s.list))
		for _, v := range s.list {
			key := f.key(v)
			s.index[key] = append(s.index[key], v)
		}
	}
	among, key := s.list, uint64(0)
	if s.index != nil {
		key = f.key(w)
		among = s.index[key]
	}
	covers := false
	for _, v := range among {
		if f.better(v, w) {
			return false
		}
		if f.better(w, v) {
			v.gone, covers = true, true
		}
	}
	if covers {
		gone := func(v *way) bool { return v.gone }
		s.list = slices.DeleteFunc(s.list, gone)
		if s.index != nil {
			among = slices.DeleteFunc(among, gone)
		}
	}
	s.list = append(s.list, w)
	if s.index != nil {
		s.index[key] = append(among, w)
	}
	return true
}

// key is equal for ways of which one covers the other.
func (f *frontier) key(w *way) uint64 {
	h := w.kin
	for i, word := range w.used {
		h = mix(h ^ word&^f.maybe[i])
	}
	return h
}

// better reports whether v covers w.
func (f *frontier) better(v, w *way) bool {
	if v.kin != w.kin {
		return false
	}
	for i := range v.used {
		if (v.used[i]^w.used[i])&^f.maybe[i] != 0 || v.used[i]&^w.used[i] != 0 {
			return false
		}
	}
	return v.spare.more(&w.spare) && f.covers(v.state, w.state)
}
