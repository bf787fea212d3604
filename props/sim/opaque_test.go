package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// memory is lease.Memory as a process that crashes and comes back from its
// journal.
type memory struct {
	opts  lease.MemoryOptions
	wrap  func(lease.Store) lease.Store
	disk  disk
	clk   *clock.Manual
	boots int
	store lease.Store
}

type disk map[string]lease.Durable

func (d disk) Save(resource string, s lease.Durable) error {
	d[resource] = s
	return nil
}

func live(opts lease.MemoryOptions, wrap func(lease.Store) lease.Store) func() sim.Live {
	return func() sim.Live {
		m := &memory{opts: opts, wrap: wrap, disk: disk{}}
		m.Restart()
		return m
	}
}

func (m *memory) Store() lease.Store      { return m.store }
func (m *memory) Advance(d time.Duration) { m.clk.Advance(d) }
func (m *memory) Resource() string        { return "leader" }
func (m *memory) Close()                  {}

func (m *memory) Restart() {
	m.boots++
	m.clk = clock.NewManual(time.Duration(m.boots) * 77 * time.Hour) // no clock continues another
	opts := m.opts
	opts.State, opts.Journal = maps.Clone(m.disk), m.disk
	store, err := lease.NewMemory(m.clk, opts)
	if err != nil {
		panic(err)
	}
	m.store = store
	if m.wrap != nil {
		m.store = m.wrap(store)
	}
}

// draw runs random schedule number i against subject, for whose store with
// makes a replacement that suits the drawn configuration.
func draw(t *testing.T, i int, subject sim.Subject, with func(sim.Config) sim.StoreRules, change func(*sim.Config)) (sim.World, *sim.Trace) {
	t.Helper()
	src := judge.Source(8, i)
	cfg, p, trace := sim.RandomConfig(src), sim.Raw(), &sim.Trace{}
	p.Weights[sim.Delete] = 20
	change(&cfg)
	if with != nil {
		subject.Store = with(cfg)
	}
	w, err := sim.NewWorld(cfg, subject, sim.Options{Monitor: true, Trace: trace})
	if err != nil {
		t.Fatal(err)
	}
	sim.Generate(src, &p, &w, 120, nil)
	return w, trace
}

// differ shows where two traces part.
func differ(a, b *sim.Trace) string {
	for i := range min(len(a.Events), len(b.Events)) {
		if x, y := &a.Events[i], &b.Events[i]; *x != *y {
			return fmt.Sprintf("event %d\n%s\n%s\n%+v\n%+v", i, sim.Line(x), sim.Line(y), *x, *y)
		}
	}
	return fmt.Sprintf("%d events and %d", len(a.Events), len(b.Events))
}

// The same rules behind an interface that tells nothing but its answers are
// the same to the World, to the byte: also for a storage that asks the lease
// itself, and for a client that looks at the store's record.
func TestAStoreKnownByItsAnswersAloneGivesTheSameTrace(t *testing.T) {
	launderer, err := mutant.Subject("mutant:token-laundering")
	if err != nil {
		t.Fatal(err)
	}
	memory := func(cfg sim.Config) sim.StoreRules {
		o := lease.MemoryOptions{LockDelay: cfg.Lease.LockDelay, FirstToken: lease.Token(max(cfg.FirstToken, 1))}
		return sim.NewOpaqueStore(live(o, nil), model.Promise{LockDelay: int64(cfg.Lease.LockDelay)})
	}
	for name, c := range map[string]struct {
		subject sim.Subject
		change  func(*sim.Config)
		broken  model.Set // by the subject, whatever its store
	}{
		"guarded":                   {sim.Builtin(), func(*sim.Config) {}, 0},
		"compare-and-swap":          {sim.Builtin(), func(c *sim.Config) { c.Storage = sim.StorageCompareAndSwap }, 0},
		"laundered":                 {launderer, func(*sim.Config) {}, model.SetOf(model.Attribution)},
		"laundered, compared first": {launderer, func(c *sim.Config) { c.Storage = sim.StorageCompareAndSwap }, model.SetOf(model.Attribution)},
	} {
		t.Run(name, func(t *testing.T) {
			violated, restarts, lapses := 0, int64(0), 0
			for i := range opaqueRuns {
				a, ta := draw(t, i, c.subject, nil, c.change)
				b, tb := draw(t, i, c.subject, memory, c.change)
				if !slices.Equal(ta.Events, tb.Events) {
					t.Fatalf("schedule %d: %s", i, differ(ta, tb))
				}
				if a.Violated() != b.Violated() || a.Violated()&^c.broken != 0 {
					t.Fatalf("schedule %d: violated %v built in, %v by its answers", i, a.Violated(), b.Violated())
				}
				if a.Violated() != 0 {
					violated++
				}
				restarts += b.Counts().StoreRestarts
				lapses += int(b.Counts().StepDown[model.ReasonLapsed])
			}
			if c.broken != 0 && violated == 0 && opaqueRuns >= 100 || restarts == 0 || lapses == 0 {
				t.Errorf("%d violations, %d restarts of the store, %d lapses: not put to the test", violated, restarts, lapses)
			}
		})
	}
}

func TestTheSameSeedGivesTheSameTraceWithOneStoreAfterAnother(t *testing.T) {
	made := 0
	subject := sim.Builtin()
	store := sim.NewOpaqueStore(func() sim.Live {
		made++
		return live(lease.MemoryOptions{}, nil)()
	}, model.Promise{})
	defer store.Close()
	plain := func(c *sim.Config) { c.Lease.LockDelay = 0 }
	for i := range 20 {
		_, a := draw(t, i, subject, func(sim.Config) sim.StoreRules { return store }, plain)
		_, b := draw(t, i, subject, func(sim.Config) sim.StoreRules { return store }, plain)
		if !slices.Equal(a.Events, b.Events) {
			t.Fatalf("schedule %d: %s", i, differ(a, b))
		}
	}
	if made != 40 {
		t.Errorf("%d stores for 40 runs", made)
	}
}

// renumbered is a store whose tokens are others.
type renumbered struct {
	*lease.Memory
	to   func(lease.Token) lease.Token
	from func(lease.Token) lease.Token
}

func (r renumbered) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := r.Memory.Acquire(ctx, resource, h, ttl)
	g.Token = r.to(g.Token)
	return g, r.named(err)
}

func (r renumbered) Renew(ctx context.Context, resource string, h lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	g, err := r.Memory.Renew(ctx, resource, h, r.from(token), ttl)
	g.Token = r.to(g.Token)
	return g, r.named(err)
}

func (r renumbered) Release(ctx context.Context, resource string, h lease.Holder, token lease.Token) error {
	return r.named(r.Memory.Release(ctx, resource, h, r.from(token)))
}

func (r renumbered) Get(ctx context.Context, resource string) (lease.Observation, error) {
	o, err := r.Memory.Get(ctx, resource)
	o.Token = r.to(o.Token)
	return o, err
}

func (r renumbered) named(err error) error {
	if e, ok := errors.AsType[*lease.HeldError](err); ok {
		e.Token = r.to(e.Token)
	}
	if e, ok := errors.AsType[*lease.LostError](err); ok {
		e.Latest = r.to(e.Latest)
	}
	return err
}

// Which numbers a store issues is its own affair: a run with one whose tokens
// lie far apart, or begin high, differs in nothing.
func TestTokensAreNumberedAsTheWorldKnowsThem(t *testing.T) {
	const far = 1_000_003
	for name, c := range map[string]struct {
		promise model.Promise
		to      func(lease.Token) lease.Token
		from    func(lease.Token) lease.Token
	}{
		"far apart": {model.Promise{Tokens: model.TokensRising}, func(t lease.Token) lease.Token { return t * far }, func(t lease.Token) lease.Token {
			if t%far != 0 {
				return 1 << 60 // of nobody
			}
			return t / far
		}},
		"high": {model.Promise{}, func(t lease.Token) lease.Token {
			if t == 0 {
				return 0
			}
			return t + far<<40
		}, func(t lease.Token) lease.Token {
			if t < far<<40 {
				return t
			}
			return t - far<<40
		}},
	} {
		t.Run(name, func(t *testing.T) {
			plain := func(c *sim.Config) { c.Lease.LockDelay, c.FirstToken = 0, 1 }
			wrap := func(s lease.Store) lease.Store { return renumbered{s.(*lease.Memory), c.to, c.from} }
			store := sim.NewOpaqueStore(live(lease.MemoryOptions{}, wrap), c.promise)
			defer store.Close()
			for i := range opaqueRuns {
				_, a := draw(t, i, sim.Builtin(), nil, plain)
				w, b := draw(t, i, sim.Builtin(), func(sim.Config) sim.StoreRules { return store }, plain)
				if w.Violated() != 0 {
					t.Fatalf("schedule %d: %s", i, w.First().Describe(sim.Names()))
				}
				if !slices.Equal(a.Events, b.Events) {
					t.Fatalf("schedule %d: %s", i, differ(a, b))
				}
			}
		})
	}
}

// failing is a store that fails some calls, after it did as asked.
type failing struct {
	lease.Store
	n *int
}

func (f failing) fails() bool {
	*f.n++
	return *f.n%3 == 0
}

func (f failing) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := f.Store.Acquire(ctx, resource, h, ttl)
	if f.fails() {
		return lease.Grant{}, errors.New("connection reset")
	}
	return g, err
}

func (f failing) Renew(ctx context.Context, resource string, h lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	g, err := f.Store.Renew(ctx, resource, h, token, ttl)
	if f.fails() {
		return lease.Grant{}, errors.New("connection reset")
	}
	return g, err
}

func (f failing) Release(ctx context.Context, resource string, h lease.Holder, token lease.Token) error {
	err := f.Store.Release(ctx, resource, h, token)
	if f.fails() {
		return errors.New("connection reset")
	}
	return err
}

// An error that is no refusal says nothing: the request may have been granted.
func TestAnUnknownOutcomeConvictsNobody(t *testing.T) {
	n := 0
	subject := sim.Builtin()
	store := sim.NewOpaqueStore(live(lease.MemoryOptions{}, func(s lease.Store) lease.Store { return failing{s, &n} }), model.Promise{})
	defer store.Close()
	unanswered, histories := int64(0), 0
	trial := judge.Trial{Subject: subject, Want: judge.All &^ model.SetOf(model.Lockstep, model.Availability),
		Config: func(c *sim.Config) { c.Lease.LockDelay, c.FirstToken = 0, 1 }}
	trial.Subject.Store = store
	p := sim.Raw()
	for i := range opaqueRuns {
		f, err := trial.Run(judge.Source(3, i), &p, 60, 100)
		if err != nil {
			t.Fatal(err)
		}
		if f != nil {
			t.Fatalf("schedule %d: %s", i, f.Result.First.Describe(sim.Names()))
		}
		histories++
	}
	for op := model.OpAcquire; op <= model.OpRelease; op++ {
		unanswered += trial.Counts.Answers[op][model.CodeNone]
	}
	if unanswered < int64(opaqueRuns) {
		t.Errorf("%d unknown outcomes in %d runs: not put to the test", unanswered, histories)
	}
}

type panicking struct {
	lease.Store
}

func (panicking) Release(context.Context, string, lease.Holder, lease.Token) error {
	panic(fmt.Errorf("release: %w", context.Canceled))
}

func TestAPanicIsAViolationAndTold(t *testing.T) {
	store := sim.NewOpaqueStore(live(lease.MemoryOptions{}, func(s lease.Store) lease.Store { return panicking{s} }), model.Promise{})
	defer store.Close()
	subject := sim.Builtin()
	subject.Store = store
	s := sim.Schedule{Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: 10 * time.Second}}, Actions: []sim.Action{
		{ID: 1, Kind: sim.Acquire, Who: sim.RawNode(0), TTL: time.Second},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
		{ID: 3, Kind: sim.Release, Who: sim.RawNode(0), Token: 1},
		{ID: 4, Kind: sim.Deliver, Msg: model.Msg{Action: 3}},
		{ID: 5, Kind: sim.Advance, D: time.Second},
	}}
	r := s.Run(subject, sim.Options{Monitor: true})
	if r.Violated != model.SetOf(model.Lockstep) || r.First.Action != 4 || r.Applied != 4 {
		t.Errorf("violated %v by action %d after %d actions, want lockstep by action 4", r.Violated, r.First.Action, r.Applied)
	}
	if p, ok := errors.AsType[*sim.PanicError](store.Fault()); !ok || !errors.Is(p, context.Canceled) || !strings.Contains(p.Stack, "panicking") {
		t.Errorf("fault: %v", store.Fault())
	}
}

// unshaken is a store to which a restart is nothing.
type unshaken struct{ sim.Live }

func (unshaken) Restart() {}

// A tenure ends on time also while the store is down, and is not back with it.
func TestASteadyClockGoesOnWhileTheStoreIsDown(t *testing.T) {
	store := sim.NewOpaqueStore(func() sim.Live { return unshaken{live(lease.MemoryOptions{}, nil)()} }, model.Promise{SteadyClock: true})
	defer store.Close()
	subject, trace := sim.Builtin(), &sim.Trace{}
	subject.Store = store
	s := sim.Schedule{Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: 10 * time.Second}}, Actions: []sim.Action{
		{ID: 1, Kind: sim.Acquire, Who: sim.RawNode(0), TTL: 10 * time.Second},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
		{ID: 3, Kind: sim.Advance, D: 4 * time.Second},
		{ID: 4, Kind: sim.Crash, Who: sim.StoreNode},
		{ID: 5, Kind: sim.Advance, D: 7 * time.Second},
		{ID: 6, Kind: sim.Restart, Who: sim.StoreNode},
		{ID: 7, Kind: sim.Acquire, Who: sim.RawNode(1), TTL: 10 * time.Second},
		{ID: 8, Kind: sim.Deliver, Msg: model.Msg{Action: 7}},
	}}
	if r := s.Run(subject, sim.Options{Monitor: true, Trace: trace}); r.Violated != 0 {
		t.Errorf("violated %v", r.Violated)
	}
	var lapsed, back, granted bool
	for _, e := range trace.Events {
		switch e.Kind {
		case model.KindLapse:
			lapsed = e.At == int64(10*time.Second) && e.Local == e.At
		case model.KindRestart:
			back = e.At == int64(11*time.Second) && e.Holder == model.Owner{}
		case model.KindHandle:
			granted = e.Code == model.CodeGranted && e.Token == 2 && e.Local == int64(11*time.Second)
		}
	}
	if !lapsed || !back || !granted {
		t.Errorf("lapsed on time %t, back with nothing %t, granted to another then %t", lapsed, back, granted)
	}
}

func TestAnOpaqueStoreIsNotExplored(t *testing.T) {
	o := explore.Default()
	o.Subject.Store = sim.NewOpaqueStore(live(lease.MemoryOptions{}, nil), model.Promise{})
	if err := o.Validate(); !errors.Is(err, explore.ErrOptions) || !strings.Contains(err.Error(), "keeps its state to itself") {
		t.Errorf("got %v", err)
	}
}

// Somebody's store, known by its answers alone, in the World.
func ExampleOpaqueStore() {
	store := sim.NewOpaqueStore(live(lease.MemoryOptions{}, nil), model.Promise{})
	defer store.Close()
	subject := sim.Builtin()
	subject.Name, subject.Store = "mine", store
	s := sim.Schedule{Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: 10 * time.Second}}, Actions: []sim.Action{
		{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)},
		{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
		{ID: 3, Kind: sim.Deliver, Msg: model.Msg{Action: 2}},
	}}
	r := s.Run(subject, sim.Options{Monitor: true})
	_, leads := r.World.Client(0)
	fmt.Println("violated:", r.Violated == 0, "leads:", leads)
	// Output: violated: true leads: true
}
