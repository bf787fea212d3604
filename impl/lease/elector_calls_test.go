package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The store hangs in every call after the first and ignores the end of contexts.
func TestElectorStepsDownOnTimeWhileCallsHangAndIgnoreTheirContext(t *testing.T) {
	hung := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew {
			<-s.gate
		}
		return call()
	}
	play(t, hung, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		terms := make(chan Term, 3)
		var cause error
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			terms <- term
			<-ctx.Done()
			if cause == nil {
				cause = context.Cause(ctx)
			}
			s.note("stop")
			return context.Cause(ctx)
		})
		term := <-terms
		s.until(9*sec - 1)
		diff(t, "valid before the deadline", term.Valid(), true)
		s.until(9 * sec)
		diff(t, "valid at the deadline", term.Valid(), false)
		if !errors.Is(cause, ErrLapsed) || !strings.Contains(cause.Error(), `"db"`) {
			t.Errorf("cause: %v, want ErrLapsed, which names the lease", cause)
		}
		s.until(9500 * ms)
		s.script("0s acquire", "3s renew", "4s renew", "5s renew", "6s renew", "7s renew", "8s renew", "9s stop", "9s acquire")
		// What hangs is no obstacle to the next term, once the lease has lapsed.
		s.until(10 * sec)
		diff(t, "next token", (<-terms).Token, Token(2))
		close(s.gate)
		cancel()
		<-done
	})
}

func TestElectorCountsFromTheSendOfASlowSuccess(t *testing.T) {
	slow := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op != OpRenew {
			return call()
		}
		if s.clk.Now() == 3*sec {
			time.Sleep(5 * sec)
			return call()
		}
		return Grant{}, errLost
	}
	play(t, slow, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(8500 * ms)
		diff(t, "deadline after the slow renewal", s.e.Term().Deadline(), 12*sec)
		s.until(12 * sec)
		diff(t, "stopped", s.count("stop"), 1)
		cancel()
		<-done
	})
}

func TestElectorSurvivesLostRenewals(t *testing.T) {
	lossy := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew && s.count("renew")%3 != 0 { // it is noted already
			return Grant{}, errLost
		}
		return call()
	}
	play(t, lossy, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(100 * sec)
		diff(t, "terms", s.count("lead under 1"), 1)
		diff(t, "leads", s.e.IsLeader(), true)
		// 3s, 4s, 5s after the send that succeeded last, and so every 5s.
		diff(t, "renewals, two in three of them lost", s.count("renew"), 60)
		cancel()
		<-done
	})
}

// unanswered counts the calls in flight.
type unanswered struct {
	sync.Mutex
	now, most int
}

func (u *unanswered) inFlight() int {
	u.Lock()
	defer u.Unlock()
	return u.now
}

func (u *unanswered) during(call func() (Grant, error)) (Grant, error) {
	u.Lock()
	u.now++
	u.most = max(u.most, u.now)
	u.Unlock()
	defer func() {
		u.Lock()
		u.now--
		u.Unlock()
	}()
	return call()
}

func TestElectorBoundsHungCallsAndStillNoticesARecovery(t *testing.T) {
	var u unanswered
	hung := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		return u.during(func() (Grant, error) {
			if s.clk.Now() < 5*sec {
				return hang(ctx) // a dead connection; the next one may be alive
			}
			return call()
		})
	}
	cfg := tenSeconds
	cfg.RetryInterval = 10 * ms
	playWith(t, cfg, ElectorConfig{}, hung, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(5 * sec)
		diff(t, "leads while the store hangs", s.e.IsLeader(), false)
		s.until(5*sec + 20*ms)
		diff(t, "leads two retries after it recovered", s.e.IsLeader(), true)
		diff(t, "most calls at once", u.most, maxCalls)
		cancel()
		<-done
		diff(t, "calls after Run", u.inFlight(), 0)
	})
}

func TestElectorCancelsCallsWhoseAnswerCannotMatter(t *testing.T) {
	var u unanswered
	var hangs Op
	hung := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == hangs {
			return u.during(func() (Grant, error) { return hang(ctx) })
		}
		return call()
	}
	fence := fencerFunc(func(ctx context.Context, _ Token) error {
		if hangs != OpFence {
			return nil
		}
		_, err := u.during(func() (Grant, error) { return hang(ctx) })
		return err
	})
	// Retries do not fall on the instants in question.
	cfg := tenSeconds
	cfg.RetryInterval = 1700 * ms
	for _, c := range []struct {
		name   string
		op     Op
		at     time.Duration
		before int // calls in flight just before at
	}{
		// Sent at 3s, 4.7s, 6.4s, 8.1s.
		{"renewals when the term ends", OpRenew, 9 * sec, 4},
		// Sent at 500ms, and not again.
		{"the release after the release timeout", OpRelease, 2 * sec, 1},
		// Sent every 1.7s from 0s, the latest at 8.5s: what was sent at 0s is stale.
		{"an acquire that could not be believed", OpAcquire, 9 * sec, 6},
		{"a fence likewise", OpFence, 9 * sec, 6},
	} {
		hangs = c.op
		playWith(t, cfg, ElectorConfig{Fencers: []Fencer{fence}, ReleaseTimeout: 1500 * ms}, hung, func(s *stage) {
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, func(ctx context.Context, term Term) error {
				if c.op != OpRelease {
					return s.untilDone(ctx, term)
				}
				time.Sleep(500 * ms)
				return nil
			})
			s.until(c.at - 1)
			diff(t, c.name+": in flight just before", u.inFlight(), c.before)
			s.until(c.at)
			after := c.before - 1
			if c.op == OpRenew {
				after = 0 // all of the term's
			}
			diff(t, c.name+": in flight then", u.inFlight(), after)
			cancel()
			<-done
			diff(t, c.name+": in flight after Run", u.inFlight(), 0)
		})
	}
}

func TestElectorGivesASlowStoreItsTime(t *testing.T) {
	slow := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		select {
		case <-time.After(4 * sec): // four retry intervals
			return call()
		case <-ctx.Done():
			return Grant{}, ctx.Err()
		}
	}
	play(t, slow, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(60 * sec)
		diff(t, "terms", s.count("lead under 1"), 1)
		diff(t, "leads", s.e.IsLeader(), true)
		cancel()
		<-done
	})
}

func TestElectorShutdownIsBoundedByItsOwnTimer(t *testing.T) {
	for name, c := range map[string]struct {
		hang func(s *stage, ctx context.Context)
		want time.Duration // the release timeout is 3s, and twice that for the deaf
	}{
		"calls that heed their context":   {func(_ *stage, ctx context.Context) { <-ctx.Done() }, 5 * sec},
		"calls that ignore their context": {func(s *stage, _ context.Context) { <-s.gate }, 8 * sec},
	} {
		for _, op := range []Op{OpRelease, OpAcquire} {
			hung := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
				if req.Op == op {
					c.hang(s, ctx)
					return Grant{}, errLost
				}
				return call()
			}
			play(t, hung, nil, func(s *stage) {
				ctx, cancel := context.WithCancel(s.Context())
				done := s.run(ctx, s.untilDone)
				s.until(2 * sec)
				cancel()
				<-done
				diff(t, fmt.Sprintf("%s: %v hangs: Run returned at", name, op), s.clk.Now(), c.want)
				close(s.gate)
			})
		}
	}
}

func TestElectorShutdownDoesNotWaitForTheBarrier(t *testing.T) {
	hung := fencerFunc(func(ctx context.Context, _ Token) error {
		_, err := hang(ctx)
		return err
	})
	play(t, nil, []Fencer{hung}, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(500 * ms)
		cancel()
		<-done
		s.script("0s acquire", "500ms release", "500ms returned")
	})
}

func TestElectorReleasesWhatItIsGrantedWhileShuttingDown(t *testing.T) {
	slow := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		g, err := call()
		if req.Op == OpAcquire {
			time.Sleep(900 * ms)
		}
		return g, err
	}
	for _, fencers := range [][]Fencer{nil, {fencerFunc(func(context.Context, Token) error { return nil })}} {
		play(t, slow, fencers, func(s *stage) {
			ctx, cancel := context.WithCancel(s.Context())
			done := s.run(ctx, s.untilDone)
			s.until(500 * ms)
			cancel()
			<-done
			s.script("0s acquire", "900ms release", "900ms returned")
		})
	}
}

func TestElectorGivesUpOnAnInvalidAcquire(t *testing.T) {
	invalid := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		return Grant{}, fmt.Errorf("proxy: %w", &InvalidError{Resource: "db", Op: OpAcquire})
	}
	play(t, invalid, nil, func(s *stage) {
		if err := <-s.run(s.Context(), nil); !is[*InvalidError](err) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// A store that grants what nobody can lead under would grant it to each retry,
// and lock everybody else out.
func TestElectorGivesUpOnAGrantOfNoUseAndReleasesIt(t *testing.T) {
	for name, c := range map[string]struct {
		spoil    func(*Grant)
		reason   string
		released bool
	}{
		"no TTL":             {func(g *Grant) { g.TTL = 0 }, "no time to act", true},
		"no more than slack": {func(g *Grant) { g.TTL = 526 * ms }, "= 526ms - 526ms*0.05 - 500ms = -300µs", true},
		"no holder":          {func(g *Grant) { g.Holder = Holder{} }, `asked for by "alice#1.a11ce"`, true},
		"another holder":     {func(g *Grant) { g.Holder = bob }, `grant to "bob#1.b0b"`, true},
		"no token":           {func(g *Grant) { g.Token = 0 }, "count from 1", false}, // whose release?
	} {
		for _, slow := range []bool{false, true} { // granted only after ctx has ended
			spoiling := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
				g, err := call()
				if req.Op == OpAcquire {
					c.spoil(&g)
					if slow {
						time.Sleep(500 * ms)
					}
				}
				return g, err
			}
			play(t, spoiling, nil, func(s *stage) {
				ctx, cancel := context.WithCancel(s.Context())
				done := s.run(ctx, s.untilDone)
				s.until(100 * ms)
				cancel()
				err := <-done
				if e, ok := errors.AsType[*GrantError](err); !slow && (!ok || !strings.Contains(e.Error(), c.reason) || !strings.Contains(e.Error(), `"db"`)) {
					t.Errorf("%s: Run returned %v", name, err)
				}
				at, free := map[bool]string{false: "0s", true: "500ms"}[slow], Holder{}
				script := []string{"0s acquire", at + " release", at + " returned"}
				if !c.released {
					script, free = slices.Delete(script, 1, 2), alice
				}
				s.script(script...)
				o, _ := s.memory.Get(s.Context(), "db")
				diff(t, name+": holder after Run", o.Holder, free)
			})
		}
	}
}

// A retry may be answered worse than the attempt before it. The term that runs by
// then is under the token of both: it is neither ended nor released.
func TestElectorLeadsOnPastAUselessAnswerToARetry(t *testing.T) {
	spoiling := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		g, err := call()
		if req.Op == OpAcquire {
			if s.clk.Now() > 0 {
				g.TTL = 0
			}
			time.Sleep(1500 * ms)
		}
		return g, err
	}
	play(t, spoiling, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(5 * sec)
		s.script("0s acquire", "1s acquire", "1.5s lead under 1", "3s renew")
		cancel()
		<-done
	})
}

func TestElectorTakesNoRenewalThatIsNotItsOwn(t *testing.T) {
	strange := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		g, err := call()
		switch now := s.clk.Now(); {
		case req.Op != OpRenew:
		case now == 3*sec:
			g.Holder = bob
		case now == 4*sec:
			g.TTL = 0
		case now > 6*sec:
			g.Token++
		}
		return g, err
	}
	play(t, strange, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(8500 * ms)
		s.script("0s acquire", "0s lead under 1", "3s renew", "4s renew", "5s renew", "8s renew", "8s stop", "8s acquire")
		cancel()
		<-done
	})
}

// An elector whose requests arrive but whose answers are lost keeps the lease from
// everybody: at the least it must not do so in silence.
func TestElectorSaysWhichCallsAreNotAnswered(t *testing.T) {
	var log strings.Builder
	deaf := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		call()
		return hang(ctx)
	}
	opts := ElectorConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	playWith(t, tenSeconds, opts, deaf, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(9 * sec) // the answer to what was sent at 0s cannot matter any more
		cancel()
		<-done
		_, first, _ := strings.Cut(log.String(), `level=WARN msg="call unanswered" `)
		if !strings.HasPrefix(first, "resource=db node=alice op=acquire to=store for=9s\n") {
			t.Errorf("the log does not name the call first:\n%s", &log)
		}
	})
}
