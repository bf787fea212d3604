package sim

import (
	"bytes"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// What a World made from a key begins with: the reading of every clock, and
// the incarnation of every client, older ones counting down from there.
const (
	clockBase   = int64(1) << 40
	currentBase = 1 << 10
)

// AppendKey appends the key of w. Worlds of one key go on alike.
func (sp *Space) AppendKey(dst []byte, w *World) []byte {
	c := &sp.c
	ends := c.write(w)
	n := sp.clients
	order := [MaxClients]int8{0, 1, 2, 3}
	if sp.red&Symmetry != 0 && n > 1 {
		c.sort(ends[:n+1], order[:n])
	}
	dst = append(dst, c.buf[:c.n]...)
	if sp.red&MessageOrder == 0 {
		for _, i := range order[:n] {
			for k := range w.nmsgs {
				if c.whose[k] == i {
					dst = append(dst, byte(k))
				}
			}
		}
	}
	return dst
}

// write writes the header and each client to buf, and says where they end.
func (c *codec) write(w *World) (ends [MaxClients + 1]int) {
	c.w, c.reading, c.n = w, false, 0
	c.gather()
	c.header()
	ends[0] = c.n
	for i := range c.sp.clients {
		c.client(i)
		ends[i+1] = c.n
	}
	return ends
}

// Parts are the parts of a key: a header, and one for each client. Where only
// clocks ran since, a client's part depends on its own clock alone, so that the
// keys for all combinations of rates can be joined from a few.
type Parts struct {
	buf    []byte
	ends   [MaxClients + 1]int
	tokens uint64
	shift  uint64
	refs   [refCount]model.Owner
	odd    bool
}

// Part takes the key of w to pieces.
func (sp *Space) Part(p *Parts, w *World) {
	c := &sp.c
	p.ends = c.write(w)
	p.buf = append(p.buf[:0], c.buf[:c.n]...)
	p.tokens, p.shift, p.refs, p.odd = c.tokens, c.shift, c.refs, c.odd
}

// Joins reports whether the parts of p and q go together, p and q having come
// from one World by nothing but the passing of equal time: what the parts of
// different clients share must be the same in both.
func (sp *Space) Joins(p, q *Parts) bool {
	return sp.red&MessageOrder != 0 && p.tokens == q.tokens && p.shift == q.shift && p.refs == q.refs && p.odd == q.odd &&
		bytes.Equal(p.buf[:p.ends[0]], q.buf[:q.ends[0]])
}

// Join appends the key that has each client's part from one of several, which
// must go together.
func (sp *Space) Join(dst []byte, from []*Parts) []byte {
	var parts [MaxClients][]byte
	for i, p := range from {
		parts[i] = p.buf[p.ends[i]:p.ends[i+1]]
		if sp.red&Symmetry == 0 {
			continue
		}
		for j := i; j > 0 && bytes.Compare(parts[j], parts[j-1]) < 0; j-- {
			parts[j], parts[j-1] = parts[j-1], parts[j]
		}
	}
	dst = append(dst, from[0].buf[:from[0].ends[0]]...)
	for _, part := range parts[:len(from)] {
		dst = append(dst, part...)
	}
	return dst
}

// sort sorts parts of buf, each from one end to the next, and what they are
// called. There are few, and mostly they are in order.
func (c *codec) sort(ends []int, names []int8) {
	for i := 1; i < len(names); i++ {
		for j := i; j > 0; j-- {
			from, mid, to := ends[j-1], ends[j], ends[j+1]
			if bytes.Compare(c.buf[mid:to], c.buf[from:mid]) >= 0 {
				break
			}
			n := copy(c.tmp[:], c.buf[from:mid])
			ends[j] = from + copy(c.buf[from:], c.buf[mid:to])
			copy(c.buf[ends[j]:], c.tmp[:n])
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
}

// Decode makes w a World with that key. The key must be one of this space.
func (sp *Space) Decode(key []byte, w *World) {
	c := &sp.c
	w.CopyFrom(&sp.template)
	c.w, c.reading, c.b = w, true, key
	c.refs, c.mem, c.spec, c.rec, c.odd = [refCount]model.Owner{}, model.Memory{}, model.LeaseMemory{}, ownership{}, false
	c.bearer, c.timed = [64]model.Owner{}, [MaxClients]bool{}
	for i := range sp.used() {
		w.nodes[i] = node{rate: million, elapsed: clockBase, wall: w.nodes[i].wall}
		w.nodes[i].wall = 0
	}
	w.nmsgs = 0
	c.header()
	for i := range sp.clients {
		c.client(i)
	}
	if sp.red&MessageOrder == 0 {
		var msgs [MaxMessages]message
		copy(msgs[:], w.msgs[:w.nmsgs])
		for i := range w.nmsgs {
			w.msgs[c.b[i]] = msgs[i]
		}
		c.b = c.b[w.nmsgs:]
	}
	if len(c.b) != 0 {
		panic(fmt.Sprintf("sim: a key with %d bytes too many: of another space", len(c.b)))
	}
	c.restore()
}

// Timeless reports whether nothing in the World last decoded depends on the
// clock of client i: whatever its rate, the same follows.
func (sp *Space) Timeless(i int) bool {
	return sp.tightClient && sp.red&(TimeShift|Saturation) == TimeShift|Saturation && !sp.c.timed[i]
}

// Idle reports whether client i of the World last decoded has no term: there is
// nothing to resign, no work begins and nobody writes.
func (sp *Space) Idle(i int) bool { return sp.tightClient && sp.c.idle[i] }

// Same reports whether message i of the World last decoded equals the one
// before it.
func (sp *Space) Same(i int) bool { return sp.red&MessageOrder != 0 && sp.c.same[i] }

// bears notes, while a World is made, who may act under a token.
func (c *codec) bears(t uint64, by model.Owner) {
	if c.reading && !c.odd && t > c.shift && by.Node != 0 {
		c.bearer[(t-c.shift)&63] = by
	}
}

// resume puts client i into its state.
func (c *codec) resume(i int, acting bool) {
	cl, st := &c.w.clients[i], &c.state[i]
	c.idle[i] = st.phase == lease.Campaigning
	cl.SetState(lease.ClientState{Holder: holderOf(st.by), Phase: st.phase, Working: st.working, Token: lease.Token(st.token),
		Deadline: time.Duration(st.deadline), NextSend: time.Duration(st.nextSend), NextFence: time.Duration(st.nextFence)})
	cl.acting, cl.phase, cl.deadline, cl.since = acting, st.phase, time.Duration(st.deadline), c.w.counted(ClientNode(i))
	cl.term, cl.token = model.Owner{}, 0
	if st.phase != lease.Campaigning || acting {
		cl.term, cl.token = st.by, st.token
	}
	if c.w.nodes[ClientNode(i)].crashed {
		cl.phase = lease.Campaigning
	}
	c.bears(st.token, st.by)
}

// restore makes the World of what was read.
func (c *codec) restore() {
	w, sp := c.w, c.sp
	token := c.rec.token
	if sp.tightStore && !c.odd {
		c.refs[refTenure], c.refs[refJudged] = c.refs[refHolder], c.refs[refHolder]
	}
	if !c.odd {
		w.tenure.token, c.mem.Last, c.mem.Token = token, token, token
	}
	w.tenure.owner, w.tenure.running = c.refs[refTenure], c.running
	w.store.Record = lease.Record{Expires: time.Duration(c.rec.expires), Durable: lease.Durable{Token: lease.Token(token),
		Holder: holderOf(c.refs[refHolder]), TTL: time.Duration(c.rec.ttl), Status: c.rec.status}}
	w.store.Scratch.Who = holderOf(c.refs[refScratch])
	c.grants(&w.store.Scratch, &sp.setup.subject.Layout.StoreN)
	if c.rec.status != lease.Free {
		c.bears(token, c.refs[refHolder])
	}
	if !sp.tightStorage || !sp.tightStore {
		c.bears(c.mem.Token, c.refs[refJudged])
	}

	c.mem.Tenure, c.mem.Longest = c.refs[refJudged], sp.full
	w.monitor.Recall(&c.mem)
	for t := range uint64(len(c.bearer)) {
		if o := c.bearer[t]; o.Node != 0 {
			w.monitor.RememberGrant(o, t+c.shift)
		}
	}
	for i := range sp.clients {
		if cl := &w.clients[i]; cl.acting {
			w.monitor.RememberActing(ClientNode(i), cl.term, cl.token)
		}
	}
	if sp.lockstep {
		c.spec.Owner = c.refs[refSpec]
		w.lease.Issued = token
		w.lease.Remember(c.spec)
		w.guard = model.StorageSpec{Highest: uint64(w.storage.Highest), Values: w.storage.Values}
	}
}
