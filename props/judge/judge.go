// Package judge runs schedules against a subject and judges them by every
// invariant there is: those of the monitor, lockstep with the specifications,
// and linearizability of the history that the run recorded.
//
// It must not know rapid, since the command uses it too, nor what a subject is
// made of. Start at [Run] for one schedule and [Sweep] for very many.
package judge

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/sim"
)

// All is every invariant.
var All = model.SetOf(slices.Collect(model.Invariants())...)

// Result is what a run came to.
type Result struct {
	sim.Result
	// Undecided says that the check for linearizability ran out of its bounds.
	// That is no pass.
	Undecided bool
}

// Run applies s to subject until an invariant in want breaks, or the actions
// end. Linearizability is judged over the whole run, and only if nothing else
// broke.
func Run(s *sim.Schedule, subject sim.Subject, want model.Set) Result {
	var trace *sim.Trace
	if want.Has(model.Linearizability) {
		trace = &sim.Trace{}
	}
	r := Result{Result: s.Run(subject, options(want, trace))}
	if trace != nil && r.Violated == 0 {
		switch result, v := linearize(trace.Events, &s.Config, subject.Promise()); result {
		case linearizability.Violated:
			r.Violated, r.First = model.SetOf(model.Linearizability), v
		case linearizability.Unknown:
			r.Undecided = true
		}
	}
	return r
}

// Trace is what happens when s is applied to subject, until an invariant in
// want that shows during a run breaks.
func Trace(s *sim.Schedule, subject sim.Subject, want model.Set) *sim.Trace {
	var trace sim.Trace
	s.Run(subject, options(want, &trace))
	return &trace
}

func options(want model.Set, trace *sim.Trace) sim.Options {
	return sim.Options{Monitor: true, Only: want, Lockstep: want.Has(model.Lockstep), Trace: trace}
}

// Fails is the predicate for [sim.Minimize]: of what is wanted, the first
// thing that breaks is v, among others perhaps.
func Fails(subject sim.Subject, v model.Invariant, want model.Set) sim.Fails {
	if v != model.Linearizability {
		want &^= model.SetOf(model.Linearizability) // judged last, so it cannot come first
	}
	return sim.FailsBy(func(s *sim.Schedule) sim.Result { return Run(s, subject, want).Result }, v)
}

// Sweep is many random schedules, on all cores. The subject's store must not be
// [sim.Opaque]: that is one, and runs one schedule at a time.
type Sweep struct {
	Subject  sim.Subject
	Profiles []sim.Profile // taken in turn
	// Seed and a schedule's number give the schedule, whatever the number of
	// cores.
	Seed uint64
	// Schedules is how many to run; 0: until the context ends.
	Schedules int
	// MinSteps and MaxSteps bound the random actions of one schedule.
	MinSteps, MaxSteps int
	Want               model.Set
	// Config, where set, changes each drawn configuration.
	Config func(*sim.Config)
	// Done counts finished schedules, for a progress display; nil: nobody looks.
	Done *atomic.Int64
}

// Failure is a schedule that broke an invariant.
type Failure struct {
	Number   int // of the schedule in the sweep
	Profile  string
	Result   sim.Result
	Schedule *sim.Schedule // as generated, up to the violation
}

// Report is what a sweep came to.
type Report struct {
	Counts    sim.Counts
	Histories int64    // of runs that were checked for linearizability
	Undecided int64    // of these, those whose check ran out of its bounds
	Failure   *Failure // the one of the lowest number; nil if nothing broke
	Elapsed   time.Duration
}

// Run runs the sweep until its schedules are done, one fails, or ctx ends.
// Which failure is reported does not depend on the number of cores. clock
// reads any monotonic clock; it is only used for Elapsed.
func (s Sweep) Run(ctx context.Context, clock func() time.Duration) Report {
	began := clock()
	var next, stop atomic.Int64
	stop.Store(int64(s.Schedules))
	if s.Schedules == 0 {
		stop.Store(1 << 62)
	}
	var mu sync.Mutex
	var out Report
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			t := Trial{Subject: s.Subject, Want: s.Want, Config: s.Config}
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= stop.Load() {
					break
				}
				f, err := t.Run(Source(s.Seed, int(i)), &s.Profiles[int(i)%len(s.Profiles)], s.MinSteps, s.MaxSteps)
				if err != nil {
					panic(err) // a drawn configuration is valid, unless Config spoils it
				}
				if f != nil {
					f.Number = int(i)
					mu.Lock()
					if out.Failure == nil || f.Number < out.Failure.Number {
						out.Failure = f
						stop.Store(i) // lower numbers may still fail
					}
					mu.Unlock()
				}
				if s.Done != nil {
					s.Done.Add(1)
				}
			}
			mu.Lock()
			out.Counts.Add(&t.Counts)
			out.Histories += t.Histories
			out.Undecided += t.Undecided
			mu.Unlock()
		})
	}
	wg.Wait()
	out.Elapsed = clock() - began
	return out
}

// Source is the seeded generator of schedule number i of a sweep.
func Source(seed uint64, i int) sim.Source { return rand.NewPCG(seed, uint64(i)) }

// Minimize makes the failure's schedule short and ready to be written. For a
// planted bug it is an expected failure; for anything else it expects none, and
// so is red until it is fixed. A subject that is neither the built-in
// implementation nor a planted bug is filed as external: only the test that
// wrote the file can run it.
func (f *Failure) Minimize(subject sim.Subject, want model.Set) *sim.Schedule {
	return f.MinimizeWithin(subject, want, func(*sim.Schedule) bool { return true })
}

// MinimizeWithin is Minimize that tries no schedule but those that may says yes
// to: where runs take long, or parts of the set-up are the subject's own.
func (f *Failure) MinimizeWithin(subject sim.Subject, want model.Set, may func(*sim.Schedule) bool) *sim.Schedule {
	v := f.Result.First.Invariant
	fails := Fails(subject, v, want)
	s := sim.Minimize(f.Schedule, func(s *sim.Schedule) (int, bool) {
		if !may(s) {
			return 0, false
		}
		return fails(s)
	})
	s.Name = v.String()
	s.Subject = Filed(subject)
	r := Run(s, subject, want)
	s.Shows, s.Waives = r.First.Describe(sim.Names()), r.Waived
	if strings.HasPrefix(s.Subject, "mutant:") {
		s.Expect = v
		s.Waives = Run(s, subject, model.SetOf(v)).Waived
	}
	return s
}

// Filed is what a schedule file calls subject.
func Filed(subject sim.Subject) string {
	if subject.Name == sim.SubjectBuiltin || strings.HasPrefix(subject.Name, "mutant:") {
		return subject.Name
	}
	return sim.SubjectExternal
}
