package electortest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/impl/lease"
)

// The wrong clients, each written as its user would have. The comment says
// what is wrong with it.

// fromTheReply counts its window from the answer.
func fromTheReply(env Env) Candidate {
	var until atomic.Int64
	leads := func() bool { return time.Now().UnixNano() < until.Load() }
	return Candidate{IsLeader: leads, Run: func(ctx context.Context) error {
		for seq := uint64(1); ctx.Err() == nil; seq++ {
			me := lease.Holder{Node: env.Node, Seq: seq, Nonce: env.Nonce}
			g, err := env.Store.Acquire(ctx, env.Resource, me, env.Config.TTL)
			for err == nil && ctx.Err() == nil {
				until.Store(time.Now().Add(env.Config.Window(g.TTL)).UnixNano())
				pause(ctx, env.Config.RenewAfter())
				for {
					g, err = env.Store.Renew(ctx, env.Resource, me, g.Token, env.Config.TTL)
					if err == nil || errors.Is(err, lease.ErrNotHeld) || !leads() || ctx.Err() != nil {
						break
					}
					pause(ctx, env.Config.Retry())
				}
			}
			until.Store(0)
			if g.Token != 0 {
				env.Store.Release(context.WithoutCancel(ctx), env.Resource, me, g.Token)
			}
			pause(ctx, env.Config.Retry())
		}
		return nil
	}}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// trustsItsContext believes that a call returns once its context has ended.
func trustsItsContext(env Env) Candidate {
	var leader atomic.Bool
	return Candidate{IsLeader: leader.Load, Run: func(ctx context.Context) error {
		for seq := uint64(1); ctx.Err() == nil; seq++ {
			me := lease.Holder{Node: env.Node, Seq: seq, Nonce: env.Nonce}
			sent := time.Now()
			call, cancel := context.WithTimeout(ctx, env.Config.Retry())
			g, err := env.Store.Acquire(call, env.Resource, me, env.Config.TTL)
			cancel()
			deadline := sent.Add(env.Config.Window(g.TTL))
			if err == nil && time.Now().Before(deadline) {
				leader.Store(true)
				ticker := time.NewTicker(env.Config.RenewAfter())
				for ctx.Err() == nil && time.Now().Before(deadline) {
					select {
					case <-ticker.C:
					case <-ctx.Done():
					}
					sent := time.Now()
					call, cancel := context.WithDeadline(ctx, deadline)
					r, err := env.Store.Renew(call, env.Resource, me, g.Token, env.Config.TTL)
					cancel()
					if errors.Is(err, lease.ErrNotHeld) {
						break
					}
					if err == nil {
						deadline = sent.Add(env.Config.Window(r.TTL))
					}
				}
				ticker.Stop()
				leader.Store(false)
				env.Store.Release(context.WithoutCancel(ctx), env.Resource, me, g.Token)
			}
			pause(ctx, env.Config.Retry())
		}
		return nil
	}}
}

// threeStrikes takes each error for a hiccup, and steps down at the third in a
// row or at its deadline; but a refusal is none.
func threeStrikes(env Env) Candidate {
	return Candidate{Run: func(ctx context.Context) error {
		for seq := uint64(1); ctx.Err() == nil; seq++ {
			me := lease.Holder{Node: env.Node, Seq: seq, Nonce: env.Nonce}
			sent := time.Now()
			call, cancel := context.WithTimeout(ctx, env.Config.Retry())
			g, err := env.Store.Acquire(call, env.Resource, me, env.Config.TTL)
			cancel()
			deadline := sent.Add(env.Config.Window(g.TTL))
			if err != nil || time.Now().After(deadline) {
				pause(ctx, env.Config.Retry())
				continue
			}
			work, stop := context.WithCancel(ctx)
			timer := time.AfterFunc(time.Until(deadline), stop)
			done := make(chan struct{})
			go func() {
				env.Lead(work, uint64(g.Token))
				close(done)
			}()
			ticker := time.NewTicker(env.Config.RenewAfter())
			for strikes := 0; strikes < 3 && work.Err() == nil; {
				select {
				case <-work.Done():
					continue
				case <-ticker.C:
				}
				sent := time.Now()
				r, err := env.Store.Renew(work, env.Resource, me, g.Token, env.Config.TTL)
				if err != nil {
					env.Logger.Warn("cannot renew", "err", err)
					strikes++
					continue
				}
				strikes = 0
				if timer.Stop() {
					timer.Reset(time.Until(sent.Add(env.Config.Window(r.TTL))))
				}
			}
			ticker.Stop()
			timer.Stop()
			stop()
			<-done
			env.Store.Release(context.WithoutCancel(ctx), env.Resource, me, g.Token)
			pause(ctx, env.Config.Retry())
		}
		return nil
	}}
}

// defersInTheWrongOrder means to wait for its work and then release.
func defersInTheWrongOrder(env Env) Candidate {
	lead := func(ctx context.Context, me lease.Holder, token lease.Token, deadline time.Time) {
		var wg sync.WaitGroup
		defer wg.Wait()
		defer env.Store.Release(context.WithoutCancel(ctx), env.Resource, me, token)
		work, cancel := context.WithCancel(ctx)
		defer cancel()
		end := time.AfterFunc(time.Until(deadline), cancel)
		defer end.Stop()
		wg.Go(func() { env.Lead(work, uint64(token)) })
		for {
			select {
			case <-work.Done():
				return
			case <-time.After(env.Config.RenewAfter()):
			}
			for work.Err() == nil {
				sent := time.Now()
				g, err := env.Store.Renew(work, env.Resource, me, token, env.Config.TTL)
				if errors.Is(err, lease.ErrNotHeld) {
					return
				}
				if err == nil {
					if end.Stop() {
						end.Reset(time.Until(sent.Add(env.Config.Window(g.TTL))))
					}
					break
				}
				pause(work, env.Config.Retry())
			}
		}
	}
	return Candidate{Run: func(ctx context.Context) error {
		me := lease.Holder{Node: env.Node, Seq: 1, Nonce: env.Nonce}
		for ctx.Err() == nil {
			sent := time.Now()
			call, cancel := context.WithTimeout(ctx, env.Config.Retry())
			g, err := env.Store.Acquire(call, env.Resource, me, env.Config.TTL)
			cancel()
			if deadline := sent.Add(env.Config.Window(g.TTL)); err == nil && time.Now().Before(deadline) {
				lead(ctx, me, g.Token, deadline)
				me = me.Next()
			}
			pause(ctx, env.Config.Retry())
		}
		return nil
	}}
}

// holdsItsMutex renews with the mutex that IsLeader takes.
func holdsItsMutex(env Env) Candidate {
	var mu sync.Mutex
	var deadline time.Time
	me := lease.Holder{Node: env.Node, Seq: 1, Nonce: env.Nonce}
	leads := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Before(deadline)
	}
	step := func(ctx context.Context, token lease.Token) lease.Token {
		mu.Lock()
		defer mu.Unlock()
		sent := time.Now()
		var g lease.Grant
		var err error
		if token != 0 && sent.Before(deadline) {
			g, err = env.Store.Renew(ctx, env.Resource, me, token, env.Config.TTL)
		} else {
			g, err = env.Store.Acquire(ctx, env.Resource, me, env.Config.TTL)
		}
		switch {
		case err == nil:
			deadline = sent.Add(env.Config.Window(g.TTL))
			return g.Token
		case errors.Is(err, lease.ErrNotHeld):
			deadline = time.Time{}
			me = me.Next()
			return 0
		}
		return token
	}
	return Candidate{IsLeader: leads, Run: func(ctx context.Context) error {
		for token := lease.Token(0); ctx.Err() == nil; {
			token = step(ctx, token)
			pause(ctx, env.Config.Retry())
		}
		return nil
	}}
}

// slips are the mistakes of one more client, which is right without any.
type slips struct {
	leadOnAfterRefusal bool // a refusal is an error like any other
	releaseEarly       bool // the release does not wait for the work
	neverRelease       bool
	sameIdentity       bool // campaigns again as the holder it was
	noNonce            bool // is the node and a counter
	revive             bool // believes any late answer
	anyToken           bool // renews by acquiring, and takes any grant
	neverRenew         bool
	renewAtTTL         bool // renews when the TTL is over
	renewLate          bool // renews once in a window
	ignoreDrift        bool // believes for the whole TTL
	ignoreGrantedTTL   bool // believes for what it asked for
	leadOnDelay        bool // takes the lock delay of a lease for its own
	leadLate           bool // leads on a grant whose window is over
	rereadToken        bool // renews and releases under the token that Get tells
	giveUp             bool // returns at an error
	noPause            bool // asks again at once
	longPause          bool // backs off for many TTLs
	leak               bool // leaves a goroutine behind
	leadUnfenced       bool // fences after it has begun
	exit               bool // returns when a term has ended
}

var errTermOver = errors.New("term over")

type sloppy struct {
	slips
	Env
	deadline atomic.Int64 // since origin; 0: does not lead
	origin   time.Time
}

func client(s slips) func(Env) Candidate {
	return func(env Env) Candidate {
		c := &sloppy{slips: s, Env: env, origin: time.Now()}
		return Candidate{Run: c.run, IsLeader: c.leads}
	}
}

func (c *sloppy) leads() bool { return int64(time.Since(c.origin)) < c.deadline.Load() }

func (c *sloppy) run(ctx context.Context) error {
	me := lease.Holder{Node: c.Node, Seq: 1, Nonce: c.Nonce}
	if c.noNonce {
		me.Nonce = 7
	}
	if c.leak {
		go func() {
			for range time.Tick(c.Config.TTL) {
			}
		}()
	}
	wait := c.Config.Retry()
	if c.longPause {
		wait = 4 * c.Config.TTL
	}
	for ctx.Err() == nil {
		sent := time.Since(c.origin)
		g, err := c.call(ctx, func(ctx context.Context) (lease.Grant, error) {
			return c.Store.Acquire(ctx, c.Resource, me, c.Config.TTL)
		})
		if _, delayed := errors.AsType[*lease.DelayError](err); delayed && c.leadOnDelay {
			g, err = lease.Grant{Token: 1, TTL: c.Config.TTL}, nil
		}
		switch {
		case err == nil && (c.leadLate || time.Since(c.origin) < sent+c.window(g)):
			if c.leadLate {
				sent = max(sent, time.Since(c.origin)-c.window(g)+c.Config.Retry())
			}
			c.term(ctx, me, g, sent+c.window(g))
			if !c.sameIdentity {
				me = me.Next()
			}
			if c.exit {
				return errTermOver
			}
		case err != nil && c.giveUp:
			return err
		}
		if !c.noPause {
			pause(ctx, wait)
		}
	}
	return nil
}

func (c *sloppy) window(g lease.Grant) time.Duration {
	switch {
	case c.ignoreDrift:
		return g.TTL - c.Config.TTL/50
	case c.ignoreGrantedTTL:
		return c.Config.SafeWindow()
	}
	return c.Config.Window(g.TTL)
}

func (c *sloppy) term(ctx context.Context, me lease.Holder, g lease.Grant, deadline time.Duration) {
	fence := func() bool {
		return !c.Config.Barrier || c.Storage.Fence(ctx, g.Token) == nil
	}
	if !c.leadUnfenced && !fence() {
		return
	}
	c.deadline.Store(int64(deadline))
	work, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.Lead(work, uint64(g.Token))
	}()
	if c.leadUnfenced && !fence() {
		deadline = 0
	}
	every := c.Config.RenewAfter()
	if c.renewAtTTL {
		every = c.Config.TTL
	}
	if c.renewLate {
		every = c.Config.SafeWindow() * 3 / 4
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	type result struct {
		sent time.Duration
		g    lease.Grant
		err  error
	}
	results := make(chan result, 1000)
	var calls sync.WaitGroup
	for over := false; !over; {
		end := time.NewTimer(deadline - time.Since(c.origin))
		select {
		case <-ticker.C:
			sent := time.Since(c.origin)
			if c.neverRenew || sent >= deadline {
				break // out of the select
			}
			calls.Go(func() {
				with := work
				if c.revive {
					with = ctx
				}
				r, err := c.call(with, func(ctx context.Context) (lease.Grant, error) {
					if c.anyToken {
						return c.Store.Acquire(ctx, c.Resource, me, c.Config.TTL)
					}
					return c.Store.Renew(ctx, c.Resource, me, c.token(ctx, g), c.Config.TTL)
				})
				if d := int64(sent + c.window(r)); c.revive && err == nil && d > c.deadline.Load() {
					c.deadline.Store(d)
				}
				results <- result{sent, r, err}
			})
		case r := <-results:
			held, _ := errors.AsType[*lease.HeldError](r.err)
			if (errors.Is(r.err, lease.ErrNotHeld) || held != nil && c.anyToken) && !c.leadOnAfterRefusal {
				over = true
			}
			if d := r.sent + c.window(r.g); r.err == nil && d > deadline {
				deadline = d
				c.deadline.Store(int64(d))
			}
		case <-end.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		end.Stop()
	}
	c.deadline.Store(0)
	release := func() {
		if !c.neverRelease {
			c.call(context.WithoutCancel(ctx), func(ctx context.Context) (lease.Grant, error) {
				return lease.Grant{}, c.Store.Release(ctx, c.Resource, me, c.token(ctx, g))
			})
		}
	}
	if c.releaseEarly {
		release()
	}
	stop()
	if c.revive {
		calls.Wait()
		pause(ctx, time.Duration(c.deadline.Load())-time.Since(c.origin))
		c.deadline.Store(0)
	}
	<-stopped
	if !c.releaseEarly {
		release()
	}
	calls.Wait()
}

func (c *sloppy) token(ctx context.Context, g lease.Grant) lease.Token {
	if c.rereadToken {
		if o, err := c.Store.Get(ctx, c.Resource); err == nil {
			return o.Token
		}
	}
	return g.Token
}

func (c *sloppy) call(ctx context.Context, f func(context.Context) (lease.Grant, error)) (lease.Grant, error) {
	if !c.revive {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Config.SafeWindow()/4)
		defer cancel()
	}
	type result struct {
		g   lease.Grant
		err error
	}
	done := make(chan result, 1)
	go func() {
		g, err := f(ctx)
		done <- result{g, err}
	}()
	select {
	case r := <-done:
		return r.g, r.err
	case <-ctx.Done():
		if c.leadLate {
			r := <-done
			return r.g, r.err
		}
		return lease.Grant{}, ctx.Err()
	}
}
