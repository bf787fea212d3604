package storetest_test

import (
	"os"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// TestHowOftenAQuickRunConvicts measures it; it judges nothing.
func TestHowOftenAQuickRunConvicts(t *testing.T) {
	if os.Getenv("FENCEPOST_RATE") == "" {
		t.Skip("FENCEPOST_RATE=1 measures for a minute or two")
	}
	const quickRuns = 25
	for _, at := range []struct {
		name string
		open func(lease.Op) script.Open
	}{{"clock before the lock", openUnlocks}, {"clock under the lock", openUnlocksLate}} {
		for _, op := range []lease.Op{lease.OpAcquire, lease.OpRenew, lease.OpRelease} {
			n, by, began := 0, map[string]int{}, time.Now()
			for seed := range uint64(quickRuns) {
				for _, c := range all(at.open(op), kit.Options{}, kit.Effort{Seed: seed}) {
					if c.Run().Failure != nil {
						by[c.Name]++
						n++
						break
					}
				}
			}
			t.Logf("%v, %s: %d of %d quick runs convict it, %v each, first by %v", op, at.name, n, quickRuns, (time.Since(began) / quickRuns).Round(time.Millisecond), by)
		}
	}
}
