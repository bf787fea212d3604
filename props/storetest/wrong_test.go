package storetest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"fencepost/impl/lease"
	"fencepost/model"
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

func TestEachRuleHasACheckOfItsOwn(t *testing.T) {
	for about := range model.Rules() {
		if !slices.ContainsFunc(slices.Concat(requestRules, restartRules, deleteRules), func(r rule) bool { return slices.Contains(r.own, about) }) {
			t.Errorf("%v: no check is about it", about)
		}
	}
}

func TestCheckNamesAreSubtestsOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks(nil, kit.Options{}, kit.Effort{}) {
		if seen[c.Name] {
			t.Errorf("%s: twice", c.Name)
		}
		seen[c.Name] = true
		if strings.ContainsFunc(c.Name, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-/", r) }) {
			t.Errorf("%s: a pattern of -run would have to escape it", c.Name)
		}
	}
}

func TestSetupThatFailsMakesAllUnknown(t *testing.T) {
	open := func(e kit.Env) lease.Store { e.Fatal(errors.New("no database")); return nil }
	for _, c := range slices.Concat(sequential(open, kit.Options{}), Watch(open, kit.Options{}), Lockstep(open, kit.Options{}, kit.Effort{})) {
		out := c.Run()
		if out.Skipped == "" && !strings.Contains(out.Unknown, "no database") {
			t.Errorf("%s: %+v, want unknown", c.Name, out)
		}
	}
}

// Of the faults that only time, many requests or restarts show, those that
// random scripts are for.
func TestLockstepConvictsInAFewLines(t *testing.T) {
	for i, f := range faults() {
		if i%3 > 0 && os.Getenv("FENCEPOST_LONG") == "" {
			continue
		}
		if !strings.HasPrefix(f.check, "rules/") && !strings.HasPrefix(f.check, "restarts/") {
			continue
		}
		if strings.Contains(f.check, "-weeks") || strings.Contains(f.check, "-long-after-") || strings.Contains(f.check, "-many-turns") || strings.Contains(f.check, "-of-hours") || strings.Contains(f.check, "-of-minutes") {
			continue // random scripts are short, and pass no time in vain
		}
		var failed []string
		for _, c := range Lockstep(f.open(), f.o, kit.Effort{Seed: 1}) {
			out := c.Run()
			if out.Failure == nil {
				continue
			}
			failed = append(failed, c.Name)
			if out := Replay(f.open(), f.o, out.Failure.File.Name, out.Failure.File.Data); out.Failure == nil {
				t.Errorf("%s: %s: the file does not fail when replayed: %+v", f.name, c.Name, out)
			}
			right := variants()["exact"]
			switch {
			case f.o.SteadyClock && f.o.LockDelay > 0:
				right = variants()["steady, lock delay"]
			case f.o.SteadyClock:
				right = variants()["steady clock"]
			case f.o.LockDelay > 0:
				right = variants()["lock delay"]
			}
			if out := Replay(right.open, right.o, out.Failure.File.Name, out.Failure.File.Data); out != (kit.Outcome{}) {
				t.Errorf("%s: %s: the file convicts a right store too: %+v", f.name, c.Name, out)
			}
			if n := len(out.Failure.Story); n > 10 {
				t.Errorf("%s: a story of %d lines:\n%s", f.name, n, tell(out.Failure))
			}
			if os.Getenv("FENCEPOST_SHOW") != "" {
				fmt.Printf("=== %s: %s\n%s\n", f.name, c.Name, strings.Join(out.Failure.Story, "\n"))
			}
		}
		if want, restarts := "lockstep/requests", strings.HasPrefix(f.check, "restarts/"); !restarts && !slices.Contains(failed, want) {
			t.Errorf("%s: %s does not fail", f.name, want)
		} else if restarts && len(failed) == 0 {
			t.Errorf("%s: neither part of lockstep fails", f.name)
		}
	}
}
