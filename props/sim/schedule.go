package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strings"

	"fencepost/model"
)

// Version of the schedule file that this package writes and reads.
const Version = 1

// MaxActions bounds a schedule file.
const MaxActions = 100_000

// Subjects of a schedule file, beside "mutant:NAME".
const (
	SubjectBuiltin  = "builtin"
	SubjectExternal = "external" // somebody else's implementation, which only its own test can run
)

// Schedule is the whole input of one run: everything random or exhaustive
// produces one, and everything replayable is one. A file of it says what it is
// about: which subject, and which invariant must fail on it, or none.
type Schedule struct {
	Name    string
	Shows   string // one sentence: what the run demonstrates
	Subject string
	// Expect is the invariant that must fail; none means that everything must
	// hold, so that a counterexample to a real subject is red until it is fixed.
	Expect model.Invariant
	// Waives are invariants that must break where they are not promised: the
	// clocks leave the bound, or an operator deletes the lease.
	Waives  model.Set
	Config  Config
	Actions []Action
}

// maxEvents bounds, roughly, the events that the run of a schedule comes to,
// and so the time and memory (some 100 MB with a trace) that running an unknown
// file takes.
const maxEvents = 1 << 18

// events is about how many events a comes to at the most.
func (c *Config) events(a *Action) int {
	n := 2
	for _, r := range a.Rates {
		if r != 0 {
			n += 2 // one clock changes its rate, and back
		}
	}
	if a.Kind == Calm {
		// At each tick each client sends a request that is handled and answered.
		n += 3 * c.Clients * (1 + int(a.D/a.every()))
	}
	return n
}

// Validate returns a *[FieldError] for the first thing that makes no sense, or
// nil.
func (s *Schedule) Validate() error {
	if err := s.Config.Validate(); err != nil {
		return err
	}
	if len(s.Actions) > MaxActions {
		return badField("actions", "%d are more than %d", len(s.Actions), MaxActions)
	}
	events := 0
	seen := make(map[int32]bool, len(s.Actions))
	for i := range s.Actions {
		a := &s.Actions[i]
		if a.ID <= 0 || seen[a.ID] {
			return badField(fmt.Sprintf("actions[%d].id", i), "%d is not a number above 0 of its own", a.ID)
		}
		seen[a.ID] = true
		if err := s.Config.check(a); err != nil {
			fe := err.(*FieldError)
			return badField(fmt.Sprintf("actions[%d].%s", i, fe.Field), "%s", fe.Reason)
		}
		if events += s.Config.events(a); events > maxEvents {
			where, what := fmt.Sprintf("actions[%d]", i), "the schedule may come to more than %d events up to here; shorten it"
			if a.Kind == Calm {
				where, what = where+".every", "lets the schedule come to more than %d events; raise it, or lower d"
			}
			return badField(where, what, maxEvents)
		}
	}
	return nil
}

// Renumber gives the actions the ids 1, 2, 3, and their messages the names
// that follow from that. A message whose action is gone keeps a name that no
// action has.
func (s *Schedule) Renumber() {
	to := make(map[int32]int32, len(s.Actions))
	for i := range s.Actions {
		to[s.Actions[i].ID] = int32(i + 1)
	}
	for i := range s.Actions {
		a := &s.Actions[i]
		a.ID = int32(i + 1)
		if a.Msg.Action != 0 {
			if id, ok := to[a.Msg.Action]; ok {
				a.Msg.Action = id
			} else {
				a.Msg.Action = math.MaxInt32
			}
		}
	}
}

// Result is what a run came to.
type Result struct {
	Violated model.Set       // by the first event that violated any; empty if all held
	First    model.Violation // the first of them
	Waived   model.Set
	Mismatch Mismatch // where Violated has Lockstep
	Applied  int      // actions until the violation, that one included
	Counts   Counts
	World    World // as it stood at the end
}

// Run applies the schedule to subject until an invariant breaks or the actions
// end. The schedule must be valid.
func (s *Schedule) Run(subject Subject, opts Options) Result {
	w := newWorld(newSetup(s.Config, subject, opts))
	applied := s.apply(&w)
	w.counts.Runs = 1
	if w.Waived() != 0 {
		w.counts.Waived = 1
	}
	return Result{Violated: w.violated, First: w.first, Waived: w.Waived(), Mismatch: w.mismatch, Applied: applied, Counts: w.counts, World: w}
}

// apply gives the actions to w until an invariant breaks, and says how many.
func (s *Schedule) apply(w *World) int {
	for i := range s.Actions {
		if w.Apply(&s.Actions[i]); w.violated != 0 {
			return i + 1
		}
	}
	return len(s.Actions)
}

// FileName is a name for the schedule's file that its contents give: equal
// schedules have equal names.
func (s *Schedule) FileName() string {
	h := fnv.New32a()
	if b, err := s.MarshalJSON(); err == nil {
		h.Write(b)
	}
	return fmt.Sprintf("%s-%s-%08x.json", s.Name, strings.TrimPrefix(s.Subject, "mutant:"), h.Sum32())
}

// WriteFile writes the file form into dir, which it makes where there is none,
// and returns the path.
func (s *Schedule) WriteFile(dir string) (path string, err error) {
	b, err := s.MarshalJSON()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, s.FileName())
	return path, os.WriteFile(path, b, 0o644)
}
