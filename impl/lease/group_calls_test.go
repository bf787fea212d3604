package lease

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// A row that somebody has locked holds up the whole batch: the others are asked
// for again in smaller ones.
func TestGroupABatchThatHangsCostsOnlyWhoItHangsBy(t *testing.T) {
	hang := func(s *troupe, ctx context.Context, calls []Call, batch func() []Answer) []Answer {
		if calls[0].Op == OpRenew && slices.ContainsFunc(calls, func(c Call) bool { return c.Resource == "shard-7" }) {
			<-ctx.Done()
		}
		return batch()
	}
	lead := func(ctx context.Context, term Term, done func()) { context.AfterFunc(ctx, done) }
	perform(t, GroupConfig{Lead: lead}, hang, func(s *troupe) {
		names := numbered(300)
		s.add(names...)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(100 * sec)
		for _, r := range names {
			if term := s.g.Term(r); r != "shard-7" && (!term.Valid() || term.Token != 1) {
				s.Errorf("%s was lost: now under token %d", r, term.Token)
			}
		}
		if s.g.Term("shard-7").Token == 1 {
			s.Error("shard-7 was not lost: nothing hung")
		}
		cancel()
		<-done
	})
}

// With all calls taken by acquires that hang for good, renewals would end there.
func TestGroupAcquiresThatHangLeaveRoomForRenewals(t *testing.T) {
	gate := make(chan struct{})
	hang := func(s *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		if calls[0].Op == OpAcquire && s.clk.Now() > 0 {
			<-gate
			return nil
		}
		return batch()
	}
	lead := func(ctx context.Context, term Term, done func()) { context.AfterFunc(ctx, done) }
	perform(t, GroupConfig{Lead: lead, MaxBatch: 10, MaxCalls: 4}, hang, func(s *troupe) {
		gate = make(chan struct{})
		s.add("held")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(1)
		s.add(numbered(200)...)
		s.until(100 * sec)
		if term := s.g.Term("held"); term.Token != 1 || s.g.Held() != 1 {
			s.Errorf("held under %d, %d held", term.Token, s.g.Held())
		}
		cancel()
		close(gate)
		<-done
	})
}

// A retry that had to wait is not made once it is answered what it asks for.
func TestGroupSendsNothingOutOfDate(t *testing.T) {
	slow := func(_ *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		time.Sleep(1500 * ms)
		return batch()
	}
	perform(t, GroupConfig{MaxCalls: 1}, slow, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(1501 * ms)
		s.script("0s acquire 1", "1.5s lead a under 1")
		cancel()
		<-done
	})
}

// Each answer counts by itself, and answers that do not match the calls count
// for nothing.
func TestGroupAnswersOfABatchCountEachByItself(t *testing.T) {
	some := func(s *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		answers := batch()
		switch now := s.clk.Now(); {
		case calls[0].Op != OpRenew:
		case now < 20*sec:
			return answers[:len(answers)-1]
		case now < 40*sec:
			for i, c := range calls {
				if c.Resource == "shard-0" {
					answers[i] = Answer{Err: errLost}
				}
			}
		}
		return answers
	}
	perform(t, GroupConfig{}, some, func(s *troupe) {
		s.add(numbered(4)...)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(9 * sec)
		if s.g.Held() == 4 {
			s.Error("renewed by answers of which one was missing")
		}
		s.until(35 * sec)
		first, others := s.g.Term("shard-0"), []Token{s.g.Term("shard-1").Token, s.g.Term("shard-2").Token, s.g.Term("shard-3").Token}
		s.until(39 * sec)
		if first == s.g.Term("shard-0") && first.Valid() {
			s.Error("shard-0 was renewed by answers that were lost")
		}
		for i, r := range numbered(4)[1:] {
			if s.g.Term(r).Token != others[i] {
				s.Errorf("%s was lost by the answer to another", r)
			}
		}
		cancel()
		<-done
	})
}

func TestGroupCancelsItsLastCallsAndLeavesBehindWhatIgnoresThat(t *testing.T) {
	gate := make(chan struct{})
	deaf := func(s *troupe, ctx context.Context, calls []Call, batch func() []Answer) []Answer {
		if calls[0].Op == OpRelease {
			<-ctx.Done()
			s.note("cancelled")
			<-gate
		}
		return batch()
	}
	perform(t, GroupConfig{ReleaseTimeout: 2 * sec}, deaf, func(s *troupe) {
		gate = make(chan struct{})
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(sec)
		s.log = nil
		cancel()
		<-done
		s.script("1s release 1", "1s stop a: context canceled", "3s cancelled", "5s returned")
		close(gate)
	})
}

// Ten thousand leases that were acquired at one instant: after the first period
// they are renewed evenly over each, once each, in as many calls as there are
// slots.
func TestGroupSpreadsRenewalsEvenly(t *testing.T) {
	const leases, slots = 10_000, 32 // 10,000 / (500 * 3/4) = 26.7, so 32 slots
	var mu sync.Mutex
	type load struct{ calls, renewals int }
	bySlot := map[time.Duration]load{}
	once := map[string]int{}
	on := func(s *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		mu.Lock()
		defer mu.Unlock()
		if now := s.clk.Now(); calls[0].Op == OpRenew && now >= 9*sec && now < 12*sec {
			l := bySlot[(now-9*sec)/(3*sec/slots)]
			l.calls++
			l.renewals += len(calls)
			bySlot[(now-9*sec)/(3*sec/slots)] = l
			for _, c := range calls {
				once[c.Resource]++
			}
		}
		return batch()
	}
	lead := func(ctx context.Context, term Term, done func()) { context.AfterFunc(ctx, done) }
	perform(t, GroupConfig{Lead: lead}, on, func(s *troupe) {
		s.add(numbered(leases)...)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(12 * sec)
		if s.g.Held() != leases {
			s.Errorf("%d held", s.g.Held())
		}
		if len(once) != leases {
			s.Errorf("%d were renewed in one period, want each", len(once))
		}
		for r, n := range once {
			if n != 1 {
				s.Errorf("%s was renewed %d times in one period", r, n)
			}
		}
		calls := 0
		for slot := range time.Duration(slots) {
			l := bySlot[slot]
			calls += l.calls
			// 312.5 on average, and four standard deviations.
			if l.renewals < 240 || l.renewals > 385 {
				s.Errorf("slot %d: %d renewals", slot, l.renewals)
			}
		}
		if calls != slots {
			s.Errorf("%d calls, want %d", calls, slots)
		}
		cancel()
		<-done
	})
}

// The spread is what does that: in one slot, all come at once.
func TestSpreadGivesEachPlaceTheLastInstantOfItsSlot(t *testing.T) {
	s := spread{slots: 4, nonce: 3}
	const quarter = 1 << 62
	for _, c := range []struct {
		due   time.Duration
		place uint64
		want  time.Duration
	}{
		{100, 0, 83}, {103, 0, 103}, {102, 0, 83}, // ... 83 103
		{100, quarter, 88}, {100, 2 * quarter, 93}, {100, 3*quarter + 5, 98},
		{-1, 0, -17}, {-17, 0, -17}, {3, 0, 3}, {2, 0, -17},
	} {
		if got := s.last(c.due, 20, c.place); got != c.want {
			t.Errorf("last(%d) at %x: %d, want %d", c.due, c.place, got, c.want)
		}
	}
	// A period too short for its slots.
	if got := (spread{slots: 256, nonce: 9}).last(100, 10, 0); got <= 90 || got > 100 {
		t.Errorf("short period: %d", got)
	}
	for _, c := range []struct {
		n, size int
		want    uint64
	}{{0, 500, 1}, {375, 500, 1}, {376, 500, 2}, {10_000, 500, 32}, {10_000, 1, 256}} {
		if got := spreadFor(c.n, c.size, 0).slots; got != c.want {
			t.Errorf("%d resources in batches of %d: %d slots, want %d", c.n, c.size, got, c.want)
		}
	}
}

// A store without batches is called once for each lease, and not for more at a
// time than allowed.
func TestGroupCallsAStoreWithoutBatchesOneByOne(t *testing.T) {
	var mu sync.Mutex
	now, most, calls := 0, 0, 0
	perform(t, GroupConfig{MaxCalls: 4}, nil, func(s *troupe) {
		one := proxy{struct{ Store }{s.memory}, func(_ context.Context, _ Request, call func() (Grant, error)) (Grant, error) {
			mu.Lock()
			now++
			most, calls = max(most, now), calls+1
			mu.Unlock()
			time.Sleep(10 * ms)
			defer func() {
				mu.Lock()
				now--
				mu.Unlock()
			}()
			return call()
		}}
		lead := func(ctx context.Context, term Term, done func()) { context.AfterFunc(ctx, done) }
		g, err := NewGroup(one, GroupConfig{Node: "alice", Timing: tenSeconds, Clock: s.clk, MaxCalls: 4, Lead: lead})
		if err != nil {
			s.Fatal(err)
		}
		s.g = g
		s.add(numbered(40)...)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(20 * sec)
		if s.g.Held() != 40 || most < 2 || most > 4 {
			s.Errorf("%d held, %d calls at once", s.g.Held(), most)
		}
		cancel()
		<-done
		if o, _ := s.memory.Get(s.Context(), "shard-39"); !o.Holder.IsZero() {
			s.Errorf("still held by %v", o.Holder)
		}
	})
}
