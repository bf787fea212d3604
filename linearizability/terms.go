package linearizability

import (
	"cmp"
	"math/bits"
	"slices"
)

// term is one belief of an owner that it leads, under one token, as far as a
// history shows it. Times are the recorder's, in nanoseconds; the interval is
// half-open.
type term struct {
	key, owner string
	token      uint64
	begin, end int64
	asked      int64 // place of the call of the acquire
	begun      int64 // place at which it began: the lead's call, or the return of the acquire or the last fence
	// entitled is until when the store must not have granted the lease to
	// anybody else: a TTL after the call of the last acquire or renewal that
	// succeeded, on the fastest clock the store may have, unless the owner gave
	// it up before. NoTime if no grant is on record.
	entitled int64
	led      bool   // recorded by lead; else what a correct client may have believed
	waived   string // why it may overlap with another; empty if it may not
	shown    *fact  // the lead, or the acquire
}

// moment is where an operation matters to a term: a success or refusal when it
// returned, a release when it was called, since whoever releases has stopped
// believing.
type moment struct {
	place, time int64
	*fact
}

// terms returns the beliefs recorded by lead, in the order in which they began;
// of a lease without any, those that correct clients may have had: from the
// return of an acquire (or of the last fence under its token, where there is a
// barrier) to the first of the end of its window, the call of a release, and
// the return of a refusal.
func (x *facts) terms() []term {
	s := sweep{meta: x.meta, open: make(map[holding]int), fenced: make(map[fence]moment)}
	leads := make(map[string]bool) // by lease
	var moments []moment
	for i := range x.all {
		f := &x.all[i]
		if f.from == NoTime {
			return nil
		}
		m := moment{f.call, f.from, f}
		switch f.kind {
		case factAcquire, factRenew, factFence:
			if f.Return < 0 || f.Type == Info {
				continue
			}
			m.place, m.time = f.ret, f.to
		case factLead:
			leads[f.key] = true
		case factRelease, factDelete:
		default:
			continue
		}
		moments = append(moments, m)
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.place, b.place) })
	for _, m := range moments {
		s.take(m)
	}
	derived := make(map[granted]*term) // the last of each
	for i := range s.terms {
		if t := &s.terms[i]; !t.led {
			for _, owner := range []string{t.owner, ""} { // who fenced may not be on record
				fenced := s.fenced[fence{owner, t.token}]
				t.begin, t.begun = max(t.begin, fenced.time), max(t.begun, fenced.place)
			}
			t.entitled = t.end
			derived[granted{t.key, t.owner, t.token}] = t
		}
	}
	for i := range s.terms {
		t := &s.terms[i]
		if d := derived[granted{t.key, t.owner, t.token}]; t.led && d != nil {
			t.entitled, t.asked = d.end, min(t.asked, d.asked)
		}
		for _, d := range s.deletes {
			if d.key == t.key && d.ret > t.asked && d.time < t.end {
				t.waived = "an operator deleted the lease"
			}
		}
	}
	return slices.DeleteFunc(s.terms, func(t term) bool {
		return t.begin >= t.end || !t.led && leads[t.key]
	})
}

// holding is who holds what.
type holding struct{ key, owner string }

// fence is whose fence, under which token.
type fence struct {
	owner string
	token uint64
}

// sweep follows the terms of all owners through the moments.
type sweep struct {
	meta    *Meta
	terms   []term
	open    map[holding]int  // positions in terms of the derived ones
	fenced  map[fence]moment // the last
	deletes []moment
}

func (s *sweep) take(m moment) {
	by := holding{m.key, m.owner}
	i, open := s.open[by]
	mine := open && s.terms[i].token == m.token && m.time < s.terms[i].end
	switch {
	case m.kind == factLead:
		s.lead(m)
	case m.kind == factDelete:
		s.deletes = append(s.deletes, m)
	case m.kind == factFence && m.Type == OK:
		s.fenced[fence{m.owner, m.token}] = m
	case m.kind == factFence, !m.sent:
	case m.kind == factRelease && mine, m.kind == factRenew && m.Type == Fail && mine:
		s.terms[i].end = m.time
		delete(s.open, by)
	case m.Type != OK || m.kind == factRelease:
	case mine:
		s.terms[i].end = max(s.terms[i].end, s.window(m.fact))
	case m.kind == factAcquire:
		s.open[by] = len(s.terms)
		s.terms = append(s.terms, term{key: m.key, owner: m.owner, token: m.token, begin: m.time, asked: m.call, begun: m.place, end: s.window(m.fact), shown: m.fact})
	}
}

// lead adds a recorded belief. Its end is that of the history if nobody
// recorded it.
func (s *sweep) lead(m moment) {
	t := term{key: m.key, owner: m.owner, token: m.token, begin: m.time, asked: m.place, begun: m.place, end: Unbounded, entitled: NoTime, led: true, shown: m.fact}
	if m.slow {
		t.waived = "a clock broke its bound"
	}
	if m.Return >= 0 && m.Type != Info {
		t.end = m.to
	}
	s.terms = append(s.terms, t)
}

// window is until when an acquire or renewal that succeeded lets its owner
// believe: its TTL from the call on, had the store the fastest clock, less what
// the store may be early.
func (s *sweep) window(f *fact) int64 {
	if f.ttl <= 0 || s.meta.Early == Unbounded {
		return NoTime
	}
	hi, lo := bits.Mul64(uint64(f.ttl), 1e9)
	quo, _ := bits.Div64(hi, lo, uint64(1e9+s.meta.Drift))
	return f.from + int64(quo) - s.meta.Early
}
