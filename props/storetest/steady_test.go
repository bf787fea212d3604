package storetest

import (
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// Whoever keeps instants on a database server meets this first: the kit's
// clocks start anew, and what to declare has to stand beside that.
func TestAStoreThatKeepsInstantsIsToldOfTheSteadyClock(t *testing.T) {
	told := 0
	for _, c := range Checks(steadily(nil, 0), kit.Options{Calls: 1}, kit.Effort{}) {
		if !strings.HasPrefix(c.Name, "restarts/") {
			continue
		}
		f := c.Run().Failure
		if f != nil && (f.Rule == model.RuleRestartTenure.String() || f.Rule == model.RuleRestartEnds.String()) {
			told++
			if !strings.Contains(f.Hint, "Options.SteadyClock") {
				t.Errorf("%s: the hint of %s is %q", c.Name, f.Rule, f.Hint)
			}
		}
	}
	if told < 2 {
		t.Errorf("%d checks convict it", told)
	}
	starts := func(old row, now time.Duration) row { return lease.Restore(old.Durable, now) }
	f := find(t, fault{restart: starts}.open(), kit.Options{SteadyClock: true}, "restarts/a-tenure-ends-as-if-there-had-been-none").Run().Failure
	if f == nil || strings.Contains(f.Hint, "SteadyClock") || f.Hint == "" || !strings.Contains(f.Says, "as if there had been none") || !strings.Contains(f.Read, "SteadyClock") {
		t.Errorf("who has declared it is told %+v", f)
	}
}

// What a restart means depends on the clock: each script about the one has no
// place beside the other, and is skipped by name.
func TestScriptsAboutAClockAreSkippedWithTheOther(t *testing.T) {
	for name, steady := range map[string]bool{
		"restarts/a-tenure-is-held-for-its-whole-ttl":       false,
		"restarts/two-in-a-row-start-the-ttl-twice":         false,
		"restarts/a-tenure-is-held-for-the-rest-of-its-ttl": true,
		"restarts/a-tenure-ends-as-if-there-had-been-none":  true,
		"restarts/a-tenure-that-has-run-out-is-over":        true,
		"restarts/two-in-a-row-are-as-none":                 true,
	} {
		for _, declared := range []bool{false, true} {
			open := opened(right(0))
			if declared {
				open = steadily(nil, 0)
			}
			out := find(t, open, kit.Options{SteadyClock: declared}, name).Run()
			if skipped := strings.Contains(out.Skipped, "Options.SteadyClock"); skipped != (declared != steady) || out.Failure != nil {
				t.Errorf("%s with SteadyClock %t: %+v", name, declared, out)
			}
		}
	}
}

func find(t *testing.T, open script.Open, o kit.Options, name string) kit.Check {
	for _, c := range Checks(open, o, kit.Effort{}) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %s", name)
	return kit.Check{}
}
