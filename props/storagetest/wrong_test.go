package storagetest

import (
	"strings"
	"testing"

	"fencepost/props/kit"
	"fencepost/props/mutant"
)

// Every wrong storage of the catalogue is convicted in quick mode by the check
// that it names, in a story that fits on a screen.
func TestWrongStoragesAreConvicted(t *testing.T) {
	for _, w := range mutant.WrongStorages() {
		t.Run(w.Name, func(t *testing.T) {
			convicted := false
			for _, c := range Checks(w.Open, Options{}, effort) {
				f := c.Run().Failure
				if f == nil {
					continue
				}
				if n := len(f.Story); n == 0 || n > storyLines {
					t.Errorf("%s: a story of %d lines", c.Name, n)
				}
				if !strings.Contains(joined(f.Story), "◄") {
					t.Errorf("%s: no line is marked:\n%s", c.Name, joined(f.Story))
				}
				if f.Says == "" || f.What == "" || f.Read == "" {
					t.Errorf("%s: something is not said: %+v", c.Name, f)
				}
				if c.Name == w.Convicted {
					convicted = true
				}
				t.Logf("%s: %v\n%s", c.Name, f, joined(f.Story))
				if f.File != nil && strings.HasSuffix(f.File.Name, ".json") {
					again := Replay(w.Open, Options{}, f.File.Name, f.File.Data)
					if again.Failure == nil || again.Failure.Rule != f.Rule || joined(again.Failure.Story) != joined(f.Story) {
						t.Errorf("%s does not replay: %+v", f.File.Name, again)
					}
				}
			}
			if !convicted {
				t.Errorf("%s did not convict it: %s", w.Convicted, w.Breaks)
			}
		})
	}
}

// Where nothing can be read, what lands under a stale token is all there is to
// see.
func TestAStorageThatCannotBeReadIsConvictedByWhatLands(t *testing.T) {
	for _, w := range mutant.WrongStorages() {
		if w.Name != "checks-then-writes" {
			continue
		}
		for _, c := range Checks(w.Open, Options{NoRead: true}, effort) {
			if c.Name == w.Convicted && c.Run().Failure == nil {
				t.Errorf("%s did not convict it", c.Name)
			}
		}
	}
}

func TestWrongStoragesSayWhatTheyAre(t *testing.T) {
	names := map[string]bool{}
	for _, w := range mutant.WrongStorages() {
		if names[w.Name] || w.Name == "" || w.Breaks == "" || w.Seen == "" {
			t.Errorf("%+v: a name twice, or something is not said", w)
		}
		names[w.Name] = true
	}
	if len(names) < 15 {
		t.Errorf("%d wrong storages, want 15", len(names))
	}
}

func TestChecksOfInvalidOptionsAreUnknown(t *testing.T) {
	checks := Checks(fromScratch, Options{MaxToken: 7}, kit.Effort{})
	if len(checks) != 1 {
		t.Fatalf("%d checks, want one that says what is wrong", len(checks))
	}
	if out := checks[0].Run(); !strings.Contains(out.Unknown, "MaxToken") {
		t.Errorf("came to %+v, want unknown for the sake of MaxToken", out)
	}
}
