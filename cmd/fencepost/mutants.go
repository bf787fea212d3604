package main

import (
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// mutantLimit is how many schedules a hunt may take.
const mutantLimit = 10_000

type mutantsCmd struct {
	Names []string `arg:"" optional:"" help:"Hunt these only."`
	Seed  uint64   `help:"Seed of the schedules." default:"1"`
	Limit int      `help:"Schedules until a bug counts as missed." default:"10000"`
	List  bool     `help:"List the bugs and the public failures they stand for, and hunt none."`
	JSON  bool     `help:"Print one JSON object a row: name, caught, invariant, schedules, actions."`
}

// Help is shown by mutants --help.
func (mutantsCmd) Help() string {
	return `Each planted bug stands for a failure seen in public, and declares in advance which
invariants it may break first. Random schedules must catch it by one of them; the
counterexample is then minimised.

Exit code 0: all caught. 1: one was missed, or was caught by an invariant that it
does not declare.`
}

// mutantJSON is one row.
type mutantJSON struct {
	Name      string          `json:"name"`
	Caught    bool            `json:"caught"`
	Invariant model.Invariant `json:"invariant"`
	Schedules int             `json:"schedules"`
	Actions   int             `json:"actions"`
	Breaks    string          `json:"breaks"`
	Seen      string          `json:"seen"`
}

// Run is mutants.
func (c *mutantsCmd) Run(e *env) error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	if c.List {
		for _, m := range mutant.All() {
			e.printf("%s (%s)\n  %s\n  Seen: %s\n  May break first: %v\n", m.Name, m.Family, m.Breaks, m.Seen, m.May)
		}
		return nil
	}
	bugs := mutant.All()
	if len(c.Names) > 0 {
		bugs = nil
		for _, name := range c.Names {
			m, err := mutant.Find(name)
			if err != nil {
				return err
			}
			bugs = append(bugs, m)
		}
	}
	h := huntAll(e, c.Seed, c.Limit, bugs)
	if !c.JSON {
		h.print(e)
		return nil
	}
	enc := json.NewEncoder(e.out)
	for _, row := range h.rows {
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// hunt is what came of hunting mutants: a row for each, and why it was not
// caught.
type hunt struct {
	rows []mutantJSON
	errs []error
}

// huntAll hunts the bugs on all cores.
func huntAll(e *env, seed uint64, limit int, bugs []mutant.Mutant) hunt {
	h := hunt{make([]mutantJSON, len(bugs)), make([]error, len(bugs))}
	var next, done atomic.Int64
	stop := e.progress("planted bugs", "bugs", int64(len(bugs)), &done)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(bugs); i = next.Add(1) - 1 {
				m := bugs[i]
				got, err := m.Hunt(e.ctx, seed, limit, func(s *sim.Schedule, subject sim.Subject) sim.Result {
					return judge.Run(s, subject, m.Judged()).Result
				})
				h.rows[i] = mutantJSON{Name: m.Name, Caught: err == nil, Schedules: got.Schedules, Breaks: m.Breaks, Seen: m.Seen}
				if h.errs[i] = err; err == nil {
					h.rows[i].Invariant, h.rows[i].Actions = got.Invariant, len(got.Schedule.Actions)
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	stop()
	for _, err := range h.errs {
		switch {
		case err != nil && e.ctx.Err() != nil:
			e.worse(exitUnknown)
		case err != nil:
			e.worse(exitViolated)
		}
	}
	return h
}

// print prints the rows as a table.
func (h hunt) print(e *env) {
	e.printf("  %-34s %-26s %9s %8s\n", "planted bug", "caught by", "schedules", "actions")
	var lengths []int
	for i, row := range h.rows {
		switch {
		case row.Caught:
			lengths = append(lengths, row.Actions)
			e.printf("  %-34s %-26s %9d %8d\n", row.Name, row.Invariant, row.Schedules, row.Actions)
		case e.ctx.Err() != nil:
			e.printf("  %-34s not hunted to the end: interrupted\n", row.Name)
		default:
			e.printf("  %-34s MISSED: %v\n", row.Name, h.errs[i])
		}
	}
	if slices.Sort(lengths); len(lengths) > 1 && len(lengths) == len(h.rows) {
		e.printf("\nAll %d caught; minimised counterexamples have %d actions in the median, %d at most.\n", len(h.rows), lengths[len(lengths)/2], lengths[len(lengths)-1])
	}
}
