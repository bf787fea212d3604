package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
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

// refs are the references to incarnations that belong to nobody's block.
const (
	refHolder  = iota // in the store's record
	refTenure         // what the observer last saw there
	refJudged         // what the monitor last saw there
	refSpec           // what the specification has
	refScratch        // what a planted bug has
	refCount
)

// codec writes the key of a World, or reads one: one traversal for both, so
// that the two cannot part. It works on a picture of the World, from which
// everything that does not matter has been taken out before it writes, and
// from which the World is made after it has read.
type codec struct {
	sp      *Space
	w       *World
	reading bool
	b       []byte // what is left to read
	n       int    // written to buf so far
	buf     [4096]byte

	rec     ownership
	running bool
	mem     model.Memory
	spec    model.LeaseMemory
	refs    [refCount]model.Owner
	nrefs   int // of them that may differ
	state   [MaxClients]stance
	seen    [MaxClients]incarnations
	odd     bool

	exact  bool   // tokens as they are, not by rank
	shift  uint64 // below the lowest token that may be referred to
	tokens uint64 // those that are, counted from shift
	bearer [64]model.Owner

	whose [MaxMessages]int8 // the client that sent it or gets it
	by    [MaxMessages]model.Owner
	dead  [MaxMessages]bool
	same  [MaxMessages]bool // equal to the one before
	timed [MaxClients]bool  // the clock of the client matters
	idle  [MaxClients]bool  // it has no term

	tmp [1024]byte
}

// ownership is a [lease.Record] but for its holder.
type ownership struct {
	status       lease.Status
	token        uint64
	ttl, expires int64
}

// stance is a [lease.ClientState] with a small identity.
type stance struct {
	by                            model.Owner
	phase                         lease.Phase
	working                       bool
	token                         uint64
	deadline, nextSend, nextFence int64
}

// incarnations are those of one client that something still refers to, the
// latest first, and not the present one.
type incarnations struct {
	present uint64
	n       int
	older   [MaxMessages + refCount]uint64
}

func packed(o model.Owner) uint64 { return uint64(o.Boot)<<32 | uint64(o.Seq) }

func (in *incarnations) add(o model.Owner) {
	x := packed(o)
	if x == in.present {
		return
	}
	i := 0
	for ; i < in.n; i++ {
		if in.older[i] == x {
			return
		}
		if in.older[i] < x {
			break
		}
	}
	copy(in.older[i+1:in.n+1], in.older[i:in.n])
	in.older[i] = x
	in.n++
}

// age is how many that something refers to are later than o.
func (in *incarnations) age(o model.Owner) uint64 {
	x := packed(o)
	if x == in.present {
		return 0
	}
	for i, y := range in.older[:in.n] {
		if x == y {
			return uint64(i + 1)
		}
	}
	panic("sim: an incarnation that was not gathered")
}

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

// The coding of single values. Each writes what it is given, or reads and
// returns what was written.

func (c *codec) num(v uint64) uint64 {
	if c.reading || v >= 0x80 || uint(c.n) >= uint(len(c.buf)) {
		return c.long(v)
	}
	c.buf[c.n] = byte(v)
	c.n++
	return v
}

// long is num where a byte does not do, or where it reads.
func (c *codec) long(v uint64) uint64 {
	if !c.reading {
		c.n += binary.PutUvarint(c.buf[c.n:], v)
		return v
	}
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v = uint64(c.b[0])
		c.b = c.b[1:]
		return v
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		panic("sim: a key that ends early: of another space")
	}
	c.b = c.b[n:]
	return v
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func zigzag(x int64) uint64   { return uint64(x<<1) ^ uint64(x>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// span codes a duration: whole grains shortly, anything else to the
// nanosecond, and what is for ever.
func (c *codec) span(d int64) int64 {
	const forever, exactly = 3, 1
	if c.reading {
		switch u := c.num(0); {
		case u == forever:
			return math.MaxInt64
		case u&1 == 0:
			return unzigzag(u>>1) * c.sp.grain.unit
		default:
			return unzigzag(u >> 2)
		}
	}
	size := uint64(d)
	if d < 0 {
		size = uint64(-d)
	}
	if d == math.MaxInt64 {
		c.num(forever)
	} else if q, whole := c.sp.grain.divide(size); whole {
		if d < 0 {
			c.num((2*q - 1) << 1)
		} else {
			c.num(2 * q << 1)
		}
	} else {
		c.num(zigzag(d)<<2 | exactly)
	}
	return d
}

// instant codes t relative to now; what is more than past ago saturates.
func (c *codec) instant(t, now, past int64) int64 {
	if c.reading {
		if d := c.span(0); d != math.MaxInt64 {
			return now + d
		}
		return math.MaxInt64
	}
	if t == math.MaxInt64 {
		return c.span(t)
	}
	d := t - now
	if d < -past && c.sp.red&Saturation != 0 {
		d = -past
	}
	c.span(d)
	return t
}

// set codes whether an instant is one at all: zero is none.
func (c *codec) set(t int64) bool { return c.num(bit(t != 0)) == 1 }

// clientInstant codes t on the clock of client i, and notes while reading
// whether that clock matters.
func (c *codec) clientInstant(i int, t, past int64) int64 {
	now := c.now(i)
	t = c.instant(t, now, past)
	if c.reading && t > now-past {
		c.timed[i] = true
	}
	return t
}

// past is how long ago an instant is when nothing tells it from longer ago:
// tight for the built-in rules, and with room to spare for others.
func (c *codec) past(tight bool, d int64) int64 {
	if tight {
		return d
	}
	return c.sp.loose
}

// rank codes a token that something refers to.
func (c *codec) rank(t uint64) uint64 {
	switch {
	case c.reading:
		return c.num(0)
	case c.exact || t == 0:
		c.num(t)
	default:
		c.num(uint64(bits.OnesCount64(c.tokens & (2<<(t-c.shift) - 1))))
	}
	return t
}

// bar codes a token of which only matters which of those referred to are below
// it, or at it where at is set.
func (c *codec) bar(t uint64, at bool) uint64 {
	if c.reading {
		if t = c.num(0); t > 0 && !at && !c.exact {
			t++
		}
		return t
	}
	c.num(c.under(t, at))
	return t
}

// under is how many of the tokens referred to are below t, or at it where at is
// set; t itself where tokens are kept as they are.
func (c *codec) under(t uint64, at bool) uint64 {
	switch {
	case c.exact:
		return t
	case t <= c.shift:
		return 0
	}
	below := uint64(1)<<(t-c.shift) - 1
	if at {
		below = below<<1 | 1
	}
	return uint64(bits.OnesCount64(c.tokens & below))
}

// age codes an incarnation of client i; where none is set it may be nobody's.
func (c *codec) age(o model.Owner, i int, none bool) model.Owner {
	if c.sp.red&IncarnationRanks == 0 {
		return c.owner(o)
	}
	if c.reading {
		a := c.num(0)
		if none {
			if a == 0 {
				return model.Owner{}
			}
			a--
		}
		return model.Owner{Node: ClientNode(i), Seq: uint32(currentBase - a)}
	}
	if none {
		if o.Node != ClientNode(i) {
			c.num(0)
			return o
		}
		c.num(c.seen[i].age(o) + 1)
		return o
	}
	c.num(c.seen[i].age(o))
	return o
}

// owner codes an incarnation as it is.
func (c *codec) owner(o model.Owner) model.Owner {
	return model.Owner{Node: model.Node(c.num(uint64(o.Node))), Boot: uint16(c.num(uint64(o.Boot))), Seq: uint32(c.num(uint64(o.Seq)))}
}

// ttl codes a duration that mostly is the TTL of the configuration.
func (c *codec) ttl(d int64) int64 {
	if c.reading {
		switch c.num(0) {
		case 0:
			return c.sp.full
		case 1:
			return 0
		}
		return c.span(0)
	}
	switch d {
	case c.sp.full:
		c.num(0)
	case 0:
		c.num(1)
	default:
		c.num(2)
		c.span(d)
	}
	return d
}

// class codes a value written to key k: equality with what landed there last
// and with what is stored is all that matters.
func (c *codec) class(k uint8, v int64) int64 {
	if c.reading {
		return int64(c.num(0))
	}
	c.num(uint64(class(c.w.storage.Values[k], c.mem.Values[k], v)))
	return v
}

// class renames the values 0, 1 and 2 so that landed becomes 0.
func class(stored, landed, v int64) int64 {
	switch {
	case v == landed:
		return 0
	case v == stored:
		return 1
	case stored != landed:
		return 2
	}
	other := 3 - landed - v // the third
	if v < other {
		return 1
	}
	return 2
}

// Other is the value that a client writes to key k, unlike the one that is
// stored there: one that renaming the values does not change.
func (w *World) Other(k uint8) int64 {
	stored, landed := w.storage.Values[k], w.monitor.Memory().Values[k]
	if stored != landed {
		return landed
	}
	if stored == 0 {
		return 1
	}
	return 0
}

var stopKinds = [...]Kind{KindNone, Pause, Suspend, Freeze}

func (c *codec) stopped(k Kind) Kind {
	for i := range stopKinds {
		if stopKinds[i] == k {
			return stopKinds[c.num(uint64(i))]
		}
	}
	return KindNone
}

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
		if sp.setup.cfg.Lease.Barrier {
			mem.Fenced = c.bar(mem.Fenced, false)
		}
	} else {
		w.storage.Highest, mem.Seen, mem.Fenced = lease.Token(c.rank(uint64(w.storage.Highest))), c.rank(mem.Seen), c.rank(mem.Fenced)
	}
	for k := range uint8(sp.keys) {
		w.storage.Values[k] = c.class(k, w.storage.Values[k]) // before the landed one, which it is told by
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

// scratch codes the memory of rules that are not built in, but for the
// references to incarnations.
func (c *codec) scratch(x *Scratch, means *[4]Meaning, now int64) {
	for k, m := range means {
		switch v := &x.N[k]; m {
		case MeansNumber:
			*v = unzigzag(c.num(zigzag(*v)))
		case MeansToken:
			*v = int64(c.rank(uint64(*v)))
		case MeansValue:
			*v = c.class(uint8(k), *v)
		default:
			if c.num(bit(*v != 0)) == 0 {
				continue
			}
			from := now
			if m == MeansSending {
				from = clockBase
				if c.sp.red&TimeShift == 0 {
					from = 0
				} else if !c.reading {
					from = c.clock(int(c.refs[refScratch].Node - firstClient))
				}
			}
			*v = c.instant(*v, from, c.past(false, 0))
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
	c.bears(token, c.refs[refHolder])
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
			w.monitor.RememberActing(cl.term, cl.token)
		}
	}
	if sp.lockstep {
		c.spec.Owner = c.refs[refSpec]
		w.lease.Issued = token
		w.lease.Remember(c.spec)
		w.guard = model.StorageSpec{Highest: uint64(w.storage.Highest), Values: w.storage.Values}
	}
}
