package linearizability_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lin "fencepost/linearizability"
	"fencepost/linearizability/internal/lifelike"
)

// long reports whether the tests that take hours, not seconds, are to run.
func long() bool { return os.Getenv("FENCEPOST_LONG") != "" }

// services are correct ones, of all kinds, under all the faults there are.
// Each is told apart by what its history must be explained with.
var services = []struct {
	name string
	lifelike.Config
}{
	{"plain", lifelike.Config{First: 1, Storage: true}},
	{"lease only", lifelike.Config{First: 1, Unknown: 0.02}},
	{"drift", lifelike.Config{Drift: 1e6, First: 1, Storage: true, Leads: true, Unknown: 0.02}},
	{"large drift", lifelike.Config{Drift: 2e8, Storage: true, Leads: true, Unknown: 0.05}},
	{"late", lifelike.Config{Late: 300 * time.Millisecond, Storage: true, Unknown: 0.05}},
	{"early and late", lifelike.Config{Early: 100 * time.Millisecond, Late: 100 * time.Millisecond, Drift: 1e6, Leads: true, Unknown: 0.05}},
	{"no promise of a lapse", lifelike.Config{Late: lin.Unbounded, Storage: true, Unknown: 0.05}},
	{"lock delay", lifelike.Config{LockDelay: 500 * time.Millisecond, Drift: 1e6, Late: 10 * time.Millisecond, Unknown: 0.05}},
	{"lock delay and restarts", lifelike.Config{LockDelay: 500 * time.Millisecond, Restarts: 0.01, Unknown: 0.05, Storage: true}},
	{"restarts", lifelike.Config{Restarts: 0.02, Storage: true, Leads: true, Unknown: 0.02, Drift: 1e6}},
	{"duplicates", lifelike.Config{Duplicates: 0.1, Storage: true, Leads: true, First: 1}},
	{"unknown", lifelike.Config{Unknown: 0.1, Storage: true, First: 1}},
	{"unknown and duplicates", lifelike.Config{Unknown: 0.1, Duplicates: 0.05, Storage: true, Leads: true}},
	{"TTLs", lifelike.Config{TTLs: []time.Duration{time.Second, 600 * time.Millisecond, 250 * time.Millisecond}, Drift: 1e6, Unknown: 0.05, Leads: true}},
	{"blocking", lifelike.Config{Anchor: lin.AnchorCall, Late: 20 * time.Millisecond, Unknown: 0.05, Leads: true}},
	{"renew after lapse", lifelike.Config{RenewAfterLapse: true, Storage: true, Unknown: 0.05, Leads: true, Drift: 1e6}},
	{"rising tokens", lifelike.Config{Tokens: lin.TokensRising, Storage: true, Leads: true, Unknown: 0.05, Duplicates: 0.02, Restarts: 0.005}},
	{"no tokens", lifelike.Config{Tokens: lin.TokensNone, Leads: true, Unknown: 0.05, Late: 5 * time.Millisecond}},
	{"merged recorders", lifelike.Config{Eps: 2 * time.Millisecond, Storage: true, Leads: true, Unknown: 0.05}},
	{"everything", lifelike.Config{
		Leases: 4, Clients: 3, Drift: 1e6, Early: 5 * time.Millisecond, Late: 20 * time.Millisecond, LockDelay: 200 * time.Millisecond,
		TTLs: []time.Duration{time.Second, 500 * time.Millisecond}, Storage: true, Leads: true, Barrier: true,
		Unknown: 0.1, Duplicates: 0.03, Restarts: 0.005, Deletes: 0.002, Crashes: 0.02,
	}},
}

// tally counts verdicts.
type tally struct{ holds, violated, unknown, operations atomic.Int64 }

func (t *tally) add(v lin.Verdict) {
	t.operations.Add(int64(v.Activity.Operations))
	switch v.Result {
	case lin.Holds:
		t.holds.Add(1)
	case lin.Violated:
		t.violated.Add(1)
	default:
		t.unknown.Add(1)
	}
}

func (t *tally) all() int64 { return t.holds.Load() + t.violated.Load() + t.unknown.Load() }

func (t *tally) String() string {
	return fmt.Sprintf("%d hold, %d violated, %d unknown of %d operations in all", t.holds.Load(), t.violated.Load(), t.unknown.Load(), t.operations.Load())
}

// judge is what a user runs, with two seconds for it.
func judge(ctx context.Context, h lin.History) (lin.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return lin.Check(ctx, h, lin.Options{Model: lin.Model{Name: lin.ModelFencepost}})
}

// batches runs f for 0, 1, 2 and so on, some at once, as long as there are to be
// more. Which ones are run depends on what they find alone, never on how fast.
func batches(more func() bool, f func(seed uint64)) {
	const size = 4
	for seed := uint64(0); more(); seed += size {
		var wg sync.WaitGroup
		for i := range uint64(size) {
			wg.Go(func() { f(seed + i) })
		}
		wg.Wait()
	}
}

// TestNoFalseAlarm: whatever a correct service did, no verdict on it is
// violated. With FENCEPOST_LONG it is a million operations of each service.
func TestNoFalseAlarm(t *testing.T) {
	operations, sizes := int64(600), []int{60, 200}
	if long() {
		operations, sizes = 1_000_000, []int{200, 500, 1000, 2000}
	}
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			var total tally
			more := func() bool { return total.operations.Load() < operations && total.violated.Load() < 10 }
			batches(more, func(seed uint64) {
				c := s.Config
				c.Seed, c.Operations = seed, sizes[seed%uint64(len(sizes))]
				v, err := judge(t.Context(), c.History())
				total.add(v)
				if err != nil || v.Result == lin.Violated {
					t.Errorf("seed %d, %d operations: %s %v", seed, c.Operations, v, err)
				}
			})
			t.Log(&total)
		})
	}
}

// TestPlantedBugsAreFound: where a bug can be seen at all, whatever else had an
// unknown outcome, the verdict is never holds, and one that is violated names what
// the bug is. With FENCEPOST_LONG nearly all are decided in time, too.
func TestPlantedBugsAreFound(t *testing.T) {
	enough, operations := int64(3), 150
	if long() {
		enough, operations = 200, 500
	}
	var seen, unseen tally // of all bugs
	for _, b := range lifelike.Bugs {
		t.Run(b.Name, func(t *testing.T) {
			var visible, hidden tally
			tried := 0
			more := func() bool {
				tried++
				return visible.all() < enough && tried < 10_000
			}
			batches(more, func(seed uint64) {
				h := b.In(lifelike.Config{Seed: seed, Operations: operations, Clients: 5, Unknown: 0.05, First: 1}).History()
				proof := lifelike.Proof(h)
				if proof == "" && (!long() || hidden.all() >= visible.all()) {
					return // there are enough of these
				}
				v, err := judge(t.Context(), h)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if proof == "" {
					hidden.add(v)
					unseen.add(v)
					return
				}
				visible.add(v)
				seen.add(v)
				switch {
				case v.Result == lin.Holds:
					t.Errorf("seed %d holds, but %s", seed, proof)
				case v.Result == lin.Violated && !names(v, b.Names):
					t.Errorf("seed %d: %s: none of %s: %s", seed, proof, strings.Join(b.Names, ", "), v)
				}
			})
			t.Logf("visible: %s; not visible by a few events: %s", &visible, &hidden)
			if visible.all() < enough {
				t.Errorf("only %d histories show it", visible.all())
			}
		})
	}
	t.Logf("all bugs, visible: %s; not visible by a few events: %s", &seen, &unseen)
	if !long() {
		return // what is decided in time depends on the machine
	}
	if 100*seen.violated.Load() < 99*seen.all() {
		t.Error("want at least 99% of the visible ones found")
	}
	if 100*(seen.unknown.Load()+unseen.unknown.Load()) >= seen.all()+unseen.all() {
		t.Error("want less than 1% undecided")
	}
}

// names reports whether v blames one of the given models or invariants.
func names(v lin.Verdict, want []string) bool {
	for _, p := range v.Partitions {
		if p.Result == lin.Violated && slices.Contains(want, p.Model) {
			return true
		}
	}
	return slices.ContainsFunc(v.Findings, func(f lin.Finding) bool {
		return f.Violates && slices.Contains(want, f.Invariant.String())
	})
}
