package linearizability

import (
	"cmp"
	"slices"
)

// activity counts what the history exercised.
func activity(h *History, parts []part, spans []span) Activity {
	var a Activity
	for i := range parts {
		a.Operations += len(parts[i].spans)
	}
	var grants []span
	for _, s := range spans {
		switch f := h.Events[s.Call].F; {
		case f == "acquire" && s.Type == OK:
			grants = append(grants, s)
		case (f == "write" || f == "fence") && s.Type == Fail && h.errorWord(s.Op) == "stale":
			a.Stale++
		case f == "write" && s.Type == OK && h.field(s.Op, "token").kind != KindNil:
			a.Writes++
		}
	}
	// Tokens order the grants; where there are none, their returns do.
	slices.SortStableFunc(grants, func(a, b span) int {
		x, _ := h.field(a.Op, "token").Uint()
		y, _ := h.field(b.Op, "token").Uint()
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.ret, b.ret))
	})
	owner := make(map[string]string)
	for _, s := range grants {
		key, by := h.name(s.Op, "key"), h.name(s.Op, "owner")
		if was, ok := owner[key]; ok && was != by {
			a.Takeovers++
		}
		owner[key] = by
	}
	return a
}

// withTTL gives the TTL to the acquires and renewals that carry none.
func withTTL(h History, ttl int64) History {
	events := slices.Clone(h.Events)
	for i := range events {
		e := &events[i]
		if e.Type == Invoke && (e.F == "acquire" || e.F == "renew") && e.Field("ttl").IsNil() {
			e.Fields = append(slices.Clip(e.Fields), Field{"ttl", Int(ttl)})
		}
	}
	h.Events = events
	return h
}
