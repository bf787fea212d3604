package model

import "math"

// MonitorConfig is what a Monitor must know beforehand.
type MonitorConfig struct {
	Roles [MaxNodes]Role
	// Only are the invariants to judge; the empty set stands for all.
	Only Set
	// First is the token of the first grant; 0 stands for 1.
	First uint64
	// Rising accepts any higher token at a change of ownership, for stores
	// whose tokens come from a replicated revision.
	Rising bool
	// Revival is how long after a lapse, in ns of the store's clock, the holder
	// may still renew a tenure that nobody took: for stores that let tenures
	// lapse later than they promise to, or renew what has lapsed.
	// [math.MaxInt64]: for ever, restarts included.
	Revival int64
	// SteadyClock says that the store's clock goes on over a restart, which
	// then neither ends a tenure nor makes it last.
	SteadyClock bool
	// Barrier says that clients fence before they lead.
	Barrier bool
	// The client's safe window and retry interval and the store's lock delay,
	// in ns, bound how long nobody may lead once it is calm.
	Window, Retry, LockDelay int64
}

// span is how many of the latest grants a Monitor remembers the owner of, and
// how many of the latest terms it knows the token of.
const span = 256

// Keys is how many keys of a storage a Monitor follows.
const Keys = 4

// Monitor judges the invariants, but for linearizability and lockstep, event
// by event. It is a value: copying it is a snapshot. It allocates nothing.
//
// Belief here is what may act as leader: a term from its beginning, fenced
// where the barrier is on, until it ends, and for a resigned leader until its
// work has stopped.
type Monitor struct {
	recall
	grants grants
	led    led
}

// recall is what a Monitor remembers but for the latest grants and terms.
type recall struct {
	cfg MonitorConfig

	last    uint64 // the highest token granted
	tenure  term   // the latest in the store
	held    bool   // it runs
	over    bool   // it was given up or deleted, or the store came back without it
	lapsed  int64  // when it did, on the store's clock, where it may be revived
	deleted uint64 // terms up to this token lost their lease to an operator
	unknown uint64 // requests since it began that the store gave no answer to

	acting [MaxNodes]term // Token 0: not acting

	seen   uint64 // highest token the storage has processed
	leader Node   // led under fenced
	fenced uint64 // highest token led under behind the barrier
	forged bool   // the storage has seen a token that was never granted
	values [Keys]int64

	// longest is the longest TTL that anybody asked for so far. What must run
	// out is at most that: a request may be granted long after it was sent, or
	// twice, so that the running tenure's own TTL would not do. It gives the
	// store more time than it needs, never less.
	longest int64
	// short is by how much a grant was shorter than asked, at the most: so much
	// shorter are the windows of clients, who go by the smaller of the two.
	short int64
	calm  calm

	first    Violation
	violated Set
	waived   Set
}

type term struct {
	Owner Owner
	Token uint64
}

type calm struct {
	on, judged         bool
	action             int32 // requests of another action were sent before
	delay, tick        int64
	settled            int64 // until when what was sent before may take the room of a message
	since              int64 // leading at or after this instant satisfies
	began, end, length int64
	// A tenure that was granted, or asked for, before the calm may be renewed
	// in it by a term that is over before anybody hears of that: it has to run
	// out again.
	old     term
	renewed int64 // when, in the calm; 0: not
	ended   bool  // its term
}

// NewMonitor is a Monitor at the beginning of a run.
func NewMonitor(cfg MonitorConfig) Monitor {
	return Monitor{recall: recall{cfg: cfg, last: max(cfg.First, 1) - 1}}
}

// Violated is the set of invariants broken by the event that broke the first
// one; empty while everything holds.
func (m *Monitor) Violated() Set { return m.violated }

// First is the first violation. Its Invariant is NoInvariant while everything
// holds.
func (m *Monitor) First() Violation { return m.first }

// Waived is the set of invariants that were broken where they are not
// promised: clocks beyond the bound, or an operator deleted the lease.
func (m *Monitor) Waived() Set { return m.waived }

// Granted is the highest token granted so far.
func (m *Monitor) Granted() uint64 { return m.last }

// Seen is the highest token that the storage has processed.
func (m *Monitor) Seen() uint64 { return m.seen }

// Observe takes the next event. Once an invariant is broken later events
// change nothing, and neither do those of a node that no run has.
func (m *Monitor) Observe(e *Event) {
	if m.violated != 0 || e.Node >= MaxNodes || e.Owner.Node >= MaxNodes {
		return
	}
	// Whoever acted until this event acted at the instants just before it.
	if m.calm.on && e.At > m.calm.since && m.anyActing() {
		m.calm.judged = false
	}
	switch e.Kind {
	case KindInvoke:
		m.longest = max(m.longest, e.TTL)
	case KindHandle:
		m.handle(e)
	case KindLapse:
		m.held = false
		if m.cfg.Revival > 0 {
			m.lapsed = e.Local
		}
		m.ownership(e)
	case KindDelete:
		if m.held { // else nobody lost anything by it
			m.held, m.deleted = false, m.last
		}
		m.over = true
		m.ownership(e)
	case KindRestart:
		if m.cfg.Roles[e.Node] == RoleStore && !m.cfg.SteadyClock {
			m.comeBack(e)
		}
	case KindLead:
		m.lead(e)
	case KindStepDown, KindCrash:
		m.acting[e.Node] = term{}
		if m.calm.on && m.calm.old == (term{e.Owner, e.Token}) {
			m.calm.ended = true
			m.outlive()
		}
	case KindCalm:
		m.beginCalm(e, e.Remaining, e.TTL)
		m.calm.settled = saturate(m.calm.since, e.Remaining) // the answers to what was on its way
	case KindLose:
		// Not calm yet, if what was sent before took the room. Whoever floods
		// the network later has only itself to blame.
		if settled := m.calm.settled; m.calm.on && e.At <= settled {
			m.beginCalm(e, m.calm.delay, m.calm.tick)
			m.calm.settled = settled
		}
	}
	if m.calm.on {
		m.judgeCalm(e)
	}
}

func (m *Monitor) handle(e *Event) {
	switch e.Code {
	case CodeGranted:
		m.grant(e)
	case CodeNone:
		m.unknown++
	case CodeReleased:
		m.held, m.over = false, true
		if m.calm.on && e.At >= m.calm.began+m.calm.delay {
			m.promise(e.At, 0)
		}
		m.ownership(e)
	case CodeFenced:
		m.process(e)
	case CodeLanded:
		m.land(e)
	case CodeValue:
		if int(e.Key) < Keys && m.values[e.Key] != e.Value {
			m.fail(e, Violation{Invariant: Durability, Node: e.Node, Value: e.Value, Want: m.values[e.Key]})
		}
	}
}

// grant judges a successful acquire or renew. Unless the same tenure runs it
// is a change of ownership, whatever the store calls it.
func (m *Monitor) grant(e *Event) {
	if e.Remaining > 0 && e.TTL-e.Remaining > m.short {
		m.short = e.TTL - e.Remaining
		m.calm.judged = m.calm.judged && m.renewable()
	}
	if m.tenure == (term{e.Owner, e.Token}) && (m.held || m.revives(e)) {
		m.held = true
		if m.calm.on && m.tenure == m.calm.old {
			m.calm.renewed = e.At
			m.outlive()
		}
		return
	}
	// What was not answered may have been granted, each under a token.
	next := m.last + 1
	if high := saturateToken(next, m.unknown); e.Token < next || e.Token > high && !m.cfg.Rising {
		m.fail(e, Violation{Invariant: TokenMonotonicity, Node: e.Owner.Node, Token: e.Token, Limit: next})
	}
	m.last, m.unknown = max(m.last, e.Token), 0
	m.tenure, m.held, m.over = term{e.Owner, e.Token}, true, false
	m.grants.add(m.tenure)
	if m.calm.on && e.Req.Action != m.calm.action {
		// Asked for before the calm: maybe nobody is there any more to lead
		// under it, or its countdown may soon be over. It has to run out.
		m.calm.old, m.calm.renewed, m.calm.ended = m.tenure, 0, false
		m.promise(e.At, saturate(m.longest, m.cfg.LockDelay))
	}
	m.ownership(e)
}

// revives reports whether a tenure that lapsed may be renewed all the same, or
// whether it may have been renewed before it lapsed, by a request that was not
// answered.
func (m *Monitor) revives(e *Event) bool {
	return !m.over && m.tenure.Token != 0 && (m.unknown > 0 || m.cfg.Revival == math.MaxInt64 || m.cfg.Revival > 0 && e.Local-m.lapsed <= m.cfg.Revival)
}

func saturateToken(t, n uint64) uint64 { return t + min(n, math.MaxUint64-t) }

// comeBack judges the tenure of a store after a restart. Only the latest can
// still run; any other, or one that was given up, is a change of ownership
// without a token.
func (m *Monitor) comeBack(e *Event) {
	if m.held = e.Holder != (Owner{}); m.held {
		now := term{e.Holder, e.Token}
		if now != m.tenure || m.over {
			m.fail(e, Violation{Invariant: TokenMonotonicity, Node: e.Holder.Node, Token: e.Token, Limit: m.last + 1})
		}
		m.tenure = now
	}
	m.over = !m.held && (m.over || m.cfg.Revival < math.MaxInt64)
	m.ownership(e)
}

// process notes that the storage took a token.
func (m *Monitor) process(e *Event) {
	m.seen = max(m.seen, e.Asked)
	m.forged = m.forged || e.Asked > m.last
}

// land judges a write that landed. A stale fence that is acknowledged is wrong
// too, but breaks nothing until a write lands.
func (m *Monitor) land(e *Event) {
	if e.Asked < m.seen {
		m.fail(e, Violation{Invariant: StorageSafety, Node: e.Owner.Node, Token: e.Asked, Limit: m.seen})
	}
	m.process(e)
	if e.Asked < m.fenced {
		m.fail(e, Violation{Invariant: Barrier, Node: e.Owner.Node, Other: m.leader, Token: e.Asked, Limit: m.fenced})
	}
	if m.cfg.Roles[e.Owner.Node] == RoleClient {
		if to, known := m.grants.owner(e.Asked); known && to != e.Owner {
			m.fail(e, Violation{Invariant: Attribution, Node: e.Owner.Node, Other: to.Node, Token: e.Asked})
		}
	}
	if int(e.Key) < Keys {
		m.values[e.Key] = e.Value
	}
}

// ownership judges every acting client after the store's tenure changed.
func (m *Monitor) ownership(e *Event) {
	for n := range m.acting {
		if m.acting[n].Token != 0 {
			m.owns(e, Node(n))
		}
	}
}

func (m *Monitor) owns(e *Event, n Node) {
	t := m.acting[n]
	if m.held && t == m.tenure {
		return
	}
	v := Violation{Invariant: BeliefOwnership, Node: n, Token: t.Token, Limit: m.tenure.Token}
	if m.held {
		v.Other = m.tenure.Owner.Node
	}
	m.failUnlessWaived(e, v, n)
}

func (m *Monitor) lead(e *Event) {
	if old := m.acting[e.Node]; old.Token != 0 {
		m.fail(e, Violation{Invariant: Continuity, Node: e.Node, Token: e.Token, Limit: old.Token})
	}
	if !m.led.add(e.Token) {
		m.fail(e, Violation{Invariant: Continuity, Node: e.Node, Token: e.Token, Limit: e.Token})
	}
	m.acting[e.Node] = term{e.Owner, e.Token}
	for n, t := range m.acting {
		if t.Token != 0 && Node(n) != e.Node {
			v := Violation{Invariant: BeliefSafety, Node: e.Node, Other: Node(n), Token: e.Token, Limit: t.Token}
			m.failUnlessWaived(e, v, e.Node, Node(n))
		}
	}
	m.owns(e, e.Node)
	if m.cfg.Barrier && e.Token > m.fenced {
		m.fenced, m.leader = e.Token, e.Node
	}
}

func (m *Monitor) beginCalm(e *Event, delay, tick int64) {
	m.calm = calm{on: true, action: e.Action, delay: delay, tick: tick, began: e.At, since: e.At + delay}
	if m.held {
		m.calm.old = m.tenure
	}
	m.promise(e.At+delay, saturate(m.longest, m.cfg.LockDelay))
}

// outlive puts off by when somebody must lead, if the old tenure outlives its
// term by a renewal.
func (m *Monitor) outlive() {
	c := &m.calm
	if end := c.end; c.judged && c.ended && c.renewed > 0 {
		m.promise(c.renewed, saturate(m.longest, m.cfg.LockDelay))
		c.end = max(c.end, end)
		c.length = c.end - c.began
	}
}

// renewable reports whether the window of a client leaves it the time for a
// renewal between two ticks.
func (m *Monitor) renewable() bool { return m.cfg.Window-m.short > 4*m.calm.delay+m.calm.tick }

// promise sets by when somebody must lead, if the lease is free or to be free
// after wait: a refusal on its way, a retry and the tick that makes it, a
// request and its answer, and a fence and its answer. A window too short for a
// renewal between two ticks promises nothing.
func (m *Monitor) promise(from, wait int64) {
	c := &m.calm
	if !m.renewable() {
		return
	}
	bound := saturate(wait, 2*c.delay+m.cfg.Retry+c.tick+2*c.delay) // a TTL may be for ever
	if m.cfg.Barrier {
		bound = saturate(bound, 2*c.delay)
	}
	c.judged, c.end = true, saturate(from, bound)
	c.length = c.end - c.began
	c.since = max(c.since, from)
}

func (m *Monitor) judgeCalm(e *Event) {
	c := &m.calm
	switch {
	case m.forged:
		c.judged = false
	case c.judged && e.At > c.end: // before whoever leads from now on
		m.fail(e, Violation{Invariant: Availability, Want: c.length})
	case e.At >= c.since && m.anyActing():
		c.judged = false
	}
	if e.Kind == KindCalmEnd {
		c.on = false
	}
}

func (m *Monitor) anyActing() bool {
	for i := range m.acting {
		if m.acting[i].Token != 0 {
			return true
		}
	}
	return false
}

func (m *Monitor) failUnlessWaived(e *Event, v Violation, terms ...Node) {
	for _, n := range terms {
		if e.Slow&(1<<n) != 0 || m.acting[n].Token <= m.deleted {
			if m.judges(v.Invariant) {
				m.waived |= SetOf(v.Invariant)
			}
			return
		}
	}
	m.fail(e, v)
}

// fail keeps the first violation, and the set of those that the same event
// broke.
func (m *Monitor) fail(e *Event, v Violation) {
	if !m.judges(v.Invariant) {
		return
	}
	v.At, v.Action = e.At, e.Action
	if m.violated == 0 {
		m.first = v
	}
	m.violated |= SetOf(v.Invariant)
}

func (m *Monitor) judges(v Invariant) bool { return m.cfg.Only == 0 || m.cfg.Only.Has(v) }
