package props_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"fencepost/model"
	"fencepost/props"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// recorder is a test that may fail without failing the test that holds it.
type recorder struct {
	name   string
	mu     sync.Mutex
	text   bytes.Buffer
	failed bool
}

func (r *recorder) note(fail bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || fail
	fmt.Fprintln(&r.text, text)
}

func (r *recorder) Helper()                   {}
func (r *recorder) Name() string              { return r.name }
func (r *recorder) Logf(f string, a ...any)   { r.note(false, fmt.Sprintf(f, a...)) }
func (r *recorder) Log(a ...any)              { r.note(false, fmt.Sprint(a...)) }
func (r *recorder) Skipf(f string, a ...any)  { r.Logf(f, a...); runtime.Goexit() }
func (r *recorder) Skip(a ...any)             { r.Log(a...); runtime.Goexit() }
func (r *recorder) SkipNow()                  { runtime.Goexit() }
func (r *recorder) Errorf(f string, a ...any) { r.note(true, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(a ...any)            { r.note(true, fmt.Sprint(a...)) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }
func (r *recorder) Fatal(a ...any)            { r.Error(a...); runtime.Goexit() }
func (r *recorder) FailNow()                  { r.note(true, "FailNow"); runtime.Goexit() }
func (r *recorder) Fail()                     { r.note(true, "Fail") }
func (r *recorder) Failed() bool              { r.mu.Lock(); defer r.mu.Unlock(); return r.failed }

// check runs a property as a test of its own and returns what came of it.
func check(p props.Property) *recorder {
	r := &recorder{name: "TestPropOfItsOwn"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		props.Check(r, p)
	}()
	<-done
	return r
}

// rapidFlag sets one of rapid's flags for the rest of a test.
func rapidFlag(t *testing.T, name, value string) {
	t.Helper()
	old := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { flag.Set(name, old) })
}

// culprit is for each invariant the planted bug that its property must catch.
var culprit = map[model.Invariant]string{
	model.TokenMonotonicity: "token-reused-after-release",
	model.StorageSafety:     "unfenced",
	model.BeliefSafety:      "countdown-from-reply",
	model.BeliefOwnership:   "drift-margin-zero",
	model.Continuity:        "late-reply-revives-term",
	model.Linearizability:   "refuses-equal-token",
	model.Durability:        "lost-write-at-restart",
	model.Availability:      "restart-absolute-expiry",
	model.Barrier:           "no-barrier",
	model.Attribution:       "token-laundering",
	model.Lockstep:          "retry-keeps-old-expiry",
}

// TestEveryPropertyFailsOnItsMutant shows that no property is one that cannot
// fail, and that what it reports is the whole story.
func TestEveryPropertyFailsOnItsMutant(t *testing.T) {
	rapidFlag(t, "rapid.checks", "10000")
	rapidFlag(t, "rapid.seed", "1")
	for v := range model.Invariants() {
		t.Run(v.String(), func(t *testing.T) {
			subject, err := mutant.Subject("mutant:" + culprit[v])
			if err != nil {
				t.Fatal(err)
			}
			p := props.For(v, subject, sim.Raw())
			p.Dir = t.TempDir()
			r := check(p)
			if !r.Failed() {
				t.Fatalf("%s passes %v:\n%s", subject.Name, v, r.text.String())
			}
			text := r.text.String()
			for _, part := range []string{v.String() + " is violated on " + subject.Name, "RAPID_SEED=", "go test -run '^TestPropOfItsOwn$'", "fencepost replay ", "minimised to"} {
				if !strings.Contains(text, part) {
					t.Errorf("the report does not say %q:\n%s", part, text)
				}
			}
			s := written(t, p.Dir)
			if s.Expect != v || s.Subject != subject.Name {
				t.Errorf("the file says subject %s, expect %v; want %s and %v", s.Subject, s.Expect, subject.Name, v)
			}
			if got := judge.Run(s, subject, model.SetOf(v)).Violated; !got.Has(v) {
				t.Errorf("the file's schedule does not violate %v", v)
			}
			if got := judge.Run(s, sim.Builtin(), judge.All).Violated; got != 0 {
				t.Errorf("the same schedule violates %v on the built-in implementation", got)
			}
		})
	}
}

// written is the one schedule file in dir.
func written(t *testing.T, dir string) *sim.Schedule {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("want one file in %s, got %v (%v)", dir, paths, err)
	}
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := sim.ReadSchedule(f, paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSeedAndFileReachTheSameViolation goes both ways back from a failure.
func TestSeedAndFileReachTheSameViolation(t *testing.T) {
	rapidFlag(t, "rapid.checks", "10000")
	rapidFlag(t, "rapid.seed", "7")
	subject, err := mutant.Subject("mutant:countdown-from-reply")
	if err != nil {
		t.Fatal(err)
	}
	p := props.For(model.BeliefOwnership, subject, sim.Chaos())
	p.Dir = t.TempDir()
	first := check(p)
	m := regexp.MustCompile(`RAPID_SEED=(\d+)`).FindStringSubmatch(first.text.String())
	if !first.Failed() || m == nil {
		t.Fatalf("no seed in the report:\n%s", first.text.String())
	}
	original := written(t, p.Dir)

	p.Dir = t.TempDir()
	rapidFlag(t, "rapid.seed", m[1])
	again := check(p)
	if !strings.Contains(again.text.String(), "after 1 schedules") {
		t.Errorf("the seed does not fail at once:\n%s", again.text.String())
	}
	repeated := written(t, p.Dir)
	if !slices.Equal(original.Actions, repeated.Actions) || original.Config != repeated.Config {
		t.Errorf("the seed led to another counterexample:\n%v\n%v", original, repeated)
	}
	want := judge.Run(repeated, subject, model.SetOf(model.BeliefOwnership)).First
	if got := judge.Run(original, subject, model.SetOf(model.BeliefOwnership)).First; got != want || got.Invariant != model.BeliefOwnership {
		t.Errorf("the file reaches %v, the seed %v", got, want)
	}
}

// TestKeptCounterexampleIsRedUntilFixed plants a failing file that expects
// nothing to fail.
func TestKeptCounterexampleIsRedUntilFixed(t *testing.T) {
	rapidFlag(t, "rapid.checks", "10")
	wrong, err := mutant.Subject("mutant:unfenced")
	if err != nil {
		t.Fatal(err)
	}
	wrong.Name = sim.SubjectBuiltin // as if impl had the bug
	p := props.For(model.StorageSafety, wrong, sim.Raw())
	p.Dir = t.TempDir()
	rapidFlag(t, "rapid.checks", "10000")
	if r := check(p); !r.Failed() {
		t.Fatal("the bug was not found")
	}
	if s := written(t, p.Dir); s.Expect != model.NoInvariant {
		t.Errorf("a counterexample to a real subject expects %v, not none", s.Expect)
	}
	rapidFlag(t, "rapid.checks", "1")
	if r := check(p); !r.Failed() || !strings.Contains(r.text.String(), "kept counterexample") {
		t.Errorf("the kept file is not red while the bug is there:\n%s", r.text.String())
	}
	p.Subject = sim.Builtin()
	if r := check(p); r.Failed() {
		t.Errorf("the kept file is red although the bug is fixed:\n%s", r.text.String())
	}
}

// TestAnExternalCounterexampleIsRedUntilFixed: the same for somebody else's
// implementation, which only its own test can run.
func TestAnExternalCounterexampleIsRedUntilFixed(t *testing.T) {
	wrong, err := mutant.Subject("mutant:unfenced")
	if err != nil {
		t.Fatal(err)
	}
	wrong.Name = "mystore"
	p := props.For(model.StorageSafety, wrong, sim.Raw())
	p.Dir = t.TempDir()
	rapidFlag(t, "rapid.checks", "10000")
	r := check(p)
	if text := r.text.String(); !r.Failed() || strings.Contains(text, "fencepost replay") || !strings.Contains(text, "it replays the file first") {
		t.Fatalf("the report is\n%s", text)
	}
	if s := written(t, p.Dir); s.Subject != sim.SubjectExternal || s.Expect != model.NoInvariant {
		t.Errorf("the file says subject %s, expect %v", s.Subject, s.Expect)
	}
	rapidFlag(t, "rapid.checks", "1")
	if r := check(p); !r.Failed() || !strings.Contains(r.text.String(), "kept counterexample") {
		t.Errorf("the kept file is not red while the bug is there:\n%s", r.text.String())
	}
	p.Subject = sim.Builtin()
	p.Subject.Name = "mystore"
	if r := check(p); r.Failed() {
		t.Errorf("the kept file is red although the bug is fixed:\n%s", r.text.String())
	}
}

// TestStepsArePartOfTheWayBack: with another number of steps the same seed
// leads elsewhere.
func TestStepsArePartOfTheWayBack(t *testing.T) {
	rapidFlag(t, "rapid.checks", "10000")
	rapidFlag(t, "rapid.steps", "77")
	subject, err := mutant.Subject("mutant:unfenced")
	if err != nil {
		t.Fatal(err)
	}
	p := props.For(model.StorageSafety, subject, sim.Raw())
	p.Dir = t.TempDir()
	if r := check(p); !strings.Contains(r.text.String(), "RAPID_STEPS=77 RAPID_SEED=") {
		t.Errorf("the way back does not name the steps:\n%s", r.text.String())
	}
}

// TestUnreachedIsAFailure shows that a property which never met what it is
// about does not pass.
func TestUnreachedIsAFailure(t *testing.T) {
	rapidFlag(t, "rapid.checks", "100")
	quiet := sim.Chaos()
	quiet.Weights[sim.Put] = 0 // nobody writes
	p := props.For(model.StorageSafety, sim.Builtin(), quiet)
	p.Dir = t.TempDir()
	if r := check(p); !r.Failed() || !strings.Contains(r.text.String(), "was not put to the test") {
		t.Errorf("a property about writes passed without any:\n%s", r.text.String())
	}
}

// TestFailFilesAreOff keeps rapid from leaving files that break silently.
func TestFailFilesAreOff(t *testing.T) {
	if _, asked := os.LookupEnv("RAPID_NOFAILFILE"); asked {
		t.Skip("RAPID_NOFAILFILE is set")
	}
	if got := flag.Lookup("rapid.nofailfile").Value.String(); got != "true" {
		t.Errorf("-rapid.nofailfile is %s", got)
	}
}
