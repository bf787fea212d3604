package props_test

import (
	"context"
	"sync"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props"
)

// disk is what a lease.Memory keeps over a crash.
type disk struct {
	mu    sync.Mutex
	state map[string]lease.Durable
}

func (d *disk) Save(resource string, s lease.Durable) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == nil {
		d.state = map[string]lease.Durable{}
	}
	d.state[resource] = s
	return nil
}

func memory(e props.Env) lease.Store {
	d := props.Durable(e, "disk", func() *disk { return &disk{} })
	m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{Journal: d, State: d.state})
	if err != nil {
		e.Fatal(err)
	}
	return m
}

// The implementation in impl passes what anybody's has to.

func TestMemoryIsALeaseStore(t *testing.T) { props.TestStore(t, memory, props.Options{}) }

func TestEveryShortSequenceHoldsOfMemory(t *testing.T) {
	props.ExploreStore(t, memory, props.Options{}, props.ExploreOptions{Depth: 4})
}

// log is what a fence.Storage keeps over a crash.
type log struct {
	mu      sync.Mutex
	durable fence.Durable
}

func (l *log) Append(e fence.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable.Apply(e)
}

func TestStorageIsAFencedStorage(t *testing.T) {
	props.TestStorage(t, func(e props.Env) fence.KV {
		l := props.Durable(e, "log", func() *log { return &log{} })
		return fence.Restore(l.durable, l)
	}, props.StorageOptions{})
}

func TestElectorIsAClient(t *testing.T) {
	elector := func(e props.ElectorEnv) *lease.Elector {
		el, err := lease.NewElector(e.Store, lease.ElectorConfig{Resource: e.Resource, Node: e.Node, Timing: e.Config, Clock: e.Clock, Nonce: e.Nonce, Logger: e.Logger})
		if err != nil {
			panic(err)
		}
		return el
	}
	t.Run("by its work", func(t *testing.T) {
		props.TestElector(t, func(e props.ElectorEnv) props.Candidate {
			el := elector(e)
			return props.Candidate{Run: func(ctx context.Context) error {
				return el.Run(ctx, func(ctx context.Context, term lease.Term) error { return e.Lead(ctx, uint64(term.Token)) })
			}}
		}, props.ElectorOptions{})
	})
	t.Run("by what it says", func(t *testing.T) {
		props.TestElector(t, func(e props.ElectorEnv) props.Candidate {
			el := elector(e)
			return props.Candidate{IsLeader: el.IsLeader, Run: func(ctx context.Context) error {
				return el.Run(ctx, func(ctx context.Context, term lease.Term) error { <-ctx.Done(); return nil })
			}}
		}, props.ElectorOptions{})
	})
}
