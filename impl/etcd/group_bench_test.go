package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

// 10,000 leases with a TTL of 15 s in one process, as a shard owner holds them:
// what a TTL of that costs, at the pace at which they are renewed, and that none
// is lost. Needs a machine with nothing else to do: -benchtime 2x, of 15 s each.
func BenchmarkGroupHoldsTenThousand(b *testing.B) {
	const leases, ttl = 10_000, 15 * time.Second
	c := startCluster(b, 1, 0, 0)
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	var lost atomic.Int64
	enough := errors.New("held for long enough")
	group, err := lease.NewGroup(etcd.New(connect(b, c.endpoints()...), etcd.Options{}), lease.GroupConfig{
		Node:   "alice",
		Timing: lease.Config{TTL: ttl, MaxDriftRate: 0.01, SafetyMargin: 100 * time.Millisecond},
		Lead: func(ctx context.Context, _ lease.Term, done func()) {
			context.AfterFunc(ctx, func() {
				if !errors.Is(context.Cause(ctx), enough) {
					lost.Add(1)
				}
				done()
			})
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	for i := range leases {
		if err := group.Add(fmt.Sprintf("shard-%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- group.Run(ctx) }()
	for start := time.Now(); group.Held() < leases; time.Sleep(100 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			b.Fatalf("%d of %d leases are held", group.Held(), leases)
		}
	}
	used, from := cpu(), time.Now()
	for b.Loop() {
		time.Sleep(ttl)
	}
	share := (cpu() - used).Seconds() / time.Since(from).Seconds()
	held, missed := group.Held(), lost.Load()
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		b.Error(err)
	}
	b.ReportMetric(share*100, "%core")
	if held != leases || missed > 0 {
		b.Errorf("%d leases held, %d lost; want %d and none", held, missed, leases)
	}
}
