package storetest_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
	"fencepost/props/storetest"
)

// all are the checks with several callers.
func all(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	return append(storetest.Concurrency(open, o, e), storetest.Linearizability(open, o, e))
}

// runs is how often a check is run that must not depend on the scheduler.
func runs() int {
	if os.Getenv("FENCEPOST_LONG") != "" {
		return 200
	}
	return 1
}

func TestACorrectStoreHoldsHoweverItIsScheduled(t *testing.T) {
	for name, open := range map[string]script.Open{
		"memory": openMemory, "mutex": openMutex, "clock first": openClockFirst, "optimistic": openOptimistic, "owner": openOwner,
	} {
		t.Run(name, func(t *testing.T) {
			mustHold(t, open, kit.Options{})
		})
	}
}

func mustHold(t *testing.T, open script.Open, o kit.Options) {
	t.Helper()
	for seed := range runs() {
		for _, c := range all(open, o, kit.Effort{Seed: uint64(seed)}) {
			if out := c.Run(); out.Failure != nil || out.Skipped != "" || out.Unknown != "" || out.Covered == "" {
				t.Fatalf("run %d: %s: %+v\n%s", seed, c.Name, out, tale(out))
			}
		}
	}
}

func tale(out kit.Outcome) string {
	if out.Failure == nil {
		return ""
	}
	return out.Failure.What + "\n" + strings.Join(out.Failure.Story, "\n")
}

// As long as the clock stands, nothing is wrong with such a store: who renews
// cannot when others can acquire.
func TestATakeoverOfWhatWasRenewedMeanwhileIsConvicted(t *testing.T) {
	for seed := range runs() {
		for _, c := range all(openTakesByToken, kit.Options{}, kit.Effort{Seed: uint64(seed)}) {
			out := c.Run()
			if wrong := c.Name == "concurrency/renew-against-takeover"; wrong != (out.Failure != nil) {
				t.Errorf("run %d: %s: %+v\n%s", seed, c.Name, out, tale(out))
			} else if wrong && seed == 0 {
				t.Log("\n" + tale(out))
			}
		}
	}
}

func TestAStoreWhoseOperationsAreNoSingleStepIsConvicted(t *testing.T) {
	const (
		acquires = "concurrency/one-of-many-acquires-wins"
		retries  = "concurrency/retry-in-flight-keeps-the-token"
		takeover = "concurrency/renew-against-takeover"
		releases = "concurrency/release-against-acquire"
		final    = "concurrency/release-is-final"
		rise     = "concurrency/tokens-rise"
		apart    = "concurrency/leases-are-apart"
	)
	for _, wrong := range []struct {
		name string
		open script.Open
		by   []string // those that must convict it, beside linearizability
	}{
		{"acquire checks, then sets", openWrong(lease.OpAcquire), []string{acquires, retries, takeover, final, rise}},
		{"renew checks, then sets", openWrong(lease.OpRenew), []string{final}},
		{"release checks, then sets", openWrong(lease.OpRelease), []string{releases}},
		{"all check, then set", openCheckThenSet, []string{acquires, retries, takeover, releases, final, rise}},
		{"all look at the context", openLooksAtContext, []string{acquires, retries, takeover, releases, final, rise}},
		{"writes another's lease", openShared, []string{apart}},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			for seed := range runs() {
				for _, c := range all(wrong.open, kit.Options{}, kit.Effort{Seed: uint64(seed)}) {
					out := c.Run()
					if out.Failure == nil && (c.Name == "linearizability" || slices.Contains(wrong.by, c.Name)) {
						t.Errorf("run %d: %s: not convicted: %+v", seed, c.Name, out)
					}
					if out.Failure != nil && seed == 0 {
						t.Logf("%s\n%s", c.Name, tale(out))
					}
				}
			}
		})
	}
}

func TestAStoreThatUnlocksBetweenCheckAndActIsConvicted(t *testing.T) {
	for op, by := range map[lease.Op]string{
		lease.OpAcquire: "concurrency/one-of-many-acquires-wins",
		lease.OpRenew:   "concurrency/release-is-final",
		lease.OpRelease: "concurrency/release-against-acquire",
	} {
		t.Run(op.String(), func(t *testing.T) {
			// Every time so far; the scheduler owes nobody anything.
			for seed := range uint64(5) {
				for _, c := range all(openUnlocksLate(op), kit.Options{}, kit.Effort{Seed: seed}) {
					if c.Name != by {
						continue
					}
					if out := c.Run(); out.Failure != nil {
						t.Logf("%s", tale(out))
						return
					}
				}
			}
			t.Errorf("%s does not convict it", by)
		})
	}
}
