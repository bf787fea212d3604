// Package sim is the deterministic simulation: a World of one store, one
// storage and a few candidates, all running the real code of impl, that
// actions move from state to state. Nothing in it is random and no clock in it
// is real: the same schedule gives the same trace, byte for byte.
//
// It must not know rapid, which registers its flags globally, nor how a
// history is checked; what must hold it leaves to package model.
//
// Start at [Action] for what can happen, [World] for how it happens,
// [Schedule] for the file that replays it and [Minimize] for making that file
// short.
package sim

import (
	"math"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// MaxMessages bounds the messages in flight; a send beyond it is a loss.
const MaxMessages = 24

// million is the rate of a true clock, in parts per million.
const million = 1_000_000

// maxAdvance keeps clock arithmetic far from overflow.
const maxAdvance = time.Hour

// Options says what a run does besides running.
type Options struct {
	Monitor  bool      // judge the invariants after every event
	Only     model.Set // the invariants to judge; the empty set stands for all
	Lockstep bool      // compare every answer with its specification
	Trace    *Trace    // append every event; nil for none
}

// World is the whole state of a run. Assigning it is a snapshot, but for the
// Trace that both then append to, and for a store that is [Opaque].
type World struct {
	frame

	nodes   [model.MaxNodes]node
	clients [MaxClients]client
	msgs    [MaxMessages]message

	monitor  model.Monitor
	mismatch Mismatch
	counts   Counts
}

// frame is what a World has one of.
type frame struct {
	setup *setup

	now     int64
	store   StoreState
	storage StorageState
	nmsgs   int
	cuts    [model.MaxNodes]uint16

	tenure  tenure
	action  int32
	nextMsg int32
	calming bool

	lease    model.LeaseSpec
	guard    model.StorageSpec
	violated model.Set
	first    model.Violation
}

// setup is what never changes during a run.
type setup struct {
	subject  Subject
	opaque   Opaque // the subject's store, if it is
	steady   bool   // the store's clock goes on while it is down
	cfg      Config
	opts     Options
	delay    time.Duration
	driftPPB uint64
}

// tenure is the lease in the store as the observer last saw it, who looks after
// each request, restart and deletion.
type tenure struct {
	owner   model.Owner // nobody after a release or a deletion
	token   uint64      // the latest issued
	running bool
}

// client is a candidate and what the observer knows of its term.
type client struct {
	ClientState
	acting   bool
	phase    lease.Phase
	term     model.Owner
	token    uint64
	deadline time.Duration
	since    sent // of the request that set the deadline
}

// sent is an instant as the observer keeps it: what the clocks of client and
// store had counted then.
type sent struct{ client, store int64 }

// message is a request or a reply in flight. A reply keeps the request it
// answers.
type message struct {
	id, req  model.Msg
	from, to model.Node
	reply    bool
	copy     bool
	raw      bool // sent by an action that says all that is in it
	op       model.Op
	key      uint8
	code     model.Code
	value    int64
	lease    lease.Request
	answer   lease.Reply
	sent     sent
	due      int64 // while it is calm
}

// NewWorld is a World at the beginning. The error is that of [Config.Validate].
func NewWorld(cfg Config, subject Subject, opts Options) (World, error) {
	if err := cfg.Validate(); err != nil {
		return World{}, err
	}
	return newWorld(newSetup(cfg, subject, opts)), nil
}

func newSetup(cfg Config, subject Subject, opts Options) *setup {
	if cfg.Storage == StorageCompareAndSwap {
		subject.Storage = CompareAndSwap{}
		opts.Lockstep = false // it follows another specification
	}
	opaque, _ := subject.Store.(Opaque)
	if opaque != nil {
		opts.Lockstep = false // the specification knows no more of it than the observer
	}
	return &setup{subject: subject, opaque: opaque, steady: subject.Promise().SteadyClock, cfg: cfg, opts: opts, delay: cfg.Lease.LockDelay,
		driftPPB: uint64(math.Round(cfg.Lease.MaxDriftRate * 1e9))}
}

func newWorld(s *setup) World {
	var w World
	w.begin(s)
	return w
}

// begin makes w the World at the beginning of a run.
func (w *World) begin(s *setup) {
	cfg := &s.cfg
	*w = World{frame: frame{setup: s}}
	for n := range w.nodes {
		off := int64(cfg.Offsets[n])
		w.nodes[n] = node{rate: million, origin: -off, wall: off}
	}
	first := max(cfg.FirstToken, 1)
	w.store.Token = lease.Token(first - 1)
	w.tenure.token = first - 1
	w.lease = model.LeaseSpec{LockDelay: int64(s.delay), Issued: first - 1}
	if s.opts.Monitor {
		mc := model.MonitorConfig{Only: s.opts.Only, First: first, Barrier: cfg.Lease.Barrier,
			Window: int64(cfg.Lease.SafeWindow()), Retry: int64(cfg.Lease.Retry()), LockDelay: int64(s.delay)}
		for n := range names {
			mc.Roles[n] = names[n].Role
		}
		if s.opaque != nil {
			p := s.opaque.Promise()
			mc.Rising, mc.Revival, mc.SteadyClock = p.Tokens == model.TokensRising, p.Revival(), p.SteadyClock
			mc.LockDelay += p.Slack()
		}
		w.monitor = model.NewMonitor(mc)
	}
	if s.opaque != nil {
		s.opaque.Begin(lease.Token(first), w.nodes[StoreNode].clocks())
	}
	for i := range cfg.Clients {
		w.start(ClientNode(i), nil)
	}
}

// Reset puts w back to the beginning of another run with the same set-up.
func (w *World) Reset() { w.begin(w.setup) }

// Now is the real time since the beginning.
func (w *World) Now() time.Duration { return time.Duration(w.now) }

// Violated is the set of invariants that broke first; empty while all hold.
func (w *World) Violated() model.Set { return w.violated }

// First is the first violation.
func (w *World) First() model.Violation { return w.first }

// Waived is the set of invariants broken where they are not promised.
func (w *World) Waived() model.Set { return w.monitor.Waived() }

// Mismatch is what lockstep found, where [model.Lockstep] is violated.
func (w *World) Mismatch() Mismatch { return w.mismatch }

// Counts are what the run did so far.
func (w *World) Counts() *Counts { return &w.counts }

// Bear is the set of clients, by node, that have a token below the given one, or
// have it in a message on its way.
func (w *World) Bear(below lease.Token) (set uint16) {
	note := func(n model.Node, t lease.Token) {
		if 0 < t && t < below {
			set |= 1 << n
		}
	}
	for i := range w.setup.cfg.Clients {
		note(ClientNode(i), w.clients[i].State().Token)
	}
	for i := range w.nmsgs {
		if m := &w.msgs[i]; m.reply {
			note(m.to, m.answer.Token)
		} else {
			note(m.from, m.lease.Token)
		}
	}
	return set
}

// Promised is how long after the beginning of the latest calm some client had
// to lead at the latest; 0: nothing was promised.
func (w *World) Promised() time.Duration { return time.Duration(w.monitor.Promised()) }

// Landed is what the last write to key that landed has put there, as the
// monitor saw it.
func (w *World) Landed(key uint8) int64 { return w.monitor.Memory().Values[key] }

// Value is what the storage holds under key.
func (w *World) Value(key uint8) int64 { return w.storage.Values[key] }

// Record is the lease as the built-in store keeps it, or as the observer
// believes that an [Opaque] one does, and whether it is held now.
func (w *World) Record() (r lease.Record, held bool) {
	_, _, _, held = w.setup.subject.Store.Tenure(&w.store, w.nodes[StoreNode].clocks())
	return w.store.Record, held
}

// Standing is what keeps n from running: [Crash], [Pause], [Suspend], [Freeze],
// or [KindNone].
func (w *World) Standing(n model.Node) Kind {
	if w.nodes[n].crashed {
		return Crash
	}
	return w.nodes[n].stopped
}

// Client is the state of the i-th client, and whether it acts as leader.
func (w *World) Client(i int) (lease.ClientState, bool) {
	return w.clients[i].State(), w.clients[i].acting
}

// Apply does one action and reports whether it was effective. An action that
// makes no sense in this state is a counted no-op. Actions must have passed
// [Schedule.Validate].
func (w *World) Apply(a *Action) bool {
	w.action, w.nextMsg = a.ID, 0
	effective := w.apply(a)
	w.counts.note(a.Kind, effective)
	if w.setup.opaque != nil {
		w.breakDown()
	}
	if w.setup.opts.Lockstep && w.violated == 0 {
		w.compareState()
	}
	return effective
}

func (w *World) apply(a *Action) bool {
	s := w.setup.subject
	switch a.Kind {
	case Advance:
		if a.D <= 0 {
			return false
		}
		w.rates(&a.Rates, true)
		w.advance(int64(a.D), &a.Rates)
		w.rates(&a.Rates, false)
		return true
	case Deliver:
		return w.deliver(a.Msg)
	case Drop:
		i := w.find(a.Msg)
		if i >= 0 {
			w.lose(w.take(i), model.ReasonDropped)
		}
		return i >= 0
	case Duplicate:
		return w.duplicate(a.Msg)
	case Delete:
		if !w.nodes[StoreNode].up() || !s.Store.Delete(&w.store) {
			return false
		}
		w.lease.Delete()
		w.look()
		w.tenure.owner = model.Owner{}
		w.emit(&model.Event{Kind: model.KindDelete, Node: StoreNode})
		return true
	case Heal:
		if w.cuts == ([model.MaxNodes]uint16{}) {
			return false
		}
		w.cuts = [model.MaxNodes]uint16{}
		w.emit(&model.Event{Kind: model.KindHeal})
		return true
	case Calm:
		w.calm(a)
		return true
	}
	if a.Who == 0 || int(a.Who) >= model.MaxNodes {
		return false
	}
	n := &w.nodes[a.Who]
	switch a.Kind {
	case Pause, Suspend, Freeze, Resume, Crash, Restart:
		return w.fault(a.Kind, a.Who, n)
	case Drift:
		if n.rate == a.Rate {
			return false
		}
		n.rate = a.Rate
		w.emit(&model.Event{Kind: model.KindDrift, Node: a.Who, Value: a.Rate})
		return true
	case Jump:
		if a.D == 0 {
			return false
		}
		n.wall += int64(a.D)
		w.emit(&model.Event{Kind: model.KindJump, Node: a.Who, Value: int64(a.D)})
		return true
	case Cut:
		if w.cut(a.Who, a.Peer) {
			return false
		}
		w.cuts[a.Who] |= 1 << a.Peer
		w.cuts[a.Peer] |= 1 << a.Who
		w.emit(&model.Event{Kind: model.KindCut, Node: a.Who, Peer: a.Peer})
		return true
	}
	if !n.up() {
		return false
	}
	switch a.Kind {
	case Acquire, Renew, Release, Get, Write, Read, Fence:
		w.raw(a)
		return true
	case Tick, Put, WorkBegin, WorkEnd, Resign:
		i := int(a.Who) - int(firstClient)
		return i >= 0 && i < w.setup.cfg.Clients && w.act(a, i)
	}
	return false
}

// act lets client i run.
func (w *World) act(a *Action, i int) bool {
	rules, c, now := w.setup.subject.Client, &w.clients[i], w.nodes[a.Who].clocks()
	before, acted := c.ClientState, c.acting
	var out lease.Requests
	switch a.Kind {
	case Tick:
		out = rules.Tick(&c.ClientState, now)
		w.sync(i, nil, model.ReasonLapsed)
	case Put:
		token, ok := rules.Write(&c.ClientState, now, &w.store.Record)
		if !ok {
			return false
		}
		w.send(a.Who, StorageNode, message{op: model.OpWrite, key: a.Key, value: a.Value,
			lease: lease.Request{Holder: c.State().Holder, Token: token, Sent: now.Boot}})
		return true
	case WorkBegin:
		if c.State().Working {
			return false
		}
		if !rules.BeginWork(&c.ClientState, now) {
			w.sync(i, nil, model.ReasonLapsed)
			break
		}
		w.emit(&model.Event{Kind: model.KindWork, Node: a.Who, Owner: c.term, Token: c.token})
	case WorkEnd:
		if !c.State().Working {
			return false
		}
		out = rules.EndWork(&c.ClientState, now)
		w.emit(&model.Event{Kind: model.KindWorkDone, Node: a.Who, Owner: c.term, Token: c.token})
		w.sync(i, nil, model.ReasonResigned)
	case Resign:
		out = rules.Resign(&c.ClientState, now)
		why := model.ReasonLapsed // there may be no term left to give up
		if out.Store.Op == lease.OpRelease || c.State().Phase == lease.Stopping && before.State().Phase != lease.Stopping {
			why = model.ReasonResigned
			w.emit(&model.Event{Kind: model.KindResign, Node: a.Who, Owner: c.term, Token: c.token})
		}
		w.sync(i, nil, why)
	}
	w.sendAll(a.Who, out)
	return c.ClientState != before || out != lease.Requests{} || c.acting != acted
}

// sync tells the observer how client i stands after it ran. from is when the
// request was sent whose answer it got, nil if it got none.
func (w *World) sync(i int, from *sent, why model.Reason) {
	rules, c, n := w.setup.subject.Client, &w.clients[i], ClientNode(i)
	now, st := w.nodes[n].clocks(), c.State()
	acting := rules.Acting(&c.ClientState, now)
	later := st.Deadline > c.deadline
	if st.Deadline != c.deadline || c.phase == lease.Campaigning {
		c.deadline, c.since = st.Deadline, w.counted(n)
		if from != nil {
			c.since = *from
		}
	}
	owner, token := ownerOf(st.Holder), uint64(st.Token)
	fencing := st.Phase == lease.Fencing && c.phase != lease.Fencing
	was := c.phase
	c.phase = st.Phase
	switch {
	case c.acting && !acting:
		c.acting = false
		w.emit(&model.Event{Kind: model.KindStepDown, Node: n, Owner: c.term, Token: c.token, Reason: why})
	case acting && (!c.acting || owner != c.term || token != c.token):
		c.acting, c.term, c.token = true, owner, token
		w.emit(&model.Event{Kind: model.KindLead, Node: n, Owner: owner, Token: token, TTL: int64(st.Deadline - now.Boot), Local: int64(now.Boot)})
	case acting && later:
		w.emit(&model.Event{Kind: model.KindExtend, Node: n, Owner: owner, Token: token, TTL: int64(st.Deadline - now.Boot), Local: int64(now.Boot)})
	}
	switch {
	case fencing:
		c.term, c.token = owner, token
		w.emit(&model.Event{Kind: model.KindFencing, Node: n, Owner: owner, Token: token})
	case was == lease.Fencing && st.Phase == lease.Campaigning:
		w.counts.BarrierFailed++
		w.emit(&model.Event{Kind: model.KindStepDown, Node: n, Owner: c.term, Token: c.token, Reason: why})
	}
}

func (w *World) counted(n model.Node) sent {
	return sent{w.nodes[n].elapsed, w.nodes[StoreNode].elapsed}
}

// start makes client n's process.
func (w *World) start(n model.Node, old *ClientState) {
	i := int(n - firstClient)
	holder := lease.Holder{Node: names[n].Name, Seq: 1, Nonce: uint64(w.nodes[n].boots)}
	w.clients[i] = client{ClientState: w.setup.subject.Client.Start(w.setup.cfg.Lease, holder, w.nodes[n].clocks(), old)}
	w.sync(i, nil, model.ReasonNone)
}

func (w *World) fault(k Kind, who model.Node, n *node) bool {
	e := model.Event{Node: who}
	switch k {
	case Pause, Suspend, Freeze:
		if !n.up() {
			return false
		}
		n.stopped = k
		e.Kind = [...]model.Kind{Pause: model.KindPause, Suspend: model.KindSuspend, Freeze: model.KindFreeze}[k]
	case Resume:
		if n.crashed || n.stopped == KindNone {
			return false
		}
		n.stopped = KindNone
		e.Kind = model.KindResume
	case Crash:
		if n.crashed || names[who].Role == model.RoleRaw {
			return false
		}
		if who == StoreNode && w.setup.opaque != nil {
			w.setup.opaque.Crash(n.clocks())
		}
		n.crashed, n.stopped = true, KindNone
		e.Kind = model.KindCrash
		if c := int(who) - int(firstClient); c >= 0 && c < MaxClients {
			w.clients[c].acting, w.clients[c].phase = false, lease.Campaigning
		}
	case Restart:
		if !n.crashed {
			return false
		}
		w.restart(who, n)
		return true
	}
	w.emit(&e)
	return true
}

func (w *World) restart(who model.Node, n *node) {
	s := w.setup.subject
	n.crashed = false
	n.boots++
	if who != StoreNode || !w.setup.steady {
		n.origin, n.lost = n.elapsed, 0
	}
	e := model.Event{Kind: model.KindRestart, Node: who, Value: int64(n.boots)}
	switch who {
	case StoreNode:
		now := n.clocks()
		s.Store.Restart(&w.store, now)
		w.lease.Restart(int64(now.Boot))
		if w.look(); w.tenure.running {
			e.Holder = w.tenure.owner
		}
		e.Token = w.tenure.token
		w.emit(&e)
	case StorageNode:
		s.Storage.Restart(&w.storage)
		e.Token = uint64(w.storage.Highest)
		w.emit(&e)
	default:
		w.emit(&e)
		w.start(who, &w.clients[who-firstClient].ClientState)
	}
}
