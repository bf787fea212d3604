package storetest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"fencepost/props/kit"
	"fencepost/props/script"
)

// tell is a failure about as a user sees it.
func tell(f *kit.Failure) string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n%s", f.Rule, f.Says, f.What, strings.Join(f.Story, "\n"), f.Read)
}

func sequential(open script.Open, o kit.Options) []kit.Check {
	return slices.Concat(Rules(open, o), Malformed(open, o))
}

func TestEachFaultFailsTheCheckThatNamesIt(t *testing.T) {
	convicted := map[string]bool{}
	for _, f := range faults() {
		failed := map[string]*kit.Failure{}
		see := map[string]string{}
		for _, c := range sequential(f.open(), f.o) {
			out := c.Run()
			if out.Failure != nil {
				failed[c.Name] = out.Failure
				convicted[c.Name] = true
				if n := len(out.Failure.Story); n == 0 || n > 11 {
					t.Errorf("%s: %s: a story of %d lines", f.name, c.Name, n)
				}
			}
			if _, home, ok := strings.Cut(out.Skipped, ", see "); ok && strings.HasPrefix(out.Skipped, "not reached") {
				see[c.Name] = home
			}
		}
		if failed[f.check] == nil {
			t.Errorf("%s: %s does not fail, but %v", f.name, f.check, slices.Sorted(maps.Keys(failed)))
		}
		for name, home := range see {
			if failed[home] == nil {
				t.Errorf("%s: %s says to look at %s, which does not fail", f.name, name, home)
			}
		}
		if os.Getenv("FENCEPOST_SHOW") != "" {
			fmt.Printf("=== %s: %d failed, %d not reached: %v\n", f.name, len(failed), len(see), slices.Sorted(maps.Keys(failed)))
			if x := failed[f.check]; x != nil {
				fmt.Println(tell(x))
			}
		}
	}
	right := variants()["exact"]
	for _, c := range sequential(right.open, right.o) {
		if !convicted[c.Name] {
			t.Errorf("%s: no store of this test fails it", c.Name)
		}
	}
}
