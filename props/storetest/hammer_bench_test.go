package storetest_test

import (
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
	"fencepost/props/storetest"
)

// BenchmarkRounds measures what yielding is worth: the share of rounds that
// convict a store whose operations are no single step.
func BenchmarkRounds(b *testing.B) {
	for _, store := range []struct {
		name, game string
		open       script.Open
	}{
		{"acquire", "one-of-many-acquires-wins", openWrong(lease.OpAcquire)},
		{"context", "one-of-many-acquires-wins", openLooksAtContext},
		{"clock-first", "one-of-many-acquires-wins", openClockThenCheck},
		{"renew", "release-is-final", openWrong(lease.OpRenew)},
		{"release", "release-against-acquire", openWrong(lease.OpRelease)},
		{"right", "one-of-many-acquires-wins", openMutex},
		{"right-history", "release-is-final", openMutex},
	} {
		for _, way := range []struct {
			name  string
			yield bool
		}{{"yielding", true}, {"plain", false}} {
			b.Run(store.name+"/"+way.name, func(b *testing.B) {
				n := storetest.Rate(store.open, store.game, way.yield, b.N)
				b.ReportMetric(100*float64(n)/float64(b.N), "%convicted")
			})
		}
	}
}

// BenchmarkQuick measures each check as go test runs it.
func BenchmarkQuick(b *testing.B) {
	for _, c := range all(openMemory, kit.Options{}, kit.Effort{}) {
		b.Run(c.Name, func(b *testing.B) {
			for b.Loop() {
				if out := c.Run(); out.Covered == "" {
					b.Fatalf("%+v", out)
				}
			}
		})
	}
}
