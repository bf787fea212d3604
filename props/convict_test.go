package props

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fencepost/props/kit"

	"github.com/google/go-cmp/cmp"
)

// sheet is a tester that writes down what it is told.
type sheet struct {
	name   string
	lines  *[]string
	stop   *bool
	suffix string // of the names of its subtests
}

func newSheet(name string) sheet { return sheet{name: name, lines: new([]string), stop: new(bool)} }

// end is how a sheet ends a test that asks for it.
type end struct{}

func (s sheet) Helper()      {}
func (s sheet) Name() string { return s.name }
func (s sheet) Run(name string, f func(tester)) (ok bool) {
	child := sheet{name: s.name + "/" + name + s.suffix, lines: s.lines, stop: new(bool)}
	defer func() {
		if r := recover(); r != nil {
			if _, ended := r.(end); !ended {
				panic(r)
			}
		}
		*s.stop = *s.stop || *child.stop
		ok = !*child.stop
	}()
	f(child)
	return true
}
func (s sheet) note(kind, format string, args ...any) {
	*s.lines = append(*s.lines, fmt.Sprintf("%s %s: %s", kind, s.name, fmt.Sprintf(format, args...)))
}
func (s sheet) Logf(format string, args ...any) { s.note("log", format, args...) }
func (s sheet) Errorf(format string, args ...any) {
	*s.stop = true
	s.note("error", format, args...)
}
func (s sheet) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	panic(end{})
}
func (s sheet) Skipf(format string, args ...any) {
	s.note("skip", format, args...)
	panic(end{})
}

var conviction = kit.Failure{
	Rule:  "renew-only-by-the-holder",
	Says:  "A renewal is granted only to the holder. Else a lease is stolen.",
	What:  "a renewal by b was granted while a held the lease",
	Story: []string{"0s  a acquires for 10s          granted: token 1  ", "1s  b renews under token 1  ◄   granted: token 1"},
	Read:  "go doc fencepost/impl/lease Store",
	File:  &kit.File{Name: "renew-1a2b.json", Data: []byte("{}")},
}

// What a person reads, as a whole.
func TestAFailureNamesTheRuleAndTheWayBack(t *testing.T) {
	want := `renew-only-by-the-holder: a renewal by b was granted while a held the lease

    0s  a acquires for 10s          granted: token 1
    1s  b renews under token 1  ◄   granted: token 1

rule:   A renewal is granted only to the holder. Else a lease is stolen.
read:   go doc fencepost/impl/lease Store
file:   testdata/fencepost/TestMine/renew-1a2b.json   (replayed first from now on)
again:  go test -run '^TestMine$/^kept$/^renew-1a2b\.json$'`
	got := conviction.Text([]string{"testdata/fencepost/TestMine/renew-1a2b.json"}, `go test -run '^TestMine$/^kept$/^renew-1a2b\.json$'`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChecksBecomeSubtestsByGroup(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newSheet("TestMine")
	c := conformance{checks: plain([]kit.Check{
		{Name: "rules/first", Run: func() kit.Outcome { return kit.Outcome{Covered: "5 steps"} }},
		{Name: "rules/second", Run: func() kit.Outcome { return kit.Outcome{Skipped: "no Get"} }},
		{Name: "lockstep", Run: func() kit.Outcome { return kit.Outcome{Unknown: "no takeover"} }},
		{Name: "bad", Run: func() kit.Outcome { panic(&kit.SetupError{Err: errors.New("no server")}) }},
	})}
	c.run(s)
	want := []string{
		"log TestMine/rules/first: holds: 5 steps",
		"skip TestMine/rules/second: no Get",
		"error TestMine/lockstep: unknown: no takeover",
		"error TestMine/bad: unknown: could not be set up: no server",
	}
	if diff := cmp.Diff(want, *s.lines); diff != "" {
		t.Error(diff)
	}
}

// A counterexample is written once, replayed first from then on, and told in
// full by the replay alone.
func TestACounterexampleIsKeptAndReplayedFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	mended := false
	c := conformance{
		checks: plain([]kit.Check{{Name: "lockstep", Run: func() kit.Outcome {
			if mended {
				return kit.Outcome{}
			}
			f := conviction
			f.More = "a longer story"
			return kit.Outcome{Failure: &f}
		}}}),
		replay: func(_ tester, path string, data []byte) kit.Outcome {
			if string(data) != "{}" || mended {
				return kit.Outcome{}
			}
			return kit.Outcome{Failure: &conviction}
		},
	}
	run := func() string {
		s := newSheet("TestMine/sub test")
		c := conformance{checks: c.checks, replay: c.replay}
		c.run(s)
		return strings.Join(*s.lines, "\n")
	}
	const dir = "testdata/fencepost/TestMine/sub_test"
	first := run()
	if !strings.Contains(first, `go test -run '^TestMine$/^sub test$/^kept$/^renew-1a2b\.json$'`) || !strings.Contains(first, "error TestMine/sub test/lockstep: ") || !strings.Contains(first, dir+"/renew-1a2b.json") {
		t.Errorf("the first run says\n%s", first)
	}
	if again := `go test -run '^TestMine$/^sub test$/^kept$/^renew-1a2b\.json$'`; !strings.Contains(first, again) {
		t.Errorf("the first run does not say %s:\n%s", again, first)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "renew-1a2b.txt")); err != nil || string(b) != "a longer story\n" {
		t.Errorf("the timeline beside it: %q, %v", b, err)
	}
	second := run()
	if !strings.HasPrefix(second, "error TestMine/sub test/kept/renew-1a2b.json: ") || strings.Count(second, "a acquires") != 1 || !strings.Contains(second, "found again") {
		t.Errorf("the second run says\n%s", second)
	}
	mended = true
	if third := run(); third != "log TestMine/sub test/kept/renew-1a2b.json: this counterexample holds now: keep it as a regression test, or delete it" {
		t.Errorf("once it is mended:\n%s", third)
	}
}

func TestAPanicIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newSheet("TestMine")
	c := conformance{checks: plain([]kit.Check{{Name: "malformed/nil", Run: func() kit.Outcome { panic("index out of range") }}})}
	c.run(s)
	if got := strings.Join(*s.lines, "\n"); !strings.Contains(got, "error TestMine/malformed/nil: no-panic: panic: index out of range") || !strings.Contains(got, "convict_test.go") {
		t.Errorf("it says\n%s", got)
	}
}

func TestNamesOfTestsAreSafeAsDirectories(t *testing.T) {
	for name, want := range map[string]string{
		"TestMine":             "testdata/fencepost/TestMine",
		"TestMine/../../a b:c": "testdata/fencepost/TestMine/_/_/a_b_c",
	} {
		c := conformance{root: name}
		if got := filepath.ToSlash(c.dir(newSheet(name + "/rules"))); got != want {
			t.Errorf("%q is kept in %q, want %q", name, got, want)
		}
	}
}

// The second call in one test has subtests of other names, and counterexamples
// of its own; the way back names them.
func TestTwoCallsInOneTestAreToldApart(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newSheet("TestMine")
	s.suffix = "#01"
	c := conformance{checks: plain([]kit.Check{{Name: "lockstep", Run: func() kit.Outcome { return kit.Outcome{Failure: &conviction} }}})}
	c.run(s)
	if got := strings.Join(*s.lines, "\n"); !strings.Contains(got, `go test -run '^TestMine$/^kept#01$/^renew-1a2b\.json$'`) || !strings.Contains(got, "testdata/fencepost/TestMine_01/renew-1a2b.json") {
		t.Errorf("it says\n%s", got)
	}
}

func TestWhatIsUnknownIsToldOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newSheet("TestMine")
	unknown := func() kit.Outcome { return kit.Outcome{Unknown: "no server"} }
	c := conformance{checks: plain([]kit.Check{{Name: "a", Run: unknown}, {Name: "b", Run: unknown}})}
	c.run(s)
	want := []string{"error TestMine/a: unknown: no server", "skip TestMine/b: unknown, as told by TestMine/a"}
	if diff := cmp.Diff(want, *s.lines); diff != "" {
		t.Error(diff)
	}
}

func TestEffortComesFromTheEnvironment(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	e, err := effort(env(nil))
	if err != nil || e != (kit.Effort{Seed: 1}) {
		t.Errorf("without anything: %+v, %v", e, err)
	}
	e, err = effort(env(map[string]string{"FENCEPOST_LONG": "1", "FENCEPOST_SEED": "7"}))
	if err != nil || e != (kit.Effort{Long: true, Seed: 7}) {
		t.Errorf("long, seed 7: %+v, %v", e, err)
	}
	if e, err = effort(env(map[string]string{"FENCEPOST_LONG": "true"})); err != nil || !e.Long || e.Seed == 0 {
		t.Errorf("long: %+v, %v", e, err)
	}
	for _, bad := range []map[string]string{{"FENCEPOST_LONG": "very"}, {"FENCEPOST_SEED": "-1"}} {
		if _, err := effort(env(bad)); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestAGroupOfChecksIsOneSubtest(t *testing.T) {
	var all []check
	for _, name := range []string{"a/1", "b/1", "a/2", "c", "b/2"} {
		all = append(all, check{name: name})
	}
	var got []string
	for _, group := range groups(all) {
		for _, c := range group {
			got = append(got, c.name)
		}
	}
	if want := "a/1 a/2 b/1 b/2 c"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Nobody is told of the first five seconds, nor in the long mode.
func TestAQuickModeThatTakesLongIsToldHowToBeQuicker(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		e     kit.Effort
		calls int
		want  []string
	}{
		{5 * time.Second, kit.Effort{}, 0, nil},
		{time.Hour, kit.Effort{Long: true}, 0, nil},
		{7_040 * time.Millisecond, kit.Effort{}, 0, []string{"log TestMine: the quick mode took 7s: set Options.Calls, to 2000 for example"}},
		{time.Minute, kit.Effort{}, 3_000, []string{"log TestMine: the quick mode took 1m0s: lower Options.Calls, which is 3000"}},
	} {
		at := time.Unix(0, 0)
		slow := kit.Check{Name: "rules/slow", Run: func() kit.Outcome { at = at.Add(c.takes); return kit.Outcome{} }}
		s := newSheet("TestMine")
		run := conformance{checks: plain([]kit.Check{slow}), quick: tooSlow(c.e, c.calls), now: func() time.Time { return at }}
		run.run(s)
		if diff := cmp.Diff(c.want, *s.lines); diff != "" {
			t.Errorf("%v: -want +got:\n%s", c.takes, diff)
		}
	}
}
