package redis

import (
	"fmt"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
)

// Renewals one by one, and 10,000 in one batch, of leases that all are held, on
// a server that syncs before it answers.
func BenchmarkRenew(b *testing.B) {
	store := open(b, server.Start(b, server.Durable...), Options{})
	const leases = 10_000
	acquire, renew := make([]lease.Call, leases), make([]lease.Call, leases)
	for i := range leases {
		resource := fmt.Sprintf("shard-%d", i)
		acquire[i] = lease.Call{Resource: resource, Request: lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: time.Hour}}
		renew[i] = lease.Call{Resource: resource, Request: lease.Request{Op: lease.OpRenew, Holder: alice, Token: 1, TTL: time.Hour}}
	}
	for _, a := range store.Batch(b.Context(), acquire) {
		if a.Err != nil {
			b.Fatal(a.Err)
		}
	}
	b.Run("one by one", func(b *testing.B) {
		for i := range b.N {
			c := renew[i%leases]
			if _, err := store.Renew(b.Context(), c.Resource, c.Holder, c.Token, c.TTL); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("10000 at once", func(b *testing.B) {
		for range b.N {
			for _, a := range store.Batch(b.Context(), renew) {
				if a.Err != nil {
					b.Fatal(a.Err)
				}
			}
		}
	})
}
