package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// counting is a Batcher that hands each batch to on, which may make it.
type counting struct {
	Store
	on func(ctx context.Context, calls []Call, batch func() []Answer) []Answer
}

func (c counting) Batch(ctx context.Context, calls []Call) []Answer {
	return c.on(ctx, calls, func() []Answer {
		answers := make([]Answer, len(calls))
		for i, call := range calls {
			answers[i] = do(ctx, c.Store, call)
		}
		return answers
	})
}

// troupe is one group of node alice in a bubble of fake time, with everything
// that matters written down as "instant what". Its Lead runs, under each term, a
// goroutine that is done when its context ends.
type troupe struct {
	*testing.T
	clk    clock.Clock
	memory *Memory
	g      *Group

	mu  sync.Mutex
	log []string
}

type batchHook func(s *troupe, ctx context.Context, calls []Call, batch func() []Answer) []Answer

func perform(t *testing.T, opts GroupConfig, on batchHook, f func(s *troupe)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &troupe{T: t, clk: clock.Monotonic()}
		s.memory = newMemory(t, s.clk, MemoryOptions{})
		store := counting{s.memory, func(ctx context.Context, calls []Call, batch func() []Answer) []Answer {
			s.note("%v %d", calls[0].Op, len(calls))
			if on == nil {
				return batch()
			}
			return on(s, ctx, calls, batch)
		}}
		opts.Node, opts.Nonce, opts.Clock = alice.Node, alice.Nonce, s.clk
		if opts.Timing == (Config{}) {
			opts.Timing = tenSeconds
		}
		if opts.Lead == nil {
			opts.Lead = func(ctx context.Context, term Term, done func()) {
				s.note("lead %s under %d", term.Resource, term.Token)
				go func() {
					defer done()
					<-ctx.Done()
					s.note("stop %s: %s", term.Resource, why(ctx))
				}()
			}
		}
		var err error
		if s.g, err = NewGroup(store, opts); err != nil {
			t.Fatal(err)
		}
		f(s)
	})
}

// why is the end of a term in one word.
func why(ctx context.Context) string {
	for _, err := range []error{ErrLapsed, ErrRefused, ErrResigned, context.Canceled} {
		if errors.Is(context.Cause(ctx), err) {
			word, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "term "), ":")
			return word
		}
	}
	return fmt.Sprint(context.Cause(ctx))
}

func (s *troupe) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprint(s.clk.Now(), " ", fmt.Sprintf(format, args...)))
}

// script checks what was noted since it last did. What is noted at one instant
// it sorts, since its order is the scheduler's.
func (s *troupe) script(want ...string) {
	s.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.log, func(a, b string) int {
		at, what, _ := strings.Cut(a, " ")
		bt, bwhat, _ := strings.Cut(b, " ")
		if at != bt {
			return 0
		}
		return strings.Compare(what, bwhat)
	})
	diff(s.T, "what happened", s.log, want)
	s.log = nil
}

func (s *troupe) add(resources ...string) {
	s.Helper()
	for _, r := range resources {
		if err := s.g.Add(r); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *troupe) until(at time.Duration) {
	time.Sleep(at - s.clk.Now()) // in the bubble
	synctest.Wait()
}

func (s *troupe) run(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := s.g.Run(ctx)
		s.note("returned")
		done <- err
	}()
	return done
}

// numbered are n names.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("shard-%d", i)
	}
	return names
}

func TestGroupHoldsWhatItIsToldToAndReleasesAll(t *testing.T) {
	perform(t, GroupConfig{}, nil, func(s *troupe) {
		s.add("a", "b")
		s.add("a") // once is enough
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(0)
		s.script("0s acquire 2", "0s lead a under 1", "0s lead b under 1")
		term := s.g.Term("a")
		if !term.Valid() || term.Token != 1 || term.Resource != "a" || term.Deadline() != 9*sec || s.g.Held() != 2 || s.g.Len() != 2 {
			s.Errorf("term %+v, valid %v, held %d of %d", term, term.Valid(), s.g.Held(), s.g.Len())
		}
		s.until(100 * sec)
		if s.g.Term("a") != term || !term.Valid() || s.g.Term("c") != (Term{}) {
			s.Errorf("after 100s: %+v", s.g.Term("a"))
		}
		s.log = nil
		cancel()
		if err := <-done; err != context.Canceled {
			s.Errorf("Run returned %v", err)
		}
		if term.Valid() || s.g.Held() != 0 {
			s.Error("believes after Run has returned")
		}
		for _, r := range []string{"a", "b"} {
			if g, err := s.memory.Acquire(s.Context(), r, bob, sec); err != nil || g.Token != 2 {
				s.Errorf("bob, after the release of %s: %+v, %v", r, g, err)
			}
		}
	})
}

func TestGroupReleasesOnlyAfterTheWorkIsDone(t *testing.T) {
	var stops []func()
	lead := func(_ context.Context, _ Term, done func()) { stops = append(stops, done) }
	perform(t, GroupConfig{Lead: lead}, nil, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(sec)
		term := s.g.Term("a")
		cancel()
		s.until(31 * sec)
		if !term.Valid() {
			s.Error("the term ended while its work was stopping in order")
		}
		if _, err := s.memory.Acquire(s.Context(), "a", bob, sec); !is[*HeldError](err) {
			s.Errorf("bob, while the work goes on: %v, want HeldError", err)
		}
		s.log = nil
		stops[0]()
		stops[0]() // once is enough
		<-done
		s.script("31s release 1", "31s returned")
	})
}

func TestGroupCampaignsAgainAfterWorkThatEndsOfItself(t *testing.T) {
	lead := func(_ context.Context, _ Term, done func()) { done() }
	perform(t, GroupConfig{Lead: lead}, nil, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(1500 * ms)
		// Others have had one retry interval.
		s.script("0s acquire 1", "0s release 1", "1s acquire 1", "1s release 1")
		cancel()
		<-done
	})
}

func TestGroupDoesNotCampaignWhileOldWorkGoesOn(t *testing.T) {
	var stops []func()
	lead := func(_ context.Context, _ Term, done func()) { stops = append(stops, done) }
	perform(t, GroupConfig{Lead: lead}, nil, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(sec)
		if err := s.memory.Delete(ctx, "a"); err != nil {
			s.Fatal(err)
		}
		s.until(60 * sec)
		if o, _ := s.memory.Get(ctx, "a"); !o.Holder.IsZero() || len(stops) != 1 || s.g.Held() != 0 {
			s.Errorf("held by %v, %d terms, %d held, while the work of a lost term goes on", o.Holder, len(stops), s.g.Held())
		}
		stops[0]()
		s.until(61 * sec)
		if term := s.g.Term("a"); term.Token != 2 || term.Holder != alice.Next() {
			s.Errorf("then %+v, want a new incarnation under token 2", term)
		}
		cancel()
		stops[1]()
		<-done
	})
}

func TestGroupEndsATermAtOnceWhenItsRenewalIsRefused(t *testing.T) {
	perform(t, GroupConfig{}, nil, func(s *troupe) {
		s.add("a", "b")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(0)
		if err := s.memory.Delete(ctx, "a"); err != nil {
			s.Fatal(err)
		}
		a, b := s.g.Term("a"), s.g.Term("b")
		s.until(4 * sec) // each is renewed by 3s
		if a.Valid() || !b.Valid() || s.g.Term("b") != b || s.g.Term("a").Token != 2 {
			s.Errorf("a valid %v, b valid %v; now a %+v", a.Valid(), b.Valid(), s.g.Term("a"))
		}
		if !slices.ContainsFunc(s.log, func(line string) bool { return strings.HasSuffix(line, "stop a: refused") }) {
			s.Errorf("no refusal: %q", s.log)
		}
		cancel()
		<-done
	})
}

func TestGroupEndsTermsOnTimeWhateverBlocks(t *testing.T) {
	hung := make(chan struct{})
	block := func() { <-hung }
	for name, opts := range map[string]GroupConfig{
		"store": {},
		"lead": {Lead: func(ctx context.Context, _ Term, done func()) {
			context.AfterFunc(ctx, done)
			block()
		}},
		"observer": {Observer: observerFunc(func(e Event) {
			if e.Kind == EventRenewed {
				block()
			}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			lost := func(_ *troupe, ctx context.Context, calls []Call, batch func() []Answer) []Answer {
				if calls[0].Op == OpRenew && calls[0].Sent >= 20*sec {
					block()
				}
				return batch()
			}
			perform(t, opts, lost, func(s *troupe) {
				hung = make(chan struct{})
				s.add("a")
				ctx, cancel := context.WithCancel(s.Context())
				done := s.run(ctx)
				s.until(20 * sec)
				term := s.g.Term("a")
				ends := term.Deadline()
				s.until(ends - 1)
				if !term.Valid() || s.g.Held() != 1 {
					s.Error("ended early")
				}
				s.until(ends)
				if term.Valid() || s.g.Held() != 0 || s.g.Term("a") != (Term{}) {
					s.Errorf("valid %v, %d held, at the deadline", term.Valid(), s.g.Held())
				}
				cancel()
				close(hung)
				<-done
			})
		})
	}
}

type observerFunc func(Event)

func (f observerFunc) Observe(e Event) { f(e) }

func TestGroupRemoveReleasesInOrderAndCampaignsNoMore(t *testing.T) {
	perform(t, GroupConfig{}, nil, func(s *troupe) {
		s.add("a", "b")
		<-s.g.Remove("c") // unknown
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(0)
		s.log = nil
		<-s.g.Remove("a")
		s.script("0s release 1", "0s stop a: resigned")
		s.until(30 * sec)
		if o, _ := s.memory.Get(ctx, "a"); !o.Holder.IsZero() || s.g.Len() != 1 || s.g.Held() != 1 {
			s.Errorf("after Remove: held by %v; %d of %d", o.Holder, s.g.Held(), s.g.Len())
		}
		// Added again it is another incarnation: the old one was used.
		s.add("a")
		s.until(31 * sec)
		if term := s.g.Term("a"); term.Token != 2 || term.Holder.Seq < 2 {
			s.Errorf("added again: %+v", term)
		}
		// While it leaves, too.
		left := s.g.Remove("a")
		s.add("a")
		<-left
		s.until(33 * sec)
		if term := s.g.Term("a"); term.Token != 3 || term.Holder.Seq < 3 {
			s.Errorf("added while it left: %+v", term)
		}
		cancel()
		<-done
		<-s.g.Remove("a")
		if s.g.Len() != 1 {
			s.Errorf("%d left after a Remove at rest", s.g.Len())
		}
	})
}

func TestGroupRunsAgainAsOtherIncarnations(t *testing.T) {
	perform(t, GroupConfig{}, nil, func(s *troupe) {
		s.add("a")
		var seqs []uint64
		for range 3 {
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx)
			s.until(s.clk.Now() + sec)
			if err := s.g.Run(ctx); !errors.Is(err, ErrRunning) {
				s.Errorf("a second Run beside it: %v", err)
			}
			seqs = append(seqs, s.g.Term("a").Holder.Seq)
			cancel()
			<-done
		}
		if !(0 < seqs[0] && seqs[0] < seqs[1] && seqs[1] < seqs[2]) {
			s.Errorf("incarnations %v, want them to rise", seqs)
		}
	})
}

func TestGroupHoldsNoMoreThanMaxHeld(t *testing.T) {
	perform(t, GroupConfig{MaxHeld: 3}, nil, func(s *troupe) {
		s.add(numbered(10)...)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		for at := range 30 {
			s.until(time.Duration(at) * sec)
			if s.g.Held() != 3 {
				s.Errorf("at %ds: %d held", at, s.g.Held())
			}
		}
		// Three leases and no more are asked for: of those who wait, in turn.
		acquires := 0
		for _, line := range s.log {
			if strings.Contains(line, "acquire") {
				acquires++
			}
		}
		if acquires != 1 {
			s.Errorf("%d batches of acquires, want 1: %q", acquires, s.log)
		}
		<-s.g.Remove("shard-0")
		s.until(31 * sec)
		if s.g.Held() != 3 || s.g.Term("shard-3").Token != 1 {
			s.Errorf("after one was removed: %d held, the next in line %+v", s.g.Held(), s.g.Term("shard-3"))
		}
		cancel()
		<-done
	})
}

func TestGroupLooksForOthersAtTheirLeaseWhenItMayLapse(t *testing.T) {
	perform(t, GroupConfig{Poll: 6 * sec}, nil, func(s *troupe) {
		// Held by one who dies at once.
		for _, r := range []string{"a", "b"} {
			if _, err := s.memory.Acquire(s.Context(), r, bob, 10*sec); err != nil {
				s.Fatal(err)
			}
		}
		s.add("a", "b")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(20 * sec)
		var took []string
		for _, line := range s.log {
			if strings.Contains(line, "lead") {
				took = append(took, line)
			}
		}
		slices.Sort(took)
		diff(s.T, "takeovers", took, []string{"10s lead a under 2", "10s lead b under 2"})
		cancel()
		<-done
	})
}

func TestGroupReleasesAllBeforeAPanicOfLeadGoesOn(t *testing.T) {
	lead := func(ctx context.Context, term Term, done func()) {
		if term.Resource == "b" {
			panic("no b")
		}
		context.AfterFunc(ctx, done)
	}
	perform(t, GroupConfig{Lead: lead}, nil, func(s *troupe) {
		s.add("a", "b", "c")
		func() {
			defer func() {
				if r := recover(); r != "no b" {
					s.Errorf("recovered %v", r)
				}
			}()
			s.g.Run(s.Context())
			s.Error("Run returned")
		}()
		for _, r := range []string{"a", "b", "c"} {
			if o, _ := s.memory.Get(s.Context(), r); !o.Holder.IsZero() {
				s.Errorf("%s is still held by %v", r, o.Holder)
			}
		}
	})
}

func TestGroupLeadsOnlyBehindTheBarrierOfEachResource(t *testing.T) {
	down := true
	fencers := func(resource string) []Fencer {
		if resource == "free" {
			return nil
		}
		return []Fencer{
			fencerFunc(func(context.Context, Token) error { return nil }),
			fencerFunc(func(ctx context.Context, token Token) error {
				switch {
				case resource == "stale" && token < 3:
					return fmt.Errorf("seen 2: %w", ErrStale)
				case down && resource == "hung":
					<-ctx.Done()
					return ctx.Err()
				case down && resource == "down":
					return errLost
				}
				return nil
			}),
		}
	}
	perform(t, GroupConfig{Fencers: fencers}, nil, func(s *troupe) {
		s.add("free", "down", "hung", "stale")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(30 * sec)
		if s.g.Held() != 2 || !s.g.Term("free").Valid() || s.g.Term("stale").Token != 3 {
			s.Errorf("%d held, free %+v, stale %+v", s.g.Held(), s.g.Term("free"), s.g.Term("stale"))
		}
		down = false
		s.until(35 * sec)
		if s.g.Term("down").Token != 1 || s.g.Term("hung").Token != 1 {
			s.Errorf("once the storage is up: %+v, %+v", s.g.Term("down"), s.g.Term("hung"))
		}
		cancel()
		<-done
	})
}

func TestGroupBarsAResourceThatNoRetryWouldHelp(t *testing.T) {
	nobody := func(_ *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		answers := batch()
		for i, c := range calls {
			if c.Resource == "bad" && c.Op == OpAcquire {
				answers[i].Grant.Holder = bob
			}
		}
		return answers
	}
	perform(t, GroupConfig{}, nobody, func(s *troupe) {
		s.add("bad", "good")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(30 * sec)
		if err := s.g.Err("bad"); !is[*GrantError](err) || s.g.Err("good") != nil || !s.g.Term("good").Valid() {
			s.Errorf("bad: %v, good: %v", err, s.g.Err("good"))
		}
		if o, _ := s.memory.Get(ctx, "bad"); !o.Holder.IsZero() || o.Token != 1 {
			s.Errorf("what is of no use is held: %+v", o)
		}
		<-s.g.Remove("bad")
		s.add("bad")
		s.until(31 * sec)
		if o, _ := s.memory.Get(ctx, "bad"); o.Token != 2 {
			s.Errorf("added again, it was not tried again: %+v", o)
		}
		cancel()
		<-done
	})
}

func TestNewGroupRefusesWhatMakesNoSense(t *testing.T) {
	lead := func(context.Context, Term, func()) {}
	m := newMemory(t, clock.NewManual(0), MemoryOptions{})
	ok := GroupConfig{Node: "alice", Timing: tenSeconds, Lead: lead}
	if _, err := NewGroup(m, ok); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(c *GroupConfig){
		"Lead":           func(c *GroupConfig) { c.Lead = nil },
		"Barrier":        func(c *GroupConfig) { c.Timing.Barrier = true },
		"TTL":            func(c *GroupConfig) { c.Timing.TTL = 0 },
		"MaxHeld":        func(c *GroupConfig) { c.MaxHeld = -1 },
		"MaxCalls":       func(c *GroupConfig) { c.MaxCalls = -1 },
		"MaxBatch":       func(c *GroupConfig) { c.MaxBatch = -1 },
		"Poll":           func(c *GroupConfig) { c.Poll = -1 },
		"ReleaseTimeout": func(c *GroupConfig) { c.ReleaseTimeout = -1 },
	} {
		c := ok
		change(&c)
		if _, err := NewGroup(m, c); !refusesField(err, field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := NewGroup(nil, ok); !refusesField(err, "store") {
		t.Errorf("no store: %v", err)
	}
	ok.Fencers = func(string) []Fencer { return []Fencer{nil} }
	g, err := NewGroup(m, ok)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Add(""); !refusesField(err, "resource") {
		t.Errorf("no resource: %v", err)
	}
	if err := g.Add("a"); !refusesField(err, "Fencers") {
		t.Errorf("a nil fencer: %v", err)
	}
	ok.Node = ""
	if _, err := NewGroup(m, ok); !errors.Is(err, ErrHolder) {
		t.Errorf("no node: %v", err)
	}
}

func refusesField(err error, field string) bool {
	e, ok := errors.AsType[*ConfigError](err)
	return ok && e.Field == field
}
