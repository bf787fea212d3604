package props

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/sim"
	"fencepost/props/timeline"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Rapid's fail files break silently when a generator changes; a schedule file
// does not. They are off unless asked for by -rapid.nofailfile=false or
// RAPID_NOFAILFILE=false.
func init() {
	if _, asked := os.LookupEnv("RAPID_NOFAILFILE"); !asked {
		flag.Set("rapid.nofailfile", "true")
	}
}

// TB is the part of [testing.TB] that a check needs.
type TB interface {
	rapid.TB
}

// Dir is where counterexamples go, relative to the package under test.
const Dir = "testdata/fencepost"

// Property is what to check of a subject.
type Property struct {
	Invariant model.Invariant
	Subject   sim.Subject
	Profile   sim.Profile
	// Config, where set, changes each drawn configuration.
	Config func(*sim.Config)
	// Reached is asked after enough schedules, with what they reached: a
	// property that never saw a takeover has checked nothing. It says what is
	// missing, or nothing.
	Reached func(*sim.Counts) string
	// Dir is where a counterexample is written; [Dir] where empty.
	Dir string
}

// enough is how many schedules a test must run before it can be blamed for
// what it did not reach.
const enough = 50

// Check draws schedules of 100 to 150 actions, RAPID_CHECKS of them (100 by
// default; RAPID_STEPS sets their length), and fails tb with a counterexample
// if the invariant breaks on the subject. RAPID_SEED repeats a run.
//
// Counterexamples to the invariant that an earlier run left in the property's
// Dir are replayed first, unless RAPID_SEED asks for one run and no other.
func Check(tb TB, p Property) {
	tb.Helper()
	r := newRun(p)
	replayKept(tb, r.p)
	quiet := &intercept{TB: tb}
	defer func() {
		if r.failure != nil {
			r.report(tb, quiet.seed)
		}
	}()
	rapid.Check(quiet, r.schedule)
	unknown, counts := false, &r.trial.Counts
	if p.Reached != nil && counts.Runs >= enough {
		if missing := p.Reached(counts); missing != "" {
			tb.Errorf("%v is unknown on %s: in %d schedules there were no %s, so it was not put to the test", p.Invariant, p.Subject.Name, counts.Runs, missing)
			unknown = true
		}
	}
	if r.trial.Undecided > 0 {
		tb.Errorf("%v is unknown on %s: the histories of %d schedules could not be decided", p.Invariant, p.Subject.Name, r.trial.Undecided)
		unknown = true
	}
	if unknown {
		return
	}
	effective, all := counts.Actions()
	tb.Logf("%v holds on %s: %d schedules of %s, %d actions (%d effective), %d takeovers, %d stale requests refused, %d restarts",
		p.Invariant, p.Subject.Name, counts.Runs, p.Profile.Name, all, effective, counts.Takeovers, counts.StaleRefused,
		counts.ClientRestarts+counts.StoreRestarts+counts.Storage)
}

// run is one Check.
type run struct {
	p       Property
	trial   judge.Trial
	failure *judge.Failure
	draws   []uint64 // of the failing schedule
}

func newRun(p Property) run {
	if p.Dir == "" {
		p.Dir = Dir
	}
	return run{p: p, trial: judge.Trial{Subject: p.Subject, Want: model.SetOf(p.Invariant), Config: p.Config}}
}

// source draws from rapid. Rapid's integers favour small values; folding each
// into what came before gives every choice the entropy of all.
type source struct {
	t     *rapid.T
	state uint64
	draws []uint64
}

func (s *source) Uint64() uint64 {
	d := numbers.Draw(s.t, "")
	s.draws = append(s.draws, d)
	s.state = (s.state^d)*0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d
	z := (s.state ^ s.state>>32) * 0xd6e8feb86659fd93
	return z ^ z>>32
}

var numbers = rapid.Uint64()

// schedule is the property as rapid calls it.
func (r *run) schedule(t *rapid.T) {
	src := &source{t: t}
	if r.failure != nil {
		r.again(t, src)
		return
	}
	least, most := 100, 150
	if n := stepsFlag(); n > 0 {
		least, most = n, n
	}
	if err := r.one(src, least, most); err != nil {
		t.Fatalf("%v", err)
	}
	if r.failure != nil {
		r.draws = src.draws
		t.Fatalf("%v is violated", r.failure.Result.First.Invariant)
	}
}

// one tries one schedule, and keeps how it failed.
func (r *run) one(src sim.Source, least, most int) error {
	f, err := r.trial.Run(src, &r.p.Profile, least, most)
	if err != nil {
		return fmt.Errorf("the drawn configuration is refused: %w", err)
	}
	if r.failure = f; f != nil {
		f.Number = int(r.trial.Counts.Runs)
	}
	return nil
}

// CheckBytes is Check for the one schedule that data gives, eight bytes an
// action: the body of a native fuzz target.
func CheckBytes(tb TB, p Property, data []byte) {
	tb.Helper()
	r := newRun(p)
	steps := min(len(data)/8, 150)
	if err := r.one(&fuzzed{data}, steps, steps); err != nil {
		tb.Fatalf("%v", err)
	}
	if r.failure != nil {
		r.report(tb, "")
	}
}

// fuzzed gives the fuzzer's bytes, and zeros when they are used up.
type fuzzed struct{ data []byte }

func (f *fuzzed) Uint64() uint64 {
	var b [8]byte
	f.data = f.data[copy(b[:], f.data):]
	return binary.LittleEndian.Uint64(b[:])
}

// again is what rapid's shrinker calls: the draws that failed fail again, and
// all others pass, so that it ends at once. [sim.Minimize] does better in a
// thousandth of the time.
func (r *run) again(t *rapid.T, src *source) {
	for i := range r.draws {
		if src.Uint64(); src.draws[i] != r.draws[i] {
			return
		}
	}
	t.Fatalf("%v is violated", r.failure.Result.First.Invariant)
}

// stepsFlag is RAPID_STEPS or -rapid.steps if somebody set it, else 0.
func stepsFlag() int {
	f := flag.Lookup("rapid.steps")
	if _, env := os.LookupEnv("RAPID_STEPS"); f == nil || !env && f.Value.String() == f.DefValue {
		return 0
	}
	n, err := strconv.Atoi(f.Value.String())
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// report minimises the failure, writes its file and tells the whole story.
func (r *run) report(tb TB, seed string) {
	tb.Helper()
	s := r.failure.Minimize(r.p.Subject, r.trial.Want)
	path, err := s.WriteFile(r.p.Dir)
	if err != nil {
		tb.Logf("the counterexample could not be written: %v", err)
	}
	tb.Errorf("%s", Explain(s, r.p.Subject, r.trial.Want))
	test := fmt.Sprintf("go test -run '^%s$'", strings.ReplaceAll(regexp.QuoteMeta(tb.Name()), "/", "$/^"))
	again := "the file that the fuzzer wrote"
	if strings.Contains(tb.Name(), "/") {
		again = test
	}
	if seed != "" {
		again = "RAPID_SEED=" + seed + " " + test
		if n := stepsFlag(); n > 0 {
			again = fmt.Sprintf("RAPID_STEPS=%d %s", n, again)
		}
	}
	replay := fmt.Sprintf("go run ./cmd/fencepost replay %s   (go tool fencepost, in another module)", path)
	if s.Subject == sim.SubjectExternal {
		replay = test + "   (it replays the file first)"
	}
	tb.Logf("after %d schedules of %s, from %d actions minimised to %d\nschedule: %s\nreplay:   %s\nagain:    %s",
		r.failure.Number, r.p.Profile.Name, len(r.failure.Schedule.Actions), len(s.Actions), path, replay, again)
}

// Explain runs s on subject and says which of the wanted invariants broke,
// with the timeline of the run. It is empty if all held.
func Explain(s *sim.Schedule, subject sim.Subject, want model.Set) string {
	r := judge.Run(s, subject, want)
	if r.Violated == 0 {
		return ""
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v is violated on %s: %s\n", r.First.Invariant, subject.Name, r.First.Describe(sim.Names()))
	if r.Violated.Has(model.Lockstep) {
		fmt.Fprintf(&b, "%s\nanswer of the implementation (+) and of the specification (-):\n%s",
			sim.Line(&r.Mismatch.Event), cmp.Diff(r.Mismatch.Want, r.Mismatch.Got))
	}
	b.WriteByte('\n')
	if err := timeline.Render(&b, judge.Trace(s, subject, want).Events, sim.Names(), timeline.Options{Violation: r.First}); err != nil {
		fmt.Fprintf(&b, "no timeline: %v", err)
	}
	return b.String()
}

// replayKept replays the counterexamples to the property's subject that earlier
// runs have left.
func replayKept(tb TB, p Property) {
	tb.Helper()
	if _, asked := os.LookupEnv("RAPID_SEED"); asked {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(p.Dir, "*.json"))
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			tb.Errorf("%v", err)
			continue
		}
		s, err := sim.ReadSchedule(f, path)
		f.Close()
		if err != nil {
			tb.Errorf("%v", err)
			continue
		}
		var about model.Invariant
		another := about.UnmarshalText([]byte(s.Name)) == nil && about != p.Invariant // as Minimize names it
		if s.Subject != judge.Filed(p.Subject) || s.Expect != model.NoInvariant || another {
			continue
		}
		if text := Explain(s, p.Subject, model.SetOf(p.Invariant)); text != "" {
			tb.Errorf("kept counterexample %s still fails; it stays red until that is fixed, and is a regression test then\n%s", path, text)
		}
	}
	if tb.Failed() {
		tb.FailNow()
	}
}

// intercept keeps rapid's report to itself, but for the seed in it: this
// package tells the story.
type intercept struct {
	rapid.TB
	seed   string
	failed bool
}

var seedInReport = regexp.MustCompile(`-rapid\.seed=(\d+)`)

func (i *intercept) Errorf(format string, args ...any) {
	i.TB.Helper()
	text := fmt.Sprintf(format, args...)
	if m := seedInReport.FindStringSubmatch(text); m != nil {
		i.seed, i.failed = m[1], true
		return
	}
	i.TB.Errorf("%s", text)
}

func (i *intercept) Logf(format string, args ...any) {
	if !strings.HasPrefix(format, "[rapid] ") || testing.Verbose() && !strings.Contains(format, "draw") {
		i.TB.Helper()
		i.TB.Logf(format, args...)
	}
}

func (i *intercept) Failed() bool { return i.failed || i.TB.Failed() }
