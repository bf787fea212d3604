package fence_test

import (
	"context"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

func BenchmarkGuardAdmit(b *testing.B) {
	b.ReportAllocs()
	var g fence.Guard
	token := lease.Token(1)
	for b.Loop() {
		var ok bool
		if g, ok = g.Admit(token); ok { // every second one is stale
			token--
		} else {
			token += 2
		}
	}
	if g.Highest == 0 {
		b.Fatal("nothing was admitted")
	}
}

func BenchmarkWrite(b *testing.B) {
	l := &lockedLease{record: lease.Record{Durable: lease.Durable{Token: 33, Status: lease.Running}}}
	for _, bench := range []struct {
		name string
		kv   fence.KV
	}{
		{"Storage", new(fence.Storage)},
		{"CompareAndSwap", fence.NewCompareAndSwap(l, resource)},
		{"Unfenced", new(fence.Unfenced)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.kv.Write(ctx, 33, "x", "1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
