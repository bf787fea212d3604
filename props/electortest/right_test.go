package electortest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost/impl/lease"
)

// This is a client as a user would write it, by package time alone: each call
// in a goroutine of its own, one timer for the end of the term.

type right struct {
	env Env

	mu       sync.Mutex
	deadline time.Time // of the term; the zero time: none
}

func newRight(env Env) Candidate {
	r := &right{env: env}
	return Candidate{Run: r.run, IsLeader: r.isLeader}
}

func (r *right) isLeader() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.deadline)
}

func (r *right) setDeadline(d time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = d
}

func (r *right) run(ctx context.Context) error {
	me := lease.Holder{Node: r.env.Node, Seq: 1, Nonce: r.env.Nonce}
	for ctx.Err() == nil {
		sent := time.Now()
		g, err := r.call(ctx, func(ctx context.Context) (lease.Grant, error) {
			return r.env.Store.Acquire(ctx, r.env.Resource, me, r.env.Config.TTL)
		})
		if deadline := sent.Add(r.env.Config.Window(g.TTL)); err == nil && time.Now().Before(deadline) {
			r.term(ctx, me, g.Token, deadline)
			me = me.Next()
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.env.Config.Retry()):
		}
	}
	return ctx.Err()
}

// term leads until the term ends, and releases it once the work has stopped.
func (r *right) term(ctx context.Context, me lease.Holder, token lease.Token, deadline time.Time) {
	r.setDeadline(deadline)
	work, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.env.Lead(work, uint64(token))
	}()
	renew := time.NewTicker(r.env.Config.RenewAfter())
	defer renew.Stop()
	end := time.NewTimer(time.Until(deadline))
	defer end.Stop()
	type result struct {
		sent time.Time
		g    lease.Grant
		err  error
	}
	results := make(chan result, 100)
	var calls sync.WaitGroup
loop:
	for {
		select {
		case <-renew.C:
			sent := time.Now()
			if !sent.Before(deadline) {
				break loop
			}
			calls.Go(func() {
				g, err := r.call(work, func(ctx context.Context) (lease.Grant, error) {
					return r.env.Store.Renew(ctx, r.env.Resource, me, token, r.env.Config.TTL)
				})
				results <- result{sent, g, err}
			})
		case res := <-results:
			if errors.Is(res.err, lease.ErrNotHeld) {
				break loop
			}
			if d := res.sent.Add(r.env.Config.Window(res.g.TTL)); res.err == nil && d.After(deadline) {
				deadline = d
				r.setDeadline(d)
				end.Reset(time.Until(d))
			}
		case <-end.C:
			break loop
		case <-ctx.Done():
			break loop
		}
	}
	r.setDeadline(time.Time{})
	stop()
	<-stopped
	r.call(context.WithoutCancel(ctx), func(ctx context.Context) (lease.Grant, error) {
		return lease.Grant{}, r.env.Store.Release(ctx, r.env.Resource, me, token)
	})
	calls.Wait()
}

// call gives a call as long as a window, and does not wait for one that
// ignores its context.
func (r *right) call(ctx context.Context, f func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, r.env.Config.SafeWindow()/4)
	type result struct {
		g   lease.Grant
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer cancel()
		g, err := f(ctx)
		done <- result{g, err}
	}()
	select {
	case res := <-done:
		return res.g, res.err
	case <-ctx.Done():
		return lease.Grant{}, ctx.Err()
	}
}

func TestARightClientPasses(t *testing.T)          { passes(t, newRight, Options{}) }
func TestARightClientPassesByItsWork(t *testing.T) { passes(t, byWork(newRight), Options{Plans: 30}) }
func TestARightClientPassesByAsking(t *testing.T)  { passes(t, byAsking(newRight), Options{Plans: 30}) }

// hedged asks for a lease again while the answer is awaited, and takes the
// first one that comes.
type hedged struct {
	lease.Store
	every, limit time.Duration
}

func (s hedged) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	type answer struct {
		g   lease.Grant
		err error
	}
	answers := make(chan answer, 100)
	again := time.NewTicker(s.every)
	defer again.Stop()
	for {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limit)
			defer cancel()
			g, err := s.Store.Acquire(ctx, resource, holder, ttl)
			answers <- answer{g, err}
		}()
		select {
		case a := <-answers:
			return a.g, a.err
		case <-again.C:
		case <-ctx.Done():
			return lease.Grant{}, ctx.Err()
		}
	}
}

func newHedged(env Env) Candidate {
	w := env.Config.SafeWindow()
	env.Store = hedged{env.Store, w / 8, w}
	return newRight(env)
}

func TestAClientThatTakesTheFirstOfSeveralAnswersPasses(t *testing.T) {
	passes(t, newHedged, Options{Plans: 100})
}

// What an answer says that the client need not have looked at convicts nobody.
func TestAnAnswerThatNobodyWaitsForEndsNoTerm(t *testing.T) {
	o := Options{}.withDefaults()
	T := o.Config.TTL
	for name, c := range map[string]struct {
		fates  [3]fate // of the first acquires and renewals
		script func(*world)
	}{
		"a second acquire is granted anew": {
			[3]fate{{Answer: T * 15 / 100}, {Request: T / 5, Before: upsetDelete}}, func(*world) {}},
		"a second acquire is refused": {
			[3]fate{{Answer: T * 15 / 100}, {Request: T / 5}}, func(w *world) {
				w.run(T * 16 / 100)
				w.deleteLease()
				w.rivalAcquires()
			}},
		"a renewal that was given up is refused": {
			[3]fate{{}, {Answer: T * 3 / 10, Deaf: true, Before: upsetDelete}, cut(T)}, func(*world) {}},
	} {
		t.Run(name, func(t *testing.T) {
			r := play(t, setup{start: newHedged, o: o, clients: 1, judges: anywhere, fate: func(call *call) fate {
				if call.claims() && call.claim < len(c.fates) {
					return c.fates[call.claim]
				}
				return fate{}
			}}, func(w *world) {
				c.script(w)
				w.run(T)
			})
			if r.breach != nil || r.terms == 0 {
				t.Errorf("%d terms, and %+v\n%s", r.terms, r.breach, strings.Join(r.tale.story(), "\n"))
			}
		})
	}
}
