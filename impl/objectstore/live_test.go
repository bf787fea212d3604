package objectstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/objectstore"
	"fencepost/props"
)

// promises are those of a store that is asked about each lease again and again,
// as an elector does: then a renewal is seen soon.
func promises() props.Options {
	// A process that is asked about a lease for the first time has not seen what
	// went before, and the checks ask some that late.
	return props.Options{Late: 1500 * time.Millisecond}
}

// polling is a store whose process looks at each lease from when it is first
// asked about it.
type polling struct {
	*objectstore.Store
	ctx     context.Context
	mu      sync.Mutex
	polled  map[string]bool
	pollers sync.WaitGroup
}

func (p *polling) poll(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.polled[resource] {
		return
	}
	p.polled[resource] = true
	p.pollers.Go(func() { // until the process ends
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.ctx.Done():
				return
			case <-tick.C:
				p.Store.Get(p.ctx, resource) // the next one sees what this one did not
			}
		}
	})
}

func (p *polling) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	p.poll(resource)
	return p.Store.Acquire(ctx, resource, holder, ttl)
}

func (p *polling) Get(ctx context.Context, resource string) (lease.Observation, error) {
	p.poll(resource)
	return p.Store.Get(ctx, resource)
}

func TestStore(t *testing.T) {
	s := startServer(t)
	props.TestLiveStore(t, func(e props.LiveEnv) lease.Store {
		p := &polling{Store: mustStore(t, s.client(), objectstore.Options{}), ctx: e.Context, polled: map[string]bool{}}
		t.Cleanup(p.pollers.Wait)
		return p
	}, props.LiveOptions{Options: promises(), Restart: s.restart})
}

func TestStorage(t *testing.T) {
	s := startServer(t)
	data := objectstore.NewStorage(s.client(), bucket, "data")
	if err := data.Fence(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	props.TestLiveStorage(t, func(props.LiveEnv) fence.KV {
		return objectstore.NewStorage(s.client(), bucket, "data")
	}, props.LiveStorageOptions{Restart: s.restart})
}
