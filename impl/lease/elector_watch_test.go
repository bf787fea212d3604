package lease

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// After a release the next one leads within the instant; by polls it would take
// part of the retry interval of 1s. A store that cannot be watched is the wrong one
// that this must tell from the right.
func TestWatchersLeadAsSoonAsTheLeaseIsReleased(t *testing.T) {
	for _, watched := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			clk := clock.Monotonic()
			m := newMemory(t, clk, MemoryOptions{})
			var store Store = m
			if !watched {
				store = polled{m}
			}
			ctx, cancel := context.WithCancel(t.Context())
			var leads, led atomic.Int32
			began := make(chan time.Duration, 1000)
			done := make(chan error, 16)
			for i := range 16 {
				e, err := NewElector(store, ElectorConfig{Resource: "db", Node: fmt.Sprint("node-", i), Timing: tenSeconds, Clock: clk, Nonce: uint64(i + 1)})
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					done <- e.Run(ctx, func(ctx context.Context, term Term) error {
						if leads.Add(1) != 1 {
							t.Error("two lead")
						}
						defer leads.Add(-1)
						began <- clk.Now()
						led.Add(1)
						select {
						case <-time.After(4500*ms + time.Duration(term.Token)*7*ms):
						case <-ctx.Done():
						}
						return nil
					})
				}()
			}
			time.Sleep(100 * sec)
			cancel()
			for range 16 {
				<-done
			}
			close(began)
			var gap time.Duration // waited for a leader, in all
			last, token := time.Duration(0), 0
			for at := range began {
				if token++; token > 1 {
					gap += at - last - 4500*ms - time.Duration(token-1)*7*ms
				}
				last = at
			}
			if watched && gap != 0 || !watched && gap == 0 || led.Load() < 15 {
				t.Errorf("watched %v: %d terms in 100s, without a leader for %v in all", watched, led.Load(), gap)
			}
		})
	}
}

// fickle is a store whose watches are made by hand.
type fickle struct {
	Store
	watch func(ctx context.Context) (<-chan struct{}, error)
}

func (f fickle) Watch(ctx context.Context, _ string) (<-chan struct{}, error) { return f.watch(ctx) }

// playWatched is play with a store whose watches watch makes.
func playWatched(t *testing.T, watch func(s *stage, ctx context.Context) (<-chan struct{}, error), on hook, f func(s *stage)) {
	play(t, on, nil, func(s *stage) {
		inner := s.e.store
		s.e.store = fickle{inner, func(ctx context.Context) (<-chan struct{}, error) { return watch(s, ctx) }}
		f(s)
	})
}

// A store that has learnt that a session ended says so by a hint: the renewal that
// follows is refused, long before it would have been due.
func TestALeaderThatIsHintedAtRenewsAtOnce(t *testing.T) {
	var c chan struct{}
	playWatched(t, func(s *stage, ctx context.Context) (<-chan struct{}, error) {
		time.Sleep(500 * ms)
		return c, nil
	}, nil, func(s *stage) {
		c = make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(1500 * ms)
		if err := s.memory.Delete(ctx, "db"); err != nil {
			t.Fatal(err)
		}
		c <- struct{}{}
		s.until(1500 * ms)
		// The first renewal is for what may have changed before the watch was made.
		s.script("0s acquire", "0s lead under 1", "500ms renew", "1.5s renew", "1.5s stop", "1.5s acquire", "1.5s lead under 2")
		cancel()
		<-done
	})
}

// Its own calls may be what the hints are about.
func TestHintsWithoutEndDoNotFloodTheStore(t *testing.T) {
	for _, held := range []bool{false, true} {
		var c chan struct{}
		echo := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
			g, err := call()
			select {
			case c <- struct{}{}:
			default:
			}
			return g, err
		}
		playWatched(t, func(s *stage, ctx context.Context) (<-chan struct{}, error) { return c, nil }, echo, func(s *stage) {
			c = make(chan struct{}, 1)
			if held {
				s.memory.Acquire(s.Context(), "db", bob, 100*sec)
			}
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, s.untilDone)
			s.until(60 * sec)
			// In each retry interval one for a hint, and one that is due anyway.
			calls, most := s.count("renew"), 2*60+2
			if held {
				calls, most = s.count("acquire"), 60*(mostToCampaign+2)
			}
			if calls > most || calls < 50 {
				t.Errorf("held %v: %d calls in 60s, want no more than %d", held, calls, most)
			}
			cancel()
			<-done
		})
	}
}

// Retried after 1s, 2s, 4s and so on up to 64s; from the start again once it has
// worked.
func TestAWatchThatBreaksIsMadeAgainWithBackOff(t *testing.T) {
	var made []time.Duration
	playWatched(t, func(s *stage, ctx context.Context) (<-chan struct{}, error) {
		made = append(made, s.clk.Now())
		switch c := make(chan struct{}, 1); len(made) {
		case 1, 2:
			return nil, errLost
		case 3:
			close(c)
			return c, nil
		case 4:
			c <- struct{}{}
			close(c)
			return c, nil
		default:
			return nil, errLost
		}
	}, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(11 * sec)
		cancel()
		<-done
		diff(t, "watches", made, []time.Duration{0, sec, 3 * sec, 7 * sec, 8 * sec, 10 * sec})
	})
}

func TestRunDoesNotWaitForAWatchThatIgnoresItsContext(t *testing.T) {
	playWatched(t, func(s *stage, ctx context.Context) (<-chan struct{}, error) {
		<-s.gate
		return nil, errLost
	}, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(sec)
		cancel()
		<-done
		diff(t, "returned after twice the release timeout", s.clk.Now(), 7*sec)
		close(s.gate)
	})
}

// Those that wait for one lease come back at different instants, each within the
// bounds that Failover counts on, and the same in every run.
func TestPollsAreSpreadWithinTheRetryInterval(t *testing.T) {
	attempts := func() (at []time.Duration) {
		seen := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
			if req.Op == OpAcquire {
				at = append(at, s.clk.Now())
			}
			return call()
		}
		play(t, seen, nil, func(s *stage) {
			s.memory.Acquire(s.Context(), "db", bob, 1000*sec)
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, s.untilDone)
			s.until(500 * sec)
			cancel()
			<-done
		})
		return at
	}
	at := attempts()
	var periods []time.Duration
	for i := range at[1:] {
		periods = append(periods, at[i+1]-at[i])
	}
	slices.Sort(periods)
	// The ends of the interval are reached to within a tenth of it.
	if low, high := periods[0], periods[len(periods)-1]; low <= sec*2/3 || low > sec*7/10 || high > sec || high < sec*29/30 {
		t.Errorf("%d periods from %v to %v, want (2/3s, 1s]", len(periods), low, high)
	}
	diff(t, "the same again", attempts(), at)
}
