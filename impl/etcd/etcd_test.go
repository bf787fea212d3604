package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/etcd"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// leases is how many leases etcd has.
func leases(t *testing.T, client *clientv3.Client) int {
	t.Helper()
	resp, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(resp.Leases)
}

// What each request leaves in etcd, and how refusals tell what happened.
func TestOneServer(t *testing.T) {
	c := startCluster(t, 1, briskTick, briskElection)
	client := connect(t, c.endpoints()...)
	store := etcd.New(client, etcd.Options{})
	ctx := t.Context()
	acquire := func(t *testing.T, resource string, h lease.Holder, ttl time.Duration) lease.Grant {
		t.Helper()
		g, err := store.Acquire(ctx, resource, h, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	ttlOf := func(t *testing.T, resource string) int64 {
		t.Helper()
		resp, err := client.Get(ctx, store.LeaderKey(resource))
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatal(resp, err)
		}
		l, err := client.TimeToLive(ctx, clientv3.LeaseID(resp.Kvs[0].Lease))
		if err != nil {
			t.Fatal(err)
		}
		return l.GrantedTTL
	}

	t.Run("the token is the create revision and survives renewals", func(t *testing.T) {
		g := acquire(t, "r1", alice, 5*time.Second)
		for range 2 {
			if again, err := store.Renew(ctx, "r1", alice, g.Token, 5*time.Second); err != nil || again != g {
				t.Fatal(again, err)
			}
		}
		if again := acquire(t, "r1", alice, 5*time.Second); again != g {
			t.Fatal(again)
		}
		resp, err := client.Get(ctx, store.LeaderKey("r1"))
		if err != nil || len(resp.Kvs) != 1 || resp.Kvs[0].CreateRevision != int64(g.Token) {
			t.Fatal(resp, err)
		}
	})

	t.Run("a longer TTL moves the key to a longer lease, a shorter one leaves it", func(t *testing.T) {
		before := leases(t, client)
		g := acquire(t, "r2", alice, 2500*time.Millisecond)
		if got := ttlOf(t, "r2"); got != 3 {
			t.Fatalf("2.5 s became %d s", got)
		}
		for _, step := range []struct {
			ttl  time.Duration
			want int64
		}{{time.Second, 3}, {20 * time.Second, 20}, {4 * time.Second, 20}} {
			again, err := store.Renew(ctx, "r2", alice, g.Token, step.ttl)
			if err != nil || again.Token != g.Token || again.TTL != step.ttl {
				t.Fatal(again, err)
			}
			if got := ttlOf(t, "r2"); got != step.want {
				t.Fatalf("after a renewal for %v the lease has %d s, want %d s", step.ttl, got, step.want)
			}
		}
		if got := leases(t, client); got != before+1 {
			t.Fatalf("%d leases, want one more than %d", got, before)
		}
	})

	t.Run("refusals and releases leave no lease behind", func(t *testing.T) {
		before := leases(t, client)
		g := acquire(t, "r3", alice, 5*time.Second)
		var held *lease.HeldError
		if _, err := store.Acquire(ctx, "r3", bob, 5*time.Second); !errors.As(err, &held) || held.Holder != alice || held.Token != g.Token || held.Remaining > 5*time.Second || held.Remaining < 4*time.Second {
			t.Fatal(err)
		}
		if got := leases(t, client); got != before+1 {
			t.Fatalf("%d leases after a refusal, want one more than %d", got, before)
		}
		if err := store.Release(ctx, "r3", alice, g.Token); err != nil {
			t.Fatal(err)
		}
		if got := leases(t, client); got != before {
			t.Fatalf("%d leases after the release, want %d", got, before)
		}
		var lost *lease.LostError
		if err := store.Release(ctx, "r3", alice, g.Token); !errors.As(err, &lost) || lost.Latest != g.Token || !lost.Current.IsZero() {
			t.Fatal(err)
		}
		if o, err := store.Get(ctx, "r3"); err != nil || o.Token != g.Token || !o.Holder.IsZero() {
			t.Fatal(o, err)
		}
		if next := acquire(t, "r3", alice, 5*time.Second); next.Token <= g.Token {
			t.Fatal(next, g)
		}
	})

	t.Run("a lapse and a loss are told apart", func(t *testing.T) {
		g := acquire(t, "r4", alice, time.Second)
		deadline := time.Now().Add(20 * time.Second)
		for {
			o, err := store.Get(ctx, "r4")
			if err != nil || time.Now().After(deadline) {
				t.Fatal(o, err)
			}
			if o.Holder.IsZero() {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		var lapsed *lease.LapsedError
		if _, err := store.Renew(ctx, "r4", alice, g.Token, time.Second); !errors.As(err, &lapsed) {
			t.Fatal(err)
		}
		next := acquire(t, "r4", bob, 5*time.Second)
		var lost *lease.LostError
		if _, err := store.Renew(ctx, "r4", alice, g.Token, time.Second); !errors.As(err, &lost) || lost.Current != bob || lost.Latest != next.Token {
			t.Fatal(err)
		}
	})

	t.Run("nobody renews or releases with another's token or under another's name", func(t *testing.T) {
		g := acquire(t, "r5", alice, 5*time.Second)
		for _, q := range []struct {
			h     lease.Holder
			token lease.Token
		}{{bob, g.Token}, {alice, g.Token + 1}, {alice, g.Token - 1}} {
			if _, err := store.Renew(ctx, "r5", q.h, q.token, 5*time.Second); !errors.Is(err, lease.ErrNotHeld) {
				t.Fatal(err)
			}
			if err := store.Release(ctx, "r5", q.h, q.token); !errors.Is(err, lease.ErrNotHeld) {
				t.Fatal(err)
			}
		}
		if o, err := store.Get(ctx, "r5"); err != nil || o.Holder != alice {
			t.Fatal(o, err)
		}
	})

	t.Run("a key that is not ours is left alone", func(t *testing.T) {
		if _, err := client.Put(ctx, store.LeaderKey("r6"), "somebody's"); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Acquire(ctx, "r6", alice, time.Second); !errors.Is(err, etcd.ErrForeign) || lease.Refusal(err) != lease.CodeNone {
			t.Fatal(err)
		}
	})

	t.Run("a batch answers each call by itself", func(t *testing.T) {
		const n = 300 // more than fit into one transaction
		calls := make([]lease.Call, n)
		for i := range calls {
			calls[i] = lease.Call{Resource: "batch/" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Request: lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: 10 * time.Second}}
		}
		for i, a := range store.Batch(ctx, calls) {
			if a.Err != nil || a.Grant.Resource != calls[i].Resource {
				t.Fatal(i, a)
			}
			calls[i].Op, calls[i].Token = lease.OpRenew, a.Grant.Token
		}
		calls[7].Token++
		calls[8].Token = 0
		calls[9].Op = lease.OpRelease
		calls[10].TTL = 30 * time.Second
		calls[11].Op = lease.OpGet
		for i, a := range store.Batch(ctx, calls) {
			want := lease.CodeNone
			switch i {
			case 7:
				want = lease.CodeLost
			case 8, 11:
				want = lease.CodeInvalid
			}
			if lease.Refusal(a.Err) != want || want == lease.CodeNone && (a.Err != nil || i != 9 && a.Grant != (lease.Grant{Resource: calls[i].Resource, Holder: alice, Token: calls[i].Token, TTL: calls[i].TTL})) {
				t.Fatal(i, a)
			}
		}
	})

	t.Run("a watch tells of grants, releases, deletions and lapses, not of renewals", func(t *testing.T) {
		watching, stop := context.WithCancel(ctx)
		hints, err := store.Watch(watching, "r7")
		if err != nil {
			t.Fatal(err)
		}
		hinted := func(what string) {
			t.Helper()
			select {
			case <-hints:
			case <-time.After(10 * time.Second):
				t.Fatal("no hint of " + what)
			}
		}
		g := acquire(t, "r7", alice, time.Second)
		hinted("a grant")
		if _, err := store.Renew(ctx, "r7", alice, g.Token, time.Second); err != nil {
			t.Fatal(err)
		}
		if len(hints) > 0 {
			t.Fatal("a hint of a renewal")
		}
		if err := store.Release(ctx, "r7", alice, g.Token); err != nil {
			t.Fatal(err)
		}
		hinted("a release")
		acquire(t, "r7", alice, time.Second)
		hinted("a grant")
		hinted("a lapse")
		acquire(t, "r7", alice, time.Second)
		hinted("a grant")
		if _, err := client.Delete(ctx, store.LeaderKey("r7")); err != nil {
			t.Fatal(err)
		}
		hinted("a deletion")
		stop()
		if _, open := <-hints; open {
			t.Fatal("a hint after the end")
		}
		if _, err := store.Watch(watching, "r7"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})

	t.Run("nothing is written under a token that is not carried, 0 included", func(t *testing.T) {
		storage := etcd.NewStorage(store, "r8", "data/r8/")
		if err := storage.Write(ctx, 0, "k", "nobody's"); !errors.Is(err, lease.ErrStale) {
			t.Fatal(err)
		}
		g := acquire(t, "r8", alice, 5*time.Second)
		if err := errors.Join(storage.Fence(ctx, g.Token), storage.Write(ctx, g.Token, "k", "alice's")); err != nil {
			t.Fatal(err)
		}
		if err := store.Release(ctx, "r8", alice, g.Token); err != nil {
			t.Fatal(err)
		}
		next := acquire(t, "r8", bob, 5*time.Second)
		var refused *fence.NotCarriedError
		if err := storage.Write(ctx, g.Token, "k", "late"); !errors.As(err, &refused) || refused.Latest != next.Token {
			t.Fatal(err)
		}
		if err := storage.Fence(ctx, g.Token); !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if v, ok, err := storage.Read(ctx, "k"); v != "alice's" || !ok || err != nil {
			t.Fatal(v, ok, err)
		}
	})

	t.Run("an end of the context is no refusal", func(t *testing.T) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := store.Acquire(ended, "r9", alice, time.Second)
		if !errors.Is(err, context.Canceled) || lease.Refusal(err) != lease.CodeNone {
			t.Fatal(err)
		}
		_, err = store.Renew(ended, "r1", alice, 1, time.Second)
		if !errors.Is(err, context.Canceled) || lease.Refusal(err) != lease.CodeNone {
			t.Fatal(err)
		}
	})
}
