package linearizability

import (
	"cmp"
	"slices"
)

// activity counts what the history exercised.
func (x *facts) activity() Activity {
	var a Activity
	var grants []*fact
	ended := make(map[granted]bool) // by release or an operator, or known to have lapsed
	lapsed := make(map[granted]bool)
	deletes := false
	first := make(map[granted]uint64) // the token under which a tenure began, by those that its renewals drew
	for i := range x.all {
		f := &x.all[i]
		if f.Type == Info {
			a.Unknown++
		}
		tenure := granted{f.key, f.owner, f.token}
		if f.draws && f.Type == OK {
			from := granted{f.key, f.owner, f.number}
			first[tenure] = cmp.Or(first[from], from.token)
		}
		tenure.token = cmp.Or(first[tenure], tenure.token)
		switch {
		case f.kind == factAcquire && f.Type == OK:
			grants = append(grants, f)
		case f.kind == factRenew && f.Type == OK:
			a.Renewals++
		case f.lapsed && f.kind == factRenew, f.lapsed && f.kind == factRelease:
			lapsed[tenure] = true
		case f.kind == factRelease && f.Type != Fail:
			ended[tenure] = true
		case f.kind == factDelete && f.Type != Fail:
			deletes = true
		case f.stale:
			a.Stale++
		case f.kind == factWrite && f.Type == OK && f.hasToken:
			a.Writes++
		}
	}
	// Tokens order the grants; where there are none, their returns do.
	slices.SortStableFunc(grants, func(a, b *fact) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.ret, b.ret))
	})
	last := make(map[slotName]*fact)
	for _, f := range grants {
		was, ok := last[slotName{f.key, f.slot}]
		if last[slotName{f.key, f.slot}] = f; !ok {
			continue
		}
		if was.owner != f.owner {
			a.Takeovers++
		}
		// A tenure that nobody ended and that another followed has lapsed.
		if t := (granted{was.key, was.owner, was.token}); (was.owner != f.owner || was.token != f.token) && !ended[t] && !deletes {
			lapsed[t] = true
		}
	}
	a.Lapses = len(lapsed)
	return a
}
