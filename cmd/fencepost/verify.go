package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// sweepFlags are common to verify and soak.
type sweepFlags struct {
	Seed  uint64 `help:"Seed of the schedules; 0 draws one. The seed is printed, and the same seed gives the same run." default:"0"`
	Steps int    `help:"Random actions in a schedule, at least; at most half as many more." default:"100"`
	Out   string `help:"Folder for a counterexample." default:"testdata/fencepost"`
	JSON  bool   `help:"Print one JSON object instead of text."`
}

type verifyCmd struct {
	sweepFlags
	Schedules int  `help:"How many random schedules to run." default:"100000"`
	Mutants   bool `help:"Hunt the planted bugs too." default:"true" negatable:""`
}

// Help is shown by verify --help.
func (verifyCmd) Help() string {
	return `Runs random schedules on all cores: acquire, renew, release, pause, suspend,
freeze, crash, drift, loss, duplication and reordering, over well-behaved clients
(chaos) and with raw ill-behaved requests beside them (raw). After every action
every invariant is judged, every answer is compared with its specification, and
the recorded history of every run is checked for linearizability with time.

Then each planted bug is hunted: a harness that catches nothing proves nothing.

A violation is minimised, shown, and written as a schedule file for "replay".`
}

type soakCmd struct {
	sweepFlags
	For time.Duration `arg:"" help:"How long to run, such as 10m."`
}

// Help is shown by soak --help.
func (soakCmd) Help() string {
	return `Like verify, for a given time and without the planted bugs. Each run draws a new
seed unless one is given, so that soaking twice covers twice as much.`
}

func (f *sweepFlags) sweep() judge.Sweep {
	if f.Seed == 0 {
		f.Seed = rand.Uint64()>>32 | 1
	}
	return judge.Sweep{Subject: sim.Builtin(), Profiles: []sim.Profile{sim.Chaos(), sim.Raw()}, Seed: f.Seed,
		MinSteps: f.Steps, MaxSteps: f.Steps + f.Steps/2, Want: judge.All, Done: new(atomic.Int64)}
}

// Run is verify.
func (v *verifyCmd) Run(e *env) error {
	if v.Schedules < 1 || v.Steps < 1 {
		return fmt.Errorf("--schedules and --steps must be at least 1: a check of nothing holds nothing")
	}
	s := v.sweep()
	s.Schedules = v.Schedules
	if !v.JSON {
		e.printf("fencepost verify: %d random schedules of %d to %d actions on the built-in implementation, seed %d\n\n",
			v.Schedules, s.MinSteps, s.MaxSteps, v.Seed)
	}
	stop := e.progress("random schedules", "schedules", int64(v.Schedules), s.Done)
	r := s.Run(e.ctx, e.clock)
	stop()
	out, err := v.report(e, s, r)
	if err != nil {
		return err
	}
	var bugs hunt
	if v.Mutants && r.Failure == nil && e.ctx.Err() == nil {
		bugs = huntAll(e, v.Seed, mutantLimit, mutant.All())
		out.Mutants = bugs.rows
	}
	if v.JSON {
		return json.NewEncoder(e.out).Encode(out)
	}
	switch {
	case v.Mutants && len(bugs.rows) == 0:
		e.printf("\nThe planted bugs were not hunted.\n")
	case v.Mutants:
		e.printf("\nPlanted bugs: a harness that catches nothing proves nothing.\n\n")
		bugs.print(e)
	}
	return nil
}

// Run is soak.
func (s *soakCmd) Run(e *env) error {
	if s.For <= 0 || s.Steps < 1 {
		return fmt.Errorf("soak needs a time above 0, such as 10m, and --steps of at least 1")
	}
	sw := s.sweep()
	if !s.JSON {
		e.printf("fencepost soak: random schedules of %d to %d actions on the built-in implementation for %v, seed %d\n\n", sw.MinSteps, sw.MaxSteps, s.For, s.Seed)
	}
	ctx, cancel := context.WithTimeout(e.ctx, s.For)
	defer cancel()
	stop := e.progress("soaking", "schedules", 0, sw.Done)
	r := sw.Run(ctx, e.clock)
	stop()
	out, err := s.report(e, sw, r)
	if err == nil && s.JSON {
		err = json.NewEncoder(e.out).Encode(out)
	}
	return err
}

// sweepJSON is what verify and soak print with --json.
type sweepJSON struct {
	Verdict    string          `json:"verdict"` // holds, violated or unknown
	Seed       uint64          `json:"seed"`
	Schedules  int64           `json:"schedules"`
	Actions    int64           `json:"actions"`
	Effective  int64           `json:"effective"`
	Histories  int64           `json:"histories"` // checked for linearizability
	Undecided  int64           `json:"undecided"` // of these
	Seconds    float64         `json:"seconds"`
	Invariants []invariantJSON `json:"invariants"`
	Failure    *failureJSON    `json:"failure,omitempty"`
	Mutants    []mutantJSON    `json:"mutants,omitempty"`
}

type invariantJSON struct {
	Invariant model.Invariant  `json:"invariant"`
	Verdict   string           `json:"verdict"`
	Exercised map[string]int64 `json:"exercised"`
	// Untested is what never happened, for which the verdict is unknown.
	Untested string `json:"untested,omitempty"`
}

type failureJSON struct {
	Invariant model.Invariant `json:"invariant"`
	Reason    string          `json:"reason"`
	File      string          `json:"file"`
	Actions   int             `json:"actions"`
}

// report prints what a sweep came to, unless as JSON, and writes the
// counterexample if there is one.
func (f *sweepFlags) report(e *env, s judge.Sweep, r judge.Report) (*sweepJSON, error) {
	effective, all := r.Counts.Actions()
	out := &sweepJSON{Verdict: "holds", Seed: f.Seed, Schedules: r.Counts.Runs, Actions: all, Effective: effective,
		Histories: r.Histories, Undecided: r.Undecided, Seconds: r.Elapsed.Seconds()}
	complete := r.Counts.Runs > 0 && r.Counts.Runs >= int64(s.Schedules)
	for v := range model.Invariants() {
		row := invariantJSON{Invariant: v, Verdict: "holds", Exercised: map[string]int64{}}
		for _, x := range judge.Exercised(v, &r.Counts) {
			row.Exercised[x.What] = x.N
		}
		switch {
		case r.Failure != nil && r.Failure.Result.Violated.Has(v):
			row.Verdict = "violated"
		case r.Failure != nil, !complete, v == model.Linearizability && r.Undecided > 0:
			row.Verdict = "unknown"
		case judge.Untested(v, &r.Counts) != "":
			row.Verdict, row.Untested = "unknown", judge.Untested(v, &r.Counts)
		}
		if row.Verdict == "unknown" && out.Verdict == "holds" {
			out.Verdict = "unknown"
		}
		out.Invariants = append(out.Invariants, row)
	}
	var min *sim.Schedule
	if r.Failure != nil {
		out.Verdict = "violated"
		min = r.Failure.Minimize(s.Subject, s.Want)
		path, err := min.WriteFile(f.Out)
		if err != nil {
			return nil, err
		}
		out.Failure = &failureJSON{Invariant: r.Failure.Result.First.Invariant, Reason: min.Shows, File: path, Actions: len(min.Actions)}
	}
	switch out.Verdict {
	case "violated":
		e.worse(exitViolated)
	case "unknown":
		e.worse(exitUnknown)
	}
	if f.JSON {
		return out, nil
	}
	e.printf("%d schedules, %s actions (%.1f%% effective), %s in %.1f s: %s actions/s\n\n", r.Counts.Runs, count(all),
		percent(effective, all), counted(r.Histories, "history", "histories"), r.Elapsed.Seconds(), count(int64(float64(all)/max(r.Elapsed.Seconds(), 1e-9))))
	e.printf("  %-26s %-9s %s\n", "invariant", "verdict", "what put it to the test")
	for _, row := range out.Invariants {
		e.printf("  %-26s %-9s %s\n", row.Invariant, row.Verdict, exercisedText(judge.Exercised(row.Invariant, &r.Counts)))
	}
	if r.Counts.Waived > 0 {
		e.printf("\nIn %s clocks left their bound or an operator deleted the lease, and belief was not safe: there it is not promised.\n",
			counted(r.Counts.Waived, "schedule", "schedules"))
	}
	if r.Undecided > 0 {
		e.printf("\nUnknown: the check of %s ran out of memory.\n", counted(r.Undecided, "history", "histories"))
	}
	if r.Failure == nil {
		return out, nil
	}
	e.printf("\n%v is violated: %s\nschedule %d of seed %d (%s), minimised to %d actions:\n\n",
		out.Failure.Invariant, out.Failure.Reason, r.Failure.Number, f.Seed, r.Failure.Profile, out.Failure.Actions)
	if err := e.draw(min, s.Subject, s.Want, judge.Run(min, s.Subject, s.Want), false); err != nil {
		return nil, err
	}
	e.printf("\nschedule: %s\nreplay:   fencepost replay %s\nagain:    fencepost verify --seed %d --steps %d --schedules %d --no-mutants\n",
		out.Failure.File, out.Failure.File, f.Seed, f.Steps, r.Failure.Number+1)
	return out, nil
}

func exercisedText(xs []judge.Exercise) string {
	var parts []string
	for _, x := range xs {
		parts = append(parts, count(x.N)+" "+x.What)
	}
	return strings.Join(parts, ", ")
}

// count is n as people read it.
func count(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 100_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }
