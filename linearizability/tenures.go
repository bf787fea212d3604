package linearizability

import (
	"math/bits"
	"slices"

	"fencepost/linearizability/evidence"
)

// tenures are the ownerships of one lease as far as its facts show them, in the
// order of their tokens or, where there are none, of their grants.
func (x *facts) tenures(all []*fact, restarts bool) []evidence.Tenure {
	var list []evidence.Tenure
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
			list = append(list, evidence.Tenure{
				Who: f.owner, Token: f.token,
				Must: evidence.Span{From: f.to + x.meta.Eps, To: x.lasts(f.from, f.ttl, true)},
				May:  evidence.Span{From: f.from - x.meta.Eps, To: x.lasts(f.to, f.ttl, false)},
			})
		case i == none:
		case (f.kind == factAcquire || f.kind == factRenew) && f.Type == OK:
			list[i].Must.To = max(list[i].Must.To, x.lasts(f.from, f.ttl, true))
			list[i].May.To = max(list[i].May.To, x.lasts(f.to, f.ttl, false))
		case f.kind == factRenew && f.Type == Info:
			// It may take effect as long as the lease is held.
			list[i].May.To = max(list[i].May.To, x.lasts(list[i].May.To, f.ttl, false))
		case f.kind == factRelease && f.Type == OK:
			list[i].Must.To = min(list[i].Must.To, f.from-x.meta.Eps)
			list[i].May.To = min(list[i].May.To, f.to+x.meta.Eps)
		case f.kind == factRelease && f.Type == Info, f.kind == factDelete && f.Type != Fail:
			list[i].Must.To = min(list[i].Must.To, f.from-x.meta.Eps)
		}
	}
	slices.SortStableFunc(list, func(a, b evidence.Tenure) int {
		if x.meta.Tokens == TokensNone || a.Token == b.Token {
			return 0
		}
		if a.Token < b.Token {
			return -1
		}
		return 1
	})
	for i := range list {
		t := &list[i]
		if restarts {
			t.May.To = Unbounded
		}
		if i+1 < len(list) {
			next := &list[i+1]
			t.May.To = max(t.May.From, min(t.May.To, max(next.May.From, next.Must.From)))
			if t.Must.To > next.Must.From && t.Must.From < next.Must.To {
				t.Violates, next.Violates = true, true
			}
		}
		t.May.To = max(t.May.To, t.Must.To)
		t.Must.From = max(t.Must.From, t.May.From)
	}
	return list
}

// lasts is until when a TTL that started at an instant runs at least, or at
// most.
func (x *facts) lasts(from, ttl int64, least bool) int64 {
	if least {
		if x.meta.Early == Unbounded {
			return from
		}
		hi, lo := bits.Mul64(uint64(ttl), 1e9)
		quo, _ := bits.Div64(hi, lo, uint64(1e9+x.meta.Drift))
		return from - x.meta.Eps + int64(quo) - x.meta.Early
	}
	if x.meta.Late == Unbounded || from == Unbounded || x.meta.Drift >= 1e9 {
		return Unbounded
	}
	hi, lo := bits.Mul64(uint64(ttl), 1e9)
	rate := uint64(1e9 - x.meta.Drift)
	if hi >= rate {
		return Unbounded
	}
	quo, _ := bits.Div64(hi, lo, rate)
	if quo > maxInstant || x.meta.Late > maxInstant {
		return Unbounded
	}
	return plus(plus(plus(from, x.meta.Eps), int64(quo)), x.meta.Late)
}
