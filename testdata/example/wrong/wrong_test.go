package wrong

import (
	"context"
	"os"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props"
)

// locker is what all the stores look like.
type locker interface {
	Acquire(name, owner string, ttl time.Duration) (uint64, bool)
	Renew(name, owner string, token uint64, ttl time.Duration) bool
	Release(name, owner string, token uint64) bool
}

// The stores and the client of this package are to fail, each at the subtest
// that is named beside it.
func TestWrong(t *testing.T) {
	if os.Getenv("WRONG") == "" {
		t.Skip("these are wrong, and their tests fail: WRONG=1 go test shows how")
	}
	// Locks in memory are gone after a restart, and who uses them knows.
	volatile := props.Options{Volatile: true}
	for _, w := range []struct {
		name, convicted string
		open            func(props.Env) locker
		options         props.Options
	}{
		{"Reuse", "rules/next-token-after-release",
			func(e props.Env) locker { return &Reuse{Now: e.Clock.Now} }, volatile},
		{"Renew", "rules/renew-by-another-is-refused",
			func(e props.Env) locker { return &Renew{Now: e.Clock.Now} }, volatile},
		{"Release", "rules/release-by-another-is-refused",
			func(e props.Env) locker { return &Release{Now: e.Clock.Now} }, volatile},
		{"Acquire", "concurrency/one-of-many-acquires-wins",
			func(e props.Env) locker { return &Acquire{Now: e.Clock.Now} }, volatile},
		{"Seconds", "rules/held-until-the-last-nanosecond-of-a-tenth",
			func(e props.Env) locker { return &Seconds{Now: e.Clock.Now} }, volatile},
		{"Clock", "rules/lapses-at-the-instant",
			func(e props.Env) locker { return &Clock{Now: e.Clock.Now} }, volatile},
		{"Shorten", "rules/renew-with-a-shorter-ttl-never-shortens",
			func(e props.Env) locker { return &Shorten{Now: e.Clock.Now} }, volatile},
		{"Counter", "restarts/the-counter-stays-after-a-release",
			func(e props.Env) locker {
				return NewCounter(e.Clock.Now, props.Durable(e, "locks", func() map[string]Saved { return map[string]Saved{} }))
			}, props.Options{Tokens: model.TokensRising}}, // one counter for all locks
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Logf("to be convicted by %s", w.convicted)
			props.TestStore(t, func(e props.Env) lease.Store { return adapt(w.open(e)) }, w.options)
		})
	}
	t.Run("Client", func(t *testing.T) {
		t.Log("to be convicted by belief/ends-while-a-call-hangs")
		props.TestElector(t, func(e props.ElectorEnv) props.Candidate {
			me := lease.Holder{Node: e.Node, Seq: 1, Nonce: e.Nonce}
			c := &Client{Store: e.Store, Resource: e.Resource, Me: me, TTL: e.Config.TTL, Lead: e.Lead}
			return props.Candidate{Run: c.Run}
		}, props.ElectorOptions{})
	})
}

// adapt is l as fencepost asks for it. What it calls a holder is a string here,
// and l has no errors: it is sure of what it did.
func adapt(l locker) lease.Store {
	return props.Funcs{
		Acquire: func(_ context.Context, name, owner string, ttl time.Duration) (uint64, bool, error) {
			token, ok := l.Acquire(name, owner, ttl)
			return token, ok, nil
		},
		Renew: func(_ context.Context, name, owner string, token uint64, ttl time.Duration) (bool, error) {
			return l.Renew(name, owner, token, ttl), nil
		},
		Release: func(_ context.Context, name, owner string, token uint64) (bool, error) {
			return l.Release(name, owner, token), nil
		},
	}.Store()
}
