package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
	"fencepost/props"
)

func testLiveStorage(t *testing.T, s *server) {
	props.TestLiveStorage(t, func(env props.LiveEnv) fence.KV {
		store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}, Logger: env.Logger})
		if err != nil {
			env.Fatal(err)
		}
		return storage{store.Storage("/data/live"), store}
	}, props.LiveStorageOptions{Restart: s.Restart})
}

// storage closes the store that it stands on.
type storage struct {
	*zookeeper.Storage
	store *zookeeper.Store
}

func (s storage) Close() { s.store.Close() }

func testStorageRefusesWhatIsLowerThanTheHighestToken(t *testing.T, s *server) {
	ctx := t.Context()
	one, two := s.open(t).Storage("/data/shard-1"), s.open(t).Storage("/data/shard-1")
	if err := one.Write(ctx, 33, "x", "1"); err != nil {
		t.Fatal(err)
	}
	if err := two.Fence(ctx, 34); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"write":           one.Write(ctx, 33, "x", "2"),
		"write elsewhere": one.Write(ctx, 33, "y", "2"),
		"fence":           one.Fence(ctx, 33),
		"token 0":         one.Fence(ctx, 0),
	} {
		stale, ok := errors.AsType[*fence.StaleTokenError](err)
		if !ok || stale.Highest != 34 || !errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, ok, err := two.Read(ctx, "x"); v != "1" || !ok || err != nil {
		t.Errorf("x is %q, %v, %v", v, ok, err)
	}
	if _, ok, err := two.Read(ctx, "y"); ok || err != nil {
		t.Errorf("y is there: %v", err)
	}
	if err := two.Write(ctx, 34, "../.", ""); err != nil {
		t.Error(err)
	}
	if v, ok, err := one.Read(ctx, "../."); v != "" || !ok || err != nil {
		t.Errorf("../. is %q, %v, %v", v, ok, err)
	}
}

// A leader's own multi carries a check, and lands nothing once that fails.
func testChecksStopTheLeadersOwnMulti(t *testing.T, s *server) {
	store, conn := s.open(t), s.dial(t)
	ctx := t.Context()
	write := func(check *zk.CheckVersionRequest) error {
		_, err := conn.Multi(check, &zk.CreateRequest{Path: "/checked-", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence})
		return err
	}
	acquire := func(h lease.Holder) lease.Token {
		g, err := store.Acquire(ctx, "checked", h, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return g.Token
	}
	release := func(h lease.Holder, token lease.Token) {
		if err := store.Release(ctx, "checked", h, token); err != nil {
			t.Fatal(err)
		}
	}
	highest := store.Storage("/data/checked")
	checks := func(token lease.Token) (byLease, bySeen *zk.CheckVersionRequest) {
		byLease, err1 := store.Check(ctx, "checked", token)
		bySeen, err2 := highest.Check(ctx, token)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return byLease, bySeen
	}
	first := acquire(a)
	carried, seen := checks(first)
	for range 2 {
		if err := errors.Join(write(carried), write(seen)); err != nil {
			t.Fatal(err)
		}
	}
	release(a, first)
	if err := write(carried); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("after the release: %v", err)
	}
	second := acquire(b)
	if err := write(carried); !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("after the next grant: %v", err)
	}
	if err := write(seen); err != nil {
		t.Errorf("before the barrier: %v", err)
	}
	checks(second)
	if err := write(seen); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("after the barrier: %v", err)
	}
	for _, token := range []lease.Token{0, first, second + 1} {
		if _, err := store.Check(ctx, "checked", token); !errors.Is(err, fence.ErrStale) {
			t.Errorf("check of token %d: %v", token, err)
		}
	}
	if _, err := highest.Check(ctx, first); !errors.Is(err, fence.ErrStale) {
		t.Errorf("check of the first token: %v", err)
	}
}
