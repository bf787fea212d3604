package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

// counting counts the calls that reach a store, and the renewals in them.
type counting struct {
	lease.Store
	batcher           lease.Batcher
	batches, renewals atomic.Int64
}

// Batch implements [lease.Batcher].
func (c *counting) Batch(ctx context.Context, calls []lease.Call) []lease.Answer {
	c.batches.Add(1)
	for _, call := range calls {
		if call.Op == lease.OpRenew {
			c.renewals.Add(1)
		}
	}
	return c.batcher.Batch(ctx, calls)
}

func onSQLite(b *testing.B) *counting {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "leases.db")+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	store, err := leasesql.New(db, leasesql.SQLite(), leasesql.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	return &counting{Store: store, batcher: store}
}

func onEtcd(b *testing.B) *counting {
	client, err := startServer(b).etcd()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	store := etcd.New(client, etcd.Options{})
	return &counting{Store: store, batcher: store}
}

// What 10,000 leases with a TTL of 15 s cost the process that holds them, at the
// pace at which they are renewed: for as many seconds as -benchtime says.
func BenchmarkTenThousand(b *testing.B) {
	for _, s := range []struct {
		name string
		open func(*testing.B) *counting
	}{{"SQLite", onSQLite}, {"etcd", onEtcd}} {
		b.Run(s.name, func(b *testing.B) { hold(b, s.open(b), 10_000, 15*time.Second) })
	}
}

func hold(b *testing.B, store *counting, leases int, ttl time.Duration) {
	ctx, cancel := context.WithCancelCause(b.Context())
	defer cancel(nil)
	enough := errors.New("held for long enough")
	var lost atomic.Int64
	group, err := lease.NewGroup(store, lease.GroupConfig{
		Node: "shard-owner", Timing: timing(ttl),
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
		if err := group.Add(fmt.Sprintf("shard-%05d", i)); err != nil {
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
	time.Sleep(ttl) // until each is renewed at the instant that is its own
	batches, renewals, used, from, before := store.batches.Load(), store.renewals.Load(), cpu(b), time.Now(), loadNow()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	used, batches, renewals = cpu(b)-used, store.batches.Load()-batches, store.renewals.Load()-renewals
	share, busy := 100*used.Seconds()/time.Since(from).Seconds(), loadNow().since(before)
	held, missed := group.Held(), lost.Load()
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		b.Error(err)
	}
	b.ReportMetric(share, "%core")
	b.ReportMetric(float64(renewals), "renewals")
	b.ReportMetric(float64(batches), "batches")
	b.ReportMetric(float64(missed), "lost")
	b.ReportMetric(busy, "%machine")
	if held != leases || missed > 0 {
		b.Errorf("%d leases held, %d lost; want %d and none", held, missed, leases)
	}
	if renewals == 0 {
		b.Error("nothing was renewed")
	}
}

// cpu is what this process has used, its garbage collector and the kernel's work for
// it too.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
