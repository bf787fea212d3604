package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// The parties of the schedules written by hand.
const (
	c1, c2, c3 = firstClient, firstClient + 1, firstClient + 2
	r1, r2     = firstRaw, firstRaw + 1
)

const sec = time.Second

// plainConfig has numbers to reckon with: TTL and window 10 s, a renewal after
// 2 s, a retry every second; clocks are true.
func plainConfig() Config {
	return Config{Clients: 2, Lease: lease.Config{TTL: 10 * sec, RenewFraction: 0.2, RetryInterval: sec}}
}

// driftConfig has a window of 8 s in a TTL of 10 s.
func driftConfig() Config {
	c := plainConfig()
	c.Lease.MaxDriftRate = 0.2
	return c
}

func barrierConfig() Config {
	c := plainConfig()
	c.Lease.Barrier = true
	return c
}

// The actions, in the order of the kinds. Ids are given by position.

func advance(d time.Duration) Action { return Action{Kind: Advance, D: d} }
func tick(n model.Node) Action       { return Action{Kind: Tick, Who: n} }
func deliver(action, n int32) Action { return onMessage(Deliver, action, n) }
func drop(action, n int32) Action    { return onMessage(Drop, action, n) }
func copyOf(action, n int32) Action  { return onMessage(Duplicate, action, n) }
func on(k Kind, n model.Node) Action { return Action{Kind: k, Who: n} }
func put(n model.Node, v int64) Action {
	return Action{Kind: Put, Who: n, Value: v}
}
func cutLink(a, b model.Node) Action { return Action{Kind: Cut, Who: a, Peer: b} }
func driftTo(n model.Node, ppm int64) Action {
	return Action{Kind: Drift, Who: n, Rate: ppm}
}
func onMessage(k Kind, action, n int32) Action {
	return Action{Kind: k, Msg: model.Msg{Action: action, N: n}}
}
func rawAcquire(n model.Node, ttl time.Duration) Action {
	return Action{Kind: Acquire, Who: n, TTL: ttl}
}

// elected are three actions after which C1 leads under the first token, with
// the whole window before it: the request, its arrival, the reply's.
func elected() []Action { return []Action{tick(c1), deliver(1, 0), deliver(2, 0)} }

func then(actions []Action, more ...Action) []Action {
	return append(actions[:len(actions):len(actions)], more...)
}

// number gives the actions their ids by position.
func number(actions []Action) []Action {
	for i := range actions {
		actions[i].ID = int32(i + 1)
	}
	return actions
}

// run is a World that a test moves by hand, with everything judged and
// recorded.
type run struct {
	World
	t     *testing.T
	trace *Trace
	id    int32
}

func newRun(t *testing.T, cfg Config, actions ...Action) *run {
	t.Helper()
	return newRunOf(t, cfg, Builtin(), actions...)
}

func newRunOf(t *testing.T, cfg Config, subject Subject, actions ...Action) *run {
	t.Helper()
	s := Schedule{Config: cfg, Actions: number(actions)}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, trace: &Trace{}}
	var err error
	if r.World, err = NewWorld(cfg, subject, Options{Monitor: true, Lockstep: true, Trace: r.trace}); err != nil {
		t.Fatal(err)
	}
	for i := range actions {
		r.do(actions[i])
	}
	return r
}

// do applies a, with the next id, and reports whether it did anything.
func (r *run) do(a Action) bool {
	r.id++
	a.ID = r.id
	return r.Apply(&a)
}

// holds fails the test if an invariant broke.
func (r *run) holds() {
	r.t.Helper()
	if v := r.First(); v.Invariant != model.NoInvariant {
		r.t.Errorf("%v broke: %s\n%s", v.Invariant, v.Describe(Names()), r.text())
	}
}

func (r *run) leads(i int) bool {
	_, acting := r.Client(i)
	return acting
}

// of are the events of a kind.
func (r *run) of(k model.Kind) (events []model.Event) {
	for _, e := range r.trace.Events {
		if e.Kind == k {
			events = append(events, e)
		}
	}
	return events
}

// last is the latest event of a kind; the test fails where there is none.
func (r *run) last(k model.Kind) model.Event {
	r.t.Helper()
	events := r.of(k)
	if len(events) == 0 {
		r.t.Fatalf("no %v in\n%s", k, r.text())
	}
	return events[len(events)-1]
}

func (r *run) text() string { return traceText(r.trace) }

// scrambled is a schedule that nobody drove: every kind, at any time, on any
// party, so that much of it does nothing where it stands. It owes nothing to
// the generator, whose changes must not change it.
func scrambled(seed uint64, steps int) *Schedule {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	of := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	ms := func(limit int) time.Duration { return time.Duration(r.IntN(limit)) * time.Millisecond }
	s := &Schedule{Name: "scrambled", Shows: "nothing in particular", Subject: SubjectBuiltin}
	c := &s.Config
	*c = Config{Clients: 1 + r.IntN(MaxClients), FirstToken: uint64(r.IntN(3)) * 16, Messages: r.IntN(3) * 6}
	c.Lease = lease.Config{TTL: of(sec, 1500*time.Millisecond, 5*sec), MaxDriftRate: float64(r.IntN(3)) * 0.07, SafetyMargin: ms(50),
		RenewFraction: float64(r.IntN(4)) * 0.23, RetryInterval: ms(400), LockDelay: ms(2) * ms(3) * 500, Barrier: r.IntN(2) == 0}
	if r.IntN(4) == 0 {
		c.Storage = StorageCompareAndSwap
	}
	c.Offsets[1+r.IntN(4)] = ms(90_000) - 45*sec
	client := func() model.Node { return ClientNode(r.IntN(c.Clients)) }
	party := func() model.Node {
		if r.IntN(2) == 0 {
			return client()
		}
		return RawNode(r.IntN(MaxRaw))
	}
	node := func() model.Node {
		switch r.IntN(4) {
		case 0:
			return StoreNode
		case 1:
			return StorageNode
		}
		return party()
	}
	for id := int32(1); int(id) <= steps; id++ {
		a := Action{ID: id, Kind: Kind(1 + r.IntN(int(kinds)-1))}
		switch r.IntN(4) { // else hardly anything would come about
		case 0:
			a.Kind = Tick
		case 1, 2:
			a.Kind = Deliver
		}
		if a.Kind == Calm && r.IntN(8) > 0 {
			a.Kind = Advance
		}
		f := fields[a.Kind].required | fields[a.Kind].optional
		switch a.Kind {
		case Tick, Put, WorkBegin, WorkEnd, Resign:
			a.Who = client()
		case Acquire, Renew, Release, Get, Write, Read, Fence:
			a.Who = party()
		case Cut:
			a.Who, a.Peer = client(), StoreNode+model.Node(r.IntN(2))
		default:
			if f&fieldWho != 0 {
				a.Who = node()
			}
		}
		if f&fieldAs != 0 && r.IntN(2) == 0 {
			a.As = model.Owner{Node: party(), Seq: uint32(1 + r.IntN(3)), Boot: uint16(r.IntN(2))}
		}
		if f&fieldMsg != 0 {
			a.Msg = model.Msg{Action: max(id-1-int32(r.IntN(5)), 1), N: int32(r.IntN(5) / 4)}
		}
		if f&fieldToken != 0 {
			a.Token = c.FirstToken + uint64(r.IntN(6))
		}
		if f&fieldKey != 0 {
			a.Key = uint8(r.IntN(model.Keys))
		}
		if f&fieldValue != 0 {
			a.Value = r.Int64()
		}
		if f&fieldD != 0 {
			a.D = of(0, c.Lease.TTL, c.Lease.SafeWindow(), c.Lease.Retry(), ms(3000), time.Duration(r.IntN(1_000_000_000)))
		}
		if f&fieldTTL != 0 {
			a.TTL = of(c.Lease.TTL, c.Lease.TTL/2, time.Millisecond, 0, -sec)
		}
		if f&fieldRate != 0 {
			a.Rate = int64(1 + r.IntN(2*million))
		}
		if f&fieldRates != 0 && r.IntN(3) == 0 {
			a.Rates[client()] = int32(1 + r.IntN(2*million))
		}
		if f&fieldDelay != 0 {
			a.Delay, a.Every = ms(100), ms(100)
			for a.Delay > 0 && !c.roomy(a.Delay, a.every()) {
				a.Delay /= 2
			}
		}
		if r.IntN(16) == 0 {
			a.Note = "5 < 6 & a \"word\"\twith\nall of ümlaut"
		}
		s.Actions = append(s.Actions, a)
	}
	return s
}

// generated is a schedule that the generator drew against the builtin subject.
func generated(t testing.TB, p Profile, seed uint64, steps int) *Schedule {
	t.Helper()
	src := rand.NewPCG(seed, 1)
	cfg := RandomConfig(src)
	w, err := NewWorld(cfg, Builtin(), Options{Monitor: true, Lockstep: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &Schedule{Name: p.Name, Subject: SubjectBuiltin, Config: cfg, Actions: Generate(src, &p, &w, steps, nil)}
	if v := w.First(); v.Invariant != model.NoInvariant {
		t.Fatalf("%s, seed %d: %s\n%+v", p.Name, seed, v.Describe(Names()), w.Mismatch())
	}
	return s
}
