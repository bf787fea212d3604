package mutant

import (
	"bytes"
	"context"
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/scenario"
	"fencepost/props/sim"
	"fencepost/testdata"
)

var update = flag.Bool("update", false, "write the shortest counterexamples in testdata anew")

// shortest is where they are stored, from here.
const shortest = "../../testdata/shortest"

// explored is a bug and what exploration found of it.
type explored struct {
	Mutant
	*explore.Report
	took time.Duration
	err  error
}

// explorations explores for every bug that can be shown so, once for all tests
// that look at what came of it. Under the race detector and with -short it
// takes a handful: what they add there is that goroutines explore at all.
var explorations = sync.OnceValue(func() (all []explored) {
	for i, m := range All() {
		if (race || testing.Short()) && i%9 != 0 {
			continue
		}
		x := explored{Mutant: m}
		began := time.Now()
		x.Report, x.err = explore.Run(context.Background(), m.Explored())
		x.took = time.Since(began)
		all = append(all, x)
	}
	return all
})

// shows are the invariants by which exploration may catch m: lockstep stands
// for linearizability, which exploration cannot judge.
func shows(m Mutant) model.Set {
	if m.May.Has(model.Linearizability) {
		return m.May | model.SetOf(model.Lockstep)
	}
	return m.May
}

func TestEveryBugShowsUnderExploration(t *testing.T) {
	for _, x := range explorations() {
		if x.err != nil {
			t.Errorf("%s: %v", x.Name, x.err)
			continue
		}
		if x.Verdict != explore.Violated || x.Violated&^shows(x.Mutant) != 0 {
			t.Errorf("%s violates %v after %d states; want of %v", x.Name, x.Violated, x.Found.States, shows(x.Mutant))
			continue
		}
		if n := len(x.Counterexample.Actions); n != x.Found.FailDepth {
			t.Errorf("%s: the counterexample has %d actions; exploration failed at depth %d", x.Name, n, x.Found.FailDepth)
		}
		t.Logf("%-30s %-28v %2d actions %7d states %v", x.Name, x.First.Invariant, x.Found.FailDepth, x.Found.States, x.took.Round(time.Millisecond))
	}
}

// TestExploredWorldsHoldUnmutated explores the same worlds as far for the
// built-in implementation: it is the bug that fails, not what it is put
// through.
func TestExploredWorldsHoldUnmutated(t *testing.T) {
	for _, x := range explorations() {
		if x.err != nil {
			t.Fatal(x.err)
		}
		o := x.Explored()
		o.Subject, o.MaxDepth = sim.Builtin(), x.Found.FailDepth
		r, err := explore.Run(t.Context(), o)
		switch {
		case err != nil:
			t.Errorf("%s: %v", x.Name, err)
		case r.Verdict == explore.Violated:
			t.Errorf("%s: the built-in implementation violates %s\n%v", x.Name, r.First.Describe(sim.Names()), r.Counterexample.Actions)
		case r.Verdict == explore.Unknown && r.Found.Depth < o.MaxDepth:
			t.Errorf("%s: only %d of %d actions were explored", x.Name, r.Found.Depth, o.MaxDepth)
		}
	}
}

// TestOffByOneShowsByDefault: a world where deadline and lapse cannot fall on
// one instant would hide the most common bug of all.
func TestOffByOneShowsByDefault(t *testing.T) {
	m, err := Find("off-by-one")
	if err != nil {
		t.Fatal(err)
	}
	o := explore.Default()
	o.Subject = m.Subject
	r, err := explore.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != explore.Violated || !m.May.Has(r.First.Invariant) {
		t.Errorf("%v: %v after %d states", r.Verdict, r.Violated, r.Found.States)
	}
}

// TestShortestCounterexamplesAreStored explores anew and compares with what is
// stored; with -update it stores it.
func TestShortestCounterexamplesAreStored(t *testing.T) {
	if *update && (race || testing.Short()) {
		t.Fatal("-update needs every bug: not with -race or -short")
	}
	for _, x := range explorations() {
		if x.err != nil || x.Counterexample == nil {
			t.Errorf("%s was not caught: %v", x.Name, x.err)
			continue
		}
		if *update {
			c := *x.Counterexample
			c.Name, c.Shows = x.Name, x.Breaks
			b, err := c.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(shortest, x.Name+".json"), b, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if s := stored(t, x.Mutant); len(s.Actions) != x.Found.FailDepth || s.Expect != x.First.Invariant || s.Config != x.Config {
			t.Errorf("%s: stored are %d actions that break %v; exploration breaks %v with %d\nupdate with: go test ./props/mutant -run Stored -update",
				x.Name, len(s.Actions), s.Expect, x.First.Invariant, x.Found.FailDepth)
		}
	}
}

// stored is the shortest counterexample to m in testdata.
func stored(t testing.TB, m Mutant) *sim.Schedule {
	t.Helper()
	b, err := testdata.Shortest.ReadFile(path.Join("shortest", m.Name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.ReadSchedule(bytes.NewReader(b), m.Name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStoredCounterexamplesReplay(t *testing.T) {
	if *update {
		t.Skip("what is embedded is from before")
	}
	for _, m := range All() {
		s := stored(t, m)
		if s.Name != m.Name || s.Shows != m.Breaks || s.Subject != m.Subject.Name || !shows(m).Has(s.Expect) {
			t.Errorf("the file of %s says %q, %q, subject %q, expect %v", m.Name, s.Name, s.Shows, s.Subject, s.Expect)
		}
		if err := scenario.Check(s, m.Subject); err != nil {
			t.Error(err)
		}
		if r := s.Run(m.Subject, sim.Options{Monitor: true, Only: m.Explored().Judged, Lockstep: s.Expect == model.Lockstep}); r.Applied != len(s.Actions) || !r.Violated.Has(s.Expect) {
			t.Errorf("%s breaks %v after %d of %d actions", m.Name, r.Violated, r.Applied, len(s.Actions))
		}
		if r := s.Run(sim.Builtin(), sim.Options{Monitor: true, Lockstep: true}); r.Violated != 0 {
			t.Errorf("the counterexample to %s violates %v on the built-in implementation: %s", m.Name, r.Violated, r.First.Describe(sim.Names()))
		}
	}
}

func TestNothingElseIsStored(t *testing.T) {
	names, err := fs.Glob(testdata.Shortest, "shortest/*")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range All() {
		known["shortest/"+m.Name+".json"] = true
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("%s is of no planted bug that exploration shows", name)
		}
	}
}
