package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fencepost/linearizability"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadmeShowsExamplesThatRun: each piece of Go in the README stands, line
// after line, in an Example, which the tests run.
func TestReadmeShowsExamplesThatRun(t *testing.T) {
	var examples []string
	for _, file := range []string{"impl/fence/example_singleton_test.go", "linearizability/record/example_readme_test.go", "testdata/example/mylease_test.go"} {
		b, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, string(b))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```\n").FindAllStringSubmatch(readme(t), -1)
	for _, m := range blocks {
		whole := "\n" + strings.TrimSpace(m[1]) + "\n"                                     // a function
		inside := strings.ReplaceAll(strings.TrimSuffix(whole, "\n"), "\n", "\n\t") + "\n" // or the inside of one
		if !slices.ContainsFunc(examples, func(e string) bool { return strings.Contains(e, whole) || strings.Contains(e, inside) }) {
			t.Errorf("no example has these lines:\n%s", m[1])
		}
	}
	if len(blocks) < 5 {
		t.Errorf("found %d pieces of Go; want the five of the README", len(blocks))
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

// TestReadmeOutputIsWhatTheCommandSays: below each command after a $ stands what
// it prints.
func TestReadmeOutputIsWhatTheCommandSays(t *testing.T) {
	text := readme(t)
	t.Chdir("../..")
	shown := regexp.MustCompile(`(?m)^    \$ \./fencepost ([^\n]*)\n((?:(?:    [^\n]*)?\n)+)`).FindAllStringSubmatch(text, -1)
	for _, m := range shown {
		var want strings.Builder
		for line := range strings.Lines(m[2]) {
			want.WriteString(strings.TrimPrefix(line, "    "))
		}
		shown, exit := strings.TrimRight(want.String(), "\n")+"\n", exitViolated
		if strings.HasPrefix(m[1], "stores ") {
			exit = exitHolds // convicted, as it should be
		}
		if code, out, errs := invoke(t, strings.Fields(m[1])...); code != exit || out != shown {
			t.Errorf("%s: exit %d, prints\n%s%s\nwhere the README has\n%s", m[1], code, out, errs, shown)
		}
	}
	if len(shown) < 3 {
		t.Errorf("found %d commands with their output; want the three of the README", len(shown))
	}
}

// TestReadmeJobChecksHistories: the commands of the CI job, and those that look
// at a history.jsonl, do what they are there for.
func TestReadmeJobChecksHistories(t *testing.T) {
	text := readme(t)
	history, err := os.ReadFile("../../testdata/histories/violated-frozen-client-unfenced.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, dir := range []string{"histories", "pages"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"history.jsonl", "histories/one.jsonl"} {
		if err := os.WriteFile(file, history, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range regexp.MustCompile("(?m)(?:\\./|go tool )fencepost ((?:check|convert) [^#\n`]*histor[^#\n`]*)").FindAllStringSubmatch(text, -1) {
		args := strings.Fields(m[1])
		if strings.HasPrefix(args[len(args)-1], "testdata/") {
			continue // another test's
		}
		want := exitViolated
		if args[0] == "convert" {
			want = exitHolds
		}
		if code, _, errs := invoke(t, args...); code != want || errs != "" {
			t.Errorf("%s: exit %d: %s", m[1], code, errs)
		}
	}
	for _, file := range []string{"page.html", "small.jsonl", "history.edn", "junit.xml", "pages/histories-one.jsonl.html"} {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("no command of the README wrote %s: %v", file, err)
		}
	}
}

// TestReadmeNamesEverythingThereIs: each model, format and check.
func TestReadmeNamesEverythingThereIs(t *testing.T) {
	text := readme(t)
	names := linearizability.Models()
	for _, f := range linearizability.Formats() {
		names = append(names, f.String())
	}
	for _, c := range linearizability.Checks() {
		names = append(names, c.Name)
	}
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "`--model "+name+"`") {
			t.Errorf("the README does not name %s", name)
		}
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
