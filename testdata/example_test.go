package testdata_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The example repositories are modules of their own, outside the workspace, as
// those of users are: their tests run by the go command in a copy, since a
// failure leaves its counterexample beside the test.

func TestStoresAndClientsOfTheExamplePass(t *testing.T) {
	t.Parallel()
	passes(t, "example")
}

// Which check convicts each wrong store, and how much is asked of a reader, is
// the promise of the kit.
func TestWrongStoresOfTheExampleAreConvicted(t *testing.T) {
	t.Parallel()
	convicted(t, "example", map[string][]string{
		"Reuse":   {"rules/next-token-after-release"},
		"Renew":   {"rules/renew-by-another-is-refused"},
		"Release": {"rules/release-by-another-is-refused"},
		"Acquire": {"concurrency/one-of-many-acquires-wins"},
		"Seconds": {"rules/held-until-the-last-nanosecond-of-a-tenth"},
		"Clock":   {"rules/lapses-at-the-instant"},
		"Counter": {"restarts/the-counter-stays-after-a-release"},
		"Client":  {"belief/ends-while-a-call-hangs"},
		"Shorten": {"rules/renew-with-a-shorter-ttl-never-shortens"},
	})
}

func TestStoreAndStorageOfTheSQLExamplePass(t *testing.T) {
	sqlite(t)
	passes(t, "example-sql")
}

func TestStepsOfTheSQLExampleAreConvicted(t *testing.T) {
	sqlite(t)
	convicted(t, "example-sql", map[string][]string{
		"Step1": {"concurrency/one-of-many-acquires-wins"},
		"Step2": {"rules/next-token-after-release"},
		"Step3": {"rules/renew-by-another-is-refused", "rules/held-until-the-last-nanosecond-of-a-tenth"},
	})
}

// sqlite skips t unless there is time to compile a database.
func sqlite(t *testing.T) {
	t.Helper()
	if os.Getenv("FENCEPOST_LONG") == "" {
		t.Skip("it compiles SQLite, for a minute: set FENCEPOST_LONG=1")
	}
}

func passes(t *testing.T, module string) {
	t.Helper()
	r := run(t, module, nil, "./...")
	if r.err != nil || len(r.failed) > 0 {
		t.Errorf("go test: %v\n%s", r.err, r.all.String())
	}
	if len(r.passed) < 100 {
		t.Errorf("only %d tests and subtests passed: was anything run?", len(r.passed))
	}
}

// storyLines is how long a counterexample or history may be.
const storyLines = 10

func convicted(t *testing.T, module string, by map[string][]string) {
	t.Helper()
	r := run(t, module, []string{"WRONG=1"}, "-run", "^TestWrong$", "./...")
	if _, ok := errors.AsType[*exec.ExitError](r.err); !ok {
		t.Fatalf("go test was to fail, and came to: %v\n%s", r.err, r.all.String())
	}
	for store, checks := range by {
		for _, check := range checks {
			r.convicts(t, store, check)
		}
	}
	for test := range r.failed {
		if parts := strings.Split(test, "/"); len(parts) > 1 && by[parts[1]] == nil {
			t.Errorf("%s failed, and nobody said of %s that it is wrong", test, parts[1])
		}
	}
}

// convicts asserts that check failed store, with a story worth reading.
func (r *result) convicts(t *testing.T, store, check string) {
	t.Helper()
	test := "TestWrong/" + store + "/" + check
	if !r.failed[test] {
		t.Errorf("%s did not fail; what failed of %s: %v", test, store, r.failures("TestWrong/"+store+"/"))
		return
	}
	lines := story(r.output[test].String())
	if n := len(lines); n < 2 || n > storyLines {
		t.Errorf("%s: a story of %d lines, want 2 to %d:\n%s", test, n, storyLines, r.output[test])
	}
	if !strings.Contains(strings.Join(lines, "\n"), "◄") {
		t.Errorf("%s: no line is marked as what breaks the rule:\n%s", test, r.output[test])
	}
}

// story is the part of a failure between its first two empty lines.
func story(failure string) []string {
	lines := strings.Split(failure, "\n")
	empty := func(s string) bool { return strings.TrimSpace(s) == "" }
	i := slices.IndexFunc(lines, empty)
	if i < 0 {
		return nil
	}
	lines = lines[i+1:]
	if i = slices.IndexFunc(lines, empty); i < 0 {
		return nil
	}
	return lines[:i]
}

// result is what go test came to.
type result struct {
	err            error // of the command
	all            bytes.Buffer
	output         map[string]*bytes.Buffer // of each test
	passed, failed map[string]bool
}

func (r *result) failures(prefix string) (names []string) {
	for name := range r.failed {
		if strings.HasPrefix(name, prefix) {
			names = append(names, strings.TrimPrefix(name, prefix))
		}
	}
	slices.Sort(names)
	return names
}

// run runs go test in a copy of module, with env added to the environment.
func run(t *testing.T, module string, env []string, args ...string) *result {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	goCommand := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		// The quick mode, whatever mode this test is in: what it says is the same
		// every time.
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FENCEPOST_") })
		cmd.Env = append(append(cmd.Env, "GOWORK=off"), env...)
		return cmd
	}
	if out, err := goCommand("mod", "edit", "-replace=fencepost="+root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := &result{output: map[string]*bytes.Buffer{}, passed: map[string]bool{}, failed: map[string]bool{}}
	cmd := goCommand(append([]string{"test", "-count=1", "-json"}, args...)...)
	cmd.Stderr = &r.all
	out, err := cmd.Output()
	r.err = err
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct{ Action, Test, Output string }
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return r
		case err != nil:
			t.Fatalf("%v\n%s", err, out)
		}
		r.all.WriteString(e.Output)
		if e.Test == "" {
			continue
		}
		switch e.Action {
		case "output":
			if r.output[e.Test] == nil {
				r.output[e.Test] = new(bytes.Buffer)
			}
			r.output[e.Test].WriteString(e.Output)
		case "pass":
			r.passed[e.Test] = true
		case "fail":
			r.failed[e.Test] = true
		}
	}
}
