// Package scenario is the rule of a schedule file: what a file says of its
// subject must come about when its actions run. It reads the named scenarios,
// each of which tells one story, and every counterexample that was kept.
//
// It must not know where the files lie nor which subjects there are: the
// caller brings both, as a file system and as a [sim.Subject].
//
// Start at [Load] and [Check].
package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/sim"
)

// Load reads every schedule file, *.json, in fsys and below, and sorts what they
// hold by name. Other files are none of its business. The error is that of
// fsys, or a *[sim.FieldError] that names file, line and field of the first
// thing that makes no sense.
func Load(fsys fs.FS) ([]*sim.Schedule, error) {
	var all []*sim.Schedule
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		s, err := read(fsys, name)
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("scenarios cannot be loaded: %w", err)
	}
	slices.SortStableFunc(all, func(a, b *sim.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func read(fsys fs.FS, name string) (*sim.Schedule, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sim.ReadSchedule(f, name)
}

// Judged is the set of invariants by which a run of s is judged: all there are
// where nothing may break, and else the expected one, without regard to what
// breaks before it. Two leaders, say, are a story of their own, although the
// lease was lost an instant earlier. Those that s waives are judged with it. A
// planted bug is not held against the specification in lockstep, which it
// differs from long before anything breaks.
func Judged(s *sim.Schedule) model.Set {
	switch {
	case s.Expect != model.NoInvariant:
		return model.SetOf(s.Expect) | s.Waives
	case s.Subject == sim.SubjectBuiltin:
		return judge.All
	}
	return judge.All &^ model.SetOf(model.Lockstep)
}

// Check runs s on subject and returns what [Met] says of it, or the error of
// [sim.Schedule.Validate] for a schedule that cannot run.
func Check(s *sim.Schedule, subject sim.Subject) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	r := judge.Run(s, subject, Judged(s))
	if r.Undecided {
		return fmt.Errorf("scenario %s on %s: %w", s.Name, subject.Name, ErrUndecided)
	}
	return Met(s, subject.Name, r.Result)
}

// ErrUndecided says that the check for linearizability ran out of its bounds:
// neither a pass nor a failure.
var ErrUndecided = errors.New("whether the history is linearizable could not be decided")

// Met says whether r, a run of s on the named subject that was judged by
// [Judged], came to what s expects:
//
//   - where it expects none, nothing is violated;
//   - where it expects an invariant, that one is violated;
//   - and the invariants that it waives, and no others, were broken where they
//     are not promised.
//
// If not, the error is an *[UnmetError].
func Met(s *sim.Schedule, subject string, r sim.Result) error {
	e := UnmetError{Schedule: s.Name, Subject: subject, Expect: s.Expect, Violated: r.Violated, First: r.First,
		Held: s.Waives &^ r.Waived, Undeclared: r.Waived &^ s.Waives}
	if e.came() && e.Held == 0 && e.Undeclared == 0 {
		return nil
	}
	return &e
}

// UnmetError says that a run did not come to what its schedule file expects.
type UnmetError struct {
	Schedule string
	Subject  string
	Expect   model.Invariant // that should have been violated; NoInvariant: none
	Violated model.Set       // by the first event that violated any; empty if all held
	First    model.Violation // the first of them
	Held     model.Set       // waived by the file, but not broken
	// Undeclared broke where it is not promised, which the file does not waive.
	Undeclared model.Set
}

// came reports whether what should be violated was, and nothing where nothing
// should be.
func (e *UnmetError) came() bool {
	if e.Expect == model.NoInvariant {
		return e.Violated == 0
	}
	return e.Violated.Has(e.Expect)
}

func (e *UnmetError) Error() string {
	var wrong []string
	if !e.came() {
		must, is := "nothing may be violated", "but all holds: the subject has changed, or the actions no longer reach it"
		if e.Expect != model.NoInvariant {
			must = e.Expect.String() + " must be violated"
		}
		if v := &e.First; e.Violated != 0 {
			is = fmt.Sprintf("but %v is, by action %d at %v: %s", v.Invariant, v.Action, time.Duration(v.At), v.Describe(sim.Names()))
		}
		wrong = append(wrong, must+", "+is)
	}
	if e.Held != 0 {
		wrong = append(wrong, fmt.Sprintf("the file waives %v, which did not break: promise it again, or let the clocks leave their bound", e.Held))
	}
	if e.Undeclared != 0 {
		wrong = append(wrong, fmt.Sprintf("%v broke where it is not promised, which the file must say under \"waives\"", e.Undeclared))
	}
	return fmt.Sprintf("scenario %s on %s: %s", e.Schedule, e.Subject, strings.Join(wrong, "; "))
}
