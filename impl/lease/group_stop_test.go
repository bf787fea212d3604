package lease

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// The last renewal is sent before the drain is over, and a third of the window
// apart from that at most; the store keeps the lease for 10s more.
func TestGroupRenewsNoLongerThanItsDrainForWorkThatIsNotDone(t *testing.T) {
	for _, remove := range []bool{false, true} {
		for _, c := range []struct{ drain, from, to time.Duration }{
			{0, 0, 2 * sec},
			{20 * sec, 19 * sec, 22 * sec},
		} {
			var stop func()
			var last time.Duration
			lead := func(_ context.Context, _ Term, done func()) { stop = done }
			on := func(s *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
				switch calls[0].Op {
				case OpRenew:
					last = s.clk.Now()
				case OpRelease:
					s.Error("released while the work goes on, or after the lapse")
				}
				return batch()
			}
			perform(t, GroupConfig{Lead: lead, Drain: c.drain}, on, func(s *troupe) {
				s.add("a")
				ctx, cancel := context.WithCancel(s.Context())
				done := s.run(ctx)
				s.until(2 * sec)
				var left <-chan struct{}
				if remove {
					left = s.g.Remove("a")
				} else {
					cancel()
				}
				s.until(60 * sec)
				if last < c.from || last > c.to {
					t.Errorf("remove %v, drain %v: renewed last at %v", remove, c.drain, last)
				}
				if _, err := s.memory.Acquire(s.Context(), "a", bob, sec); err != nil {
					t.Errorf("bob at 60s: %v", err)
				}
				stop()
				if remove {
					<-left
				}
				cancel()
				<-done
			})
		}
	}
}

// Whoever cancels Run's context, or is woken by that, sees no term any more,
// whatever the group has come to by then.
func TestGroupsBeliefEndsWithTheContextOfRun(t *testing.T) {
	lead := func(ctx context.Context, _ Term, done func()) { context.AfterFunc(ctx, done) }
	perform(t, GroupConfig{Lead: lead}, nil, func(s *troupe) {
		s.add(numbered(100)...)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(sec)
		term := s.g.Term("shard-99")
		diff(t, "leads", term.Valid(), true)
		cancel()
		if term.Valid() || s.g.Term("shard-98") != (Term{}) {
			t.Error("belief outlives the context of Run")
		}
		<-done
	})
}

// causes is a handler that collects the causes that are logged.
type causes struct {
	slog.Handler
	got *[]error
}

func (h causes) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h causes) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && a.Key == "cause" && r.Message == "no term begins" {
			*h.got = append(*h.got, err)
		}
		return true
	})
	return nil
}

func TestGroupSaysThatAStorageRefusedTheBarrier(t *testing.T) {
	var got []error
	stale := func(string) []Fencer {
		return []Fencer{fencerFunc(func(_ context.Context, token Token) error {
			if token == 1 {
				return ErrStale
			}
			return nil
		})}
	}
	opts := GroupConfig{Fencers: stale, Logger: slog.New(causes{slog.NewTextHandler(t.Output(), nil), &got})}
	perform(t, opts, nil, func(s *troupe) {
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(15 * sec)
		diff(t, "token", s.g.Term("a").Token, Token(2))
		cancel()
		<-done
	})
	if len(got) != 1 || !errors.Is(got[0], ErrBarrier) || !errors.Is(got[0], ErrStale) || errors.Is(got[0], ErrRefused) {
		t.Errorf("causes %v, want one ErrBarrier", got)
	}
}

// A Batcher that mixes up its answers would have each lease led under the token
// of another.
func TestGroupRefusesTheGrantOfAnotherLease(t *testing.T) {
	mixed := func(_ *troupe, _ context.Context, calls []Call, batch func() []Answer) []Answer {
		answers := batch()
		if calls[0].Op == OpAcquire && len(answers) == 2 {
			answers[0], answers[1] = answers[1], answers[0]
			answers[0].Grant.Holder, answers[1].Grant.Holder = calls[0].Holder, calls[1].Holder
		}
		return answers
	}
	perform(t, GroupConfig{}, mixed, func(s *troupe) {
		s.add("a", "b")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(5 * sec)
		diff(t, "held", s.g.Held(), 0)
		for _, r := range []string{"a", "b"} {
			if err := s.g.Err(r); !is[*GrantError](err) {
				t.Errorf("%s: %v, want a GrantError", r, err)
			}
		}
		cancel()
		<-done
	})
}
