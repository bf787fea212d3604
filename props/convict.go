package props

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/props/kit"
)

// tester is the part of *testing.T that the conformance checks need, so that
// what they say can be tested.
type tester interface {
	Helper()
	Name() string
	Run(name string, f func(tester)) bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// real is the tester that go test gives.
type real struct{ *testing.T }

func (r real) Run(name string, f func(tester)) bool {
	r.Helper()
	return r.T.Run(name, func(t *testing.T) {
		t.Helper()
		f(real{t})
	})
}

// conformance is one run of the checks of one thing under test.
type conformance struct {
	checks []check
	// replay judges a counterexample that an earlier run has left.
	replay func(t tester, path string, data []byte) kit.Outcome
	// again is what a command needs before it to repeat the run: nothing in the
	// quick mode.
	again string
	// quick is what to do about a quick mode that takes long; "" in any other.
	quick string
	now   func() time.Time // nil: [time.Now]

	root    string            // the name of the test
	failing []string          // the kept files that still fail
	told    map[string]string // by rule, the test that told it in full
}

// patience is how long the quick mode may take until somebody is told how to
// make it shorter: it is for every run of go test.
const patience = 5 * time.Second

// tooSlow is what to do about a quick mode of calls calls, 0 if nobody said how
// many.
func tooSlow(e kit.Effort, calls int) string {
	switch {
	case e.Long:
		return ""
	case calls == 0:
		return "set Options.Calls, to 2000 for example"
	}
	return fmt.Sprintf("lower Options.Calls, which is %d", calls)
}

// check is a kit.Check, which may need the subtest that it runs in.
type check struct {
	name string
	run  func(t tester) kit.Outcome
}

// plain are checks that need no test.
func plain(of []kit.Check) []check {
	checks := make([]check, len(of))
	for i, c := range of {
		checks[i] = check{c.Name, func(tester) kit.Outcome { return c.Run() }}
	}
	return checks
}

// run runs all checks as subtests of t, the kept counterexamples first.
func (c *conformance) run(t tester) {
	t.Helper()
	c.root = t.Name()
	now := c.now
	if now == nil {
		now = time.Now
	}
	began := now()
	defer func() {
		if took := now().Sub(began); took > patience && c.quick != "" {
			t.Logf("the quick mode took %v: %s", took.Round(100*time.Millisecond), c.quick)
		}
	}()
	c.kept(t)
	for _, checks := range groups(c.checks) {
		group := groupOf(checks[0])
		t.Run(group, func(t tester) {
			t.Helper()
			for _, check := range checks {
				name, nested := strings.CutPrefix(check.name, group+"/")
				if !nested {
					c.one(t, check)
					continue
				}
				t.Run(name, func(t tester) {
					t.Helper()
					c.one(t, check)
				})
			}
		})
	}
}

// call is what tells one call in a test from the next, whose subtests go test
// names "kept#01", "rules#01" and so on. t is one of them.
func (c *conformance) call(t tester) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), c.root+"/"), "/")
	_, number, again := strings.Cut(first, "#")
	if !again {
		return ""
	}
	return "#" + number
}

// dir is where the counterexamples go of the call that t is a subtest of: a
// directory of its own, so that nobody's are replayed against somebody else's
// store.
func (c *conformance) dir(t tester) string {
	parts := strings.Split(c.root+c.call(t), "/")
	for i, p := range parts {
		parts[i] = unfit.ReplaceAllString(p, "_")
	}
	return filepath.Join(append([]string{filepath.FromSlash(Dir)}, parts...)...)
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_.+-]|^\.+$`)

// groups parts the checks by what comes before the first slash of their names,
// in the order in which the groups begin. A group is one subtest: go test would
// give a second one of its name another.
func groups(checks []check) (out [][]check) {
	for _, c := range checks {
		i := slices.IndexFunc(out, func(group []check) bool { return groupOf(group[0]) == groupOf(c) })
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], c)
	}
	return out
}

func groupOf(c check) string {
	group, _, _ := strings.Cut(c.name, "/")
	return group
}

// one runs a check and tells what came of it.
func (c *conformance) one(t tester, check check) {
	t.Helper()
	out := kit.Guard(func() kit.Outcome { return check.run(t) })
	if f := out.Failure; f != nil && f.File != nil && slices.Contains(c.failing, f.File.Name) {
		t.Errorf("%s: %s\n\nfound again: see kept/%s", f.Rule, f.What, f.File.Name)
		return
	}
	c.tell(t, out)
}

func (c *conformance) tell(t tester, out kit.Outcome) {
	t.Helper()
	switch {
	case out.Failure != nil:
		paths, err := keep(c.dir(t), out.Failure)
		again := c.again + "go test -run '" + pattern(t.Name()) + "'"
		if len(paths) > 0 && replays(paths[0]) {
			again = "go test -run '" + pattern(c.root+"/kept"+c.call(t)+"/"+out.Failure.File.Name) + "'"
		}
		t.Errorf("%s", c.once(t.Name(), out.Failure).Text(paths, again))
		if err != nil {
			t.Logf("the counterexample could not be written: %v", err)
		}
	case out.Unknown != "":
		if first, told := c.told[out.Unknown]; told {
			t.Skipf("unknown, as told by %s", first)
		}
		c.note(out.Unknown, t.Name())
		t.Errorf("unknown: %s", out.Unknown)
	case out.Skipped != "":
		t.Skipf("%s", out.Skipped)
	case out.Covered != "":
		t.Logf("holds: %s", out.Covered)
	}
}

func (c *conformance) note(what, test string) {
	if c.told == nil {
		c.told = map[string]string{}
	}
	c.told[what] = test
}

// once is f with the rule in full the first time, and later only where that
// was: one fault often breaks one rule in many ways.
func (c *conformance) once(test string, f *kit.Failure) *kit.Failure {
	if first, told := c.told[f.Rule]; told {
		brief := *f
		brief.Says, brief.Hint, brief.Read, brief.Log = "as told by "+first, "", "", ""
		return &brief
	}
	c.note(f.Rule, test)
	return f
}

// kept replays what earlier runs have left.
func (c *conformance) kept(t tester) {
	t.Helper()
	t.Run("kept", func(t tester) {
		t.Helper()
		dir := c.dir(t)
		entries, err := os.ReadDir(dir)
		if err != nil || c.replay == nil {
			return // there is nothing to replay
		}
		for _, e := range entries {
			if e.IsDir() || !replays(e.Name()) {
				continue
			}
			ok := t.Run(e.Name(), func(t tester) {
				t.Helper()
				path := filepath.Join(dir, e.Name())
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatalf("%v", err)
				}
				out := kit.Guard(func() kit.Outcome { return c.replay(t, path, data) })
				if f := out.Failure; f != nil {
					t.Errorf("%s", c.once(t.Name(), f).Text([]string{path}, "go test -run '"+pattern(t.Name())+"'"))
					t.Logf("an earlier run has left it; delete it if what it shows is no fault")
					return
				}
				c.tell(t, out)
				if out.Unknown == "" && out.Skipped == "" {
					t.Logf("this counterexample holds now: keep it as a regression test, or delete it")
				}
			})
			if !ok {
				c.failing = append(c.failing, e.Name())
			}
		}
	})
}

// replays reports whether a file is a counterexample that can be played again,
// and not what happened once.
func replays(name string) bool { return filepath.Ext(name) == ".json" }

// keep writes the file of f into dir, and beside it what is longer than a
// screen.
func keep(dir string, f *kit.Failure) (paths []string, err error) {
	if f.File == nil {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, f.File.Name)
	if err := os.WriteFile(path, f.File.Data, 0o644); err != nil {
		return nil, err
	}
	paths = append(paths, path)
	if f.More != "" {
		more := strings.TrimSuffix(path, filepath.Ext(path)) + ".txt"
		if err := os.WriteFile(more, []byte(f.More+"\n"), 0o644); err != nil {
			return paths, err
		}
		paths = append(paths, more)
	}
	return paths, nil
}

// pattern is the regular expression of go test -run that means the test called
// name alone.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
