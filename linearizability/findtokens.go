package linearizability

import (
	"cmp"
	"fmt"
	"slices"
)

// tokens reports grants whose tokens break monotonicity: one for two owners, one
// below an earlier one, one granted anew after its release.
func (r *report) tokens() {
	if r.meta.Tokens == TokensNone {
		return
	}
	released := make(map[tokenOf]*fact) // the first to return
	for i := range r.all {
		f := &r.all[i]
		if f.kind != factRelease || f.Type != OK {
			continue
		}
		if t := (tokenOf{f.key, f.token}); released[t] == nil || f.ret < released[t].ret {
			released[t] = f
		}
	}
	highest := make(map[string]*fact)
	owner := make(map[tokenOf]*fact)
	// In the order of the calls, with the returns that came before each.
	byReturn := slices.Clone(r.grants.known)
	slices.SortFunc(byReturn, func(a, b *fact) int { return cmp.Compare(a.ret, b.ret) })
	bad := func(check, text string, a, b *fact) {
		r.add(Finding{Check: check, Key: a.key, Blame: BlameStore, Text: text, Violates: true}, a, b)
	}
	for _, b := range r.grants.known {
		for len(byReturn) > 0 && byReturn[0].ret < b.call {
			if a := byReturn[0]; highest[a.key] == nil || a.token > highest[a.key].token {
				highest[a.key] = a
			}
			byReturn = byReturn[1:]
		}
		t := tokenOf{b.key, b.token}
		again := b.found || owner[t] != nil && owner[t].owner == b.owner || !b.fresh && !b.draws && r.sweep.asked(holding{b.key, b.owner})
		if a := owner[t]; a == nil {
			owner[t] = b
		} else if a.owner != b.owner {
			bad(checkTwoOwners, fmt.Sprintf("token %d of %s was granted to %s and to %s", b.token, quote(b.key), quote(a.owner), quote(b.owner)), a, b)
		}
		a := highest[b.key]
		switch {
		case a == nil:
		case r.meta.Slots > 1 && again && !b.fresh && !b.draws: // an older tenure, in a slot of its own
		case b.token < a.token:
			bad(checkNotRising, fmt.Sprintf("token %d of %s was granted to %s after %d to %s", b.token, quote(b.key), quote(b.owner), a.token, quote(a.owner)), a, b)
		case b.token == a.token && (b.fresh || b.draws):
			bad(checkNotRising, fmt.Sprintf("token %d of %s was granted to %s as a new one, after it had been granted to %s", b.token, quote(b.key), quote(b.owner), quote(a.owner)), a, b)
		}
		if a := released[t]; a != nil && a.ret < b.call {
			bad(checkGrantedBack, fmt.Sprintf("token %d of %s was granted to %s after its release", b.token, quote(b.key), quote(b.owner)), a, b)
		}
	}
}

// gaps reports, under the rule next, more missing tokens than acquires with
// unknown outcome can have taken. One that was called before a grant returned
// may have come before it.
func (r *report) gaps() {
	if r.meta.Tokens != TokensNext {
		return
	}
	unknown := make(map[string][]int64) // by lease, the places of their calls
	for i := range r.all {
		if f := &r.all[i]; f.Type == Info && (f.kind == factAcquire || f.kind == factRenew && f.draws) {
			unknown[f.key] = append(unknown[f.key], f.call)
		}
	}
	byKey := make(map[string][]*fact)
	var keys []string
	for _, f := range r.grants.known {
		if byKey[f.key] == nil {
			keys = append(keys, f.key)
		}
		byKey[f.key] = append(byKey[f.key], f)
	}
	for _, key := range keys {
		list := byKey[key]
		slices.SortFunc(list, func(a, b *fact) int { return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.ret, b.ret)) })
		before, shown := list[0].token, []*fact{list[0]}
		if r.meta.First > 0 {
			before, shown = r.meta.First-1, nil
		}
		taken := uint64(0) // by the unknown ones
		for _, f := range list {
			if f.token <= before {
				continue
			}
			missing := f.token - before - 1
			n, _ := slices.BinarySearchFunc(unknown[key], f.ret, func(call, place int64) int { return cmp.Compare(call, place) })
			switch free := uint64(n) - min(taken, uint64(n)); {
			case missing <= free:
				taken += missing
			default:
				r.add(Finding{
					Check: checkGap, Key: key, Blame: BlameStore, Violates: true,
					Text: fmt.Sprintf("token %d of %s was granted to %s after %d: %d missing where unknown acquires can have taken %d",
						f.token, quote(key), quote(f.owner), before, missing, free),
				}, append(slices.Clone(shown), f)...)
			}
			before, shown = f.token, []*fact{f}
		}
	}
}

// already reports acquires that found an earlier grant of their own which no
// acquire can have made.
func (r *report) already() {
	if r.meta.Tokens == TokensNone {
		return
	}
	for _, f := range r.grants.known {
		if !f.found {
			continue
		}
		call, granted := r.grants.to[granted{f.key, f.owner, f.token}]
		asked, unknown := r.grants.unknown[holding{f.key, f.owner}]
		if granted && call.call < f.ret || unknown && asked.call < f.ret {
			continue
		}
		r.add(Finding{
			Check: checkAlready, Key: f.key, Blame: BlameStore, Violates: true,
			Text: fmt.Sprintf("%s found that it already held %s under token %d, which nobody can have granted to it", quote(f.owner), quote(f.key), f.token),
		}, f)
	}
}

// slots reports slots that a lease does not have.
func (r *report) slots() {
	if r.meta.Slots == 0 {
		return
	}
	for i := range r.all {
		f := &r.all[i]
		if f.Type != OK || int(f.slot) < r.meta.Slots {
			continue
		}
		r.add(Finding{
			Check: checkSlot, Key: f.key, Blame: BlameStore, Violates: true,
			Text: fmt.Sprintf("%s has slot %d of %s, which has %d", quote(f.owner), f.slot, quote(f.key), r.meta.Slots),
		}, f)
	}
}

// recorder reports what no service can have done: the recording mixes up two
// callers, or two tokens.
func (r *report) recorder() {
	granted := make(map[tokenOf]bool)
	last := make(map[holding]*fact)
	for _, f := range r.grants.known {
		granted[tokenOf{f.key, f.token}] = true
	}
	for i := range r.all {
		f := &r.all[i]
		bad := func(check, format string, args ...any) {
			shown := []*fact{f}
			if g := last[holding{f.key, f.owner}]; g != nil && check == checkRetoken && !f.retoken {
				shown = append(shown, g)
			}
			r.add(Finding{Check: check, Key: f.key, Blame: BlameRecorder, Text: fmt.Sprintf(format, args...)}, shown...)
		}
		if f.renamed {
			bad(checkRenamed, "an operation on %s returned in the name of %s, who had not called it", quote(f.key), quote(f.owner))
		}
		if f.retoken {
			bad(checkRetoken, "an operation of %s on %s returned with another token than it carried", quote(f.owner), quote(f.key))
		}
		if f.Type != OK || !f.hasToken || r.meta.Tokens == TokensNone {
			continue
		}
		switch {
		case f.kind == factAcquire || f.draws:
			last[holding{f.key, f.owner}] = f
			granted[tokenOf{f.key, f.token}] = true
		case f.kind == factRenew && !granted[tokenOf{f.key, f.token}] && last[holding{f.key, f.owner}] != nil &&
			!r.grants.may(f.key, f.owner, f.token, f.ret, f.to):
			bad(checkRetoken, "a renewal of %s by %s succeeded under token %d, which was granted to nobody; it had %d",
				quote(f.key), quote(f.owner), f.token, last[holding{f.key, f.owner}].token)
		}
	}
}
