package mutant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/storetest"
)

// storeChecks are all checks of a store.
func storeChecks(t *testing.T, open func(kit.Env) lease.Store, o kit.Options) []kit.Check {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return storetest.Checks(open, o, kit.Effort{Seed: 1})
}

func TestWrongStoresAreConvictedByTheCheckTheyName(t *testing.T) {
	for _, w := range mutant.WrongStores() {
		t.Run(w.Name, func(t *testing.T) {
			checks := storeChecks(t, w.Open, w.Options)
			i := slices.IndexFunc(checks, func(c kit.Check) bool { return c.Name == w.Convicted })
			if i < 0 {
				t.Fatalf("there is no check %q", w.Convicted)
			}
			out := checks[i].Run()
			if out.Failure == nil {
				t.Errorf("%s: holds: %q, skipped: %q, unknown: %q", w.Convicted, out.Covered, out.Skipped, out.Unknown)
				for _, c := range checks {
					if f := c.Run().Failure; f != nil {
						t.Logf("it fails %s: %v", c.Name, f)
					}
				}
				return
			}
			if n := len(out.Failure.Story); n == 0 || n > 10 {
				t.Errorf("a story of %d lines, want 1 to 10", n)
			}
			if !strings.Contains(strings.Join(out.Failure.Story, "\n"), "◄") {
				t.Error("no line of the story is marked as what breaks the rule")
			}
			t.Logf("%s\n%s", w.Breaks, out.Failure.Text(nil, ""))
		})
	}
}

func TestTheRightStoreThatTheyAreMadeOfPasses(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Second} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			for _, c := range slices.Concat(
				storeChecks(t, mutant.RightStore(delay), kit.Options{LockDelay: delay}),
				storeChecks(t, mutant.SteadyStore(delay), kit.Options{LockDelay: delay, SteadyClock: true}),
			) {
				if out := c.Run(); out.Failure != nil || out.Unknown != "" {
					t.Errorf("%s: %s%v", c.Name, out.Unknown, out.Failure)
				}
			}
		})
	}
}

func TestWrongStoresSayWhatTheyAre(t *testing.T) {
	names := map[string]bool{}
	for _, w := range mutant.WrongStores() {
		if names[w.Name] {
			t.Errorf("two are called %q", w.Name)
		}
		names[w.Name] = true
		if w.Breaks == "" || w.Seen == "" || w.Convicted == "" || w.Open == nil {
			t.Errorf("%s: something is missing: %+v", w.Name, w)
		}
		if !strings.HasSuffix(w.Breaks, ".") || strings.Contains(w.Name, " ") {
			t.Errorf("%s: a name in kebab-case and a sentence are wanted: %q", w.Name, w.Breaks)
		}
	}
	if len(names) < 25 {
		t.Errorf("%d wrong stores, want 25 at least", len(names))
	}
}
