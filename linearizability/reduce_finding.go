package linearizability

import (
	"context"
	"slices"
)

// reduceFinding looks for the fewest operations that show a finding. Nothing
// has to be argued here: the finding is that of the original, to the letter, and
// the result shows nothing else that the original does not.
func reduceFinding(ctx context.Context, h History, o Options, original Verdict, want Finding) History {
	had := make(map[string]bool)
	for _, f := range original.Findings {
		had[f.String()] = true
	}
	last := int64(0)
	if n := len(want.Indexes); n > 0 {
		last = want.Indexes[n-1]
	}
	end := 1 + slices.IndexFunc(h.Events, func(e Event) bool { return e.Index == last })
	if end == 0 {
		end = len(h.Events)
	}
	for _, op := range h.Ops() {
		if slices.Contains(want.Indexes, h.Events[op.Call].Index) {
			end = max(end, op.Return+1) // as the end of a belief
		}
	}
	h.Events, h.effects = h.Events[:end], nil
	ops := h.Ops()
	first := h.Meta.First
	write := func(keep []int) History {
		out := History{Name: h.Name, Meta: h.Meta}
		out.Meta.First = first
		in := make([]bool, len(h.Events))
		for _, i := range keep {
			in[ops[i].Call] = true
			if ops[i].Return >= 0 {
				in[ops[i].Return] = true
			}
		}
		for i := range h.Events {
			if in[i] {
				out.Events = append(out.Events, h.Events[i])
			}
		}
		return out
	}
	shows := func(keep []int) bool {
		v, err := Check(ctx, write(keep), o)
		return err == nil && v.Linearizable() == Holds &&
			slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.String() == want.String() }) &&
			!slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Violates && !had[f.String()] })
	}
	evidence := evidenceOf(&h, ops, want)
	// Tokens that were granted before what is left are no matter.
	for _, first = range slices.Compact([]uint64{0, h.Meta.First}) {
		for back := 0; ctx.Err() == nil; back = 4 * (back + 1) {
			var keep []int
			for i := range ops {
				if i >= len(ops)-back || evidence[i] {
					keep = append(keep, i)
				}
			}
			if shows(keep) {
				return write(shrink(ctx, keep, shows))
			}
			if back >= len(ops) {
				break
			}
		}
	}
	return h
}

// evidenceOf returns the operations of the lines of a finding, with the grants
// to their owners under their tokens, and the lowest grants, before which
// nothing is known of who was granted what.
func evidenceOf(h *History, ops []Op, f Finding) map[int]bool {
	type granted struct {
		owner string
		token uint64
	}
	evidence := make(map[int]bool)
	to := make(map[granted]bool)
	of := func(op Op) granted {
		token, _ := h.op(op).field("token").Uint()
		return granted{h.op(op).name("owner"), token}
	}
	for i, op := range ops {
		if slices.Contains(f.Indexes, h.Events[op.Call].Index) || op.Return >= 0 && slices.Contains(f.Indexes, h.Events[op.Return].Index) {
			evidence[i] = true
			to[of(op)] = true
		}
	}
	lowest := make(map[string]int) // by lease
	for i, op := range ops {
		if h.Events[op.Call].F != "acquire" || op.Type != OK {
			continue
		}
		if to[of(op)] {
			evidence[i] = true
		}
		key := h.op(op).name("key")
		if l, ok := lowest[key]; !ok || of(op).token < of(ops[l]).token {
			lowest[key] = i
		}
	}
	for _, i := range lowest {
		evidence[i] = true
	}
	return evidence
}
