package lease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// suspended is the boot clock of a machine that may be suspended: it has gone on
// meanwhile, and its timers fire some time after the machine is up again.
type suspended struct {
	clock.Clock

	mu     sync.Mutex
	slept  time.Duration
	timers []*suspendedTimer
}

type suspendedTimer struct {
	clock.Timer
	clk *suspended
	at  time.Duration
}

func (c *suspended) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Clock.Now() + c.slept
}

func (c *suspended) Timer(at time.Duration) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &suspendedTimer{c.Clock.Timer(at - c.slept), c, at}
	c.timers = append(c.timers, t)
	return t
}

func (t *suspendedTimer) Reset(at time.Duration) {
	t.clk.mu.Lock()
	defer t.clk.mu.Unlock()
	t.at = at
	t.Timer.Reset(at - t.clk.slept)
}

func (t *suspendedTimer) Stop() {
	t.clk.mu.Lock()
	defer t.clk.mu.Unlock()
	t.clk.timers = slices.DeleteFunc(t.clk.timers, func(old *suspendedTimer) bool { return old == t })
	t.Timer.Stop()
}

// suspend is over at once, but for timers that are due: they are late.
func (c *suspended) suspend(long, late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += long
	for _, t := range c.timers {
		t.Timer.Reset(max(t.at-c.slept, c.Clock.Now()+late))
	}
}

// The machine sleeps from 5s to 25s; the deadline was at 9s, and a renewal is on its
// way. Whoever asks first finds that the term is over, whoever wakes first says so,
// and nothing revives it: not the answer to the renewal either.
func TestATermIsOverAfterASuspendHoweverLateItsTimersAre(t *testing.T) {
	for name, c := range map[string]struct {
		wakes func(s *stage, stop func(), answer chan<- struct{})
		ends  time.Duration // by the time that the machine was up: then somebody woke
		want  error
	}{
		"the timers":            {func(*stage, func(), chan<- struct{}) {}, 5*sec + 100*ms, ErrLapsed},
		"an answer":             {func(_ *stage, _ func(), answer chan<- struct{}) { close(answer) }, 5 * sec, ErrLapsed},
		"an operator":           {func(s *stage, _ func(), _ chan<- struct{}) { s.e.Resign() }, 5 * sec, ErrLapsed},
		"the end of everything": {func(_ *stage, stop func(), _ chan<- struct{}) { stop() }, 5 * sec, context.Canceled},
	} {
		var answer chan struct{}
		slow := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
			if req.Op == OpRenew {
				select {
				case <-answer:
				case <-ctx.Done():
					return Grant{}, ctx.Err()
				}
			}
			return call()
		}
		var ended []Event
		opts := ElectorConfig{Observer: observerFn(func(e Event) {
			if e.Kind == EventTermEnded {
				ended = append(ended, e)
			}
		})}
		playWith(t, tenSeconds, opts, slow, func(s *stage) {
			answer = make(chan struct{})
			clk := &suspended{Clock: s.clk}
			s.e.clk = clk
			ctx, cancel := context.WithCancel(s.Context())
			defer cancel()
			terms, ends := make(chan Term, 1), make(chan time.Duration, 1)
			done := s.run(ctx, func(ctx context.Context, term Term) error {
				terms <- term
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), c.want) || term.Valid() {
					t.Errorf("%s: valid %v after %v, want %v", name, term.Valid(), context.Cause(ctx), c.want)
				}
				ends <- s.clk.Now()
				return errWork
			})
			s.until(5 * sec)
			term := <-terms
			diff(t, name+": valid before", term.Valid() && s.e.IsLeader(), true)
			clk.suspend(20*sec, 100*ms)
			if term.Valid() || s.e.IsLeader() {
				t.Errorf("%s: valid %v, leader %v, at 25s", name, term.Valid(), s.e.IsLeader())
			}
			c.wakes(s, cancel, answer)
			<-done
			diff(t, name+": the context ends at", <-ends, c.ends)
			if name != "the end of everything" {
				diff(t, name+": the term ended at", term.Deadline(), 9*sec)
			}
			if len(ended) != 1 || ended[0].At != 9*sec || !errors.Is(ended[0].Err, c.want) {
				t.Errorf("%s: told of %+v, want one end at 9s: %v", name, ended, c.want)
			}
		})
	}
}

// Two seconds of sleep bring the renewal forward, and the deadline.
func TestASuspendIsPartOfTheWindow(t *testing.T) {
	lost := func(_ *stage, _ context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew {
			return Grant{}, errLost
		}
		return call()
	}
	play(t, lost, nil, func(s *stage) {
		clk := &suspended{Clock: s.clk}
		s.e.clk = clk
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.untilDone)
		s.until(2500 * ms)
		clk.suspend(2*sec, 100*ms)
		s.until(7*sec - 1)
		diff(t, "leads 1ns before the window ends", s.e.IsLeader(), true)
		s.until(7 * sec)
		s.script("0s acquire", "0s lead under 1", "2.6s renew", "3.6s renew", "4.6s renew", "5.6s renew", "6.6s renew", "7s stop", "7s acquire")
		cancel()
		<-done
	})
}

func TestATermOfAGroupIsOverAfterASuspendHoweverLateItsTimerIs(t *testing.T) {
	lead := func(ctx context.Context, _ Term, done func()) {
		context.AfterFunc(ctx, func() {
			if !errors.Is(context.Cause(ctx), ErrLapsed) {
				t.Errorf("cause: %v, want ErrLapsed", context.Cause(ctx))
			}
			done()
		})
	}
	var ended []Event
	observer := observerFunc(func(e Event) {
		if e.Kind == EventTermEnded {
			ended = append(ended, e)
		}
	})
	hung := func(_ *troupe, ctx context.Context, calls []Call, batch func() []Answer) []Answer {
		if calls[0].Op == OpRenew {
			<-ctx.Done()
		}
		return batch()
	}
	perform(t, GroupConfig{Lead: lead, Observer: observer}, hung, func(s *troupe) {
		clk := &suspended{Clock: s.clk}
		s.g.clk = clk
		s.add("a")
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx)
		s.until(5 * sec)
		term := s.g.Term("a")
		diff(t, "valid before", term.Valid(), true)
		clk.suspend(20*sec, 100*ms)
		diff(t, "valid after", term.Valid() || s.g.Term("a").Valid(), false)
		s.until(5*sec + 100*ms)
		diff(t, "held once its timer has fired", s.g.Held(), 0)
		diff(t, "the term ended at", term.Deadline(), 9*sec)
		if len(ended) != 1 || ended[0].At != 9*sec || !errors.Is(ended[0].Err, ErrLapsed) {
			t.Errorf("told of %+v, want one lapse at 9s", ended)
		}
		cancel()
		<-done
	})
}
