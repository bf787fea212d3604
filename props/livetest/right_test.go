package livetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// A server of the test's own, whose flaws wrong_test.go has, is right without.
func TestARightServerHolds(t *testing.T) {
	t.Parallel()
	s := newServer()
	hold(t, StoreChecks(s.open, s.options()))
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
