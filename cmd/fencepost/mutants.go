package main

import (
	"encoding/json"
	"errors"
	"fmt"
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
	return hunt(e, c.Seed, c.Limit, c.Names, c.JSON)
}

// hunt hunts mutants on all cores and prints a row for each.
func hunt(e *env, seed uint64, limit int, only []string, asJSON bool) error {
	var all []mutant.Mutant
	for _, m := range mutant.All() {
		if len(only) == 0 || slices.Contains(only, m.Name) {
			all = append(all, m)
		}
	}
	for _, name := range only {
		if _, err := mutant.Find(name); err != nil {
			return err
		}
	}
	rows := make([]mutantJSON, len(all))
	errs := make([]error, len(all))
	var next, done atomic.Int64
	stop := e.progress("planted bugs", int64(len(all)), &done)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				m := all[i]
				got, err := m.Hunt(e.ctx, seed, limit, judgeFor(m))
				row := mutantJSON{Name: m.Name, Caught: err == nil, Schedules: got.Schedules, Breaks: m.Breaks, Seen: m.Seen}
				if err == nil {
					row.Invariant, row.Actions = got.Invariant, len(got.Schedule.Actions)
				}
				rows[i], errs[i] = row, err
				done.Add(1)
			}
		})
	}
	wg.Wait()
	stop()
	if asJSON {
		enc := json.NewEncoder(e.out)
		for _, row := range rows {
			if err := enc.Encode(row); err != nil {
				return err
			}
		}
	} else {
		e.printf("  %-34s %-26s %9s %8s\n", "planted bug", "caught by", "schedules", "actions")
	}
	var lengths []int
	for i, row := range rows {
		lengths = append(lengths, row.Actions)
		if errs[i] != nil {
			e.worse(exitViolated)
		}
		switch {
		case asJSON:
		case errs[i] != nil:
			e.printf("  %-34s MISSED: %v\n", row.Name, errs[i])
		default:
			e.printf("  %-34s %-26s %9d %8d\n", row.Name, row.Invariant, row.Schedules, row.Actions)
		}
	}
	if !asJSON && e.code == exitHolds && len(lengths) > 0 {
		slices.Sort(lengths)
		e.printf("\nAll %d caught; minimised counterexamples have %d actions in the median, %d at most.\n", len(rows), lengths[len(lengths)/2], lengths[len(lengths)-1])
	}
	if err := e.ctx.Err(); err != nil {
		return fmt.Errorf("interrupted: %w", err)
	}
	return nil
}

// judgeFor checks linearizability too where the bug may show only there.
func judgeFor(m mutant.Mutant) mutant.Judge {
	want := judge.All &^ model.SetOf(model.Lockstep)
	if !m.May.Has(model.Linearizability) {
		want &^= model.SetOf(model.Linearizability)
	}
	return func(s *sim.Schedule, subject sim.Subject) sim.Result { return judge.Run(s, subject, want) }
}
