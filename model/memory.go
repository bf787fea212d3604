package model

import "iter"

// Memory is what the judgement of a Monitor will depend on, outside a calm: a
// plain value, from which a Monitor in the same state of mind can be made. Of
// the grants and terms it has those that the caller asks for, see
// [Monitor.Owner] and [Monitor.Led].
type Memory struct {
	Last    uint64 // the highest token granted
	Tenure  Owner  // the latest in the store
	Token   uint64 // of the tenure
	Held    bool   // it runs
	Over    bool   // it was given up or deleted, or the store came back without it
	Deleted uint64 // terms up to this token lost their lease to an operator
	Seen    uint64 // highest token the storage has processed
	Fenced  uint64 // highest token led under behind the barrier
	Forged  bool   // the storage has seen a token that was never granted
	Values  [Keys]int64
	Longest int64 // the longest TTL that anybody asked for, in ns
	Short   int64 // by how much a grant was shorter than asked, in ns
}

// Memory is what m remembers.
func (m *Monitor) Memory() Memory {
	return Memory{Last: m.last, Tenure: m.tenure.Owner, Token: m.tenure.Token, Held: m.held, Over: m.over, Deleted: m.deleted,
		Seen: m.seen, Fenced: m.fenced, Forged: m.forged, Values: m.values, Longest: m.longest, Short: m.short}
}

// Forget makes m forget all grants and terms.
func (m *Monitor) Forget() { m.grants.n, m.led.n, m.led.top = 0, 0, 0 }

// Recall makes m a Monitor that remembers mem, the grants and terms that it
// does, and nobody who acts as leader; [Monitor.RememberGrant],
// [Monitor.RememberTerm] and [Monitor.RememberActing] add to them.
func (m *Monitor) Recall(mem *Memory) {
	m.recall = recall{cfg: m.cfg, last: mem.Last, tenure: term{mem.Tenure, mem.Token}, held: mem.Held, over: mem.Over, deleted: mem.Deleted,
		seen: mem.Seen, fenced: mem.Fenced, forged: mem.Forged, values: mem.Values, longest: mem.Longest, short: mem.Short}
}

// Owner is whom token was granted to, nobody where that is not known any more.
func (m *Monitor) Owner(token uint64) Owner {
	to, _ := m.grants.owner(token)
	return to
}

// Led reports whether anybody led under token, as far as that is known.
func (m *Monitor) Led(token uint64) bool { return m.led.has(token) }

// Terms are the tokens that somebody led under, as far as that is known, in
// the order of these terms.
func (m *Monitor) Terms() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := m.led.n - min(m.led.n, span); i < m.led.n; i++ {
			if !yield(m.led.ring[i%span]) {
				return
			}
		}
	}
}

// RememberGrant adds a grant to what m remembers; the latest must come last.
func (m *Monitor) RememberGrant(to Owner, token uint64) { m.grants.add(term{to, token}) }

// RememberTerm adds a term to those that were led.
func (m *Monitor) RememberTerm(token uint64) { m.led.add(token) }

// RememberActing lets n act as leader, as o under token.
func (m *Monitor) RememberActing(n Node, o Owner, token uint64) { m.acting[n] = term{o, token} }

// CopyFrom makes m equal to o, as an assignment does, but copies no more of the
// latest grants and terms than there are.
func (m *Monitor) CopyFrom(o *Monitor) {
	m.recall = o.recall
	m.grants.n, m.led.n, m.led.top = o.grants.n, o.led.n, o.led.top
	copy(m.grants.ring[:], o.grants.ring[:min(o.grants.n, span)])
	copy(m.led.ring[:], o.led.ring[:min(o.led.n, span)])
}

// Promised is how long after the beginning of the latest calm some client had
// to lead, in ns; 0: nothing was promised.
func (m *Monitor) Promised() int64 { return m.calm.length }
