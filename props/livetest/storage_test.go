package livetest

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// shelf is a storage that processes share, right but for the flaws that it was
// given.
type shelf struct {
	mu      sync.Mutex
	highest lease.Token
	values  map[string]string

	admit   func(s *shelf, token lease.Token, key string) bool // under mu; nil: the rule
	gap     bool                                               // between the look at the token and the write
	deaf    bool                                               // to fences
	hasty   bool                                               // writes first, and looks then
	wiped   bool                                               // by a fence
	restart func(s *shelf)
	perKey  map[string]lease.Token
}

func newShelf() *shelf { return &shelf{values: map[string]string{}, perKey: map[string]lease.Token{}} }

func (s *shelf) open(Env) fence.KV { return s }

func (s *shelf) admits(token lease.Token, key string) bool {
	if s.admit != nil {
		return s.admit(s, token, key)
	}
	return token > 0 && token >= s.highest
}

func (s *shelf) Write(ctx context.Context, token lease.Token, key, value string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasty {
		s.values[key] = value
	}
	if !s.admits(token, key) {
		return &fence.StaleTokenError{Token: token, Highest: s.highest}
	}
	if s.gap {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		s.mu.Lock()
	}
	s.highest, s.perKey[key] = max(s.highest, token), token
	s.values[key] = value
	return nil
}

func (s *shelf) Fence(ctx context.Context, token lease.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.admits(token, "") {
		return &fence.StaleTokenError{Token: token, Highest: s.highest}
	}
	if s.wiped {
		clear(s.values)
	}
	if !s.deaf {
		s.highest = max(s.highest, token)
	}
	return nil
}

func (s *shelf) Read(_ context.Context, key string) (string, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[key]
	return value, ok, nil
}

func (s *shelf) restarted(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restart != nil {
		s.restart(s)
	}
	return nil
}

func TestARightStorageHolds(t *testing.T) {
	s := newShelf()
	hold(t, StorageChecks(s.open, StorageOptions{Restart: s.restarted}))
}

func TestFenceStorageHolds(t *testing.T) {
	s := fence.Restore(fence.Durable{}, nil)
	hold(t, StorageChecks(func(Env) fence.KV { return s }, StorageOptions{Restart: func(context.Context) error {
		d := s.Durable()
		d.Values = maps.Clone(d.Values)
		s = fence.Restore(d, nil)
		return nil
	}}))
}

// withLease is a storage that looks at the lease, on the same server.
func withLease(t *testing.T, wrap func(fence.KV) fence.KV) (func(Env) fence.KV, StorageOptions) {
	t.Helper()
	m, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kv := wrap(fence.NewCompareAndSwap(m, "app"))
	return func(Env) fence.KV { return kv }, StorageOptions{
		Lease: func(Env) lease.Store { return m }, Resource: "app", NoRestart: "all of it is in memory",
	}
}

func TestCompareAndSwapHolds(t *testing.T) {
	open, o := withLease(t, func(kv fence.KV) fence.KV { return kv })
	hold(t, StorageChecks(open, o))
}

func storageTaskOf(t *testing.T, open func(Env) fence.KV, o StorageOptions, name string) kit.Outcome {
	t.Helper()
	for _, c := range StorageChecks(open, o) {
		if c.Name == name {
			return kit.Guard(c.Run)
		}
	}
	t.Fatalf("there is no check %q", name)
	return kit.Outcome{}
}

func convicted(t *testing.T, out kit.Outcome, rule string) {
	t.Helper()
	switch {
	case out.Failure == nil:
		t.Errorf("came to %+v; want a conviction", out)
	case out.Failure.Rule != rule:
		t.Errorf("convicted by %q; want %q\n%s", out.Failure.Rule, rule, out.Failure.Text(nil, ""))
	default:
		t.Log(out.Failure.Text(nil, ""))
	}
}

func TestEachWrongStorageIsConvictedByTheCheckOfItsRule(t *testing.T) {
	for _, c := range []struct {
		flaw, check, rule string
		of                func(*shelf)
	}{
		{"no token is looked at", "rules/stale-is-refused", lowerTokenIsRefused, func(s *shelf) {
			s.admit = func(*shelf, lease.Token, string) bool { return true }
		}},
		{"each key has a guard of its own", "rules/stale-is-refused", oneGuardForAllKeys, func(s *shelf) {
			s.admit = func(s *shelf, token lease.Token, key string) bool { return token >= s.perKey[key] }
		}},
		{"a token is good for one write", "rules/a-write-lands", equalTokenLands, func(s *shelf) {
			s.admit = func(s *shelf, token lease.Token, _ string) bool { return token > s.highest }
		}},
		{"a fence is not remembered", "rules/a-fence-bars", fenceBars, func(s *shelf) { s.deaf = true }},
		{"a fence clears the table", "rules/a-fence-bars", fenceWritesNothing, func(s *shelf) { s.wiped = true }},
		{"the token is looked at after the write", "rules/a-refused-write-leaves-nothing", refusedWriteNothing, func(s *shelf) { s.hasty = true }},
		{"token 0 means no check", "rules/token-zero", tokenZeroIsRefused, func(s *shelf) {
			s.admit = func(s *shelf, token lease.Token, _ string) bool { return token == 0 || token >= s.highest }
		}},
		{"a write looks, and lands a moment later", "race/a-fence-in-the-middle", concurrentCallsLinear, func(s *shelf) { s.gap = true }},
		{"a restart loses the highest token", "restart/keeps-the-highest-token", restartKeepsToken, func(s *shelf) {
			s.restart = func(s *shelf) { s.highest = 0 }
		}},
		{"a restart loses the data", "restart/keeps-what-landed", restartKeepsData, func(s *shelf) {
			s.restart = func(s *shelf) { clear(s.values) }
		}},
	} {
		t.Run(c.flaw, func(t *testing.T) {
			t.Parallel()
			s := newShelf()
			c.of(s)
			convicted(t, storageTaskOf(t, s.open, StorageOptions{Restart: s.restarted}, c.check), c.rule)
		})
	}
}

// lax admits what a comparison with the lease refuses, as it is told to.
type lax struct {
	fence.KV
	admits func(token lease.Token, err error) bool
	late   map[string]string
}

func (l *lax) Write(ctx context.Context, token lease.Token, key, value string) error {
	err := l.KV.Write(ctx, token, key, value)
	if err != nil && l.admits(token, err) {
		l.late[key] = value
		return nil
	}
	return err
}

func TestAWrongComparisonWithTheLeaseIsConvicted(t *testing.T) {
	for _, c := range []struct {
		flaw, check, rule string
		admits            func(latest lease.Token, token lease.Token) bool
	}{
		{"the lease need not be held", "lease/a-released-token-is-refused", afterAReleaseNothing, func(latest, token lease.Token) bool { return token == latest }},
		{"any higher token will do", "lease/only-what-was-granted-lands", onlyTheCarriedToken, func(latest, token lease.Token) bool { return token > latest }},
	} {
		t.Run(c.flaw, func(t *testing.T) {
			open, o := withLease(t, func(kv fence.KV) fence.KV {
				return &lax{kv, func(token lease.Token, err error) bool {
					return c.admits(err.(*fence.NotCarriedError).Latest, token)
				}, map[string]string{}}
			})
			convicted(t, storageTaskOf(t, open, o, c.check), c.rule)
		})
	}
}
