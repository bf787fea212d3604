package livetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// quick are options with TTLs so short that the checks take seconds.
var quick = Options{Options: kit.Options{MinTTL: 100 * time.Millisecond}, TTL: 200 * time.Millisecond, Latency: 50 * time.Millisecond}

// server keeps leases by the rules of lease.Record, but for the flaws that it was
// given. Its processes are its clients: each is a connection.
type server struct {
	clk       clock.Clock
	lockDelay time.Duration

	mu      sync.Mutex
	records map[string]lease.Record

	// Each may change what the rules make of a request. Nil: they stand.
	before  func(now time.Duration, rec *lease.Record, req *lease.Request) // under mu
	instead func(s *server, resource string, req lease.Request) (lease.Reply, bool)
	after   func(req lease.Request, rep *lease.Reply, rec *lease.Record)
	revived func(map[string]lease.Record) // what a restart leaves
	erased  func(lease.Record) (lease.Record, bool)
	mute    bool // watchers are told nothing
	mixed   bool // batches are answered in another order
	endless bool // watches do not end with their context

	hints map[string][]chan struct{}
}

func newServer() *server {
	return &server{clk: clock.Boot(), records: map[string]lease.Record{}, hints: map[string][]chan struct{}{}}
}

// restart is a server that has a clock of its own.
func (s *server) restart(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, rec := range s.records {
		s.records[name] = lease.Restore(rec.Durable, s.clk.Now())
	}
	if s.revived != nil {
		s.revived(s.records)
	}
	return nil
}

func (s *server) delete(_ context.Context, resource string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, keep := s.records[resource], true
	if s.erased != nil {
		rec, keep = s.erased(rec)
	} else {
		rec = rec.Delete()
	}
	if s.records[resource] = rec; !keep {
		delete(s.records, resource)
	}
	s.hint(resource)
	return nil
}

func (s *server) hint(resource string) {
	for _, h := range s.hints[resource] {
		select {
		case h <- struct{}{}:
		default:
		}
	}
}

func (s *server) options() Options {
	o := quick
	o.Restart, o.Delete = s.restart, s.delete
	return o
}

func (s *server) open(Env) lease.Store { return connection{s} }

func (s *server) handle(ctx context.Context, resource string, req lease.Request) (lease.Reply, error) {
	if err := ctx.Err(); err != nil {
		return lease.Reply{}, fmt.Errorf("nothing done: %w", err)
	}
	if s.instead != nil {
		if rep, done := s.instead(s, resource, req); done {
			return rep, rep.Err(resource)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rep := s.locked(resource, req)
	return rep, rep.Err(resource)
}

func (s *server) locked(resource string, req lease.Request) lease.Reply {
	rec, now := s.records[resource], s.clk.Now()
	if s.before != nil {
		s.before(now, &rec, &req)
	}
	next, rep := rec.Handle(now, s.lockDelay, req)
	if s.after != nil {
		s.after(req, &rep, &next)
	}
	changed := next.Token != rec.Token || next.Holder != rec.Holder || next.Status != rec.Status
	if s.records[resource] = next; changed && !s.mute {
		s.hint(resource)
	}
	return rep
}

// connection is one process's.
type connection struct{ s *server }

func (c connection) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	rep, err := c.s.handle(ctx, resource, lease.Request{Op: lease.OpAcquire, Holder: holder, TTL: ttl})
	return lease.Grant{Resource: resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}, err
}

func (c connection) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	rep, err := c.s.handle(ctx, resource, lease.Request{Op: lease.OpRenew, Holder: holder, Token: token, TTL: ttl})
	return lease.Grant{Resource: resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}, err
}

func (c connection) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	_, err := c.s.handle(ctx, resource, lease.Request{Op: lease.OpRelease, Holder: holder, Token: token})
	return err
}

func (c connection) Get(ctx context.Context, resource string) (lease.Observation, error) {
	rep, err := c.s.handle(ctx, resource, lease.Request{Op: lease.OpGet})
	return lease.Observation{Resource: resource, Holder: rep.Current, Token: rep.Token, Remaining: rep.Remaining}, err
}

func (c connection) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	hints := make(chan struct{}, 1)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.s.mute {
		c.s.hints[resource] = append(c.s.hints[resource], hints)
	}
	context.AfterFunc(ctx, func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		for i, h := range c.s.hints[resource] {
			if h == hints {
				c.s.hints[resource] = append(c.s.hints[resource][:i:i], c.s.hints[resource][i+1:]...)
			}
		}
		if !c.s.endless {
			close(hints)
		}
	})
	return hints, nil
}

func (c connection) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	answers := make([]lease.Answer, len(calls))
	for i, call := range calls {
		rep, err := c.s.handle(ctx, call.Resource, call.Request)
		if answers[i].Err = err; err == nil && call.Op != lease.OpRelease {
			answers[i].Grant = lease.Grant{Resource: call.Resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}
		}
	}
	if c.s.mixed {
		answers[0], answers[6] = answers[6], answers[0]
	}
	return answers
}

// hold fails t unless all checks hold or do not apply.
func hold(t *testing.T, checks []kit.Check) {
	t.Helper()
	for _, c := range checks {
		out := kit.Guard(c.Run)
		switch {
		case out.Failure != nil:
			t.Errorf("%s: %s", c.Name, out.Failure.Text(nil, ""))
		case out.Unknown != "":
			t.Errorf("%s: unknown: %s", c.Name, out.Unknown)
		default:
			t.Logf("%s: %s%s", c.Name, out.Covered, out.Skipped)
		}
	}
}

// durable is a journal that the next lease.Memory starts from.
type durable struct {
	mu    sync.Mutex
	state map[string]lease.Durable
}

func (d *durable) Save(resource string, to lease.Durable) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state[resource] = to
	return nil
}

func (d *durable) clone() map[string]lease.Durable {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.state)
}
