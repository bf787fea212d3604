package storetest

import (
	"context"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// process is a lab as a World drives it, for one run.
type process struct {
	*kit.Lab[lease.Store]
	w        *simulated
	resource string
	at       time.Duration // since the beginning
	asked    []probeLine   // last
}

func newProcess(w *simulated, resource string) *process {
	p := &process{Lab: w.lab, w: w, resource: resource}
	w.lab.Tell(p.stuck)
	return p
}

// Resource is the run's own.
func (p *process) Resource() string { return p.resource }

// Close leaves the store to the next run.
func (p *process) Close() { p.w.idle = true }

// Store counts, as it is asked for once for each call. What it gives is watched.
func (p *process) Store() lease.Store {
	p.w.calls++
	if d, ok := p.Thing().(kit.Deleter); ok {
		return deletable{asked{p}, d}
	}
	return asked{p}
}

// Advance lets time pass.
func (p *process) Advance(d time.Duration) {
	p.Lab.Advance(d)
	p.at += d
}

// stuck tells of a call that does not return: see [kit.Watch.Tell].
func (p *process) stuck(within string) *kit.Failure {
	return (&probe{lab: p.Lab, at: p.at, lines: p.asked}).stuck(within)
}

// call notes a call of the store, in f, and its answer.
func (p *process) call(f func() (string, error), format string, args ...any) error {
	if len(p.asked) == 2*storyLines {
		p.asked = append(p.asked[:0], p.asked[storyLines:]...)
	}
	p.asked = append(p.asked, probeLine{at: p.at, asked: fmt.Sprintf(format, args...)})
	var said string
	var err error
	p.Call(func() { said, err = f() })
	if err != nil {
		said = refusal(err)
	}
	p.asked[len(p.asked)-1].answer = said
	return err
}

// asked is the store of a process, and deletable one that can delete.
type asked struct{ p *process }

type deletable struct {
	asked
	d kit.Deleter
}

func (s asked) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	err = s.p.call(func() (string, error) {
		g, err = s.p.Thing().Acquire(ctx, resource, h, ttl)
		return granted(g), err
	}, "%s acquires for %v", named(h), ttl)
	return g, err
}

func (s asked) Renew(ctx context.Context, resource string, h lease.Holder, token lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	err = s.p.call(func() (string, error) {
		g, err = s.p.Thing().Renew(ctx, resource, h, token, ttl)
		return granted(g), err
	}, "%s renews under token %d for %v", named(h), token, ttl)
	return g, err
}

func (s asked) Release(ctx context.Context, resource string, h lease.Holder, token lease.Token) error {
	return s.p.call(func() (string, error) { return "released", s.p.Thing().Release(ctx, resource, h, token) },
		"%s releases under token %d", named(h), token)
}

func (s asked) Get(ctx context.Context, resource string) (seen lease.Observation, err error) {
	err = s.p.call(func() (string, error) {
		seen, err = s.p.Thing().Get(ctx, resource)
		return observed(seen), err
	}, "who holds it?")
	return seen, err
}

func (s deletable) Delete(ctx context.Context, resource string) error {
	return s.p.call(func() (string, error) { return "deleted", s.d.Delete(ctx, resource) }, "an operator deletes it")
}
