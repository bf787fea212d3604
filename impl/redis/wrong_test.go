package redis

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/model"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// Each home-made lock is caught on the real server, by the check that is named
// for its flaw.
func TestHomeMadeLocksAreCaught(t *testing.T) {
	s := server.Start(t, server.Durable...)
	rdb := dial(t, s)
	lock := homemade{rdb, t.Name() + ":"}
	const ttl = 250 * time.Millisecond
	pause := func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(ttl * 3 / 2):
		}
	}
	for _, c := range []struct {
		name    string
		subject kit.Funcs
		ttl     time.Duration
		check   string
	}{
		{"DEL without looking whose it is", lock.deleting(), ttl, "rules/release-only-by-the-holder"},
		{"GET, compare, then DEL", lock.comparing(pause), ttl, "storm/history"},
		{"no token: the same number for everybody", lock.tokenless(), ttl, "rules/next-token"},
		{"a random value as token", lock.random(), ttl, "rules/next-token"},
		{"INCR before SET NX", lock.early(), ttl, "rules/takeover"},
		{"seconds cut off", lock.seconds(), 1900 * time.Millisecond, "rules/lapse"},
		{"PEXPIRE that shortens", lock.shortening(), ttl, "rules/renew-with-a-shorter-ttl-never-shortens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := promise(c.ttl)
			open := func(props.LiveEnv) lease.Store { return c.subject.Store() }
			f := caught(t, livetest.StoreChecks(open, o), c.check)
			t.Logf("%s", f.Text(nil, ""))
		})
	}
}

// The checks have nothing against a home-made lock without these flaws: what is
// caught above is the flaw.
func TestTheHomeMadeLockWithoutFlawsHolds(t *testing.T) {
	s := server.Start(t, server.Durable...)
	lock := homemade{dial(t, s), t.Name() + ":"}
	checks := livetest.StoreChecks(func(props.LiveEnv) lease.Store { return lock.right().Store() }, promise(250*time.Millisecond))
	held := 0
	for _, c := range checks {
		if !strings.HasPrefix(c.Name, "rules/") {
			continue
		}
		out := kit.Guard(c.Run)
		if out.Failure != nil {
			t.Errorf("%s: %s", c.Name, out.Failure.Text(nil, ""))
		}
		if out.Covered != "" {
			held++
		}
	}
	if held < 10 {
		t.Errorf("%d checks held; expected: 10 or more", held)
	}
}

// The store itself, on a server that forgets, is caught: the counter is gone
// after kill -9, and a token is issued twice.
func TestAServerWithoutPersistenceIsCaught(t *testing.T) {
	s := server.Start(t, server.Forgetful...)
	rdb := dial(t, s)
	o := liveOptions(s)
	f := caught(t, livetest.StoreChecks(func(env props.LiveEnv) lease.Store {
		store, err := New(env.Context, rdb, Options{Accept: []string{"appendonly", "appendfsync"}})
		if err != nil {
			env.Fatal(err)
		}
		return store
	}, o), "restart/keeps-the-counter")
	t.Logf("%s", f.Text(nil, ""))
}

// promise is what a home-made lock promises: milliseconds, and no details in its
// refusals.
func promise(ttl time.Duration) props.LiveOptions {
	o := props.LiveOptions{TTL: ttl, Latency: 200 * time.Millisecond}
	o.Tokens, o.SteadyClock, o.Granularity, o.Terse, o.NoGet = model.TokensNext, true, time.Millisecond, true, true
	return o
}

// caught is how the check with this name convicts.
func caught(t *testing.T, checks []kit.Check, name string) *kit.Failure {
	t.Helper()
	f, err := kit.Convict(checks, name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Storages whose check and write are two steps, or that check nothing, are
// caught on the real server.
func TestStoragesThatDoNotCheckInOneStepAreCaught(t *testing.T) {
	s := server.Start(t, server.Durable...)
	rdb := dial(t, s)
	for _, c := range []struct {
		name  string
		kv    fence.KV
		check string
	}{
		{"no check", unguarded{NewStorage(rdb, "unguarded:", "r")}, "rules/stale-is-refused"},
		{"check, then write", &twoSteps{Storage: NewStorage(rdb, "twosteps:", "r")}, "race/a-fence-in-the-middle"},
		{"a fence that is kept nowhere", fenceless{NewStorage(rdb, "fenceless:", "r")}, "rules/a-fence-bars"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checks := livetest.StorageChecks(func(props.LiveEnv) fence.KV { return c.kv }, props.LiveStorageOptions{NoRestart: "not what is tested"})
			t.Logf("%s", caught(t, checks, c.check).Text(nil, ""))
		})
	}
	t.Run("a server that forgets", func(t *testing.T) {
		s := server.Start(t, server.Forgetful...)
		kv := NewStorage(dial(t, s), "", "r")
		checks := livetest.StorageChecks(func(props.LiveEnv) fence.KV { return kv }, props.LiveStorageOptions{Restart: s.Restart})
		t.Logf("%s", caught(t, checks, "restart/keeps-the-highest-token").Text(nil, ""))
	})
}

// unguarded writes whatever the token.
type unguarded struct{ *Storage }

func (u unguarded) Write(ctx context.Context, _ lease.Token, key, value string) error {
	return u.rdb.HSet(ctx, u.data, key, value).Err()
}

// twoSteps checks the token in one step, and writes in the next. Now and then
// the process pauses in between, for as long as a few writes of others take.
type twoSteps struct {
	*Storage
	writes atomic.Uint64
}

func (s *twoSteps) Write(ctx context.Context, token lease.Token, key, value string) error {
	if err := s.Fence(ctx, token); err != nil {
		return err
	}
	if s.writes.Add(1)%3 == 0 {
		select {
		case <-ctx.Done():
		case <-time.After(80 * time.Millisecond):
		}
	}
	return s.rdb.HSet(ctx, s.data, key, value).Err()
}

// fenceless acknowledges a barrier that it does not keep.
type fenceless struct{ *Storage }

func (fenceless) Fence(context.Context, lease.Token) error { return nil }
