package linearizability

import (
	"cmp"
	"slices"
)

// activity counts what the history exercised.
func (x *facts) activity() Activity {
	var a Activity
	var grants []*fact
	for i := range x.all {
		switch f := &x.all[i]; {
		case f.kind == factAcquire && f.Type == OK:
			grants = append(grants, f)
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
	owner := make(map[string]string)
	for _, f := range grants {
		if was, ok := owner[f.key]; ok && was != f.owner {
			a.Takeovers++
		}
		owner[f.key] = f.owner
	}
	return a
}
