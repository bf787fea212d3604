package linearizability

import (
	"cmp"
	"context"
	"slices"
)

// This file is about the beginnings of locks: of whose tenures a violation needs
// to be told.

// name writes into each operation on a lock by whom it is. Else whoever loses an
// answer might lose its name, or that of others of its process. Where some are
// by nobody knows whom, that cannot be written, and there is nothing to reduce.
func (r *reducer) name() {
	var c claimants
	owners := make([]int32, len(r.ops))
	for i := range r.ops {
		owners[i] = c.add(r.h.operation(span{Op: r.ops[i].Op, process: r.ops[i].process}))
	}
	for i := range r.ops {
		x := &r.ops[i]
		switch owner := c.owner(owners[i], x.process); {
		case owner == anybody:
			r.ops = nil
			return
		case r.h.op(x.Op).name("owner") == "":
			call := &r.h.Events[x.Call]
			call.Fields = append(slices.Clip(call.Fields), Field{"owner", String(c.show(owner))})
		}
	}
}

// cuts are the operations before which a lock is as it is at first: all that was
// acquired has been released, nothing is under way, and no outcome is unknown.
// What comes before one may go: whatever fences were told there, an explanation
// of the rest is bound by no more of them without it.
func (r *reducer) cuts() []int {
	if r.h.Meta.Eps > 0 {
		return nil // no place is after all that came before
	}
	held := make(map[string]int) // by owner
	total, ends := 0, none
	var cuts []int
	for i := range r.ops {
		x := &r.ops[i]
		if total == 0 && x.Call > ends {
			cuts = append(cuts, i)
		}
		if x.Type == Info {
			break
		}
		ends = max(ends, x.Return)
		if x.Type == Fail {
			continue
		}
		by := map[string]int{"acquire": 1, "release": -1}[x.f]
		who := r.h.op(x.Op).name("owner")
		if held[who] += by; held[who] < 0 {
			break
		}
		total += by
	}
	return cuts
}

// from is what there is to reduce from an operation on.
func (r *reducer) from(i int) *reducer {
	rest := *r
	rest.ops = r.ops[i:]
	return &rest
}

// tenures are the acquires of a lock that is held at most once at a time, at
// whose return it is held by them for certain, however many wait: as many
// acquires have returned as releases, and one more, and no release is under way.
// So nobody who waits has had his turn. What returned before may go: the lock is
// the same if that acquire comes first.
func (r *reducer) tenures() []int {
	if r.h.Meta.Eps > 0 || !slices.Contains([]string{ModelMutex, ModelOwnerMutex, ModelFencedMutex}, r.model) {
		return nil
	}
	type end struct {
		at, op int
		call   bool
	}
	var ends []end
	for i := range r.ops {
		x := &r.ops[i]
		ends = append(ends, end{x.Call, i, true})
		if x.Return >= 0 {
			ends = append(ends, end{x.Return, i, false})
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	var tenures, holders []int
	releasing := 0
	for _, e := range ends {
		x := &r.ops[e.op]
		switch {
		case x.Type == Info && x.f == "release":
			return tenures // it may come at any time
		case x.Type != OK:
		case x.f == "release" && e.call:
			releasing++
		case x.f == "release":
			releasing--
			who := r.h.op(x.Op).name("owner")
			n := slices.IndexFunc(holders, func(i int) bool { return r.h.op(r.ops[i].Op).name("owner") == who })
			if n < 0 {
				return tenures
			}
			holders = slices.Delete(holders, n, n+1)
		case !e.call:
			if holders = append(holders, e.op); len(holders) == 1 && releasing == 0 {
				tenures = append(tenures, e.op)
			}
		}
	}
	return tenures
}

// during is what there is to reduce from a tenure on.
func (r *reducer) during(i int) *reducer {
	rest := *r
	rest.ops = nil
	for j, x := range r.ops {
		if i == j || x.Return < 0 || x.Return > r.ops[i].Return {
			rest.ops = append(rest.ops, x)
		}
	}
	return &rest
}

// late is what there is to reduce from the last cut or tenure after which the
// violation shows, about.
func (r *reducer) late(ctx context.Context) *reducer {
	tenures := r.tenures()
	for back := 1; back <= len(tenures) && ctx.Err() == nil; back *= 2 {
		rest := r.during(tenures[len(tenures)-back])
		if rest.candidate(none, rest.all()).violated(ctx) {
			return rest
		}
	}
	if !r.rules.frees {
		return r
	}
	cuts := r.cuts()
	for back := 1; back <= len(cuts) && ctx.Err() == nil; back *= 2 {
		rest := r.from(cuts[len(cuts)-back])
		if rest.candidate(none, rest.all()).violated(ctx) {
			return rest
		}
	}
	return r
}
