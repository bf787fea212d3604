package livetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// restarter restarts the server for several trials at once: when each that is
// under way has come to where it wants that.
type restarter struct {
	restart func(context.Context) error

	mu       sync.Mutex
	underWay int
	waiting  []chan<- error
}

// begin says that n trials are under way, and leave that one is not any more.
func (r *restarter) begin(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay = n
}

func (r *restarter) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay--
	r.perhaps()
}

// wait returns when the server was restarted.
func (r *restarter) wait() error {
	done := make(chan error, 1)
	r.mu.Lock()
	r.waiting = append(r.waiting, done)
	r.perhaps()
	r.mu.Unlock()
	return <-done
}

// perhaps restarts if nobody is left to wait for. It is called under mu.
func (r *restarter) perhaps() {
	if len(r.waiting) == 0 || len(r.waiting) < r.underWay {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), restartLimit)
	defer cancel()
	err := r.restart(ctx)
	for _, w := range r.waiting {
		w <- err
	}
	r.waiting = nil
}

// restartLimit is how long a server may take to be back.
const restartLimit = 2 * time.Minute

// restartChecks are those of what the server has after a restart.
func restartChecks(w *world[lease.Store], o Options) []kit.Check {
	skip := ""
	switch {
	case o.Volatile:
		skip = "the store forgets everything with its process: see Options.Volatile"
	case o.Restart == nil && o.NoRestart != "":
		skip = "restarts are not tested: " + o.NoRestart
	}
	r := &restarter{restart: o.Restart}
	names := []struct {
		name string
		of   model.Rule
		f    func(*trial, func() span)
	}{
		{"keeps-the-tenure", model.RuleRestartTenure, (*trial).restartKeepsTenure},
		{"keeps-the-counter", model.RuleRestartCounter, (*trial).restartKeepsCounter},
		{"keeps-the-lapse", model.RuleRestartLapse, (*trial).restartKeepsLapse},
		{"ends-the-tenure", model.RuleRestartEnds, (*trial).restartEndsTenure},
	}
	var tasks []task
	for _, n := range names {
		tasks = append(tasks, task{"restart/" + n.name, func() kit.Outcome {
			defer r.leave()
			switch {
			case skip != "":
				return kit.Outcome{Skipped: skip}
			case o.Restart == nil:
				return kit.Outcome{Unknown: "nobody knows what a restart of the server loses: set Options.Restart, or say in NoRestart why not"}
			}
			return try(w, o, 0, n.of, func(t *trial) { n.f(t, func() span { return t.restart(r) }) })
		}})
	}
	return gathered(tasks, func() { r.begin(len(tasks)) }, w.close)
}

// span is from when to when something happened.
type span struct{ from, to time.Duration }

// restart has the server restart, on record where its clock begins anew: where
// it goes on, everything is as if there had been none.
func (t *trial) restart(r *restarter) span {
	at := t.w.clk.Now()
	var done func()
	if !t.o.SteadyClock {
		c := t.rec.Invoke("restart", keyField(t.lease))
		done = func() { c.OK() }
	}
	if err := r.wait(); err != nil {
		panic(unproved(fmt.Sprintf("the server did not come back: %v", err)))
	}
	if done != nil {
		done()
	}
	t.tell(at, "the server is killed, and comes back", fmt.Sprintf("%v later", (t.w.clk.Now()-at).Round(time.Millisecond)))
	return span{at, t.w.clk.Now()}
}

// afterwards asks until there is an answer: connections have to be made again.
func (t *trial) afterwards(ask func() answer) answer {
	end := t.w.clk.Now() + 2*patience
	for {
		a := ask()
		if a.code != lease.CodeNone {
			return a
		}
		if t.w.clk.Now() >= end {
			panic(unproved(fmt.Sprintf("no answer in %v after the restart: %v", 2*patience, a.err)))
		}
		t.until(t.w.clk.Now() + 50*time.Millisecond)
	}
}

// fresh is a process that begins after the restart.
const fresh = stormProcesses + 1

// long is a TTL that outlasts a restart.
func (t *trial) long() time.Duration {
	long := max(10*t.ttl, 3*patience)
	if t.o.MaxTTL > 0 {
		long = min(long, t.o.MaxTTL)
	}
	return long
}

func (t *trial) restartKeepsTenure(restart func() span) {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(t.long())
	when := restart()
	if !t.o.SteadyClock { // held for its whole TTL again
		held.ret = when.to
	}
	r := t.afterwards(func() answer { return b.at(fresh).acquire(t.ttl) })
	t.want(r.code == lease.CodeHeld, model.RuleRestartTenure, "refused: held by a under token %d, as before the restart", held.grant.Token)
	r = t.afterwards(func() answer { return a.renew(held.grant.Token, t.long()) })
	t.want(r.code == lease.CodeGranted, model.RuleRestartTenure, "granted: a holds it under token %d, as before the restart", held.grant.Token)
	b.at(fresh).mustBeHeld(a, r, model.RuleRestartTenure)
	a.at(fresh).mustRelease(held)
	next := b.at(fresh).mustAcquire(t.ttl)
	t.want(next.grant.Token > held.grant.Token, model.RuleRestartCounter, "a token above %d", held.grant.Token)
}

func (t *trial) restartKeepsCounter(restart func() span) {
	a, b := t.candidate("a", 0), t.candidate("b", fresh)
	var last answer
	for range 3 {
		last = a.mustAcquire(t.long())
		a.mustRelease(last)
	}
	restart()
	next := t.afterwards(func() answer { return b.acquire(t.long()) })
	t.want(next.code == lease.CodeGranted, model.RuleRestartRelease, "granted: a released it")
	t.want(next.grant.Token > last.grant.Token, model.RuleRestartCounter, "a token above %d", last.grant.Token)
	r := t.afterwards(func() answer { return a.renew(last.grant.Token, t.ttl) })
	t.want(r.notHeld(), model.RuleRenewHolder, "refused as lost: b holds it under token %d", next.grant.Token)
	b.mustRelease(next)
}

func (t *trial) restartKeepsLapse(restart func() span) {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(t.ttl)
	t.until(t.over(held))
	r := a.release(held.grant.Token) // somebody is told
	t.want(r.notHeld(), model.RuleReleaseHeld, "refused as lapsed")
	when := restart()
	if !t.o.RenewAfterLapse {
		r = t.afterwards(func() answer { return a.renew(held.grant.Token, t.ttl) })
		t.want(r.notHeld(), model.RuleRestartLapse, "refused as lapsed: so was a told before the restart")
	}
	t.until(when.to + t.o.LockDelay + t.o.LockDelay/500) // which starts anew
	t.afterwards(func() answer { return b.at(fresh).acquire(t.ttl) })
	b.at(fresh).mustLapse(a, held)
}

// restartEndsTenure has a tenure end as it must, whatever instant was written
// down.
func (t *trial) restartEndsTenure(restart func() span) {
	a, b := t.candidate("a", 0), t.candidate("b", fresh)
	held := a.mustAcquire(t.ttl)
	if when := restart(); !t.o.SteadyClock {
		held.ret = when.to
	}
	t.afterwards(func() answer { return b.acquire(t.ttl) })
	b.mustLapse(a, held)
}
