package main

import (
	"strings"
	"time"

	"fencepost/props/explore"
	"fencepost/props/judge"
)

// print prints what came of an exploration, the verdict first.
func (x *exploration) print(e *env) error {
	r, f := x.report, &x.report.Found
	e.printf("\n%s: %s\n\n", strings.ToUpper(r.Verdict.String()), r.Claim())
	e.printf("  %s states in %v, %s; %s transitions, %s\n", explore.Grouped(f.States), x.took.Round(time.Millisecond), x.rate(f.States),
		explore.Grouped(f.Transitions), x.rate(f.Transitions))
	e.printf("  depth %d; %.1f bytes a state for visited set and frontier, %s at the peak\n", f.Depth, float64(f.Memory)/float64(max(f.States, 1)), memory(f.Memory))
	e.printf("  %s\n", r.Accuracy())
	if checked := r.Checked(); checked != "" {
		e.printf("  %s\n", checked)
	}
	if f.Bounded != "" {
		e.printf("  %s\n", boundedBy(f.Bounded))
	}

	steps := f.Total()
	e.printf("\n  %-56s %14s\n", "action", "steps")
	for _, k := range kindsOf(steps) {
		e.printf("  %-56s %14s %5.1f%%\n", k, explore.Grouped(steps[k]), percent(int64(steps[k]), int64(f.Transitions)))
	}
	e.printf("\n  %-56s %14s\n", "a client is", "states")
	for _, c := range r.Clients {
		e.printf("  %-56s %14s\n", c, explore.Grouped(c.States))
	}
	e.printf("\n  %-56s %14s\n", "must happen sometimes", "steps")
	never := 0
	for _, s := range r.Sometimes {
		if s.Steps == 0 {
			never++
			e.printf("  %-56s %14s  this exploration says nothing about it\n", s.Name, "NEVER")
			continue
		}
		e.printf("  %-56s %14s  first after %s\n", s.Name, explore.Grouped(s.Steps), counted(int64(s.Depth), "action", "actions"))
	}
	if w := r.Fair; w != nil && r.Verdict != explore.Violated {
		e.printf("\nFrom every state that was looked at one fair schedule (clocks are true, each message takes %v, all\nclients run every %v, nothing fails) brings a leader within %v; none is allowed more than %v. %s that long.\n",
			w.Delay, w.Every, w.Longest, w.Bound, waiting(w.States))
	}
	if x.mutant != "" && r.Verdict == explore.Holds {
		e.printf("\nThe planted bug does not show in this world. It does in its own, without other flags: explore --mutant %s\n", x.mutant)
	}
	judged, others := r.Settled()
	e.printf("\nJudged in every state and step that was looked at: %v.\n", judged)
	for _, u := range others {
		e.printf("Not judged: %v: %s.\n", u.Invariant, u.Why)
	}
	e.printf("Assumed: %s.\n", strings.Join(x.options.Assumed(), ";\n         "))
	if r.Counterexample != nil {
		if err := x.printCounterexample(e); err != nil {
			return err
		}
	}
	if x.longest != "" {
		e.printf("longest:  fencepost replay %s\n", x.longest)
	}
	if x.page != "" {
		e.printf("drawn in: %s\n", x.page)
	}
	return nil
}

func (x *exploration) printCounterexample(e *env) error {
	r, c := x.report, x.report.Counterexample
	e.printf("\n%v is violated: %s\nby these %d actions:\n\n", r.First.Invariant, c.Shows, len(c.Actions))
	for i := range c.Actions {
		e.printf("  %3d  %v\n", c.Actions[i].ID, c.Actions[i])
	}
	e.printf("\n")
	if err := e.draw(c, x.options.Subject, r.Judged, judge.Run(c, x.options.Subject, r.Judged), false); err != nil {
		return err
	}
	e.printf("\n")
	if x.file != "" {
		e.printf("schedule: %s\nreplay:   fencepost replay %s\n", x.file, x.file)
	}
	return nil
}

func waiting(n uint64) string {
	if n == 1 {
		return "One state waits"
	}
	return explore.Grouped(n) + " states wait"
}

// boundedBy says what ended a search.
func boundedBy(bound string) string {
	if bound == "time" {
		return "ended by an interrupt"
	}
	return "ended by --max-" + bound
}

// stepsByKind names the steps that were taken, by kind of action.
func stepsByKind(steps []uint64) map[string]uint64 {
	m := map[string]uint64{}
	for _, k := range kindsOf(steps) {
		m[k.String()] = steps[k]
	}
	return m
}
