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
	perform(t, GroupConfig{Lead: lead, Drain: 40 * sec}, nil, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(sec)
		term := s.g.Term("a")
		cancel()
		s.until(31 * sec)
		if term.Valid() || s.g.Held() != 0 {
			s.Error("believes while its work is stopping")
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
		stops[0]() // said before, of another term
		s.until(62 * sec)
		if term := s.g.Term("a"); term.Token != 2 || !term.Valid() {
			s.Errorf("ended by the done of the term before: %+v", term)
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
