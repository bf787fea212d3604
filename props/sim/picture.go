package sim

import (
	"fmt"
	"math"
	"math/bits"

	"fencepost/impl/lease"
	"fencepost/model"
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

// keyRoom is more than the longest key takes: of an odd World with all messages in
// flight. To need more is a panic.
const keyRoom = 4096

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
	buf     [keyRoom]byte

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

	tmp [keyRoom]byte // for the longest part of buf
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

// gather takes the picture of the World, and finds what tokens and
// incarnations it refers to.
func (c *codec) gather() {
	sp, w := c.sp, c.w
	c.running, c.mem = w.tenure.running, w.monitor.Memory()
	c.tokens, c.odd = 0, false
	c.gatherStore()
	for i := range sp.clients {
		c.gatherClient(i)
	}
	for i := range w.nmsgs {
		c.gatherMessage(i)
	}
	if sp.red&IncarnationRanks != 0 {
		c.refer(c.refs[:c.nrefs])
	}
	if !sp.tightStorage || !sp.tightStore {
		c.gatherLoose()
	}
	switch {
	case sp.red&TokenRanks == 0:
		c.exact = true
	case sp.flaw == RanksAnything:
		c.exact = false
	}
	c.gatherOdd()
}

// refer notes that something refers to incarnations.
func (c *codec) refer(to []model.Owner) {
	for _, o := range to {
		if o.Node != 0 {
			c.seen[o.Node-firstClient].add(o)
		}
	}
}

func (c *codec) gatherStore() {
	sp, w := c.sp, c.w
	n, r := &w.nodes[StoreNode], &w.store.Record
	now := int64(n.clocks().Boot)
	holder := ownerOf(r.Holder)
	c.rec = ownership{r.Status, uint64(r.Token), int64(r.TTL), int64(r.Expires)}
	rec := &c.rec
	c.shift = max(rec.token, 62) - 62
	if sp.tightStore {
		if !sp.storeCrashes && rec.status == lease.Running && now >= rec.expires {
			rec.status = lease.Lapsed // whether somebody was told of it shows at a restart
		}
		if rec.status == lease.Lapsed && (sp.delay == 0 || !sp.storeCrashes && now >= rec.expires+sp.delay) {
			rec.status = lease.Free
		}
		switch {
		case rec.status != lease.Running:
			holder, rec.ttl = model.Owner{}, 0
			if !c.mem.Held {
				c.mem.Over = true
			}
		case n.crashed:
			rec.expires = now // a restart holds it for the whole TTL anew
		}
	}
	c.refs = [refCount]model.Owner{refHolder: holder, refTenure: w.tenure.owner, refJudged: c.mem.Tenure}
	c.nrefs = refCount
	if sp.tightStore {
		c.refs[refTenure] = holder
		c.nrefs = refTenure // the others are the same, or it is odd
		if !c.mem.Held && c.mem.Over {
			c.refs[refJudged], c.mem.Token = holder, rec.token
		}
	}
	if sp.lockstep {
		c.spec = w.lease.Memory()
		c.refs[refSpec] = c.spec.Owner
	}
	c.exact = rec.token != c.mem.Last || rec.token < uint64(w.storage.Highest) || rec.token < c.mem.Token
	if rec.status == lease.Free {
		holder = model.Owner{} // it was given up: whoever still acts under it says so
	}
	c.token(rec.token, holder)
}

// token notes that something refers to a token, and who may act under it.
func (c *codec) token(t uint64, by model.Owner) {
	n := t - c.shift
	if t > c.rec.token {
		c.exact = true // ranks would not do
	}
	if t == 0 {
		return
	}
	if t <= c.shift || n > 63 {
		if t > c.rec.token {
			return
		}
		panic(fmt.Sprintf("sim: token %d is still referred to 62 grants later", t))
	}
	switch b := &c.bearer[n]; {
	case c.tokens>>n&1 == 0:
		c.tokens |= 1 << n
		*b = by
	case b.Node == 0:
		*b = by
	case by.Node != 0 && *b != by:
		c.odd = true
	}
}

func (c *codec) gatherClient(i int) {
	sp, w := c.sp, c.w
	who := ClientNode(i)
	n, x := &w.nodes[who], w.clients[i].State()
	st := &c.state[i]
	*st = stance{ownerOf(x.Holder), x.Phase, x.Working, uint64(x.Token), int64(x.Deadline), int64(x.NextSend), int64(x.NextFence)}
	if sp.tightClient {
		now := c.clock(i)
		switch {
		case n.crashed:
			// A new process knows nothing of the old one.
			*st = stance{by: model.Owner{Node: who, Boot: math.MaxUint16}}
		case st.phase != lease.Campaigning && now >= st.deadline:
			// The term is over, and whatever the client does next notices it first.
			*st = stance{by: model.Owner{Node: who, Boot: st.by.Boot, Seq: st.by.Seq + 1}, working: st.working, nextSend: now}
		}
	}
	c.seen[i].n, c.seen[i].present = 0, packed(st.by)
	if st.token != 0 {
		c.token(st.token, st.by)
	}
	if !sp.tightClient {
		x := &w.clients[i].Scratch
		for k, m := range sp.setup.subject.Layout.Client {
			switch m {
			case MeansToken:
				c.token(uint64(x.N[k]), model.Owner{})
			case MeansGrant:
				c.token(uint64(x.N[k]), ownerOf(x.Who))
			}
		}
		if x.Who.Node != "" && sp.red&IncarnationRanks != 0 {
			c.seen[i].add(ownerOf(x.Who))
		}
	}
}

// clock is what client i takes for the time.
func (c *codec) clock(i int) int64 {
	n := &c.w.nodes[ClientNode(i)]
	if c.sp.clientClock == BootClock {
		return n.elapsed - n.origin
	}
	return c.sp.clientClock.read(n.clocks())
}

func (n ClockName) read(now Clocks) int64 {
	switch n {
	case MonotonicClock:
		return int64(now.Mono)
	case WallClock:
		return int64(now.Wall)
	}
	return int64(now.Boot)
}

func (c *codec) gatherMessage(i int) {
	m := &c.w.msgs[i]
	n := m.from
	if m.reply {
		n = m.to
	}
	k := int(n) - int(firstClient)
	if k < 0 || k >= c.sp.clients {
		panic("sim: a world with a raw request in flight has no key")
	}
	by := ownerOf(m.lease.Holder)
	c.whose[i], c.by[i] = int8(k), by
	c.dead[i] = m.reply && c.ignored(m, k, by)
	if c.dead[i] {
		return
	}
	switch {
	case !m.reply:
		c.token(uint64(m.lease.Token), by)
	case m.op != model.OpAcquire:
		c.token(uint64(m.answer.Asked), model.Owner{})
		fallthrough
	default:
		if m.answer.Code == lease.CodeGranted {
			c.token(uint64(m.answer.Token), by)
		}
	}
	if c.sp.red&IncarnationRanks != 0 {
		if by.Node != n {
			panic("sim: a client speaks for another; its rules must declare IncarnationRanks unsound")
		}
		c.seen[k].add(by)
	}
}

// ignored reports whether nobody will look at the reply m to client k, now or
// later. Clients of this World never see the answers to writes and reads.
func (c *codec) ignored(m *message, k int, by model.Owner) bool {
	if m.op == model.OpWrite || m.op == model.OpRead || m.op == model.OpGet {
		return true
	}
	if !c.sp.tightClient {
		return false
	}
	st := &c.state[k]
	if by != st.by {
		return true
	}
	switch m.op {
	case model.OpAcquire:
		return m.answer.Code != lease.CodeGranted
	case model.OpRenew:
		return st.phase == lease.Campaigning || uint64(m.answer.Asked) != st.token
	case model.OpFence:
		return st.phase == lease.Campaigning || uint64(m.answer.Asked) != st.token || m.answer.Code == lease.CodeFenced && st.phase != lease.Fencing
	}
	return true
}

// gatherLoose notes what rules that are not built in refer to.
func (c *codec) gatherLoose() {
	w, l := c.w, &c.sp.setup.subject.Layout
	nobody := model.Owner{}
	if !c.sp.tightStorage {
		for _, t := range [...]uint64{uint64(w.storage.Highest), c.mem.Seen, c.mem.Fenced} {
			c.token(t, nobody)
		}
	}
	c.token(c.mem.Token, c.refs[refJudged]) // regranted, it is no new grant to the monitor
	for _, t := range [...]uint64{c.mem.Last, w.tenure.token} {
		c.token(t, nobody)
	}
	c.refs[refScratch] = ownerOf(w.store.Scratch.Who)
	for k := range l.StoreN {
		switch l.StoreN[k] {
		case MeansToken:
			c.token(uint64(w.store.Scratch.N[k]), nobody)
		case MeansGrant:
			c.token(uint64(w.store.Scratch.N[k]), c.refs[refScratch])
		}
		if l.StorageN[k] == MeansToken {
			c.token(uint64(w.storage.Scratch.N[k]), nobody)
		}
	}
	if c.sp.red&IncarnationRanks != 0 {
		c.refer(c.refs[refScratch:])
	}
}

// gatherOdd finds out whether the World has anything that exploration does not
// come to with the built-in rules, and that has room only in an odd key.
func (c *codec) gatherOdd() {
	w, token, mem := c.w, c.rec.token, &c.mem
	for i := 1; i < c.sp.used(); i++ {
		if n := &w.nodes[i]; n.rate != million || n.fraction != 0 || w.cuts[i] != 0 {
			c.odd = true
		}
	}
	if c.sp.tightStorage && mem.Seen != uint64(w.storage.Highest) || mem.Forged || mem.Short != 0 ||
		w.tenure.token != token || mem.Last != token || mem.Token != token || c.sp.tightStore && c.refs[refJudged] != c.refs[refHolder] {
		c.odd = true
	}
	for rest := c.tokens; rest != 0 && !c.odd; rest &= rest - 1 {
		t := bits.TrailingZeros64(rest)
		if o := c.bearer[t]; o.Node != 0 && w.monitor.Owner(uint64(t)+c.shift) != o {
			c.odd = true
		}
	}
	if !c.odd || c.sp.red&IncarnationRanks == 0 {
		return
	}
	c.refer(c.refs[:])
	for _, o := range c.borne() {
		if o.Node != 0 {
			c.seen[o.Node-firstClient].add(o)
		}
	}
}
