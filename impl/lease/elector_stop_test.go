package lease

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// stopping is work that takes so long to stop, and must not be led in meanwhile.
func (s *stage) stopping(takes time.Duration) func(context.Context, Term) error {
	return func(ctx context.Context, term Term) error {
		<-ctx.Done()
		s.note("stopping")
		if term.Valid() || s.e.IsLeader() || s.e.Term() != (Term{}) || term.Deadline() != s.clk.Now() {
			s.Errorf("at %v the term shows as valid %v, leader %v, until %v", s.clk.Now(), term.Valid(), s.e.IsLeader(), term.Deadline())
		}
		time.Sleep(takes)
		s.note("stopped")
		return nil
	}
}

// bobAt is when bob gets the lease, who tries at each of at.
func (s *stage) bobAt(at ...time.Duration) time.Duration {
	for _, at := range at {
		s.until(at)
		if _, err := s.memory.Acquire(s.Context(), "db", bob, sec); err == nil {
			return at
		} else if !is[*HeldError](err) {
			s.Errorf("bob: %v", err)
		}
	}
	return never
}

// Belief ends with the context; the lease is kept, unrenewed, for the work.
func TestElectorReleasesOnlyAfterTheWorkHasReturned(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.stopping(5*sec))
		s.until(2 * sec)
		cancel()
		diff(t, "bob leads", s.bobAt(7*sec-1, 7*sec), 7*sec)
		if err := <-done; err != context.Canceled {
			t.Errorf("Run returned %v", err)
		}
		s.script("0s acquire", "2s stopping", "7s stopped", "7s release", "7s returned")
	})
}

// The window ends at 9s, and the lease at 10s: what goes on then is on its own.
func TestElectorLetsALeaseLapseUnderWorkThatDoesNotStop(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.stopping(20*sec))
		s.until(2 * sec)
		cancel()
		diff(t, "bob leads", s.bobAt(10*sec-1, 10*sec), 10*sec)
		<-done
		s.script("0s acquire", "2s stopping", "22s stopped", "22s returned")
	})
}

func TestElectorRenewsForWorkThatDrains(t *testing.T) {
	for _, c := range []struct {
		takes, bob time.Duration
		script     []string
	}{
		{18 * sec, 20 * sec, []string{"20s stopped", "20s release", "20s returned"}},
		// Renewed last at 21s, 19s after the end: until 30s, 31s by the store.
		{40 * sec, 31 * sec, []string{"21s renew", "42s stopped", "42s returned"}},
	} {
		playWith(t, tenSeconds, ElectorConfig{Drain: 20 * sec}, nil, func(s *stage) {
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, s.stopping(c.takes))
			s.until(2 * sec)
			cancel()
			diff(t, "bob leads", s.bobAt(c.bob-1, c.bob), c.bob)
			<-done
			s.script(slices.Concat([]string{"0s acquire", "2s stopping", "3s renew", "6s renew", "9s renew", "12s renew", "15s renew", "18s renew"}, c.script)...)
		})
	}
}

func TestElectorDoesNotDrainWhatHasLapsed(t *testing.T) {
	broken := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew {
			return Grant{}, errLost
		}
		return call()
	}
	playWith(t, tenSeconds, ElectorConfig{Drain: 20 * sec}, broken, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.stopping(15*sec))
		diff(t, "bob leads", s.bobAt(10*sec-1, 10*sec), 10*sec)
		cancel()
		<-done
		diff(t, "renewals, from 3s to 8s", s.count("renew"), 6)
	})
}

func TestResignHandsOverAndCampaignsAgain(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		s.e.Resign() // no Run, no effect
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			if term.Token > 1 {
				return s.untilDone(ctx, term)
			}
			err := s.stopping(2*sec)(ctx, term)
			if cause := context.Cause(ctx); !errors.Is(cause, ErrResigned) || errors.Is(cause, ErrLapsed) {
				t.Errorf("cause: %v, want ErrResigned", cause)
			}
			return err
		})
		s.until(2 * sec)
		s.e.Resign()
		s.e.Resign() // once is enough
		s.until(3 * sec)
		s.e.Resign() // no term
		s.until(5 * sec)
		s.script("0s acquire", "2s stopping", "4s stopped", "4s release", "5s acquire", "5s lead under 2")
		cancel()
		<-done
	})
}

func TestABarrierThatIsRefusedLateEndsTheTerm(t *testing.T) {
	var tries atomic.Int32
	late := fencerFunc(func(context.Context, Token) error {
		if tries.Add(1) == 1 {
			time.Sleep(4 * sec)
			return ErrStale
		}
		return nil
	})
	play(t, nil, []Fencer{late}, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		causes := make(chan error, 1)
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			select {
			case causes <- context.Cause(ctx):
			default:
			}
			return nil
		})
		if cause := <-causes; s.clk.Now() != 4*sec || !errors.Is(cause, ErrBarrier) || !errors.Is(cause, ErrStale) || errors.Is(cause, ErrRefused) {
			t.Errorf("at %v: %v, want ErrBarrier at 4s", s.clk.Now(), cause)
		}
		cancel()
		<-done
	})
}
