package linearizability

import (
	"cmp"
	"slices"
)

// term is one belief of an owner that it leads, under one token, as far as a
// history shows it. Times are the recorder's, in nanoseconds; the interval is
// half-open.
type term struct {
	key, owner string
	slot       int16
	token      uint64 // under which it began
	now        uint64 // and the last that a renewal drew
	begin, end int64
	asked      int64 // place of the call of the acquire
	begun      int64 // place at which it began: the lead's call, or the return of the acquire or the last fence
	// entitled is until when the store must not have granted the lease to
	// anybody else: a TTL after the call of the last acquire or renewal that
	// succeeded, on the fastest clock the store may have, unless the owner gave
	// it up before. NoTime if no grant is on record.
	entitled int64
	allowed  int64  // the same, had it learned of what is recorded as unknown
	led      bool   // recorded by lead; else what a correct client may have believed
	endless  bool   // nobody recorded its end
	closed   int64  // when the owner gave the lease up, or learned that it had lost it; Unbounded if never
	waived   string // why it may overlap with another; empty if it may not
	shown    *fact  // the lead, or the acquire
	last     *fact  // the last acquire or renewal that succeeded, if one is on record
}

// extent is what one grant or renewal says: since place, nobody else may be
// granted the lease until a time.
type extent struct {
	place, until int64
	term         int   // position in the sweep's terms
	alone        bool  // it replaces what the term's earlier ones say
	maybe        bool  // and nobody knows whether it took effect
	shown        *fact // the grant or renewal
}

// moment is where an operation matters to a term: a success or refusal when it
// returned, a release when it was called, since whoever releases has stopped
// believing.
type moment struct {
	place, time int64
	*fact
}

// follow returns what the facts of leases say in the order of time. Nothing, if
// they have no times.
func (x *facts) follow() *sweep {
	s := &sweep{meta: x.meta, open: make(map[holding]int), held: make(map[holding][]int), fenced: make(map[fence]moment), gone: make(map[granted]leave), refused: make(map[granted][]refusal), hopes: make(map[granted]int64), leads: make(map[string]bool), deletes: make(map[string]deletes), extents: make(map[slotName][]extent)}
	var moments []moment
	all := x.all
	if x.meta.Tokens == TokensNone {
		all = slices.Clone(all)
		for i := range all {
			all[i].token = 0 // whatever they say, it tells no tenure from another
		}
	}
	for i := range all {
		f := &all[i]
		if f.from == NoTime {
			return s
		}
		m := moment{f.call, f.from, f}
		switch f.kind {
		case factAcquire, factRenew, factFence:
			if f.Type != Info {
				m.place, m.time = f.ret, f.to
				break
			}
			if f.kind != factFence {
				s.hope(f)
			}
			if !f.draws {
				continue
			}
		case factLead:
			s.leads[f.key] = true
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
	s.settle()
	for _, d := range s.deletes {
		d.byTime.sort()
		d.byCall.sort()
	}
	return s
}

// deletes are those of one lease by an operator.
type deletes struct{ byTime, byCall endings }

// ended is an operation by its call and its return: places or times.
type ended struct{ begin, ret int64 }

// endings are operations of which, once sorted, each has the latest return of
// those up to it.
type endings []ended

func (e endings) sort() {
	slices.SortFunc(e, func(a, b ended) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(e); i++ {
		e[i].ret = max(e[i].ret, e[i-1].ret)
	}
}

// latest is the latest return of those that began before something, if any.
func (e endings) latest(before int64) (int64, bool) {
	n, _ := slices.BinarySearchFunc(e, before, func(d ended, at int64) int { return cmp.Compare(d.begin, at) })
	if n == 0 {
		return 0, false
	}
	return e[n-1].ret, true
}

// beliefs returns the beliefs recorded by lead, in the order in which they
// began; of a lease without any, those that correct clients may have had: from
// the return of an acquire (or of the last fence under its token, where there is
// a barrier) to the first of the end of its window, the call of a release, and
// the return of a refusal.
func (s *sweep) beliefs() []term {
	terms := slices.Clone(s.terms)
	derived := make(map[granted]term) // of each, what lasted longest, since what was asked first
	for i := range terms {
		if t := &terms[i]; !t.led {
			for _, owner := range []string{t.owner, ""} { // who fenced may not be on record
				fenced := s.fenced[fence{owner, t.token}]
				t.begin, t.begun = max(t.begin, fenced.time), max(t.begun, fenced.place)
			}
			t.entitled = t.end
			for _, token := range []uint64{t.token, t.now} {
				by, longest := granted{t.key, t.owner, token}, *t
				if d, ok := derived[by]; ok {
					if d.end > t.end {
						longest = d
					}
					longest.asked = min(d.asked, t.asked)
				}
				derived[by] = longest
			}
		}
	}
	for i := range terms {
		t := &terms[i]
		if d, ok := derived[granted{t.key, t.owner, t.token}]; t.led && ok {
			t.entitled, t.asked, t.last = d.end, min(t.asked, d.asked), d.last
			if t.slot == noSlot {
				t.slot = d.slot
			}
		}
		t.allowed = max(t.entitled, s.hopes[granted{t.key, t.owner, t.token}], s.hopes[granted{t.key, t.owner, 0}])
		if t.led && t.end == Unbounded {
			// Nobody knows when it ended: with its lease at the latest, had the client
			// been right.
			t.end, t.endless = max(t.begin, t.entitled), true
		}
		if ret, ok := s.deletes[t.key].byTime.latest(t.end); ok && ret > t.asked {
			t.waived = "an operator deleted the lease"
		}
	}
	return slices.DeleteFunc(terms, func(t term) bool {
		return t.begin >= t.end && !t.endless || !t.led && s.leads[t.key]
	})
}

// holding is who holds what.
type holding struct{ key, owner string }

// slotName is a slot of a lease.
type slotName struct {
	key  string
	slot int16
}

// fence is whose fence, under which token.
type fence struct {
	owner string
	token uint64
}

// sweep follows the terms of all owners through the moments.
type sweep struct {
	meta    *Meta
	terms   []term
	open    map[holding]int   // positions in terms of the derived ones
	held    map[holding][]int // where there are no tokens, of all that were not given up
	fenced  map[fence]moment  // the last
	deletes map[string]deletes
	gone    map[granted]leave
	refused map[granted][]refusal
	hopes   map[granted]int64 // until when unknown acquires (token 0) and renewals let their owner believe, had it learned of them
	leads   map[string]bool   // the leases of which beliefs are on record
	extents map[slotName][]extent
}

// hope notes an acquire or renewal of unknown outcome. Its owner may have learned
// what the recording did not, as from the answer to a copy of the request.
func (s *sweep) hope(f *fact) {
	by := granted{f.key, f.owner, f.token}
	if f.kind == factAcquire {
		by.token = 0
	}
	s.hopes[by] = max(s.hopes[by], s.window(f))
}

// asked reports whether an owner may hold a lease by an acquire of unknown outcome.
func (s *sweep) asked(by holding) bool {
	_, ok := s.hopes[granted{by.key, by.owner, 0}]
	return ok
}

// leave is when an owner gave up a token: the call of its first release, and the
// place until which one of its releases may take effect.
type leave struct{ time, until int64 }

// refusal is an answer that somebody does not hold what it must still have held.
type refusal struct {
	until int64 // when its last grant or renewal can have lapsed
	last  *fact // that
	shown *fact // the refused renewal or release
}

// refuse notes a refusal, if nothing but a lapse can be its reason.
func (s *sweep) refuse(t *term, m moment, holds granted) {
	if _, drew := s.hopes[holds]; m.kind != factRenew && m.kind != factRelease || drew && s.meta.Slots > 0 {
		return // or an unknown renewal has replaced the token
	}
	if s.meta.Slots > 1 && m.slot != noSlot && t.slot != noSlot && m.slot != t.slot {
		return // it asked for another slot
	}
	// What was answered before the call counts, and no release before the answer.
	if t.last.ret < m.call && s.gone[holds].until <= t.asked && t.end > m.to+2*s.meta.Eps {
		s.refused[holds] = append(s.refused[holds], refusal{t.end, t.last, m.fact})
	}
}

// release notes that an owner gave up what it held under a token.
func (s *sweep) release(m moment, holds granted) {
	gone, again := s.gone[holds]
	if !again {
		gone.time = m.time
	}
	s.gone[holds] = leave{gone.time, max(gone.until, m.ret)}
	// It may be why one under way was refused.
	s.refused[holds] = slices.DeleteFunc(s.refused[holds], func(r refusal) bool { return r.shown != m.fact && m.call < r.shown.ret })
}

func (s *sweep) take(m moment) {
	by := holding{m.key, m.owner}
	i, open := s.open[by]
	carried := m.token
	if m.draws {
		carried = m.number
	}
	holds := granted{m.key, m.owner, carried}
	mine := open && s.terms[i].now == carried && m.time < s.terms[i].end
	if open && s.meta.Slots > 0 && (m.kind == factRelease || m.draws) {
		mine = m.time < s.terms[i].end // what it carries may be what an unknown renewal drew
	}
	if mine && s.terms[i].now == carried && m.Type == Fail && m.sent {
		s.refuse(&s.terms[i], m, holds)
	}
	if m.kind == factRelease && m.sent {
		s.release(m, holds)
		if s.meta.Tokens == TokensNone {
			// Nothing tells which of its terms it gives up: all that it may still hold.
			for _, k := range s.held[by] {
				s.terms[k].closed = min(s.terms[k].closed, m.time)
			}
			delete(s.held, by)
		}
	}
	switch {
	case m.kind == factLead:
		s.lead(m)
	case m.kind == factDelete:
		if m.Type != Fail {
			d := s.deletes[m.key]
			d.byTime, d.byCall = append(d.byTime, ended{m.time, m.ret}), append(d.byCall, ended{m.call, m.ret})
			s.deletes[m.key] = d
		}
	case m.kind == factFence && m.Type == OK:
		s.fenced[fence{m.owner, m.token}] = m
	case m.kind == factFence, !m.sent:
	case m.kind == factRelease && mine, m.kind == factRenew && m.Type == Fail && mine:
		s.terms[i].end, s.terms[i].closed = m.time, m.time
		delete(s.open, by)
	case m.kind == factRelease, m.Type == Fail:
	case mine && m.draws:
		s.redraw(i, m)
	case m.Type != OK:
	case m.call < s.gone[holds].until: // it may be what was given up
	case m.found: // held, but for how long is not said
		s.hope(m.fact)
		if open {
			s.terms[i].now = m.token
		}
	case mine:
		s.terms[i].end = max(s.terms[i].end, s.window(m.fact))
		s.extend(i, m, extent{})
	case m.kind == factRenew && !m.draws && open && s.terms[i].now == carried:
		// It was answered too late for a client that stops in time, but the store
		// has prolonged the lease, and one that went on was right.
		s.hope(m.fact)
		s.extend(i, m, extent{})
	case m.kind == factRenew && !s.asked(by): // it renews what it was never granted
	case m.time < s.window(m.fact): // else it came too late to be believed
		if open { // whoever leads under a new token has stopped under the old one
			s.terms[i].end = min(s.terms[i].end, m.time)
		}
		s.open[by] = len(s.terms)
		if s.meta.Tokens == TokensNone {
			s.held[by] = append(s.held[by], len(s.terms))
		}
		s.terms = append(s.terms, term{
			key: m.key, owner: m.owner, slot: m.slot, token: m.token, now: m.token,
			begin: m.time, asked: m.call, begun: m.place, end: s.window(m.fact), closed: Unbounded, shown: m.fact,
		})
		s.extend(len(s.terms)-1, m, extent{})
	}
}

// redraw takes a renewal that replaces the lease by a new one under a new token.
func (s *sweep) redraw(i int, m moment) {
	t := &s.terms[i]
	if m.Type == OK {
		t.end, t.now = s.window(m.fact), m.token
	} else {
		t.end = min(t.end, s.window(m.fact))
	}
	s.extend(i, m, extent{alone: true, maybe: m.Type != OK})
}

func (s *sweep) extend(i int, m moment, e extent) {
	e.place, e.until, e.term, e.shown = m.place, s.window(m.fact), i, m.fact
	s.terms[i].last = m.fact
	name := slotName{s.terms[i].key, s.terms[i].slot}
	s.extents[name] = append(s.extents[name], e)
}

// settle takes from each extent what its owner gave up, or may have.
func (s *sweep) settle() {
	least := make([]int64, len(s.terms))
	for i := range s.terms {
		t := &s.terms[i]
		least[i] = t.closed
		if gone, ok := s.gone[granted{t.key, t.owner, t.token}]; ok && s.meta.Tokens != TokensNone {
			least[i] = min(least[i], gone.time)
		}
	}
	for name, list := range s.extents {
		for i := len(list) - 1; i >= 0; i-- {
			e := &list[i]
			e.until = min(e.until, least[e.term])
			if e.alone {
				least[e.term] = min(least[e.term], e.until)
			}
		}
		s.extents[name] = slices.DeleteFunc(list, func(e extent) bool { return e.maybe })
	}
}

// lead adds a recorded belief. Its end is unbounded if nobody recorded it.
func (s *sweep) lead(m moment) {
	t := term{
		key: m.key, owner: m.owner, slot: m.slot, token: m.token, now: m.token, begin: m.time, asked: m.place, begun: m.place,
		end: Unbounded, entitled: NoTime, closed: Unbounded, led: true, shown: m.fact,
	}
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
	return f.from + s.meta.least(f.ttl) - s.meta.Early
}
