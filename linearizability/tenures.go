package linearizability

import (
	"slices"

	"fencepost/linearizability/evidence"
)

// tenures are the ownerships of one lease as far as its facts show them, in the
// order of their tokens or, where there are none, of their grants.
func (x *facts) tenures(all []*fact, restarts bool) []evidence.Tenure {
	type tenure struct {
		evidence.Tenure
		slot  int16
		ended int64 // the return of the last release or deletion: it may end at any place until then
	}
	var list []tenure
	deleted, seen := int64(0), 0 // the return of the last deletion, and how many tenures it saw
	at := make(map[fence]int)
	last := make(map[string]int) // by owner, of leases without tokens
	find := func(f *fact) int {
		if x.meta.Tokens == TokensNone {
			if i, ok := last[f.owner]; ok && i == len(list)-1 {
				return i
			}
			return none
		}
		if i, ok := at[fence{f.owner, f.token}]; ok {
			return i
		}
		return none
	}
	for _, f := range all {
		if f.from == NoTime {
			continue
		}
		i := find(f)
		switch {
		case f.kind == factAcquire && f.Type == OK && i == none:
			at[fence{f.owner, f.token}], last[f.owner] = len(list), len(list)
			t := tenure{slot: f.slot, ended: deleted, Tenure: evidence.Tenure{
				Who: f.owner, Token: f.token,
				Must: evidence.Span{From: f.to + x.meta.Eps, To: x.lasts(f.from, f.ttl, true)},
				May:  evidence.Span{From: f.from - x.meta.Eps, To: x.lasts(f.to, f.ttl, false)},
			}}
			if x.meta.Slots <= 1 {
				t.slot = noSlot // whatever it is called, there is one
			}
			if deleted > f.call {
				t.Must.To = t.Must.From // the deletion may come after it
			}
			list = append(list, t)
		case f.kind == factDelete:
			if f.Type == Fail {
				continue
			}
			deleted = max(deleted, f.ret)
			for i := range list[seen:] {
				t := &list[seen+i]
				t.Must.To, t.ended = min(t.Must.To, f.from-x.meta.Eps), max(t.ended, f.ret)
			}
			seen = len(list)
		case i == none:
		case (f.kind == factAcquire || f.kind == factRenew) && f.Type == OK:
			if list[i].ended < f.call {
				list[i].Must.To = max(list[i].Must.To, x.lasts(f.from, f.ttl, true))
			}
			list[i].May.To = max(list[i].May.To, x.lasts(f.to, f.ttl, false))
		case f.kind == factRenew && f.Type == Info:
			// It may take effect as long as the lease is held.
			list[i].May.To = max(list[i].May.To, x.lasts(list[i].May.To, f.ttl, false))
		case f.kind == factRelease && f.Type == OK:
			list[i].Must.To, list[i].ended = min(list[i].Must.To, f.from-x.meta.Eps), max(list[i].ended, f.ret)
			list[i].May.To = min(list[i].May.To, f.to+x.meta.Eps)
		case f.kind == factRelease && f.Type == Info:
			list[i].Must.To, list[i].ended = min(list[i].Must.To, f.from-x.meta.Eps), Unbounded
		}
	}
	slices.SortStableFunc(list, func(a, b tenure) int {
		if x.meta.Tokens == TokensNone || a.Token == b.Token {
			return 0
		}
		if a.Token < b.Token {
			return -1
		}
		return 1
	})
	out := make([]evidence.Tenure, len(list))
	after := make(map[int16]*evidence.Tenure) // by slot
	for i, l := range slices.Backward(list) {
		out[i] = l.Tenure
		t := &out[i]
		if restarts {
			t.May.To = Unbounded
		}
		if next := after[l.slot]; next != nil {
			t.May.To = max(t.May.From, min(t.May.To, max(next.May.From, next.Must.From)))
			if t.Must.To > next.Must.From && t.Must.From < next.Must.To {
				t.Violates, next.Violates = true, true
			}
		}
		after[l.slot] = t
		t.May.To = max(t.May.To, t.Must.To)
		t.Must.From = max(t.Must.From, t.May.From)
	}
	return out
}

// lasts is until when a TTL that started at an instant runs at least, or at
// most.
func (x *facts) lasts(from, ttl int64, least bool) int64 {
	if least {
		if x.meta.Early == Unbounded {
			return from
		}
		return from - x.meta.Eps + x.meta.least(ttl) - x.meta.Early
	}
	if x.meta.Late == Unbounded || from == Unbounded || x.meta.Drift >= 1e9 {
		return Unbounded
	}
	return plus(plus(plus(from, x.meta.Eps), x.meta.most(ttl)), x.meta.Late)
}
