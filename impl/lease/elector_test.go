package lease

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
)

func TestElectorLeadsAndMovesTheDeadlineWithEachRenewal(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		terms := make(chan Term, 1)
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			terms <- term
			return s.untilDone(ctx, term)
		})
		term := <-terms
		if term.Resource != "db" || term.Holder != alice || term.Token != 1 {
			t.Errorf("term %+v", term)
		}
		for _, c := range []struct{ at, deadline time.Duration }{{0, 9 * sec}, {3*sec - 1, 9 * sec}, {3 * sec, 12 * sec}, {60 * sec, 69 * sec}} {
			s.until(c.at)
			if !term.Valid() || !s.e.IsLeader() || s.e.Term() != term || term.Deadline() != c.deadline {
				t.Errorf("at %v: valid %v, leader %v, deadline %v, want %v", c.at, term.Valid(), s.e.IsLeader(), term.Deadline(), c.deadline)
			}
		}
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("Run returned %v", err)
		}
		if term.Valid() || s.e.IsLeader() || s.e.Term() != (Term{}) {
			t.Error("believes after Run has returned")
		}
		if n := s.count("renew"); n != 20 {
			t.Errorf("%d renewals in 60s, want 20", n)
		}
	})
}

func TestElectorStopsAtOnceWhenARenewalIsRefused(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		causes := make(chan error, 2)
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			defer func() { causes <- context.Cause(ctx) }()
			return s.untilDone(ctx, term)
		})
		s.until(4 * sec)
		if err := s.memory.Delete(ctx, "db"); err != nil {
			t.Fatal(err)
		}
		s.until(6 * sec)
		cause := <-causes
		if _, ok := errors.AsType[*LostError](cause); !ok || !errors.Is(cause, ErrRefused) || !errors.Is(cause, ErrNotHeld) || errors.Is(cause, ErrLapsed) {
			t.Errorf("cause: %v, want ErrRefused by a LostError", cause)
		}
		s.script("0s acquire", "0s lead under 1", "3s renew", "6s renew", "6s stop", "6s acquire", "6s lead under 2")
		cancel()
		<-done
	})
}

func TestElectorDoesNotCampaignWhileOldWorkGoesOn(t *testing.T) {
	broken := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew && s.clk.Now() < 60*sec {
			return Grant{}, errLost
		}
		return call()
	}
	play(t, broken, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			if term.Token == 1 {
				<-ctx.Done()
				time.Sleep(51 * sec) // deaf from 9s to 60s
				s.note("stopped")
				return nil
			}
			return s.untilDone(ctx, term)
		})
		s.until(61 * sec)
		s.mu.Lock()
		s.log = slices.DeleteFunc(s.log, func(line string) bool { return strings.HasSuffix(line, " renew") })
		s.mu.Unlock()
		s.script("0s acquire", "1m0s stopped", "1m0s acquire", "1m0s lead under 2")
		cancel()
		<-done
	})
}

func TestElectorResignsWhenTheWorkReturnsAndLetsOthersGoFirst(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			if term.Token == 2 {
				return s.untilDone(ctx, term)
			}
			time.Sleep(500 * ms)
			context.AfterFunc(ctx, func() {
				if !errors.Is(context.Cause(ctx), ErrResigned) || term.Valid() {
					s.Errorf("after the work returned: %v, valid %v", context.Cause(ctx), term.Valid())
				}
				s.note("resigned")
			})
			return nil
		})
		s.until(2 * sec)
		diff(t, "holder", s.e.Term().Holder, alice2)
		cancel()
		<-done
		diff(t, "resigned", s.count("resigned"), 1)
		diff(t, "releases", s.count("release"), 2)
		s.mu.Lock()
		s.log = slices.DeleteFunc(s.log, func(line string) bool { return strings.HasPrefix(line, "500ms") })
		s.mu.Unlock()
		s.script("0s acquire", "1.5s acquire", "1.5s lead under 2", "2s stop", "2s release", "2s returned")
	})
}

func TestElectorReturnsTheErrorOfTheWork(t *testing.T) {
	failed := errors.New("bad shard")
	play(t, nil, nil, func(s *stage) {
		done := s.run(s.Context(), func(context.Context, Term) error {
			time.Sleep(sec)
			return fmt.Errorf("replay: %w", failed)
		})
		if err := <-done; !errors.Is(err, failed) {
			t.Errorf("Run returned %v", err)
		}
		s.script("0s acquire", "1s release", "1s returned")
	})
}

func TestElectorReturnsTheErrorOfTheWorkThatStoppedWithItsContext(t *testing.T) {
	failed := errors.New("flush failed")
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			return failed
		})
		s.until(sec)
		cancel()
		if err := <-done; err != failed {
			t.Errorf("Run returned %v, want the error of the work", err)
		}
	})
}

// Work that returns because it was told to must not take the candidate down.
func TestElectorTakesTheEndOfTheTermForNoFailure(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) error{
		"the context's error":       func(ctx context.Context) error { return fmt.Errorf("query: %w", ctx.Err()) },
		"its cause":                 func(ctx context.Context) error { return context.Cause(ctx) },
		"what its cause stands for": func(context.Context) error { return ErrLapsed },
		"nothing":                   func(context.Context) error { return nil },
	} {
		lost := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
			if req.Op == OpRenew {
				return Grant{}, errLost
			}
			return call()
		}
		play(t, lost, nil, func(s *stage) {
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, func(ctx context.Context, term Term) error {
				s.note("lead under %d", term.Token)
				<-ctx.Done()
				return end(ctx)
			})
			s.until(11 * sec)
			diff(t, name+": second term", s.count("lead under 2"), 1)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) && name != "what its cause stands for" {
				t.Errorf("%s: Run returned %v", name, err)
			}
		})
	}
}

func TestElectorTakesACancellationThatIsNotItsOwnForAFailure(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		done := s.run(s.Context(), func(context.Context, Term) error { return context.Canceled })
		if err := <-done; err != context.Canceled || s.Context().Err() != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestElectorReturnsTheCauseOfItsContext(t *testing.T) {
	why := errors.New("deployment")
	play(t, nil, nil, func(s *stage) {
		ctx, cancel := context.WithCancelCause(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		})
		s.until(sec)
		cancel(why)
		if err := <-done; err != why {
			t.Errorf("Run returned %v, want the cause", err)
		}
		// With a context that has ended it does not even begin.
		if err := <-s.run(ctx, nil); err != why {
			t.Errorf("Run returned %v, want the cause", err)
		}
		s.script("0s acquire", "1s release", "1s returned", "1s returned")
	})
}

func TestElectorReleasesBeforeAPanicOfTheWorkGoesOn(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		func() {
			defer func() {
				diff(t, "panic", recover(), any("no such shard"))
				s.note("recovered")
			}()
			s.e.Run(s.Context(), func(context.Context, Term) error { panic("no such shard") })
		}()
		s.script("0s acquire", "0s release", "0s recovered")
		diff(t, "leads", s.e.IsLeader(), false)
		// It can be run again, and nothing was left behind.
		if err := s.e.Run(s.Context(), func(context.Context, Term) error { return errLost }); err != errLost {
			t.Errorf("second Run: %v", err)
		}
	})
}

func TestElectorReleasesWhenTheWorkExitsItsGoroutine(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			s.e.Run(s.Context(), func(context.Context, Term) error { runtime.Goexit(); return nil })
			s.note("returned")
		}()
		<-exited
		s.script("0s acquire", "0s release")
	})
}

func TestElectorRunsOnceAtATimeAndEachTimeAsAnotherIncarnation(t *testing.T) {
	play(t, nil, nil, func(s *stage) {
		var holders []Holder
		for range 3 {
			err := s.e.Run(s.Context(), func(ctx context.Context, term Term) error {
				holders = append(holders, term.Holder)
				if err := s.e.Run(ctx, nil); !errors.Is(err, ErrRunning) {
					t.Errorf("Run within Run: %v", err)
				}
				return errLost
			})
			if err != errLost {
				t.Error(err)
			}
		}
		for i, h := range holders {
			if h.Node != "alice" || h.Nonce != alice.Nonce || i > 0 && h.Seq <= holders[i-1].Seq {
				t.Errorf("holders %v: want rising incarnations of alice", holders)
			}
		}
	})
}

func TestElectorLeadsOnlyAfterEveryStorageAcknowledged(t *testing.T) {
	var s *stage
	tries := 0
	quick := fencerFunc(func(_ context.Context, token Token) error { s.note("quick fence %d", token); return nil })
	slow := fencerFunc(func(_ context.Context, token Token) error {
		s.note("slow fence %d", token)
		if tries++; tries < 21 {
			return errLost
		}
		return nil
	})
	play(t, nil, []Fencer{quick, slow}, func(st *stage) {
		s = st
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(19500 * ms)
		diff(t, "leads with the barrier pending", s.e.IsLeader(), false)
		diff(t, "work with the barrier pending", s.count("lead under 1"), 0)
		s.until(20 * sec)
		diff(t, "leads after the barrier", s.e.IsLeader(), true)
		diff(t, "work", s.count("lead under 1"), 1)
		diff(t, "fences of the slow one, one a second", s.count("slow fence 1"), 21)
		diff(t, "fences of the one that has acknowledged", s.count("quick fence 1"), 1)
		diff(t, "renewals meanwhile", s.count("renew"), 6)
		cancel()
		<-done
	})
}

func TestElectorHungFenceBlocksNoRetry(t *testing.T) {
	var calls atomic.Int32
	first := fencerFunc(func(ctx context.Context, token Token) error {
		if calls.Add(1) == 1 {
			_, err := hang(ctx)
			return err
		}
		return nil
	})
	play(t, nil, []Fencer{first}, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(2 * sec)
		diff(t, "leads", s.e.IsLeader(), true)
		cancel()
		<-done
	})
}

func TestElectorRefusedBarrierBeginsNoTerm(t *testing.T) {
	ahead := fencerFunc(func(_ context.Context, token Token) error {
		if token < 3 {
			return fmt.Errorf("token %d: %w", token, ErrStale)
		}
		return nil
	})
	play(t, nil, []Fencer{ahead}, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(25 * sec)
		// Each refused incarnation leaves its lease to lapse: 10s, 20s.
		diff(t, "term", s.e.Term().Token, Token(3))
		diff(t, "incarnation", s.e.Term().Holder.Seq, uint64(3))
		for _, token := range []string{"lead under 1", "lead under 2"} {
			diff(t, token, s.count(token), 0)
		}
		cancel()
		<-done
	})
}

func TestElectorKeepsItsStoragesWhateverBecomesOfTheSlice(t *testing.T) {
	var fenced atomic.Bool
	fencers := []Fencer{fencerFunc(func(context.Context, Token) error { fenced.Store(true); return nil })}
	clk := clock.NewManual(0)
	e, err := NewElector(newMemory(t, clk, MemoryOptions{}), ElectorConfig{Resource: "db", Node: "alice", Timing: tenSeconds, Clock: clk, Fencers: fencers})
	if err != nil {
		t.Fatal(err)
	}
	fencers[0] = fencerFunc(func(context.Context, Token) error { return errLost })
	if err := e.Run(t.Context(), func(context.Context, Term) error { return errLost }); err != errLost || !fenced.Load() {
		t.Errorf("Run returned %v, fenced %v", err, fenced.Load())
	}
}

func TestElectorNeverActsInTheZeroTerm(t *testing.T) {
	if (Term{}).Valid() || (Term{}).Deadline() != 0 || (Term{Token: 7, Holder: alice}).Valid() {
		t.Error("a term that never began is valid")
	}
}

func TestAnElectorConfigThatMakesNoSenseIsRefused(t *testing.T) {
	clk := clock.NewManual(0)
	store := newMemory(t, clk, MemoryOptions{})
	fencer := fencerFunc(func(context.Context, Token) error { return nil })
	with := func(change func(*ElectorConfig)) ElectorConfig {
		cfg := ElectorConfig{Resource: "db", Node: "alice", Timing: tenSeconds, Clock: clk}
		change(&cfg)
		return cfg
	}
	for _, c := range []struct {
		store Store
		cfg   ElectorConfig
		field string
	}{
		{nil, with(func(*ElectorConfig) {}), "store"},
		{store, with(func(c *ElectorConfig) { c.Resource = "" }), "Resource"},
		{store, with(func(c *ElectorConfig) { c.Timing.Barrier = true }), "Barrier"},
		{store, with(func(c *ElectorConfig) { c.Fencers = []Fencer{fencer, nil} }), "Fencers"},
		{store, with(func(c *ElectorConfig) { c.ReleaseTimeout = -1 }), "ReleaseTimeout"},
		{store, with(func(c *ElectorConfig) { c.Timing = Config{} }), "TTL"},
	} {
		_, err := NewElector(c.store, c.cfg)
		if e, ok := errors.AsType[*ConfigError](err); !ok || e.Field != c.field {
			t.Errorf("%+v: %v, want an error about %s", c.cfg, err, c.field)
		}
	}
	for _, node := range []string{"", "a#b"} {
		if _, err := NewElector(store, ElectorConfig{Resource: "db", Node: node, Timing: tenSeconds, Clock: clk}); !errors.Is(err, ErrHolder) {
			t.Errorf("node %q: %v", node, err)
		}
	}
}

func TestProcessesOfOneNameAreToldApartByTheirNonce(t *testing.T) {
	clk := clock.NewManual(0)
	store := newMemory(t, clk, MemoryOptions{})
	seen := map[Holder]bool{{Node: "alice", Seq: 1}: true} // a nonce that was not drawn
	for range 10 {
		e, err := NewElector(store, ElectorConfig{Resource: "db", Node: "alice", Timing: tenSeconds, Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		if seen[e.holder] {
			t.Errorf("%v twice", e.holder)
		}
		seen[e.holder] = true
	}
}
