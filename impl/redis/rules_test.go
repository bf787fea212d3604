package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/props"
)

// manualClock reads `now`, in nanoseconds, where a test puts it.
const manualClock = "local now = tonumber(redis.call('GET', 'clock'))\n"

// manual is a store whose server has a clock that the test moves: the script is
// the one that production runs, but for where `now` comes from.
type manual struct {
	*Store
	clk clock.Clock
	// origin is what is taken from the clock, whose readings go beyond 2^53.
	origin time.Duration
}

func (m manual) set(ctx context.Context) {
	m.rdb.Set(ctx, "clock", int64(m.clk.Now()-m.origin), 0)
}

func (m manual) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	m.set(ctx)
	return m.Store.Acquire(ctx, resource, holder, ttl)
}

func (m manual) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	m.set(ctx)
	return m.Store.Renew(ctx, resource, holder, token, ttl)
}

func (m manual) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	m.set(ctx)
	return m.Store.Release(ctx, resource, holder, token)
}

func (m manual) Get(ctx context.Context, resource string) (lease.Observation, error) {
	m.set(ctx)
	return m.Store.Get(ctx, resource)
}

func (m manual) Delete(ctx context.Context, resource string) error {
	m.set(ctx)
	return m.Store.Delete(ctx, resource)
}

// The script keeps the rules to the nanosecond, on a real server with a clock
// that stands still between calls.
func TestScriptKeepsTheRules(t *testing.T) {
	s := server.Start(t, server.Forgetful...) // it is not restarted
	rdb := dial(t, s)
	var n atomic.Int64
	for name, delay := range map[string]time.Duration{"no lock delay": 0, "lock delay": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			props.TestStore(t, func(env props.Env) lease.Store {
				prefix := props.Durable(env, "prefix", func() string { return fmt.Sprintf("%s %d:", name, n.Add(1)) })
				origin := props.Durable(env, "origin", env.Clock.Now)
				return manual{newStore(rdb, manualClock, time.Nanosecond, Options{Prefix: prefix, LockDelay: delay}), env.Clock, origin}
			}, props.Options{MaxTTL: 24 * time.Hour, SteadyClock: true, LockDelay: delay, Calls: 2000})
		})
	}
}
