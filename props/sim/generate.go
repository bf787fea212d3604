package sim

import (
	"math"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// Source is where choices come from: rapid in tests, a seeded generator in the
// command, the fuzzer's bytes in a fuzz target. One number is drawn for each
// configuration and for each action.
type Source interface {
	Uint64() uint64
}

// Profile says what a random run may contain: how often each kind of action
// is chosen, against the others. Kinds of weight zero never are.
type Profile struct {
	Name    string
	Weights [kinds]uint16
	// StoreStays keeps the store from crashing, where it is known to forget all
	// with its process.
	StoreStays bool
	// Calm ends the run with fair time, in which somebody must come to lead,
	// then lets the leader resign, and waits for a leader once more.
	Calm bool
}

// Chaos is well-behaved clients under every fault: loss, duplication,
// reordering, pauses, drift inside the bound, crashes, cut links.
func Chaos() Profile {
	return Profile{Name: "chaos", Calm: true, Weights: [kinds]uint16{
		Advance: 110, Tick: 220, Deliver: 420, Drop: 40, Duplicate: 25, Get: 6, Read: 12, Put: 150, WorkBegin: 20, WorkEnd: 20, Resign: 14,
		Pause: 16, Suspend: 6, Freeze: 2, Resume: 40, Crash: 12, Restart: 30, Drift: 16, Jump: 6, Delete: 1, Cut: 8, Heal: 8,
	}}
}

// Raw is Chaos and, besides, parties that send what no client would: stale
// and forged tokens, wrong holders, odd TTLs.
func Raw() Profile {
	p := Chaos()
	p.Name = "raw"
	for k, weight := range map[Kind]uint16{Acquire: 14, Renew: 16, Release: 14, Write: 24, Fence: 8, Get: 10} {
		p.Weights[k] = weight
	}
	return p
}

// rng is splitmix64: the choices inside one action, from the one number drawn
// for it.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n is below limit, which is small: the bias is nothing.
func (r *rng) n(limit int) int { return int(r.next() >> 33 % uint64(limit)) }

func (r *rng) oneIn(k int) bool { return r.n(k) == 0 }

func pick[T any](r *rng, of ...T) T { return of[r.n(len(of))] }

// RandomConfig draws a set-up. All its durations are whole milliseconds, so
// that clock readings are exact at every rate in parts per million.
func RandomConfig(src Source) Config {
	r := rng(src.Uint64())
	ttl := pick(&r, time.Second, 1500*time.Millisecond, 2*time.Second, 5*time.Second, 10*time.Second)
	c := Config{
		Clients: pick(&r, 2, 2, 2, 3, 3, 1),
		Lease: lease.Config{
			TTL:          ttl,
			MaxDriftRate: pick(&r, 0, 0.01, 0.05, 0.25),
			SafetyMargin: pick(&r, 0, ttl/100, ttl/10),
			LockDelay:    pick(&r, 0, 0, 0, ttl/4, ttl),
			Barrier:      r.oneIn(2),
		},
		FirstToken: pick[uint64](&r, 1, 1, 33),
		Messages:   pick(&r, MaxMessages, MaxMessages, 8),
	}
	c.Lease.RetryInterval = pick(&r, 0, ttl/20, ttl/5)
	for i := range MaxClients {
		if r.oneIn(4) {
			c.Offsets[ClientNode(i)] = time.Duration(r.n(120_000)-60_000) * time.Millisecond
		}
	}
	return c
}

// generator chooses actions that do something where the World stands.
type generator struct {
	profile *Profile
	total   int
	e       int64 // ppm that a clock may be off
}

func newGenerator(p *Profile, c *Config) generator {
	g := generator{profile: p}
	for _, w := range p.Weights {
		g.total += int(w)
	}
	rho := c.Lease.MaxDriftRate
	g.e = int64(math.Floor(million * rho / (2 - rho)))
	return g
}

// Generate draws a schedule of steps actions, and then the calm if the profile
// has one, by running it against subject: what is enabled depends on the
// state. each sees every action just before it is applied and ends the
// schedule by returning false; nil sees none.
func Generate(src Source, p *Profile, w *World, steps int, each func(*World, *Action) bool) []Action {
	return AppendGenerated(nil, src, p, w, steps, each)
}

// AppendGenerated is Generate with the actions appended to dst.
func AppendGenerated(dst []Action, src Source, p *Profile, w *World, steps int, each func(*World, *Action) bool) []Action {
	g := newGenerator(p, &w.setup.cfg)
	id := int32(0)
	do := func(a Action) bool {
		id++
		a.ID = id
		dst = append(dst, a)
		last := &dst[len(dst)-1]
		if each != nil && !each(w, last) {
			return false
		}
		w.Apply(last)
		return w.violated == 0
	}
	for range steps {
		r := rng(src.Uint64())
		if !do(g.next(w, &r, int64(id)+1)) {
			return dst
		}
	}
	if !p.Calm {
		return dst
	}
	calm := func() Action {
		r := rng(src.Uint64())
		return calmFor(&w.setup.cfg, &r)
	}
	if !do(calm()) {
		return dst
	}
	for i := range w.setup.cfg.Clients {
		if c := &w.clients[i]; c.acting && c.phase == lease.Leading {
			if !do(Action{Kind: Resign, Who: ClientNode(i)}) || !do(calm()) {
				return dst
			}
			break
		}
	}
	return dst
}

// calmFor is a calm in which somebody must come to lead: its ticks and delays
// are any that leave the window time for a renewal, 4 delays and a tick, and
// the network room for all requests. It is
// long enough for every bound the monitor can set, with the TTLs that generated
// raw requests have.
func calmFor(c *Config, r *rng) Action {
	w, grid := c.Lease.SafeWindow(), time.Millisecond
	every := max(w*time.Duration(1+r.n(16))/32/grid*grid, grid)
	delay := max(w-every-1, 0) / 4 * time.Duration(1+r.n(16)) / 16
	for delay > 0 && !c.roomy(delay, every) {
		delay /= 2
	}
	return Action{Kind: Calm, D: 4*(2*c.Lease.TTL+c.Lease.LockDelay+c.Lease.Retry()) + 4*w, Delay: delay / grid * grid, Every: every}
}

// next chooses an action. It tries kinds by weight until one is enabled; that
// time passes always is.
func (g *generator) next(w *World, r *rng, value int64) Action {
	for range 12 {
		at := r.n(g.total)
		kind := KindNone
		for at >= 0 {
			kind++
			at -= int(g.profile.Weights[kind])
		}
		if a, ok := g.try(w, r, kind, value); ok {
			return a
		}
	}
	return g.advance(w, r)
}

func (g *generator) try(w *World, r *rng, kind Kind, value int64) (a Action, ok bool) {
	a.Kind = kind
	clients := w.setup.cfg.Clients
	i := r.n(clients)
	c, n := &w.clients[i], &w.nodes[ClientNode(i)]
	a.Who = ClientNode(i)
	switch kind {
	case Advance:
		return g.advance(w, r), true
	case Tick:
		for k := range clients {
			j := (i + k) % clients
			n := &w.nodes[ClientNode(j)]
			if n.up() && w.clients[j].Wake() <= n.clocks().Boot && (w.clients[j].phase != lease.Campaigning || !w.clients[j].State().Working) {
				a.Who = ClientNode(j)
				return a, true
			}
		}
		return a, false
	case Deliver, Drop, Duplicate:
		if w.nmsgs == 0 {
			return a, false
		}
		a.Who = 0
		m := &w.msgs[r.n(w.nmsgs)]
		if kind == Deliver && r.oneIn(2) {
			m = &w.msgs[w.nmsgs-1] // the latest, or nearly: were all answers late, hardly anybody would lead
		}
		a.Msg = m.id
		switch kind {
		case Deliver:
			return a, !w.cut(m.from, m.to) && w.nodes[m.to].stopped == KindNone
		case Duplicate:
			return a, w.nmsgs < w.setup.cfg.messages()
		}
		return a, true
	case Put:
		if !n.up() {
			return a, false
		}
		_, ok = w.setup.subject.Client.Write(&c.ClientState, n.clocks(), &w.store.Record)
		a.Key, a.Value = uint8(r.n(2)), value
		return a, ok
	case WorkBegin:
		return a, n.up() && c.acting && c.phase == lease.Leading && !c.State().Working
	case WorkEnd:
		return a, n.up() && c.State().Working
	case Resign:
		return a, n.up() && (c.phase == lease.Leading || c.phase == lease.Fencing) && n.clocks().Boot < c.State().Deadline
	case Pause, Suspend, Freeze, Crash:
		a.Who = g.machine(w, r, kind == Crash || r.oneIn(4))
		return a, w.nodes[a.Who].up() && !(kind == Crash && a.Who == StoreNode && g.profile.StoreStays)
	case Resume, Restart:
		for k := range model.MaxNodes {
			n := model.Node((i + k) % model.MaxNodes)
			if nd := &w.nodes[n]; kind == Restart && nd.crashed || kind == Resume && nd.stopped != KindNone {
				a.Who = n
				return a, true
			}
		}
		return a, false
	case Drift:
		a.Who = g.machine(w, r, true)
		a.Rate = pick(r, million-g.e, million, million+g.e, million-g.e+int64(r.n(int(2*g.e+1))))
		return a, w.nodes[a.Who].rate != a.Rate
	case Jump:
		a.Who = g.machine(w, r, true)
		a.D = time.Duration(1+r.n(60_000)-30_000) * time.Millisecond
		return a, a.D != 0
	case Delete:
		a.Who = 0
		return a, w.nodes[StoreNode].up() && w.tenure.owner != model.Owner{}
	case Cut:
		a.Peer = pick(r, StoreNode, StoreNode, StorageNode)
		return a, !w.cut(a.Who, a.Peer)
	case Heal:
		a.Who = 0
		return a, w.cuts != ([model.MaxNodes]uint16{})
	}
	return g.raw(w, r, a, value)
}

// machine is a client, or with others a store or storage too.
func (g *generator) machine(w *World, r *rng, others bool) model.Node {
	n := w.setup.cfg.Clients
	if others {
		n += 2
	}
	switch i := r.n(n); {
	case i < w.setup.cfg.Clients:
		return ClientNode(i)
	case i == w.setup.cfg.Clients:
		return StoreNode
	}
	return StorageNode
}

// raw completes a raw request. It never names a client's live holder together
// with its token: that would be the client.
func (g *generator) raw(w *World, r *rng, a Action, value int64) (Action, bool) {
	last := w.tenure.token
	if kind := a.Kind; kind != Get && kind != Read || r.oneIn(2) {
		a.Who = RawNode(r.n(MaxRaw))
	}
	if !w.nodes[a.Who].up() {
		return a, false
	}
	a.Key = 0
	near := func() uint64 {
		t := last + 1 - uint64(pick(r, 1, 1, 1, 2, 2, 3))
		if r.oneIn(24) {
			t = last + 1 + uint64(r.n(3))
		}
		if t > maxToken {
			t = 0
		}
		return t
	}
	ttl := w.setup.cfg.Lease.TTL
	switch a.Kind {
	case Acquire:
		a.TTL = pick(r, ttl, ttl/2, 2*ttl, time.Millisecond, 0)
		if r.oneIn(3) {
			a.As = g.stranger(w, r)
		}
	case Renew, Release:
		a.Token = near()
		if a.Kind == Renew {
			a.TTL = pick(r, ttl, ttl/2, 2*ttl, time.Millisecond, 0)
		}
		switch r.n(3) {
		case 0:
			a.As = g.stranger(w, r)
		case 1:
			i := r.n(w.setup.cfg.Clients)
			st := w.clients[i].State()
			// A token that the holder may yet be granted is as good as its own.
			if a.As = ownerOf(st.Holder); a.Token >= uint64(st.Token) || w.clients[i].phase == lease.Campaigning {
				a.As.Seq += 1000
			}
		}
	case Write:
		a.Token, a.Key, a.Value = near(), uint8(r.n(2)), value
	case Fence:
		a.Token = near()
	case Read:
		a.Key = uint8(r.n(2))
	}
	return a, true
}

// stranger is an identity that no client uses now: another raw party, or an
// earlier incarnation of a client.
func (g *generator) stranger(w *World, r *rng) model.Owner {
	if r.oneIn(2) {
		return model.Owner{Node: RawNode(r.n(MaxRaw)), Seq: uint32(1 + r.n(2))}
	}
	o := ownerOf(w.clients[r.n(w.setup.cfg.Clients)].State().Holder)
	if o.Seq--; o.Seq == 0 {
		o.Seq = 1000
	}
	return o
}

// advance is a passage of time, often just to the next instant at which
// something ends or is due, where off-by-ones live.
func (g *generator) advance(w *World, r *rng) Action {
	cfg := &w.setup.cfg.Lease
	var d time.Duration
	switch r.n(10) {
	case 0, 1, 2, 3:
		d = g.due(w)
	case 4, 5, 6:
		d = time.Duration(r.next() % uint64(cfg.Retry()))
	case 7, 8:
		d = time.Duration(r.next() % uint64(cfg.RenewAfter()+1))
	default:
		d = time.Duration(r.next() % uint64(cfg.TTL+cfg.LockDelay+cfg.TTL/5))
	}
	const grid = time.Millisecond
	d = min((d+grid-1)/grid*grid, maxAdvance)
	return Action{Kind: Advance, D: max(d, grid)}
}

// due is how long it takes until the next end of a belief or a tenure, or
// until a client has something to do.
func (g *generator) due(w *World) time.Duration {
	none := [model.MaxNodes]int32{}
	at, _ := w.next(w.now+int64(w.setup.cfg.Lease.TTL), &none)
	for i := range w.setup.cfg.Clients {
		if n := ClientNode(i); w.nodes[n].up() {
			t := w.nodes[n].reach(int64(w.clients[i].Wake()-w.nodes[n].clocks().Boot), w.now, w.rate(n, &none))
			if t > w.now {
				at = min(at, t)
			}
		}
	}
	return time.Duration(at - w.now)
}
