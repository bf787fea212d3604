package leasesql_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
)

// What it costs to hold 10,000 leases: one renewal of all of them, on disk.
func BenchmarkBatchOf10000Renewals(b *testing.B) { batch(b, file(b)) }

func BenchmarkBatchOf10000RenewalsPostgreSQL(b *testing.B) { batch(b, postgreSQL(b)) }

func batch(b *testing.B, s server) {
	store, err := leasesql.New(s.created(b), s.dialect, leasesql.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const n = 10_000
	holder := lease.Holder{Node: "shard-owner", Seq: 1, Nonce: 1}
	calls := make([]lease.Call, n)
	for i := range calls {
		calls[i] = lease.Call{Resource: fmt.Sprintf("shard-%05d", i), Request: lease.Request{Op: lease.OpAcquire, Holder: holder, TTL: time.Minute}}
	}
	granted := func() {
		for _, a := range store.Batch(b.Context(), calls) {
			if a.Err != nil || a.Grant.Token != 1 {
				b.Fatal(a)
			}
		}
	}
	granted()
	for i := range calls {
		calls[i].Op, calls[i].Token = lease.OpRenew, 1
	}
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		granted()
	}
	used := cpu(b) - before
	each := used / time.Duration(b.N) / n
	b.ReportMetric(float64(each.Nanoseconds()), "cpu-ns/renewal")
	// Renewed each third of a TTL of 15 s, by this process.
	b.ReportMetric(100*float64(used)/float64(b.N)/float64(5*time.Second), "%core")
}

// cpu is what this process has used, its garbage collector too.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkRenew(b *testing.B) { renew(b, file(b)) }

func BenchmarkRenewPostgreSQL(b *testing.B) { renew(b, postgreSQL(b)) }

func renew(b *testing.B, s server) {
	store, err := leasesql.New(s.created(b), s.dialect, leasesql.Options{})
	if err != nil {
		b.Fatal(err)
	}
	holder := lease.Holder{Node: "worker", Seq: 1, Nonce: 1}
	if _, err := store.Acquire(b.Context(), "p", holder, time.Minute); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := store.Renew(b.Context(), "p", holder, 1, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}
