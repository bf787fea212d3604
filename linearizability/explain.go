package linearizability

import (
	"context"
	"slices"

	"github.com/anishathalye/porcupine"
)

// explanation is an order in which the operations of a partition can have
// happened: all of them or, where that is violated, those before the first
// return that nothing explains.
type explanation struct {
	// order has the calls, as positions in the history. It leaves out operations
	// that say nothing of the state, and those with unknown outcome that need not
	// have happened.
	order []int
	// complete says that the order has every known operation, so that it is a
	// linearization.
	complete bool
	// stuck is the first operation whose return nothing explains; nil if the
	// explanation is complete, or the searches were too long to tell. The order
	// has it only if others must have seen its effect, whatever it was answered.
	stuck *span
}

// explain searches again, for an order that is to be seen. It may find none
// where the searches give up; then the order is empty.
func (p *part) explain(ctx context.Context, meta *Meta, memory int64) explanation {
	if p.stuck == nil {
		order, ok := p.load().order(ctx, meta, memory)
		return explanation{order: order, complete: ok}
	}
	e := explanation{stuck: p.stuck}
	all, err := p.compile(p.stuck.ret - 1)
	if err != nil {
		return e
	}
	without := all
	without.actions = slices.DeleteFunc(slices.Clone(all.actions), func(a action) bool { return a.Call == p.stuck.Call })
	for _, target := range []*partition{&without, &all} {
		var ok bool
		if e.order, ok = target.order(ctx, meta, memory); ok {
			break
		}
	}
	return e
}

// order finds one order of the actions, if there is one.
func (p *partition) order(ctx context.Context, meta *Meta, memory int64) ([]int, bool) {
	plain := newSearch(ctx, meta, p, memory)
	plain.limit, plain.recent, plain.keep = plainMoves*(100+len(p.actions)), plainRecent, true
	if plain.run() == porcupine.Ok {
		return p.calls(plain.last.order.list()), true
	}
	walk := newFrontier(ctx, meta, p, memory, max(walkLeast, walkSteps*len(p.actions)))
	walk.keep = true
	if walk.run() != porcupine.Ok {
		return nil, false
	}
	return p.calls(p.relocate(walk.named(walk.now.list[0].order.list()))), true
}

// link is the end of an order of actions.
type link struct {
	action int32
	stray  *strayUse // what the action is found out by; nil if it is known
	joined int       // how many had strayed
	late   bool      // it is in the order where it was needed, not where it happened
	before *link
}

// list is the order from its beginning.
func (l *link) list() []*link {
	var list []*link
	for ; l != nil; l = l.before {
		list = append(list, l)
	}
	slices.Reverse(list)
	return list
}

func (p *partition) calls(order []*link) []int {
	calls := make([]int, len(order))
	for i, l := range order {
		calls[i] = p.actions[l.action].Call
	}
	return calls
}

// relocateSteps bounds the search for the places of late actions.
const relocateSteps = 1_000_000

// relocate moves the late actions of an order to where they can have taken
// effect, as close to where they were needed as may be. If that takes too long,
// it leaves the order as it is.
func (p *partition) relocate(order []*link) []*link {
	r := relocation{p: p, steps: relocateSteps}
	for _, l := range order {
		if l.late {
			r.late = append(r.late, late{l, len(r.base)})
		} else {
			r.base = append(r.base, l)
		}
	}
	if len(r.late) == 0 || !r.place(0, 0) {
		return order
	}
	return r.order
}

// relocation is an order in the making: what came so far, and the states in
// between.
type relocation struct {
	p      *partition
	base   []*link // what is in its place
	late   []late
	order  []*link
	states []any // before each of the order that is known, and after the last
	steps  int
}

// late is an action that is needed before one of the base.
type late struct {
	*link
	before int
}

// place finds the places of late actions from the k-th on, where the order has
// the base before next, and reports whether there are any.
func (r *relocation) place(k, next int) bool {
	if len(r.states) == 0 {
		r.states = append(r.states, r.p.machine.init)
	}
	kept := len(r.order)
	end := len(r.base)
	if k < len(r.late) {
		end = r.late[k].before
	}
	for ; next < end; next++ {
		if !r.step(r.base[next]) {
			r.cut(kept)
			return false
		}
	}
	if k == len(r.late) {
		return true
	}
	u := r.late[k]
	for q := len(r.order); q >= 0 && r.steps > 0; q-- {
		if q < len(r.order) && r.p.actions[r.order[q].action].ret < r.p.actions[u.action].call {
			break // that one returned before this was called
		}
		rest := slices.Clone(r.order[q:])
		r.cut(q)
		ok := r.step(u.link)
		for i := 0; ok && i < len(rest); i++ {
			ok = r.step(rest[i])
		}
		if ok && r.place(k+1, next) {
			return true
		}
		r.cut(q)
		for _, l := range rest {
			r.step(l)
		}
	}
	r.cut(kept)
	return false
}

// step adds one to the order if it can come next.
func (r *relocation) step(l *link) bool {
	r.steps--
	state, ok := r.p.machine.step(r.states[len(r.states)-1], &r.p.actions[l.action])
	if ok {
		r.order, r.states = append(r.order, l), append(r.states, state)
	}
	return ok
}

func (r *relocation) cut(n int) { r.order, r.states = r.order[:n], r.states[:n+1] }
