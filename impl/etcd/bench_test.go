package etcd_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

// cpu is what this process has used of it, the system's part included. The
// server is another process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What 10,000 leases cost their holder: renewed in batches of several sizes, and
// one by one. At a TTL of 15 s they make 2,000 renewals a second;
// %core is what those take of one core.
func BenchmarkRenew(b *testing.B) {
	const leases, perSecond = 10_000, 2_000
	c := startCluster(b, 1, 0, 0)
	store := etcd.New(connect(b, c.endpoints()...), etcd.Options{})
	ctx := b.Context()
	calls := make([]lease.Call, leases)
	for i := range calls {
		calls[i] = lease.Call{Resource: fmt.Sprintf("shard-%d", i), Request: lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: 10 * time.Minute}}
	}
	for i, a := range store.Batch(ctx, calls) {
		if a.Err != nil {
			b.Fatal(a.Err)
		}
		calls[i].Op, calls[i].Token, calls[i].TTL = lease.OpRenew, a.Grant.Token, 15*time.Second
	}
	for _, size := range []int{1, 20, 200, 2000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			renewed, at, used := 0, 0, cpu()
			for b.Loop() {
				renewAll(ctx, b, store, calls[at:at+size])
				renewed += size
				if at += size; at+size > leases {
					at = 0
				}
			}
			each := (cpu() - used).Seconds() / float64(renewed)
			b.ReportMetric(each*1e6, "cpu-µs/renewal")
			b.ReportMetric(each*perSecond*100, "%core")
			b.ReportMetric(float64(renewed)/b.Elapsed().Seconds(), "renewals/s")
		})
	}
}

func renewAll(ctx context.Context, b *testing.B, store *etcd.Store, calls []lease.Call) {
	if len(calls) == 1 {
		c := calls[0]
		if _, err := store.Renew(ctx, c.Resource, c.Holder, c.Token, c.TTL); err != nil {
			b.Fatal(err)
		}
		return
	}
	for _, a := range store.Batch(ctx, calls) {
		if a.Err != nil {
			b.Fatal(a.Err)
		}
	}
}
