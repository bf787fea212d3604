package props_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props"
)

// A store of one's own, checked: its only time is the clock that it is given,
// and all that survives the simulated crashes is on the disk.
func ExampleTestStore() {
	_ = func(t *testing.T) { // TestLeases
		props.TestStore(t, func(env props.Env) lease.Store {
			disk := props.Durable(env, "disk", func() *disk { return &disk{} })
			store, err := lease.NewMemory(env.Clock, lease.MemoryOptions{Journal: disk, State: disk.state, LockDelay: 2 * time.Second})
			if err != nil {
				env.Fatal(err)
			}
			return store
		}, props.Options{LockDelay: 2 * time.Second})
	}
	// Output:
}

// A store whose tokens are the revisions of a database, and which ends leases
// by a sweep once a second.
func ExampleOptions() {
	_ = props.Options{Tokens: model.TokensRising, Late: time.Second}
	// Output:
}

// locks is somebody's lock service, which knows nothing of fencepost.
type locks struct {
	mu     sync.Mutex
	now    func() time.Duration
	owner  string
	token  uint64
	expiry time.Duration
}

func (l *locks) mine(owner string, token uint64) bool {
	return l.owner == owner && l.token == token && l.now() < l.expiry
}

// prolong never moves the expiry back, nor beyond the end of time.
func (l *locks) prolong(ttl time.Duration) {
	l.expiry = max(l.expiry, l.now()+min(ttl, math.MaxInt64-l.now()))
}

func (l *locks) Lock(owner string, ttl time.Duration) (token uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner != "" && l.now() < l.expiry && l.owner != owner {
		return 0, false
	}
	if !l.mine(owner, l.token) {
		l.owner, l.token, l.expiry = owner, l.token+1, 0
	}
	l.prolong(ttl)
	return l.token, true
}

func (l *locks) Extend(owner string, token uint64, ttl time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mine(owner, token) {
		return false
	}
	l.prolong(ttl)
	return true
}

func (l *locks) Unlock(owner string, token uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mine(owner, token) {
		return false
	}
	l.owner = ""
	return true
}

// lockService is a lock a name.
func lockService(env props.Env) lease.Store {
	var all sync.Map
	named := func(name string) *locks {
		l, _ := all.LoadOrStore(name, &locks{now: env.Clock.Now})
		return l.(*locks)
	}
	return props.Funcs{
		Acquire: func(_ context.Context, name, owner string, ttl time.Duration) (uint64, bool, error) {
			token, ok := named(name).Lock(owner, ttl)
			return token, ok, nil
		},
		Renew: func(_ context.Context, name, owner string, token uint64, ttl time.Duration) (bool, error) {
			return named(name).Extend(owner, token, ttl), nil
		},
		Release: func(_ context.Context, name, owner string, token uint64) (bool, error) {
			return named(name).Unlock(owner, token), nil
		},
	}.Store()
}

func TestALockServiceOfPlainFunctionsPasses(t *testing.T) {
	props.TestStore(t, lockService, props.Options{Volatile: true})
}

// A lock service without fencepost's types, made a store of plain functions.
func ExampleFuncs() {
	_ = func(t *testing.T) { // TestLocks
		props.TestStore(t, lockService, props.Options{Volatile: true})
	}
	// Output:
}

// Every sequence of up to six steps.
func ExampleExploreStore() {
	_ = func(t *testing.T) { // TestEveryShortSequence
		props.ExploreStore(t, memory, props.Options{}, props.ExploreOptions{Depth: 6})
	}
	// Output:
}

// What the lease protects.
func ExampleTestStorage() {
	_ = func(t *testing.T) { // TestTable
		props.TestStorage(t, func(env props.Env) fence.KV {
			log := props.Durable(env, "log", func() *log { return &log{} })
			return fence.Restore(log.durable, log)
		}, props.StorageOptions{})
	}
	// Output:
}

// A client that takes its clock from outside, or calls package time: both are
// tested in fake time.
func ExampleTestElector() {
	_ = func(t *testing.T) { // TestClient
		props.TestElector(t, func(env props.ElectorEnv) props.Candidate {
			e, err := lease.NewElector(env.Store, lease.ElectorConfig{Resource: env.Resource, Node: env.Node, Timing: env.Config, Clock: env.Clock, Nonce: env.Nonce})
			if err != nil {
				t.Fatal(err)
			}
			return props.Candidate{
				Run: func(ctx context.Context) error {
					return e.Run(ctx, func(ctx context.Context, term lease.Term) error { return env.Lead(ctx, uint64(term.Token)) })
				},
				IsLeader: e.IsLeader,
			}
		}, props.ElectorOptions{})
	}
	// Output:
}
