package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeShowsTheExampleThatRuns: the code in the README is that of an
// Example, which the tests run.
func TestReadmeShowsTheExampleThatRuns(t *testing.T) {
	_, code, ok := strings.Cut(readme(t), "```go\n")
	code, _, ok2 := strings.Cut(code, "```\n")
	b, err := os.ReadFile("../../impl/fence/example_singleton_test.go")
	if !ok || !ok2 || err != nil {
		t.Fatalf("no code in the README, or no example: %v", err)
	}
	for line := range strings.Lines(code) {
		if line != "\n" && !strings.Contains(string(b), "\t"+line) {
			t.Errorf("the example has no line %q", line)
		}
	}
}

// TestReadmePictureIsDrawn: the picture is what the command draws.
func TestReadmePictureIsDrawn(t *testing.T) {
	_, drawn, _ := invoke(t, "replay", schedules+"frozen-client-mutant.json")
	_, drawn, _ = strings.Cut(drawn, "\n\n")
	drawn, _, ok := strings.Cut(drawn, "\n\n25 of 26")
	text := readme(t)
	for line := range strings.Lines(drawn) {
		if line = strings.TrimRight(line, " \n"); line != "" && !strings.Contains(text, "    "+line+"\n") {
			t.Errorf("the README has no line %q", line)
		}
	}
	if !ok {
		t.Errorf("cannot find the end of the picture:\n%s", drawn)
	}
}

// TestReadmeHistoryIsOne: what the README tells people to write down can be
// checked.
func TestReadmeHistoryIsOne(t *testing.T) {
	var lines []string
	for line := range strings.Lines(readme(t)) {
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "{") {
			lines = append(lines, text)
		}
	}
	file := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := invoke(t, "check", file); code != exitHolds || len(lines) < 5 || !strings.Contains(out, "1 fenced write") {
		t.Errorf("exit %d on the %d lines of the README: %s%s", code, len(lines), out, errs)
	}
}

// TestReadmeCommandsRun runs the commands that need no file of the reader's.
func TestReadmeCommandsRun(t *testing.T) {
	n := 0
	for _, m := range regexp.MustCompile(`(?m)^ +go run \./cmd/fencepost ((?:scenarios|mutants)[^#\n]*)`).FindAllStringSubmatch(readme(t), -1) {
		n++
		if code, _, errs := invoke(t, strings.Fields(m[1])...); code != exitHolds {
			t.Errorf("%s: exit %d: %s", m[1], code, errs)
		}
	}
	if n < 3 {
		t.Errorf("found %d commands; want the three of the README", n)
	}
}

// TestReadmeLinksLead somewhere.
func TestReadmeLinksLead(t *testing.T) {
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(readme(t), -1) {
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
}

// TestReadmeClaimIsWhatExploreSays: as many states as the README says, and no
// fewer planted bugs with a stored shortest counterexample.
func TestReadmeClaimIsWhatExploreSays(t *testing.T) {
	code, out, _ := invoke(t, "explore")
	_, line, _ := strings.Cut(out, "\n\n")
	line, _, _ = strings.Cut(line, "\n")
	if code != exitHolds || !strings.HasPrefix(line, "HOLDS: ") || !strings.Contains(readme(t), "    "+line+"\n") {
		t.Errorf("exit %d; the README does not have %q", code, line)
	}
	stored, err := filepath.Glob("../../testdata/shortest/*.json")
	if err != nil || !strings.Contains(readme(t), fmt.Sprintf("Each of the %d is caught so", len(stored))) {
		t.Errorf("%d shortest counterexamples are stored, %v; the README gives another number", len(stored), err)
	}
}
