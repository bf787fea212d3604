package mutant

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/sim"
)

const (
	seed  = 1
	limit = 10_000
)

// judgeFor checks linearizability where the bug may show there, and not where
// it would only cost time.
func judgeFor(m Mutant) Judge {
	if !m.May.Has(model.Linearizability) {
		return nil
	}
	return func(s *sim.Schedule, subject sim.Subject) sim.Result {
		return judge.Run(s, subject, m.Judged()).Result
	}
}

type hunted struct {
	Catch
	err error
}

// hunts hunts every bug once, for all tests that look at what came of it.
var hunts = sync.OnceValue(func() []hunted {
	all := All()
	out := make([]hunted, len(all))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				m := all[i]
				out[i].Catch, out[i].err = m.Hunt(context.Background(), seed, limit, judgeFor(m))
			}
		})
	}
	wg.Wait()
	return out
})

func TestEveryBugIsCaughtByWhatItDeclares(t *testing.T) {
	for _, c := range hunts() {
		t.Run(c.Name, func(t *testing.T) {
			if c.err != nil {
				t.Fatal(c.err)
			}
			run := judgeFor(c.Mutant)
			if run == nil {
				run = monitor
			}
			s := c.Schedule
			if r := run(s, c.Subject); !r.Violated.Has(c.Invariant) || r.Violated&^c.May != 0 || r.Waived != s.Waives {
				t.Errorf("the counterexample violates %v and waives %v; want %v within %v, and %v", r.Violated, r.Waived, c.Invariant, c.May, s.Waives)
			}
			if r := s.Run(sim.Builtin(), sim.Options{Monitor: true, Lockstep: true}); r.Violated != 0 {
				t.Errorf("the counterexample violates %v on the built-in implementation: %s", r.Violated, r.First.Describe(sim.Names()))
			}
			if len(s.Actions) > c.Actions {
				t.Errorf("the counterexample has %d actions; at most %d were promised:\n%v", len(s.Actions), c.Actions, s.Actions)
			}
			if c.Invariant != model.Availability && slices.ContainsFunc(s.Actions, isCalm) {
				t.Error("the counterexample hides steps in a calm")
			}
		})
	}
}

// TestCounterexamplesAreScheduleFiles writes each as a file, reads it back and
// resolves its subject, as a replay does.
func TestCounterexamplesAreScheduleFiles(t *testing.T) {
	for _, c := range hunts() {
		if c.err != nil {
			t.Fatal(c.err)
		}
		file, err := c.Schedule.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.ReadSchedule(bytes.NewReader(file), c.Name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Schedule, s); d != "" {
			t.Errorf("%s reads back as another schedule (-written +read):\n%s", c.Name, d)
		}
		if s.Name != c.Name || s.Shows != c.Breaks || s.Expect != c.Invariant {
			t.Errorf("the file of %s says %q, %q, expect %v", c.Name, s.Name, s.Shows, s.Expect)
		}
		if subject, err := Subject(s.Subject); err != nil || subject != c.Subject {
			t.Errorf("the file of %s names the subject %q: %v", c.Name, s.Subject, err)
		}
	}
}

func TestCounterexamplesAreShort(t *testing.T) {
	var lengths []int
	for _, c := range hunts() {
		if c.err == nil {
			lengths = append(lengths, len(c.Schedule.Actions))
		}
	}
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > 9 {
		t.Errorf("counterexamples have %d actions in the median, more than 9: %v", median, lengths)
	}
	for _, m := range All() {
		if m.Actions < 1 || m.Actions > 20 {
			t.Errorf("%s promises at most %d actions, not between 1 and 20", m.Name, m.Actions)
		}
	}
}

// TestEveryInvariantCatchesABug tries further seeds for an invariant that only
// comes first when it comes with another.
func TestEveryInvariantCatchesABug(t *testing.T) {
	var caught model.Set
	for _, c := range hunts() {
		if c.err == nil {
			caught |= model.SetOf(c.Invariant)
		}
	}
	for v := range model.Invariants() {
		for more := uint64(1); more < 5 && v != model.Lockstep && !caught.Has(v); more++ {
			for _, m := range All() {
				if m.May.Has(v) {
					if c, err := m.Hunt(t.Context(), seed+more, limit, judgeFor(m)); err == nil {
						caught |= model.SetOf(c.Invariant)
					}
				}
			}
		}
		if v != model.Lockstep && !caught.Has(v) {
			t.Errorf("no planted bug is caught by %v", v)
		}
	}
}

// TestHuntsPassUnmutated draws the schedules of each hunt for the built-in
// implementation instead: it is the bug that fails, not what is asked of it.
func TestHuntsPassUnmutated(t *testing.T) {
	for _, c := range hunts() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			run := judgeFor(c.Mutant)
			for i := range c.Schedules {
				s := c.draw(sim.Builtin(), seed, i, sim.Options{})
				if r := s.Run(sim.Builtin(), sim.Options{Monitor: true, Lockstep: true}); r.Violated != 0 {
					t.Fatalf("schedule %d violates %v: %s", i, r.Violated, r.First.Describe(sim.Names()))
				}
				if run != nil {
					if r := run(s, sim.Builtin()); r.Violated != 0 {
						t.Fatalf("schedule %d violates %v", i, r.Violated)
					}
				}
			}
		})
	}
}

// TestCompanionsAreCorrect runs the rules that some bugs come with, which are
// unusual and yet right, beside the built-in ones.
func TestCompanionsAreCorrect(t *testing.T) {
	for name, change := range map[string]func(*sim.Subject){
		"short renewals":    func(s *sim.Subject) { s.Client = shortRenewals{} },
		"stamps wall clock": func(s *sim.Subject) { s.Client = stampsWallClock{} },
		"stingy store":      func(s *sim.Subject) { s.Store = stingy{} },
	} {
		t.Run(name, func(t *testing.T) {
			m := Mutant{Name: name, Subject: sim.Builtin()}
			change(&m.Subject)
			if _, err := m.Hunt(t.Context(), seed, 1000, nil); !errors.Is(err, ErrEscaped) {
				t.Errorf("it breaks something: %v", err)
			}
		})
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, m := range All() {
		if seen[m.Name] || !kebab.MatchString(m.Name) {
			t.Errorf("%q is not kebab-case, or not unique", m.Name)
		}
		seen[m.Name] = true
		if m.Subject.Name != "mutant:"+m.Name {
			t.Errorf("the subject of %s is called %q", m.Name, m.Subject.Name)
		}
		if !strings.HasSuffix(m.Breaks, ".") || m.Seen == "" {
			t.Errorf("%s does not say what it breaks in a sentence, or where it was seen", m.Name)
		}
	}
	if len(seen) < 24 {
		t.Errorf("there are only %d planted bugs", len(seen))
	}
}

// TestDeclarationsSaySomething holds a set that names nearly everything, or
// lockstep, which catches what is merely unusual, for no declaration.
func TestDeclarationsSaySomething(t *testing.T) {
	for _, m := range All() {
		if n := len(slices.Collect(m.May.All())); n < 1 || n > 4 || m.May.Has(model.Lockstep) {
			t.Errorf("%s may violate %v", m.Name, m.May)
		}
	}
}

func TestHuntsAreRepeatable(t *testing.T) {
	for _, c := range hunts()[:8] {
		again, err := c.Hunt(t.Context(), seed, limit, judgeFor(c.Mutant))
		if err != nil || again.Schedules != c.Schedules || again.Invariant != c.Invariant {
			t.Fatalf("%s: %v after %d schedules, then %v after %d (%v)", c.Name, c.Invariant, c.Schedules, again.Invariant, again.Schedules, err)
		}
		if d := cmp.Diff(c.Schedule, again.Schedule); d != "" {
			t.Errorf("%s was minimised to another schedule:\n%s", c.Name, d)
		}
	}
}

func TestHuntSaysWhyItFailed(t *testing.T) {
	bug, err := Find("unfenced")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		change    func(*Mutant)
		cancelled bool
		want      error
	}{
		{"nothing to catch", func(m *Mutant) { m.Subject = sim.Builtin() }, false, ErrEscaped},
		{"caught by another invariant", func(m *Mutant) { m.May = model.SetOf(model.Durability) }, false, ErrUndeclared},
		{"context at its end", func(*Mutant) {}, true, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancelled {
				cancel()
			}
			m := bug
			tt.change(&m)
			c, err := m.Hunt(ctx, seed, 30, nil)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "unfenced") {
				t.Errorf("the error is %v, want %v of unfenced", err, tt.want)
			}
			if c.Schedule != nil || c.Schedules > 30 || (c.Schedules == 0) != tt.cancelled {
				t.Errorf("it ran %d schedules and gave %v", c.Schedules, c.Schedule)
			}
		})
	}
}

func TestSubjectsResolve(t *testing.T) {
	for name, want := range map[string]string{
		"builtin":         "",
		"mutant:unfenced": "",
		"external":        "only the test that wrote the schedule can run it",
		"mutant:nobody":   "countdown-from-reply, ",
		"unfenced":        `"mutant:"`,
		"":                `"builtin"`,
	} {
		s, err := Subject(name)
		switch {
		case want == "" && (err != nil || s.Name != name):
			t.Errorf("%q gives %q, %v", name, s.Name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q gives %v, which does not say %q", name, err, want)
		}
	}
}
