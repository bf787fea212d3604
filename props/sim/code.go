package sim

import (
	"bytes"
	"iter"
	"math/bits"
	"slices"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// header codes everything that is no client's.
func (c *codec) header() {
	sp, w := c.sp, c.w
	st, sg, rec, mem := &w.nodes[StoreNode], &w.nodes[StorageNode], &c.rec, &c.mem
	const rare = 1 << 6
	var f uint64
	if !c.reading {
		f = uint64(rec.status) | bit(c.running)<<2 | bit(mem.Held)<<3 | bit(mem.Over)<<4 | bit(c.under(mem.Deleted, true) > 0)<<5
		if st.crashed || sg.crashed || st.stopped != 0 || sg.stopped != 0 || c.exact || c.odd {
			f |= rare
		}
	}
	f = c.num(f)
	if c.reading {
		rec.status, c.running, mem.Held, mem.Over = lease.Status(f&3), f>>2&1 == 1, f>>3&1 == 1, f>>4&1 == 1
		c.exact, c.odd = false, false
	}
	if f&rare != 0 {
		g := c.num(bit(c.exact) | bit(c.odd)<<1 | bit(st.crashed)<<2 | bit(sg.crashed)<<3)
		c.exact, c.odd, st.crashed, sg.crashed = g&1 == 1, g>>1&1 == 1, g>>2&1 == 1, g>>3&1 == 1
		st.stopped, sg.stopped = c.stopped(st.stopped), c.stopped(sg.stopped)
	}
	c.clocks(st)
	c.clocks(sg)
	rec.token = c.rank(rec.token)
	if c.reading {
		c.shift = max(rec.token, 62) - 62
	}
	if rec.status != lease.Free {
		now := int64(st.clocks().Boot)
		rec.expires = c.instant(rec.expires, now, c.past(sp.tightStore, sp.delay))
	}
	if !sp.tightStore || sp.storeCrashes && rec.status != lease.Free {
		rec.ttl = c.ttl(rec.ttl)
	}
	if c.reading && sp.tightStore && !sp.storeCrashes && rec.status == lease.Running {
		rec.ttl = sp.full
	}
	if f>>5&1 == 1 {
		mem.Deleted = c.bar(mem.Deleted, true)
	}
	if sp.tightStorage {
		if sp.flaw == ForgetsSeen {
			mem.Seen = 0
		}
		mem.Seen = c.bar(mem.Seen, false)
		if c.reading {
			w.storage.Highest = lease.Token(mem.Seen)
		}
		if c.odd {
			w.storage.Highest = lease.Token(c.bar(uint64(w.storage.Highest), false))
		}
		if sp.setup.cfg.Lease.Barrier && sp.flaw != ForgetsFenced {
			mem.Fenced = c.bar(mem.Fenced, false)
		}
	} else {
		if sp.flaw == ForgetsFenced {
			mem.Fenced = 0
		}
		w.storage.Highest, mem.Seen, mem.Fenced = lease.Token(c.rank(uint64(w.storage.Highest))), c.rank(mem.Seen), c.rank(mem.Fenced)
	}
	for k := range uint8(sp.keys) {
		w.storage.Values[k] = c.class(k, w.storage.Values[k])
	}
	c.led()
	if sp.red&IncarnationRanks == 0 {
		for i := range c.refs {
			c.refs[i] = c.owner(c.refs[i])
		}
	}
	if sp.lockstep {
		now := int64(st.clocks().Boot)
		c.spec.TTL, c.spec.Known = c.ttl(c.spec.TTL), c.num(bit(c.spec.Known)) == 1
		if c.spec.TTL > 0 {
			c.spec.Until = c.instant(c.spec.Until, now, c.past(false, 0))
		}
		if c.spec.Known {
			c.spec.Lapsed = c.instant(c.spec.Lapsed, now, c.past(false, 0))
		}
	}
	if !sp.tightStore {
		c.scratch(&w.store.Scratch, &sp.setup.subject.Layout.StoreN, int64(st.clocks().Boot))
	}
	if !sp.tightStorage {
		c.scratch(&w.storage.Scratch, &sp.setup.subject.Layout.StorageN, int64(sg.clocks().Boot))
	}
	if c.odd {
		c.oddities()
	}
}

// clocks codes what the clocks of a node read, where that is to matter.
func (c *codec) clocks(n *node) {
	if c.sp.red&TimeShift == 0 {
		n.elapsed, n.origin, n.lost, n.wall = c.span(n.elapsed), c.span(n.origin), c.span(n.lost), c.span(n.wall)
	}
}

// led codes which of the tokens referred to were led under, or which at all
// where one that nothing refers to may be issued again.
func (c *codec) led() {
	m := &c.w.monitor
	if c.reading {
		m.Forget()
		for set := c.num(0); set != 0; set &= set - 1 {
			m.RememberTerm(uint64(bits.TrailingZeros64(set)) + 1)
		}
		if c.exact {
			for n := c.num(0); n > 0; n-- {
				m.RememberTerm(c.num(0))
			}
		}
		return
	}
	if c.sp.flaw == ForgetsLed {
		c.num(0)
		if c.exact {
			c.num(0)
		}
		return
	}
	if c.exact {
		c.num(0)
		tokens := slices.Sorted(m.Terms())
		c.num(uint64(len(tokens)))
		for _, t := range tokens {
			c.num(t)
		}
		return
	}
	var set uint64
	n := 0
	for rest := c.tokens; rest != 0; rest &= rest - 1 {
		if m.Led(uint64(bits.TrailingZeros64(rest)) + c.shift) {
			set |= 1 << n
		}
		n++
	}
	c.num(set)
}

// oddities codes what no built-in rule comes to.
func (c *codec) oddities() {
	w, mem := c.w, &c.mem
	for i := 1; i < c.sp.used(); i++ {
		n := &w.nodes[i]
		n.rate, n.fraction, w.cuts[i] = int64(c.num(uint64(n.rate))), int64(c.num(uint64(n.fraction))), uint16(c.num(uint64(w.cuts[i])))
	}
	mem.Forged, mem.Short = c.num(bit(mem.Forged)) == 1, int64(c.num(uint64(mem.Short)))
	w.tenure.token, mem.Last, mem.Token = c.rank(w.tenure.token), c.rank(mem.Last), c.rank(mem.Token)
}

// granted codes which of the tokens referred to were granted to client i,
// where that does not follow from who refers to them.
func (c *codec) granted(i int) {
	if c.reading {
		for n := c.num(0); n > 0; n-- {
			t := c.num(0)
			c.bearer[(t-c.shift)&63] = c.age(model.Owner{}, i, false)
		}
		return
	}
	n := uint64(0)
	for _, o := range c.borne() {
		if o.Node == ClientNode(i) {
			n++
		}
	}
	c.num(n)
	for t, o := range c.borne() {
		if o.Node == ClientNode(i) {
			c.rank(t)
			c.age(o, i, false)
		}
	}
}

// borne yields the tokens that somebody may act under, and whom they were
// granted to.
func (c *codec) borne() iter.Seq2[uint64, model.Owner] {
	return func(yield func(uint64, model.Owner) bool) {
		for rest := c.tokens; rest != 0; rest &= rest - 1 {
			n := bits.TrailingZeros64(rest)
			if t := uint64(n) + c.shift; c.bearer[n].Node != 0 && !yield(t, c.w.monitor.Owner(t)) {
				return
			}
		}
	}
}

// client codes client i and the messages from it or to it.
func (c *codec) client(i int) {
	sp, w := c.sp, c.w
	n, st, who := &w.nodes[ClientNode(i)], &c.state[i], ClientNode(i)
	var f uint64
	if !c.reading {
		f = uint64(st.phase) | bit(st.working)<<2 | bit(w.clients[i].acting)<<3 | bit(n.crashed)<<4 | bit(n.stopped != KindNone)<<5 | bit(c.refs[refHolder].Node == who)<<6
	}
	f = c.num(f)
	if c.reading {
		*st = stance{by: model.Owner{Node: who, Seq: currentBase}, phase: lease.Phase(f & 3), working: f>>2&1 == 1}
		n.crashed = f>>4&1 == 1
	}
	if f>>5&1 == 1 {
		n.stopped = c.stopped(n.stopped)
	}
	c.clocks(n)
	ranks := sp.red&IncarnationRanks != 0
	if !ranks {
		st.by = c.owner(st.by)
		n.boots = uint16(c.num(uint64(n.boots)))
	} else if f>>6&1 == 1 {
		c.refs[refHolder] = c.age(c.refs[refHolder], i, false)
	}
	if ranks && (c.odd || !sp.tightStore) {
		for k := refTenure; k < refCount; k++ {
			c.refs[k] = c.later(c.refs[k], i)
		}
	}
	if c.odd {
		c.granted(i)
	}
	if sp.tightClient {
		if st.phase != lease.Campaigning {
			st.token, st.deadline = c.rank(st.token), c.clientInstant(i, st.deadline, 0)
		}
		if st.phase != lease.Stopping && !n.crashed {
			st.nextSend = c.clientInstant(i, st.nextSend, 0)
		}
		if st.phase == lease.Fencing {
			st.nextFence = c.clientInstant(i, st.nextFence, 0)
		}
	} else {
		st.token = c.rank(st.token)
		if c.set(st.deadline) {
			st.deadline = c.clientInstant(i, st.deadline, sp.loose)
		}
		st.nextSend = c.clientInstant(i, st.nextSend, sp.loose)
		if c.set(st.nextFence) {
			st.nextFence = c.clientInstant(i, st.nextFence, sp.loose)
		}
	}
	if c.reading {
		c.resume(i, f>>3&1 == 1)
	}
	if !sp.tightClient {
		x := &w.clients[i].Scratch
		x.Who = holderOf(c.later(ownerOf(x.Who), i))
		c.scratch(x, &sp.setup.subject.Layout.Client, c.now(i))
		c.grants(x, &sp.setup.subject.Layout.Client)
	}
	c.messages(i)
}

// now is what client i takes for the time, also in a World that is being made.
func (c *codec) now(i int) int64 {
	if c.reading && c.sp.red&TimeShift != 0 {
		return clockBase
	}
	return c.clock(i)
}

// later codes an incarnation that may be none of client i, and keeps it if it
// was another's.
func (c *codec) later(o model.Owner, i int) model.Owner {
	if c.sp.red&IncarnationRanks == 0 {
		return c.owner(o)
	}
	if got := c.age(o, i, true); got != (model.Owner{}) {
		return got
	}
	return o
}

// messages codes those of client i, in an order that does not depend on when
// they were sent.
func (c *codec) messages(i int) {
	w := c.w
	if c.reading {
		var before []byte
		for n := c.num(0); n > 0; n-- {
			all := c.b
			m := &w.msgs[w.nmsgs]
			*m = message{}
			c.message(m, i, -1)
			part := all[:len(all)-len(c.b)]
			c.same[w.nmsgs] = bytes.Equal(part, before)
			before = part
			m.id = model.Msg{Action: int32(w.nmsgs) + 1}
			m.req, m.sent, m.due = m.id, w.counted(ClientNode(i)), w.now
			w.nmsgs++
		}
		return
	}
	var order [MaxMessages]int8
	var ends [MaxMessages + 1]int
	count := 0
	for k := range w.nmsgs {
		if int(c.whose[k]) == i {
			order[count] = int8(k)
			count++
		}
	}
	c.num(uint64(count))
	ends[0] = c.n
	for j, k := range order[:count] {
		c.message(&w.msgs[k], i, int(k))
		ends[j+1] = c.n
	}
	if c.sp.red&MessageOrder != 0 && count > 1 {
		c.sort(ends[:count+1], order[:count])
	}
}

// message codes message k, which is one of client i.
func (c *codec) message(m *message, i, k int) {
	// No operation: a reply that nobody will look at.
	const isReply, isGranted, isAdmitted, isOther = 1 << 3, 1 << 4, 1 << 5, 1 << 6
	full := time.Duration(c.sp.full)
	req, rep := &m.lease, &m.answer
	var f uint64
	if !c.reading && !c.dead[k] {
		f = uint64(m.op)
		if m.reply {
			f |= isReply
			switch rep.Code {
			case lease.CodeGranted:
				f |= isGranted
				if rep.TTL != full || rep.Asked != rep.Token && m.op == model.OpRenew {
					f |= isOther
				}
			case lease.CodeFenced:
				f |= isAdmitted
			}
		} else if req.TTL != full && (m.op == model.OpAcquire || m.op == model.OpRenew) {
			f |= isOther
		}
	}
	f = c.num(f)
	if c.reading {
		m.op, m.reply = model.Op(f&7), f == 0 || f&isReply != 0
		m.from, m.to = ClientNode(i), StoreNode
		if m.op == model.OpFence || m.op == model.OpWrite {
			m.to = StorageNode
		}
		if m.reply {
			m.from, m.to = m.to, m.from
		}
		if f == 0 {
			m.op = model.OpWrite // whose answers no client sees
		}
	}
	if f == 0 {
		return
	}
	var by model.Owner
	if !c.reading {
		by = c.by[k]
	}
	by = c.age(by, i, false)
	if c.reading {
		req.Holder, req.Op, req.Sent = holderOf(by), opFrom[m.op], time.Duration(c.now(i))
	}
	// When it was sent counts for a present attempt alone.
	counts := m.op == model.OpAcquire || m.op == model.OpRenew
	if counts && (by == c.state[i].by || c.sp.readsSent) && c.sp.flaw != ForgetsAges {
		req.Sent = time.Duration(c.clientInstant(i, int64(req.Sent), c.past(c.sp.tightClient, c.sp.window)))
	}
	switch {
	case !m.reply:
		if m.op != model.OpAcquire {
			req.Token = lease.Token(c.rank(uint64(req.Token)))
		}
		switch {
		case counts:
			req.TTL = c.other(f&isOther != 0, req.TTL)
		case m.op == model.OpWrite:
			if c.sp.keys > 1 {
				m.key = uint8(c.num(uint64(m.key)))
			}
			m.value = c.class(m.key, m.value)
		}
		c.bears(uint64(req.Token), by)
		return
	case f&isGranted != 0:
		rep.Code = lease.CodeGranted
		rep.Token = lease.Token(c.rank(uint64(rep.Token)))
		rep.TTL = c.other(f&isOther != 0, rep.TTL)
		c.bears(uint64(rep.Token), by)
		switch {
		case m.op != model.OpRenew:
		case f&isOther != 0:
			rep.Asked = lease.Token(c.rank(uint64(rep.Asked)))
		default:
			rep.Asked = rep.Token
		}
	default:
		if m.op != model.OpAcquire {
			rep.Asked = lease.Token(c.rank(uint64(rep.Asked)))
		}
		if !c.reading {
			break
		}
		switch {
		case f&isAdmitted != 0:
			rep.Code = lease.CodeFenced
		case m.op == model.OpFence:
			rep.Code = lease.CodeStale
		default:
			rep.Code = lease.CodeLost
		}
	}
	if c.reading {
		rep.Op, rep.Holder, rep.Sent = req.Op, req.Holder, req.Sent
		req.Token, req.TTL = rep.Asked, full
		m.code = codeOf[rep.Code]
	}
}

// other codes a TTL that mostly is that of the configuration.
func (c *codec) other(is bool, ttl time.Duration) time.Duration {
	if !is {
		return time.Duration(c.sp.full)
	}
	return time.Duration(c.span(int64(ttl)))
}

var opFrom = [...]lease.Op{model.OpAcquire: lease.OpAcquire, model.OpRenew: lease.OpRenew, model.OpRelease: lease.OpRelease,
	model.OpFence: lease.OpFence, model.OpWrite: lease.OpNone}
