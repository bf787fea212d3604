package livetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// A server of the test's own, whose flaws wrong_test.go has, is right without.
func TestARightServerHolds(t *testing.T) {
	t.Parallel()
	s := newServer()
	hold(t, StoreChecks(s.open, s.options()))
}

// Where correct stores differ, Options say so: one with all of it at once.
func TestEachPromiseIsKeptToAndNoMore(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.lockDelay = 100 * time.Millisecond
	const late = 60 * time.Millisecond
	var revision lease.Token // of all leases together
	s.before = func(now time.Duration, rec *lease.Record, req *lease.Request) {
		if req.TTL > 0 {
			req.TTL += late
		}
		switch {
		case req.Op == lease.OpAcquire && !rec.Held(now):
			revision += 2
			rec.Token = revision
		case req.Op == lease.OpRenew && rec.Status == lease.Running && rec.Holder == req.Holder && rec.Token == req.Token:
			rec.Expires = max(rec.Expires, now+1) // nobody took it
		}
	}
	s.after = func(_ lease.Request, rep *lease.Reply, _ *lease.Record) { rep.TTL -= late }
	o := s.options()
	o.Late, o.LockDelay, o.RenewAfterLapse, o.Tokens = late, s.lockDelay, true, model.TokensRising
	hold(t, StoreChecks(s.open, o))
}

// Refusals without details, and no Get.
func TestAStoreOfPlainFunctionsHolds(t *testing.T) {
	t.Parallel()
	s := newServer()
	c := connection{s}
	o := s.options()
	hold(t, StoreChecks(func(Env) lease.Store {
		return kit.Funcs{
			Acquire: func(ctx context.Context, resource, holder string, ttl time.Duration) (uint64, bool, error) {
				h, err := lease.ParseHolder(holder)
				if err != nil {
					return 0, false, err
				}
				g, err := c.Acquire(ctx, resource, h, ttl)
				return uint64(g.Token), err == nil, unlessRefused(err)
			},
			Renew: func(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
				h, err := lease.ParseHolder(holder)
				if err != nil {
					return false, err
				}
				_, err = c.Renew(ctx, resource, h, lease.Token(token), ttl)
				return err == nil, unlessRefused(err)
			},
			Release: func(ctx context.Context, resource, holder string, token uint64) (bool, error) {
				h, err := lease.ParseHolder(holder)
				if err != nil {
					return false, err
				}
				err = c.Release(ctx, resource, h, lease.Token(token))
				return err == nil, unlessRefused(err)
			},
		}.Store()
	}, o))
}

func unlessRefused(err error) error {
	if lease.Refusal(err) != lease.CodeNone {
		return nil
	}
	return err
}

// A store whose calls take as long as a TTL may be right, and nothing that it
// answers shows otherwise.
func TestSlowCallsConvictNobody(t *testing.T) {
	s := newServer()
	s.instead = func(s *server, _ string, req lease.Request) (lease.Reply, bool) {
		// On the way there; the way back is as slow.
		time.Sleep(time.Duration(rand.Int64N(int64(2 * quick.MinTTL))))
		return lease.Reply{}, false
	}
	o := s.options().withDefaults()
	o.TTL, o.Latency = quick.MinTTL, time.Millisecond
	w := newWorld(s.open)
	defer w.close()
	var wg sync.WaitGroup
	for _, c := range append(waiting(w, o), stormChecks(w, o)...) {
		if strings.HasPrefix(c.name, "ttl/1") || strings.HasPrefix(c.name, "watch/") {
			continue // which are long anyway, or a matter of how long is too long
		}
		wg.Go(func() {
			if out := kit.Guard(c.run); out.Failure != nil {
				t.Errorf("%s: %s", c.name, out.Failure.Text(nil, ""))
			}
		})
	}
	wg.Wait()
}

// down is a server that nobody reaches.
type down struct{}

var errDown = errors.New("connection refused")

func (down) Acquire(context.Context, string, lease.Holder, time.Duration) (lease.Grant, error) {
	return lease.Grant{}, errDown
}

func (down) Renew(context.Context, string, lease.Holder, lease.Token, time.Duration) (lease.Grant, error) {
	return lease.Grant{}, errDown
}

func (down) Release(context.Context, string, lease.Holder, lease.Token) error { return errDown }

func (down) Get(context.Context, string) (lease.Observation, error) {
	return lease.Observation{}, errDown
}

func (down) Watch(context.Context, string) (<-chan struct{}, error) { return nil, errDown }

// Nothing is known of a store that gives no answers: it neither passes nor is
// convicted.
func TestAServerThatIsDownIsUnknown(t *testing.T) {
	t.Parallel()
	o := quick
	o.NoRestart = "it is down"
	for _, c := range StoreChecks(func(Env) lease.Store { return down{} }, o) {
		if out := kit.Guard(c.Run); out.Skipped == "" && (out.Failure != nil || out.Unknown == "") {
			t.Errorf("%s: %+v", c.Name, out)
		}
	}
}

// current is whatever lease.Memory runs now.
type current struct{ at *atomic.Pointer[lease.Memory] }

func (c current) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return c.at.Load().Acquire(ctx, resource, holder, ttl)
}

func (c current) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	return c.at.Load().Renew(ctx, resource, holder, token, ttl)
}

func (c current) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return c.at.Load().Release(ctx, resource, holder, token)
}

func (c current) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return c.at.Load().Get(ctx, resource)
}

func (c current) Delete(ctx context.Context, resource string) error {
	return c.at.Load().Delete(ctx, resource)
}

func (c current) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	return c.at.Load().Watch(ctx, resource)
}

func TestMemoryWithAJournalHolds(t *testing.T) {
	t.Parallel()
	journal := &durable{state: map[string]lease.Durable{}}
	var at atomic.Pointer[lease.Memory]
	start := func(context.Context) error {
		m, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{Journal: journal, State: journal.clone()})
		at.Store(m)
		return err
	}
	if err := start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := quick
	o.Restart = start
	hold(t, StoreChecks(func(Env) lease.Store { return current{&at} }, o))
}
