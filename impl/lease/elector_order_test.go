package lease

import (
	"context"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// What is released may be another's at once: by then nobody may believe any more.
func TestBeliefEndsBeforeTheReleaseIsSentAfterWorkThatReturns(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		l, err := newLoop(s.Context(), s.e) // without its goroutine: this is it
		if err != nil {
			t.Fatal(err)
		}
		l.warden.start()
		defer l.warden.close()
		l.send(l.client.Tick(0))
		l.receive(<-l.results)
		term := (<-l.begin).Term
		diff(t, "leads", term.Valid() && s.e.IsLeader(), true)
		calls := -1 // under way when belief ended
		l.warden.show = func(t *Term) {
			calls = len(l.store.calls)
			s.e.term.Store(t)
		}
		l.workEnded(nil)
		diff(t, "calls under way when belief ended", calls, 0)
		diff(t, "leads on", term.Valid() || s.e.IsLeader(), false)
		diff(t, "what follows", l.store.calls[0].req.Op, OpRelease)
		l.take(<-l.results)
	})
}

// numb is a clock whose timers cannot be set for the instant at.
type numb struct {
	clock.Clock
	at time.Duration
}

func (c numb) Timer(at time.Duration) clock.Timer { return numbTimer{c.Clock.Timer(at), c.at} }

type numbTimer struct {
	clock.Timer
	at time.Duration
}

func (t numbTimer) Reset(at time.Duration) {
	if at == t.at {
		at = never
	}
	t.Timer.Reset(at)
}

// The renewal is due at 3s, and may be a retry interval late.
func TestHealthSaysThatTheTimerDidNotWakeTheElector(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		s.e.clk = numb{s.clk, 3 * sec}
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(4 * sec)
		diff(t, "in time", s.e.Health(), nil)
		s.until(4*sec + 1)
		want := WedgedError{Resource: "db", Late: "its goroutine was not woken", Since: 3 * sec, For: sec + 1}
		if e, ok := s.e.Health().(*WedgedError); !ok || *e != want {
			t.Errorf("health %+v, want %+v", s.e.Health(), want)
		}
		s.until(9 * sec) // belief has a timer of its own
		cancel()
		<-done
		s.script("0s acquire", "0s lead under 1", "9s stop", "9s acquire", "9s returned")
	})
}

// A dashboard asks, and an operator's tool resigns, from wherever they are told.
func TestObserverAndLoggerMayCallTheElectorBack(t *testing.T) {
	var e *Elector
	var mu sync.Mutex
	var kinds []EventKind
	ask := func() {
		e.Health()
		e.Term().Valid()
		e.IsLeader()
		e.Leader(context.Background())
	}
	opts := ElectorConfig{Observer: observerFn(func(ev Event) {
		mu.Lock()
		kinds = append(kinds, ev.Kind)
		mu.Unlock()
		if ask(); ev.Kind == EventTermBegan || ev.Kind == EventTermEnded || ev.Kind == EventWorkStopped {
			e.Resign()
		}
	})}
	playWith(t, tenSeconds, opts, nil, func(s *stage) {
		e = s.e
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			e.Resign()
			ask()
			return nil
		})
		s.until(500 * ms)
		s.script("0s acquire", "0s release")
		cancel()
		<-done
		mu.Lock()
		defer mu.Unlock()
		diff(t, "events", kinds, []EventKind{EventCall, EventGranted, EventTermBegan, EventTermEnded, EventWorkStopped, EventCall})
	})
}

// Work that resigns goes on under a term that is over, until it returns.
func TestResignFromWithinTheWork(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			if term.Token > 1 {
				return s.untilDone(ctx, term)
			}
			s.e.Resign()
			if ctx.Err() == nil || term.Valid() || s.e.IsLeader() {
				t.Error("the term goes on after Resign")
			}
			time.Sleep(2 * sec)
			s.note("back")
			return nil
		})
		s.until(3 * sec)
		s.script("0s acquire", "2s back", "2s release", "3s acquire", "3s lead under 2")
		cancel()
		<-done
	})
}

func TestRunUnderAContextThatHasEndedAsksForNothing(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errLost)
		if err := s.e.Run(ctx, s.untilDone); err != errLost {
			t.Errorf("Run returned %v", err)
		}
		s.script()
	})
}

// Milliseconds of TTL, and retries that come later than renewals.
func TestShortTermsAndLateRetriesKeepTheLease(t *testing.T) {
	for _, cfg := range []Config{
		{TTL: ms},
		{TTL: 5 * ms, MaxDriftRate: 0.05},
		{TTL: 10 * sec, RetryInterval: 8 * sec},
		{TTL: 10, RetryInterval: 1, RenewFraction: 0.5}, // nanoseconds
	} {
		playWith(t, cfg, ElectorConfig{}, nil, func(s *stage) {
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, s.untilDone)
			s.until(20 * cfg.TTL)
			diff(t, "token at the end", s.e.Term().Token, Token(1))
			diff(t, "renewals", s.count("renew") >= 30, true)
			cancel()
			<-done
		})
	}
}

// A store that grants half: the window and the first renewal shrink with it, to 5s
// less a twentieth of that and half a second, and a third of it.
func TestATermIsNoLongerThanWhatTheStoreGranted(t *testing.T) {
	half := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew {
			return Grant{}, errLost
		}
		g, err := call()
		g.TTL /= 2
		return g, err
	}
	play(t, half, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(5 * sec)
		s.script("0s acquire", "0s lead under 1", "1.416666666s renew", "2.416666666s renew", "3.416666666s renew", "4.25s stop", "4.25s acquire")
		cancel()
		<-done
	})
}
