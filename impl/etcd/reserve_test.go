package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

// What is ready for who waits is used once, or left where it is no good.
func TestWhoWatchesAndIsRefusedHasALeaseReady(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, briskTick, briskElection)
	client := connect(t, c.endpoints()...)
	leader, waiting := etcd.New(client, etcd.Options{}), etcd.New(client, etcd.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const ttl = 20 * time.Second
	ids := func() map[clientv3.LeaseID]bool {
		resp, err := client.Leases(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all := map[clientv3.LeaseID]bool{}
		for _, l := range resp.Leases {
			all[l.ID] = true
		}
		return all
	}
	for _, row := range []struct {
		name string
		// before runs once the leader is gone and the waiting store was told.
		before func(t *testing.T, resource string, ready clientv3.LeaseID)
		uses   bool // what is ready is what the lease is attached to
		taken  bool // somebody else was faster
	}{
		{name: "used", before: func(*testing.T, string, clientv3.LeaseID) {}, uses: true},
		{name: "gone", before: func(t *testing.T, _ string, ready clientv3.LeaseID) {
			if _, err := client.Revoke(ctx, ready); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "late", before: func(t *testing.T, resource string, _ clientv3.LeaseID) {
			if _, err := leader.Acquire(ctx, resource, alice, ttl); err != nil {
				t.Fatal(err)
			}
		}, taken: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, err := leader.Acquire(ctx, row.name, alice, ttl)
			if err != nil {
				t.Fatal(err)
			}
			hints, err := waiting.Watch(ctx, row.name)
			if err != nil {
				t.Fatal(err)
			}
			before := ids()
			for range 2 { // the second finds it ready
				var held *lease.HeldError
				if _, err := waiting.Acquire(ctx, row.name, bob, ttl); !errors.As(err, &held) {
					t.Fatal(err)
				}
			}
			var ready []clientv3.LeaseID
			for id := range ids() {
				if !before[id] {
					ready = append(ready, id)
				}
			}
			if len(ready) != 1 {
				t.Fatalf("%d leases are ready, want 1", len(ready))
			}
			if err := leader.Release(ctx, row.name, alice, g.Token); err != nil {
				t.Fatal(err)
			}
			<-hints
			row.before(t, row.name, ready[0])
			next, err := waiting.Acquire(ctx, row.name, bob, ttl)
			if row.taken {
				if lease.Refusal(err) != lease.CodeHeld {
					t.Fatal(next, err)
				}
				return
			}
			if err != nil || next.Token <= g.Token || next.TTL != ttl || next.Holder != bob || next.Resource != row.name {
				t.Fatal(next, err)
			}
			resp, err := client.Get(ctx, waiting.LeaderKey(row.name))
			if err != nil || len(resp.Kvs) != 1 || resp.Kvs[0].CreateRevision != int64(next.Token) {
				t.Fatal(resp, err)
			}
			if used := clientv3.LeaseID(resp.Kvs[0].Lease) == ready[0]; used != row.uses {
				t.Errorf("what was ready is used: %v, want %v", used, row.uses)
			}
			if again, err := waiting.Renew(ctx, row.name, bob, next.Token, ttl); err != nil || again != next {
				t.Error(again, err)
			}
		})
	}
}
