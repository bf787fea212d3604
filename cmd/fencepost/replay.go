package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/scenario"
	"fencepost/props/script"
	"fencepost/props/sim"
	"fencepost/props/timeline"
)

type replayCmd struct {
	Files   []string `arg:"" help:"Files of schedules or of store scripts; - reads standard input."`
	Subject string   `help:"Run this subject (builtin or mutant:NAME) instead of the one the file names; then nothing may be violated."`
	Trace   bool     `help:"Print every event instead of the timeline."`
	ASCII   bool     `help:"Draw with 7-bit characters only."`
	HTML    string   `help:"Write the timeline as a page to this file." type:"path"`
	JSON    bool     `help:"Print one JSON object instead of text."`
}

// Help is shown by replay --help.
func (replayCmd) Help() string {
	return `Runs the schedule in the file, draws what happened, and holds it against what the
file expects: "expect": "none" means that every invariant must hold, and the name
of an invariant that just this one must be violated (a planted bug, caught again).

A script of a lease store that props.TestStore has checked is played on one that is
right, and both answers are shown.

Exit code 0: as expected. 1: otherwise. 2: the file cannot be read or run.

Actions that made no sense where they stood are counted: many of them show that a
file is stale.`
}

// replayJSON is what replay prints with --json.
type replayJSON struct {
	File      string          `json:"file"`
	Name      string          `json:"name"`
	Subject   string          `json:"subject"`
	Expect    model.Invariant `json:"expect"`
	AsFiled   bool            `json:"asExpected"`
	Violated  []string        `json:"violated"`
	Waived    []string        `json:"waived"`
	Reason    string          `json:"reason,omitempty"`
	At        int64           `json:"at,omitempty"` // ns
	Action    int32           `json:"action,omitempty"`
	Actions   int             `json:"actions"`
	Effective int64           `json:"effective"`
}

// Run is replay.
func (c *replayCmd) Run(e *env) error {
	if c.HTML != "" && len(c.Files) > 1 {
		return fmt.Errorf("--html draws one schedule, and %d files were given", len(c.Files))
	}
	for i, file := range c.Files {
		if i > 0 && !c.JSON {
			e.printf("\n")
		}
		if err := c.one(e, file); err != nil {
			// The other files still count.
			e.worse(exitUnknown)
			fmt.Fprintln(e.err, "fencepost:", err)
		}
	}
	return nil
}

func (c *replayCmd) one(e *env, file string) error {
	data, name, err := readReplay(file)
	if err != nil {
		return err
	}
	switch kind := kindOf(data); kind {
	case "":
	case script.FileKind:
		return c.script(e, name, data)
	default:
		return fmt.Errorf("%s: a %s: only the test that wrote it can play it; it does so first, whenever it runs", name, kind)
	}
	s, err := sim.ReadSchedule(bytes.NewReader(data), name)
	if err != nil {
		return err
	}
	if c.Subject != "" {
		s.Subject, s.Expect, s.Waives = c.Subject, model.NoInvariant, 0
	}
	subject, err := mutant.Subject(s.Subject)
	if err != nil {
		return fmt.Errorf("%s: subject: %w", file, err)
	}
	want := scenario.Judged(s)
	r := judge.Run(s, subject, want)
	missed := scenario.Met(s, subject.Name, r.Result)
	switch {
	case missed != nil:
		e.worse(exitViolated)
	case r.Undecided:
		missed = scenario.ErrUndecided
		e.worse(exitUnknown)
	}
	effective, all := r.Counts.Actions()
	if c.HTML != "" {
		if err := c.html(s, subject, want, r); err != nil {
			return err
		}
	}
	if c.JSON {
		out := replayJSON{File: file, Name: s.Name, Subject: s.Subject, Expect: s.Expect, AsFiled: missed == nil,
			Violated: setNames(r.Violated), Waived: setNames(r.Waived), Actions: len(s.Actions), Effective: effective}
		if r.Violated != 0 {
			out.Reason, out.At, out.Action = r.First.Describe(sim.Names()), r.First.At, r.First.Action
		}
		return json.NewEncoder(e.out).Encode(out)
	}
	e.printf("%s: %s\nsubject %s, expects %v\n\n", s.Name, s.Shows, s.Subject, s.Expect)
	if c.Trace {
		trace := judge.Trace(s, subject, want)
		if _, err := trace.WriteTo(e.out); err != nil {
			return err
		}
	} else if err := e.draw(s, subject, want, r, c.ASCII); err != nil {
		return err
	}
	e.printf("\n%d of %d actions done, %d without effect%s.\n", all, len(s.Actions), all-effective, idle(s, subject, int(all)))
	switch {
	case missed != nil:
		e.printf("NOT as expected: %v\n", missed)
	case r.Violated != 0:
		e.printf("As expected: %v is violated.\n", r.Violated)
	case r.Waived != 0:
		e.printf("As expected: nothing that is promised is violated. Waived, for clocks beyond their bound or a deleted lease: %v.\n", r.Waived)
	default:
		e.printf("As expected: every invariant holds.\n")
	}
	return nil
}

// idle names the first few of the actions done that had no effect.
func idle(s *sim.Schedule, subject sim.Subject, done int) string {
	w, err := sim.NewWorld(s.Config, subject, sim.Options{})
	if err != nil {
		return ""
	}
	const most = 3
	var names []string
	for i := range s.Actions[:done] {
		if a := &s.Actions[i]; !w.Apply(a) {
			names = append(names, fmt.Sprintf("%d %v", a.ID, a))
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) > most:
		names = append(names[:most], "...")
	}
	return ": " + strings.Join(names, ", ")
}

func (c *replayCmd) html(s *sim.Schedule, subject sim.Subject, want model.Set, r judge.Result) error {
	f, err := os.Create(c.HTML)
	if err != nil {
		return err
	}
	defer f.Close()
	trace := judge.Trace(s, subject, want)
	if err := timeline.HTML(f, trace.Events, sim.Names(), timeline.Options{Title: s.Name, Violation: r.First, MaxRows: 2000}); err != nil {
		return err
	}
	return f.Close()
}

// draw draws a run of s as a timeline.
func (e *env) draw(s *sim.Schedule, subject sim.Subject, want model.Set, r judge.Result, ascii bool) error {
	return timeline.Render(e.out, judge.Trace(s, subject, want).Events, sim.Names(), timeline.Options{Violation: r.First, ASCII: ascii, Width: e.width})
}

func setNames(s model.Set) []string {
	names := []string{}
	for v := range s.All() {
		names = append(names, v.String())
	}
	return names
}
