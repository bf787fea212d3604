package mutant

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"fencepost/model"
	"fencepost/props/sim"
)

// Judge runs a schedule and says what broke. A caller passes its own to add
// checks that a monitor cannot make, such as linearizability.
type Judge func(s *sim.Schedule, subject sim.Subject) sim.Result

// monitor judges by the invariants, not in lockstep with the specifications:
// that would catch a wrong store at its first unusual answer, harmful or not.
func monitor(s *sim.Schedule, subject sim.Subject) sim.Result {
	return s.Run(subject, sim.Options{Monitor: true})
}

// Catch is a planted bug that was caught.
type Catch struct {
	Mutant
	Schedules int // run until then, the one that caught it included
	// Invariant is the first, in the order of package model, of those that the
	// first event to break any broke.
	Invariant model.Invariant
	// Schedule is the minimised counterexample, ready to be written: it breaks
	// Invariant on the mutant and nothing on the built-in implementation.
	Schedule *sim.Schedule
}

// The ways in which a hunt can fail.
var (
	ErrEscaped    = errors.New("planted bug was not caught")
	ErrUndeclared = errors.New("planted bug broke what it does not declare")
)

// Hunt runs random schedules against the bug until one breaks an invariant,
// and minimises that one. Seed and number give a schedule. A schedule that
// breaks something on the built-in implementation too counts as run and shows
// nothing: drawn while the bug ran, it may contain a request that is
// ill-behaved only there. Nor does one that breaks in its calm what has nothing
// to do with calm, which would hide many steps in one action. A nil judge is
// the monitor of package model.
//
// The error matches [ErrEscaped] after limit schedules, [ErrUndeclared] if
// what broke is not in May, or is that of ctx; Schedules is set all the same.
func (m Mutant) Hunt(ctx context.Context, seed uint64, limit int, judge Judge) (Catch, error) {
	c := Catch{Mutant: m}
	if judge == nil {
		judge = monitor
	}
	for c.Schedules < limit {
		if err := ctx.Err(); err != nil {
			return c, fmt.Errorf("hunt for %s stopped after %d schedules: %w", m.Name, c.Schedules, err)
		}
		s := m.draw(m.Subject, seed, c.Schedules, sim.Options{Monitor: true})
		c.Schedules++
		r := judge(s, m.Subject)
		if r.Violated == 0 || judge(s, sim.Builtin()).Violated != 0 {
			continue
		}
		if more := r.Violated &^ m.May; more != 0 {
			return c, fmt.Errorf("%w: schedule %d of seed %d violates %v on %s, which may violate %v", ErrUndeclared, c.Schedules-1, seed, r.Violated, m.Name, m.May)
		}
		for c.Invariant = range r.Violated.All() {
			break
		}
		if c.Invariant != model.Availability {
			if i := slices.IndexFunc(s.Actions, isCalm); i >= 0 {
				s.Actions = s.Actions[:i]
			}
			if !judge(s, m.Subject).Violated.Has(c.Invariant) {
				continue
			}
		}
		c.Schedule = m.minimize(s, c.Invariant, judge)
		return c, nil
	}
	return c, fmt.Errorf("%w: %s survived %d schedules of seed %d", ErrEscaped, m.Name, limit, seed)
}

func isCalm(a sim.Action) bool { return a.Kind == sim.Calm }

// draw generates schedule number i of a seed by running it against subject.
func (m Mutant) draw(subject sim.Subject, seed uint64, i int, opts sim.Options) *sim.Schedule {
	src := rand.NewPCG(seed, uint64(i))
	cfg, profile := sim.RandomConfig(src), sim.Chaos()
	if i%2 == 1 {
		profile = sim.Raw()
	}
	if m.Steer != nil {
		m.Steer(&cfg, &profile)
	}
	steps := 100 + int(src.Uint64()%51)
	w, err := sim.NewWorld(cfg, subject, opts)
	if err != nil {
		panic(err) // a drawn configuration is valid, and steering keeps it so
	}
	return &sim.Schedule{Config: cfg, Actions: sim.Generate(src, &profile, &w, steps, nil)}
}

// minimize keeps v failing, on this subject alone and within what may fail.
func (m Mutant) minimize(s *sim.Schedule, v model.Invariant, judge Judge) *sim.Schedule {
	short := sim.Minimize(s, func(s *sim.Schedule) (int, bool) {
		r := judge(s, m.Subject)
		return r.Applied, r.Violated.Has(v) && r.Violated&^m.May == 0 && judge(s, sim.Builtin()).Violated == 0
	})
	short.Name, short.Shows, short.Subject, short.Expect = m.Name, m.Breaks, m.Subject.Name, v
	short.Waives = judge(short, m.Subject).Waived
	return short
}
