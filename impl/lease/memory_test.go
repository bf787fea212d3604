package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
)

func newMemory(t testing.TB, clk clock.Clock, opts MemoryOptions) *Memory {
	t.Helper()
	m, err := NewMemory(clk, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// outcome is an answer of a Store in a form to compare.
type outcome struct {
	Grant       Grant
	Observation Observation
	Err         error
}

func ask(ctx context.Context, s Store, resource string, req Request) (o outcome) {
	switch req.Op {
	case OpAcquire:
		o.Grant, o.Err = s.Acquire(ctx, resource, req.Holder, req.TTL)
	case OpRenew:
		o.Grant, o.Err = s.Renew(ctx, resource, req.Holder, req.Token, req.TTL)
	case OpRelease:
		o.Err = s.Release(ctx, resource, req.Holder, req.Token)
	case OpGet:
		o.Observation, o.Err = s.Get(ctx, resource)
	}
	return o
}

// wanted is the outcome that a reply stands for.
func wanted(resource string, rep Reply) (o outcome) {
	if o.Err = rep.Err(resource); o.Err != nil {
		return o
	}
	switch rep.Op {
	case OpAcquire, OpRenew:
		o.Grant = Grant{resource, rep.Holder, rep.Token, rep.TTL}
	case OpGet:
		o.Observation = Observation{resource, rep.Current, rep.Token, rep.Remaining}
	}
	return o
}

// Over random requests, restarts and deletions on several resources, each answer
// and all durable state are those of one Record for each resource.
func TestMemoryRunsExactlyTheRules(t *testing.T) {
	const delay = 3
	resources := []string{"a", "b", "c"}
	seen := map[Code]int{}
	restarts := 0
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		clk := clock.NewManual(0)
		journal := &mapJournal{}
		opts := MemoryOptions{LockDelay: delay, FirstToken: 5, Journal: journal}
		m := newMemory(t, clk, opts)
		records := map[string]Record{}
		for _, r := range resources {
			records[r] = Record{Durable: Durable{Token: 4}}
		}
		for step := range 500 {
			clk.Advance(time.Duration(rnd.IntN(4)))
			resource := resources[rnd.IntN(len(resources))]
			r := records[resource]
			where := fmt.Sprintf("seed %d, step %d, %s", seed, step, resource)
			switch k := rnd.IntN(40); k {
			case 0:
				clk = clock.NewManual(time.Duration(rnd.IntN(100)))
				opts.State = journal.state
				m = newMemory(t, clk, opts)
				for name, r := range records {
					records[name] = Restore(r.Durable, clk.Now())
				}
				restarts++
			case 1:
				if err := m.Delete(t.Context(), resource); err != nil {
					t.Fatal(err)
				}
				records[resource] = r.Delete()
			default:
				req := Request{
					Op:     Op(1 + rnd.IntN(4)),
					Holder: []Holder{alice, alice2, bob, {}}[rnd.IntN(4)],
					Token:  r.Token - min(r.Token, Token(rnd.IntN(2))),
					TTL:    time.Duration(rnd.IntN(9)),
				}
				next, rep := r.Handle(clk.Now(), delay, req)
				records[resource] = next
				seen[rep.Code]++
				diff(t, where, ask(t.Context(), m, resource, req), wanted(resource, rep))
			}
			durable := map[string]Durable{}
			for name, r := range records {
				if r.Token >= 5 { // the first one that can be granted
					durable[name] = r.Durable
				}
			}
			diff(t, where+": durable", m.Durable(), durable)
			diff(t, where+": journal", journal.snapshot(), durable)
			if t.Failed() {
				return
			}
		}
	}
	for _, code := range []Code{CodeGranted, CodeReleased, CodeHeld, CodeDelayed, CodeFree, CodeLapsed, CodeLost, CodeInvalid} {
		if seen[code] < 20 {
			t.Errorf("%v was answered only %d times", code, seen[code])
		}
	}
	if restarts < 50 {
		t.Errorf("only %d restarts", restarts)
	}
}

func TestMemoryCountsTokensOfEachResourceApart(t *testing.T) {
	m := newMemory(t, clock.NewManual(0), MemoryOptions{FirstToken: 100, State: map[string]Durable{"known": {Token: 32}}})
	for resource, want := range map[string]Token{"known": 33, "new": 100, "another": 100} {
		g, err := m.Acquire(t.Context(), resource, alice, sec)
		if err != nil || g != (Grant{resource, alice, want, sec}) {
			t.Errorf("%s: %+v, %v; want token %d", resource, g, err, want)
		}
	}
}

func TestMemoryEndedContextDoesNothing(t *testing.T) {
	journal := &mapJournal{}
	m := newMemory(t, clock.NewManual(0), MemoryOptions{Journal: journal})
	if _, err := m.Acquire(t.Context(), "db", alice, sec); err != nil {
		t.Fatal(err)
	}
	before, saves := m.Durable(), journal.saves
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, req := range []Request{acquire(bob, sec), acquire(alice, 60*sec), renew(alice, 1, 60*sec), release(alice, 1), {Op: OpGet}} {
		for _, resource := range []string{"db", "another"} {
			if o := ask(ctx, m, resource, req); !errors.Is(o.Err, context.Canceled) || o.Grant != (Grant{}) {
				t.Errorf("%v of %s: %+v, want nothing but that the context ended", req.Op, resource, o)
			}
		}
	}
	if err := m.Delete(ctx, "db"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
	diff(t, "durable", m.Durable(), before)
	diff(t, "saves", journal.saves, saves)
}

// The context ends while the call waits for another one's journal.
func TestMemoryContextEndedWhileWaitingDoesNothing(t *testing.T) {
	journal := &mapJournal{enter: make(chan struct{}), leave: make(chan struct{})}
	m := newMemory(t, clock.NewManual(0), MemoryOptions{Journal: journal})
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { m.Acquire(t.Context(), "db", alice, sec) })
	<-journal.enter
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	wg.Go(func() { waiting <- m.Release(ctx, "db", alice, 1) })
	cancel()
	close(journal.leave)
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("release: %v", err)
	}
	wg.Wait()
	diff(t, "status", m.Durable()["db"].Status, Running)
}

func TestMemoryRestartTakesUpWhatWasDurable(t *testing.T) {
	clk := clock.NewManual(1000 * sec)
	m := newMemory(t, clk, MemoryOptions{LockDelay: 3 * sec})
	for _, resource := range []string{"held", "released", "lapsed", "unanswered"} {
		if _, err := m.Acquire(t.Context(), resource, alice, 10*sec); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Release(t.Context(), "released", alice, 1); err != nil {
		t.Fatal(err)
	}
	clk.Advance(9 * sec)
	m.Renew(t.Context(), "held", alice, 1, 10*sec)
	clk.Advance(2 * sec)
	m.Get(t.Context(), "lapsed") // and nobody asks for "unanswered"

	clk = clock.NewManual(0)
	m = newMemory(t, clk, MemoryOptions{LockDelay: 3 * sec, State: m.Durable()})
	for _, c := range []struct {
		resource string
		want     error
	}{
		{"held", &HeldError{"held", alice, 1, 10 * sec}},
		{"unanswered", &HeldError{"unanswered", alice, 1, 10 * sec}},
		{"lapsed", &DelayError{"lapsed", 3 * sec}},
		{"released", nil},
	} {
		g, err := m.Acquire(t.Context(), c.resource, bob, sec)
		diff(t, c.resource, err, c.want)
		if err == nil && g.Token != 2 {
			t.Errorf("%s: token %d after the restart, want 2", c.resource, g.Token)
		}
	}
}

func TestMemoryDeleteKeepsTheCounter(t *testing.T) {
	m := newMemory(t, clock.NewManual(0), MemoryOptions{LockDelay: sec})
	m.Acquire(t.Context(), "db", alice, 10*sec)
	for _, resource := range []string{"db", "db", "never heard of"} {
		if err := m.Delete(t.Context(), resource); err != nil {
			t.Errorf("delete of %s: %v", resource, err)
		}
	}
	_, err := m.Renew(t.Context(), "db", alice, 1, sec)
	diff(t, "renewal", err, error(&LostError{Resource: "db", Holder: alice, Token: 1, Latest: 1}))
	if g, err := m.Acquire(t.Context(), "db", bob, sec); err != nil || g.Token != 2 {
		t.Errorf("after the deletion: %+v, %v; want token 2", g, err)
	}
}

func TestMemoryQuestionsTakeNoMemory(t *testing.T) {
	m := newMemory(t, clock.NewManual(0), MemoryOptions{})
	for i := range 10 {
		name := fmt.Sprint(i)
		m.Get(t.Context(), name)
		m.Renew(t.Context(), name, alice, 1, sec)
		m.Release(t.Context(), name, alice, 1)
		m.Delete(t.Context(), name)
	}
	diff(t, "resources", len(m.entries), 0)
}

func TestMemoryOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	clk := clock.NewManual(0)
	state := func(d Durable) MemoryOptions {
		return MemoryOptions{State: map[string]Durable{"fine": {Token: 1}, "odd": d}}
	}
	for _, c := range []struct {
		clk   clock.Clock
		opts  MemoryOptions
		field string
	}{
		{nil, MemoryOptions{}, "clock"},
		{clk, MemoryOptions{LockDelay: -1}, "LockDelay"},
		{clk, state(Durable{Token: 1, Holder: alice, TTL: sec, Status: 3}), `State["odd"]`},
		{clk, state(Durable{Holder: alice, TTL: sec, Status: Running}), `State["odd"]`},
		{clk, state(Durable{Token: 1, TTL: sec, Status: Running}), `State["odd"]`},
		{clk, state(Durable{Token: 1, Holder: alice, Status: Running}), `State["odd"]`},
		{clk, state(Durable{Token: 1, Holder: alice, TTL: -1, Status: Lapsed}), `State["odd"]`},
	} {
		_, err := NewMemory(c.clk, c.opts)
		if e, ok := errors.AsType[*ConfigError](err); !ok || e.Field != c.field {
			t.Errorf("%+v: %v, want an error about %s", c.opts, err, c.field)
		}
	}
}

// Many candidates at once: every tenure has a token of its own, the tokens are
// 1..n without a gap, and no two tenures overlap.
func TestMemoryGrantsEachTokenOnce(t *testing.T) {
	const candidates, tenures = 8, 200
	m := newMemory(t, clock.NewManual(0), MemoryOptions{Journal: &mapJournal{}})
	var (
		wg     sync.WaitGroup
		held   atomic.Bool
		mu     sync.Mutex
		tokens []Token
	)
	for i := range candidates {
		h := Holder{Node: fmt.Sprint("node", i), Seq: 1, Nonce: 1}
		wg.Go(func() {
			for n := 0; n < tenures; {
				g, err := m.Acquire(t.Context(), "db", h, sec)
				if err != nil {
					if !is[*HeldError](err) {
						t.Error(err)
						return
					}
					continue
				}
				if held.Swap(true) {
					t.Errorf("%v holds it beside another", h)
				}
				mu.Lock()
				tokens = append(tokens, g.Token)
				mu.Unlock()
				held.Store(false)
				if err := m.Release(t.Context(), "db", h, g.Token); err != nil {
					t.Error(err)
					return
				}
				h, n = h.Next(), n+1
			}
		})
	}
	wg.Wait()
	slices.Sort(tokens)
	for i, token := range tokens {
		if token != Token(i+1) {
			t.Fatalf("token %d at place %d", token, i+1)
		}
	}
	diff(t, "tokens", len(tokens), candidates*tenures)
}

func TestMemoryRenewalAllocatesNothing(t *testing.T) {
	m := newMemory(t, clock.NewManual(0), MemoryOptions{})
	m.Acquire(t.Context(), "db", alice, sec)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := m.Renew(t.Context(), "db", alice, 1, sec); err != nil {
			t.Error(err)
		}
	})
	diff(t, "allocations", allocs, 0.0)
}

func BenchmarkMemoryRenew(b *testing.B) {
	m := newMemory(b, clock.NewManual(0), MemoryOptions{})
	ctx := b.Context()
	if _, err := m.Acquire(ctx, "db", alice, sec); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := m.Renew(ctx, "db", alice, 1, sec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMemoryRenewParallel(b *testing.B) {
	m := newMemory(b, clock.NewManual(0), MemoryOptions{})
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		resource := fmt.Sprint("db", n.Add(1)) // one each
		if _, err := m.Acquire(b.Context(), resource, alice, sec); err != nil {
			b.Error(err)
		}
		for pb.Next() {
			if _, err := m.Renew(b.Context(), resource, alice, 1, sec); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// TestViewHoldsTheLeaseStill: data beside the lease is written under a token
// only while nobody can change who carries it.
func TestViewHoldsTheLeaseStill(t *testing.T) {
	clk := clock.NewManual(0)
	m, err := NewMemory(clk, MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	holder := Holder{Node: "a", Seq: 1}
	if _, err := m.Acquire(ctx, "r", holder, time.Second); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	var seen Durable
	if err := m.View(ctx, "r", func(d Durable) {
		go func() { released <- m.Release(ctx, "r", holder, 1) }()
		select {
		case err := <-released:
			t.Errorf("released inside View: %v", err)
		default:
		}
		seen = d
	}); err != nil {
		t.Fatal(err)
	}
	if want := (Durable{Token: 1, Holder: holder, TTL: time.Second, Status: Running}); seen != want {
		t.Errorf("saw %+v, want %+v", seen, want)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
	if err := m.View(ctx, "r", func(d Durable) { seen = d }); err != nil || seen.Status != Free {
		t.Errorf("after the release: %+v, %v", seen, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.View(ended, "r", func(Durable) { t.Error("called after the end") }); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
