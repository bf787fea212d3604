package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
)

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
		looks := 0
		for _, line := range s.log {
			if strings.Contains(line, "lead") {
				took = append(took, line)
			} else if strings.Contains(line, "acquire") {
				looks++
			}
		}
		// At 0s, at most one of each before, and at 10s both together.
		if looks < 2 || looks > 4 {
			s.Errorf("%d looks: %q", looks, s.log)
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
	var down atomic.Bool
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
				case down.Load() && resource == "hung":
					<-ctx.Done()
					return ctx.Err()
				case down.Load() && resource == "down":
					return errLost
				}
				return nil
			}),
		}
	}
	perform(t, GroupConfig{Fencers: fencers}, nil, func(s *troupe) {
		down.Store(true)
		s.add("free", "down", "hung", "stale")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(30 * sec)
		if s.g.Held() != 2 || !s.g.Term("free").Valid() || s.g.Term("stale").Token != 3 {
			s.Errorf("%d held, free %+v, stale %+v", s.g.Held(), s.g.Term("free"), s.g.Term("stale"))
		}
		down.Store(false)
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
		"Drain":          func(c *GroupConfig) { c.Drain = -1 },
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

func TestGroupTellsItsObserverWhatBecomesOfATerm(t *testing.T) {
	var seen []string
	observer := observerFunc(func(e Event) {
		what := fmt.Sprint(e.At, " ", e.Kind, " ", e.Resource, " ", e.Token)
		switch e.Kind {
		case EventCall:
			what += fmt.Sprint(" ", e.Op, " ", e.Latency)
		case EventRenewed:
			what += fmt.Sprint(" ", e.Margin)
		}
		if e.Err != nil {
			what += " " + e.Err.Error()
		}
		seen = append(seen, what)
	})
	var renewed atomic.Int64
	slow := func(s *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		if calls[0].Op == OpRenew {
			renewed.Store(int64(s.clk.Now()))
		}
		answers := batch()
		time.Sleep(ms)
		return answers
	}
	perform(t, GroupConfig{Observer: observer}, slow, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		for renewed.Load() == 0 {
			s.until(s.clk.Now() + ms)
		}
		renewal := time.Duration(renewed.Load())
		s.until(renewal + 2*ms)
		s.memory.Delete(ctx, "a")
		cancel()
		<-done
		end := fmt.Sprint(renewal + 2*ms)
		diff(t, "events", seen, []string{
			"1ms call a 0 acquire 1ms",
			"1ms granted a 1",
			"1ms term began a 1",
			fmt.Sprint(renewal+ms, " call a 1 renew 1ms"),
			fmt.Sprint(renewal+ms, " renewed a 1 ", 9*sec-renewal-ms),
			end + " term ended a 1 context canceled",
			end + " work stopped a 1",
			fmt.Sprint(renewal+3*ms, " call a 1 release 1ms lease \"a\" is not held by alice#1.a11ce under token 1: the last token is 1; stop, and acquire anew as a new incarnation"),
		})
	})
}

// Events that nobody takes are counted, not kept; a term is never dropped.
func TestGroupDropsNewsThatNobodyTakes(t *testing.T) {
	var told []Event
	n := newNews(GroupConfig{Observer: observerFunc(func(e Event) { told = append(told, e) })})
	for i := range maxNews + 3 {
		n.event(Event{Kind: EventCall, At: time.Duration(i)})
	}
	if len(told) > 0 || n.lost != 3 || len(n.items) != maxNews {
		t.Errorf("%d kept, %d lost", len(n.items), n.lost)
	}
	n.begin(&stint{}, func() {})
	if len(n.items) != maxNews+1 {
		t.Error("a term was dropped")
	}
}
