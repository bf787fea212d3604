package linearizability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotViolated is what Reduce returns for a history that Check does not find
// violated.
var ErrNotViolated = errors.New("not violated: there is nothing to reduce")

// reduceMemory bounds one probe of Reduce, in bytes: a candidate that is hard to
// refute is not a good one. Unlike a time limit it makes the outcome the same on
// every machine.
const reduceMemory = 32 << 20

// maxUnsure is how many unknown outcomes a candidate may have, unless it has
// eight times as many known ones: with more it is hardly refuted, and not soon.
const maxUnsure = 32

// Reduce finds a small part of a violated history that still cannot be
// explained, as a history of its own, which Check with the same options finds
// violated. Every step on the way is a weakening: if the original had an
// explanation, so would the result. So what is wrong with the result is wrong
// with the original too. It is minimal in that no single operation of it can be
// weakened any further by the same steps, not in that no smaller one exists.
//
// The events are those of the original, with their lines, indexes, times and
// processes. These differ:
//
//   - An operation whose answer is not needed has lost its return, and has a
//     process number of its own if its process went on.
//   - The first operation may be another that leaves the same state behind: a
//     renewal as the grant of its token, a read or cas as a write. Its field
//     "was" says what it had been.
//   - Meta's First is gone if grants were left out before it.
//   - A Jepsen lock read as a lease is in the terms of that reading
//     ([JepsenLock]); an owner-mutex names its owners.
//
// Where only a [Finding] is violated, the result has its events and what else
// decides whether it is one.
//
// The error is ErrNotViolated if there is nothing to reduce, or that of Check.
// When ctx ends, the result is the smallest part found until then.
func Reduce(ctx context.Context, h History, o Options) (History, error) {
	if err := new(Verdict).choose(&h, &o); err != nil {
		return History{}, err
	}
	v, err := Check(ctx, h, o)
	if err != nil {
		return History{}, err
	}
	if v.Result != Violated {
		return History{}, fmt.Errorf("reduce %s: verdict %s: %w", quote(h.Name), v.Result, ErrNotViolated)
	}
	switch v.Reading {
	case jepsenLockReading:
		if h, err = JepsenLock(h, o.TTL); err != nil {
			return History{}, err
		}
	case queenLeaseReading:
		h = QueenLease(h)
	}
	o.AtLeast = Activity{} // gates never make a verdict violated
	if i := slices.IndexFunc(v.Partitions, func(p Partition) bool { return p.Result == Violated }); i >= 0 {
		o.Memory = reduceMemory
		p := v.Partitions[i]
		until := slices.IndexFunc(h.Events, func(e Event) bool { return e.Index == p.Index })
		for _, until := range []int{until, none} {
			r := newReducer(h, o, p, until)
			r = r.late(ctx)
			if c := r.reduce(ctx); c != nil {
				return c.history(), nil
			}
		}
		return h, nil // nothing smaller is refuted as easily
	}
	i := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Violates })
	return reduceFinding(ctx, h, o, v, v.Findings[i]), nil
}

// reducer looks for a small violated weakening of one partition.
//
// Four steps weaken a history; each is argued here, and tested against a brute
// force that knows none of them:
//
//  1. Later events go. What had not returned by then has an unknown outcome.
//  2. An answer is forgotten: the operation has an unknown outcome, which allows
//     all that the known one did. An operation without any effect, a read or a
//     refusal, goes outright: whatever explains it explains the rest.
//  3. An operation with unknown outcome goes if in every explanation in which it
//     happened it could as well not have happened, perhaps together with others
//     that go too. What that takes is the model's matter: see rules.wanted.
//  4. A beginning goes. An anchor is an operation that is possible at first, and
//     after which the state is the same whatever it was before. Take an
//     explanation of the whole. Whatever returned before the anchor's call comes
//     before the anchor in it, and is left out; whatever else comes before it
//     has an unknown outcome, by step 2 if need be, and so need not have
//     happened. Then the anchor comes first, which is possible, and all that
//     comes after it sees the states that it saw.
type reducer struct {
	h     History
	o     Options
	model string // of the partition
	key   string
	rules rules
	ops   []reducible
	next  int64 // the next process number that nobody has
	// longest is the longest TTL that an owner asked for.
	longest map[string]time.Duration
}

// reducible is an operation that Reduce may weaken.
type reducible struct {
	Op
	f       string
	process int64
	known   bool // its answer says something
	effect  bool // it may have changed the state
}

// candidate is a weakening: what is left, of the operations that have an
// effect or whose answer is kept.
type candidate struct {
	r      *reducer
	anchor int   // position in ops, or none
	known  []int // positions in ops, in order, the anchor included
	unsure []int // those with unknown outcome
}

func (c *candidate) size() int { return len(c.known) + len(c.unsure) }

// newReducer takes the part of the history until the given return, which is not
// explained; all of it if that is none.
func newReducer(h History, o Options, p Partition, until int) *reducer {
	r := &reducer{o: o, model: p.Model, key: p.Key, rules: rulesOf(p.Model)}
	if h.Meta.Slots > 0 {
		r.rules = rules{} // a grant leaves other slots as they were
	}
	h.Events = slices.Clone(h.Events)
	r.h = History{Name: h.Name, Meta: h.Meta, Events: h.Events}
	for i := range h.Events {
		r.next = max(r.next, h.Events[i].Process+1)
	}
	fams := slotted(families(o.Model), &h.Meta)
	fam := &fams[slices.IndexFunc(fams, func(f family) bool { return f.name == p.Model })]
	for _, op := range h.Ops() {
		call := &h.Events[op.Call]
		if slices.Contains(o.Ignore, call.F) || !fam.ops[call.F] || call.F != fam.everywhere && fam.key(h.op(op)) != p.Key {
			continue
		}
		x := reducible{Op: op, f: call.F, process: call.Process, effect: op.Type != Fail}
		if until != none {
			if r.after(op.Call, until, 2*h.Meta.Eps) {
				continue
			}
			if op.Return >= 0 && r.after(op.Return, until, 0) {
				x.Return, x.Type = -1, Info
			}
		}
		x.known = x.Type == OK || x.Type == Fail && r.rules.refusals && h.evidence(op)
		x.effect = x.effect && !slices.Contains(r.rules.reads, x.f)
		r.ops = append(r.ops, x)
	}
	if r.rules.owned {
		r.name()
	}
	return r
}

// after reports whether an event comes after another by more than the given
// time, or by order where the order is real.
func (r *reducer) after(event, other int, by int64) bool {
	if r.h.Meta.Eps == 0 {
		return event > other
	}
	return r.h.Events[event].Time-r.h.Events[other].Time > by
}

// op is an operation with its events.
func (h *History) op(op Op) *operation { return h.operation(span{Op: op}) }

// evidence reports whether a failure says something of the state.
func (h *History) evidence(op Op) bool {
	word := h.op(op).errorWord()
	return word != "" && word != notSent && word != invalid && word != notCarried
}

// precedes reports whether a comes before b in every order.
func (r *reducer) precedes(a, b *reducible) bool {
	switch {
	case a.Return < 0 || a.Type == Info:
		return false
	case r.h.Meta.Eps == 0 || a.process == b.process:
		return a.Return < b.Call
	}
	return r.h.Events[a.Return].Time+r.h.Meta.Eps <= r.h.Events[b.Call].Time-r.h.Meta.Eps
}

// candidate weakens: it begins with the anchor, unless that is none, and keeps
// the answers of the given operations where the anchor lets it.
func (r *reducer) candidate(anchor int, keep []int) *candidate {
	c := &candidate{r: r, anchor: anchor}
	var first *reducible
	if anchor != none {
		first = &r.ops[anchor]
	}
	for i := range r.ops {
		x := &r.ops[i]
		if i == anchor {
			c.known = append(c.known, i)
			continue
		}
		if first != nil && x.known && r.precedes(x, first) {
			continue
		}
		_, kept := slices.BinarySearch(keep, i)
		switch {
		case kept && x.known && (first == nil || r.precedes(first, x) && (r.rules.fits == nil || r.rules.fits(r, first, x))):
			c.known = append(c.known, i)
		case x.effect:
			c.unsure = append(c.unsure, i)
		}
	}
	if r.rules.wanted != nil {
		wanted := r.rules.wanted(c)
		c.unsure = slices.DeleteFunc(c.unsure, func(i int) bool { return !wanted[i] })
	}
	return c
}

// history writes the candidate down.
func (c *candidate) history() History {
	r := c.r
	out := History{Name: r.h.Name, Meta: r.h.Meta}
	if c.anchor != none {
		out.Meta.First = 0
	}
	last := make(map[int64]int) // by process, its last operation
	for _, i := range slices.Concat(c.known, c.unsure) {
		last[r.ops[i].process] = max(last[r.ops[i].process], i)
	}
	at := make(map[int]Event) // by position
	next := r.next
	for _, i := range c.unsure {
		call := r.h.Events[r.ops[i].Call]
		if last[call.Process] != i {
			call.Process = next
			next++
		}
		at[r.ops[i].Call] = call
	}
	for _, i := range c.known {
		x := &r.ops[i]
		call, ret := r.h.Events[x.Call], r.h.Events[x.Return]
		if i == c.anchor && r.rules.recast != nil {
			r.rules.recast(r, x, &call, &ret)
		}
		at[x.Call], at[x.Return] = call, ret
	}
	for i := range r.h.Events {
		if e, ok := at[i]; ok {
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// violated reports whether nothing explains the candidate.
func (c *candidate) violated(ctx context.Context) bool {
	if len(c.known) == 0 || len(c.unsure) > max(maxUnsure, len(c.known)/8) {
		return false
	}
	v, err := Check(ctx, c.history(), c.r.o)
	return err == nil && slices.ContainsFunc(v.Partitions, func(p Partition) bool {
		return p.Result == Violated && p.Model == c.r.model && p.Key == c.r.key
	})
}

func (r *reducer) all() []int {
	all := make([]int, len(r.ops))
	for i := range all {
		all[i] = i
	}
	return all
}

// nearAnchors is how many anchors are tried one by one, going back from the
// violation, before the strides double.
const nearAnchors = 32

// reduce goes back from the violation to the first anchor after which it still
// shows: what is near is small, so that a long history costs no more than a
// short one unless its violation reaches back. Then it forgets what it can.
//
// It returns nil if nothing is found to be violated.
func (r *reducer) reduce(ctx context.Context) *candidate {
	all := r.all()
	var anchors []int
	for i := range r.ops {
		if x := &r.ops[i]; r.rules.anchor != nil && x.known && x.Type == OK && r.rules.anchor(r, x) {
			anchors = append(anchors, i)
		}
	}
	var best *candidate
	failed := len(anchors)
	for back := 1; back <= len(anchors) && ctx.Err() == nil; back += max(1, back-nearAnchors) {
		at := len(anchors) - back
		if c := r.candidate(anchors[at], all); c.violated(ctx) {
			best = c
			for at+1 < failed && ctx.Err() == nil { // a later one, of those passed over
				mid := (at + 1 + failed) / 2
				if c := r.candidate(anchors[mid], all); c.violated(ctx) {
					best, at = c, mid
				} else {
					failed = mid
				}
			}
			break
		}
		failed = at
	}
	if best == nil {
		if best = r.candidate(none, all); !best.violated(ctx) {
			return nil
		}
	}
	for {
		c := r.forget(ctx, best)
		// What is left may not reach as far back.
		for _, i := range slices.Backward(c.known) {
			if !slices.Contains(anchors, i) || i == c.anchor {
				continue
			}
			if d := r.candidate(i, c.known); d.size() < c.size() && d.violated(ctx) {
				c = d
				break
			}
		}
		done := c.size() >= best.size()
		best = c
		if done {
			break
		}
	}
	// One that needs no anchor tells the story as it was.
	if c := r.candidate(none, best.known); best.anchor != none && c.size() <= best.size() && c.violated(ctx) {
		best = c
	}
	return best
}

// forget weakens known operations as long as the violation shows.
func (r *reducer) forget(ctx context.Context, c *candidate) *candidate {
	shrink(ctx, c.known, func(keep []int) bool {
		d := r.candidate(c.anchor, keep)
		if d.size() > c.size() || !d.violated(ctx) {
			return false
		}
		c = d
		return true
	})
	return c
}

// shrink leaves out one part of the items after the other, at first large ones
// and in the end each by itself, as long as what is left passes: delta debugging
// (Zeller & Hildebrandt 2002). It returns what is left.
func shrink(ctx context.Context, items []int, pass func([]int) bool) []int {
	for size := (len(items) + 1) / 2; size > 0 && ctx.Err() == nil; {
		smaller := false
		for from := 0; from < len(items) && ctx.Err() == nil; {
			rest := slices.Concat(items[:from], items[min(from+size, len(items)):])
			if pass(rest) {
				items, smaller = rest, true
			} else {
				from += size
			}
		}
		switch {
		case size > 1:
			size = (size + 1) / 2
		case !smaller:
			size = 0
		}
	}
	return items
}
