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
	op       Op     // the lead, or the acquire
}

// moment is where an operation matters to a term: a success or refusal when it
// returned, a release when it was called, since whoever releases has stopped
// believing.
type moment struct {
	place, time int64
	span
}

// terms returns the beliefs recorded by lead, in the order in which they began;
// of a lease without any, those that correct clients may have had: from the
// return of an acquire (or of the last fence under its token, where there is a
// barrier) to the first of the end of its window, the call of a release, and
// the return of a refusal.
func terms(h *History, spans []span) []term {
	if !h.Timed() {
		return nil
	}
	s := sweep{h: h, open: make(map[holding]int), fenced: make(map[fence]moment)}
	leads := make(map[string]bool) // by lease
	var moments []moment
	for _, sp := range spans {
		call := &h.Events[sp.Call]
		m := moment{sp.call, call.Time, sp}
		switch call.F {
		case "acquire", "renew", "fence":
			if sp.Return < 0 || sp.Type == Info {
				continue
			}
			m.place, m.time = sp.ret, h.Events[sp.Return].Time
		case "lead":
			leads[h.name(sp.Op, "key")] = true
		case "release", "delete":
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
			if h.name(d.Op, "key") == t.key && d.ret > t.asked && d.time < t.end {
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
	h       *History
	terms   []term
	open    map[holding]int  // positions in terms of the derived ones
	fenced  map[fence]moment // the last
	deletes []moment
}

func (s *sweep) take(m moment) {
	h := s.h
	f := h.Events[m.Call].F
	key, owner := h.name(m.Op, "key"), h.name(m.Op, "owner")
	token, _ := h.field(m.Op, "token").Uint()
	i, open := s.open[holding{key, owner}]
	mine := open && s.terms[i].token == token && m.time < s.terms[i].end
	switch {
	case f == "lead":
		s.lead(m, key, owner, token)
	case f == "delete":
		s.deletes = append(s.deletes, m)
	case f == "fence" && m.Type == OK:
		s.fenced[fence{owner, token}] = m
	case f == "fence":
	case m.Type == Fail && h.errorWord(m.Op) == notSent:
	case f == "release" && mine, m.Type == Fail && f == "renew" && mine:
		s.terms[i].end = m.time
		delete(s.open, holding{key, owner})
	case m.Type != OK || f == "release":
	case mine:
		s.terms[i].end = max(s.terms[i].end, s.window(m.span))
	case f == "acquire":
		s.open[holding{key, owner}] = len(s.terms)
		s.terms = append(s.terms, term{key: key, owner: owner, token: token, begin: m.time, asked: m.call, begun: m.place, end: s.window(m.span), op: m.Op})
	}
}

// lead adds a recorded belief. Its end is that of the history if nobody
// recorded it.
func (s *sweep) lead(m moment, key, owner string, token uint64) {
	t := term{key: key, owner: owner, token: token, begin: m.time, asked: m.place, begun: m.place, end: Unbounded, entitled: NoTime, led: true, op: m.Op}
	if slow, _ := s.h.field(m.Op, "slow").Bool(); slow {
		t.waived = "a clock broke its bound"
	}
	if m.Return >= 0 && m.Type != Info {
		t.end = s.h.Events[m.Return].Time
	}
	s.terms = append(s.terms, t)
}

// window is until when an acquire or renewal that succeeded lets its owner
// believe: its TTL from the call on, had the store the fastest clock, less what
// the store may be early.
func (s *sweep) window(sp span) int64 {
	ttl, ok := s.h.field(sp.Op, "ttl").Int()
	if !ok || s.h.Meta.Early == Unbounded {
		return NoTime
	}
	hi, lo := bits.Mul64(uint64(ttl), 1e9)
	quo, _ := bits.Div64(hi, lo, uint64(1e9+s.h.Meta.Drift))
	return s.h.Events[sp.Call].Time + int64(quo) - s.h.Meta.Early
}
