package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"fencepost/model"
	"fencepost/props/atlas"
	"fencepost/props/explore"
	"fencepost/props/judge"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// exploreCmd leaves nil what was not given: [explore.Default] sets that, or
// the planted bug.
type exploreCmd struct {
	Clients   *int     `help:"Candidates, 1 to 4 (default 2)." placeholder:"N"`
	TTL       *int     `help:"TTL in ticks, 1 to 64 (default 4). A tick is the time that passes at once." placeholder:"TICKS"`
	Drift     *int     `help:"Clocks keep a bound of 1/N (default 4): 2, 4, 5, 8, 10, 16 or 20; 1 stands for true clocks. A tick is N times 100ms." placeholder:"N"`
	Messages  *int     `help:"Messages in flight, 1 to 24 (default 2); a send beyond it is a loss." placeholder:"N"`
	Keys      *int     `help:"Keys of the storage that leaders write to, 1 to 4 (default 1)." placeholder:"N"`
	LockDelay *int     `help:"Lock delay in ticks (default 0)." placeholder:"TICKS"`
	Barrier   *bool    `help:"Leaders fence before they lead (default off)." negatable:""`
	Faults    []string `help:"What may happen (default loss,duplication,drift,writes,resign): of these and work, client-crash, store-crash, storage-crash, suspend, delete, jump. Empty: nothing." placeholder:"NAME"`
	With      []string `help:"Faults to add." placeholder:"NAME"`
	Without   []string `help:"Faults to leave out." placeholder:"NAME"`
	Lockstep  bool     `help:"Compare every answer with that of the sequential specification, too. It takes several times as many states."`
	Mutant    string   `help:"Explore this planted bug in the world that shows it, but for the flags given." placeholder:"NAME"`

	MaxStates uint64   `help:"End, bounded, soon after so many states. 0: no bound." placeholder:"N"`
	MaxMemory byteSize `help:"End, bounded, when states take so much memory, such as 512MiB; the process takes up to twice that. 0: no bound." default:"8GiB"`
	MaxDepth  int      `help:"End, bounded, at schedules of so many actions. 0: no bound." placeholder:"N"`
	Workers   int      `help:"Goroutines that search. 0: as many as there are cores." placeholder:"N"`

	JSON    bool   `help:"Print one JSON object instead of text."`
	HTML    string `help:"Write the picture of what was explored as a page to this file." type:"path" placeholder:"FILE"`
	Out     string `help:"Folder for a counterexample." default:"testdata/fencepost"`
	Longest string `help:"Write a schedule that leads to the state that waits longest for a leader to this file. It takes a second exploration, on one core." type:"path" placeholder:"FILE"`
}

// Help is shown by explore --help.
func (exploreCmd) Help() string {
	return `Runs every interleaving of the built-in implementation, or of a planted bug: all
delays and reorderings, and whatever faults are on, at any moment. Every invariant
is judged in every state, and every state is given fair time until a client leads.
Worlds that no rule and no judgement can tell apart are taken for one, so the search
comes to an end, and then holds for schedules of any length.

The first counterexample has the fewest actions there can be; it is shown, and
written as a schedule file for "replay".

What no rule looks at again is left out for the built-in rules alone: a planted bug,
explored to the end, has many times as many states.

Exit code 0: complete, and every invariant holds. 1: one is violated. 2: a bound or
an interrupt ended the search, or it could not run.`
}

// Run is explore.
func (c *exploreCmd) Run(e *env) error {
	o, what, err := c.options()
	if err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if !c.JSON {
		e.printf("fencepost explore: every interleaving of %s\n  %v\n  on:  %v\n  off: %v\n", what, o, o.Faults, explore.AllFaults&^o.Faults)
	}
	for _, path := range [...]string{c.HTML, c.Longest} { // before it takes its time
		if path == "" {
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		f.Close()
	}
	o.Progress = new(model.ExploreProgress)
	stop := e.exploring(o.Progress)
	began := e.clock()
	r, err := explore.Run(e.ctx, o)
	took := e.clock() - began
	stop()
	if err != nil {
		if r != nil && r.Found.Failed {
			return fmt.Errorf("something breaks within %d actions, but: %w", r.Found.FailDepth, err)
		}
		return err
	}
	x := exploration{what: what, mutant: c.Mutant, options: o, report: r, took: took}
	switch r.Verdict {
	case explore.Violated:
		e.worse(exitViolated)
	case explore.Unknown:
		e.worse(exitUnknown)
	}
	c.write(e, &x)
	if c.JSON {
		return x.json(e)
	}
	return x.print(e)
}

// write writes the files that were asked for. What was found may have taken
// hours: it is told even if a file cannot be written.
func (c *exploreCmd) write(e *env, x *exploration) {
	for _, f := range []struct {
		flag, path string
		to         *string
		write      func(path string) (string, error)
	}{
		{"--out", c.Out, &x.file, x.writeCounterexample},
		{"--html", c.HTML, &x.page, x.writePage},
		{"--longest", c.Longest, &x.longest, func(path string) (string, error) { return x.writeLongest(e.ctx, path) }},
	} {
		if f.path == "" {
			continue
		}
		written, err := f.write(f.path)
		if err != nil {
			fmt.Fprintf(e.err, "fencepost: %s: %v\n", f.flag, err)
			e.worse(exitUnknown)
			continue
		}
		*f.to = written
	}
}

// options are what to explore, and what that is called.
func (c *exploreCmd) options() (o explore.Options, what string, err error) {
	o, what = explore.Default(), "the built-in implementation"
	if c.Mutant != "" {
		m, err := mutant.Find(c.Mutant)
		if err != nil {
			return o, "", err
		}
		o, what = m.Explored(), fmt.Sprintf("the planted bug %s: %s", m.Name, m.Breaks)
	}
	for _, f := range []struct{ given, to *int }{
		{c.Clients, &o.Clients}, {c.TTL, &o.TTL}, {c.Drift, &o.Drift}, {c.Messages, &o.Messages}, {c.Keys, &o.Keys}, {c.LockDelay, &o.LockDelay},
	} {
		if f.given != nil {
			*f.to = *f.given
		}
	}
	if c.Barrier != nil {
		o.Barrier = *c.Barrier
	}
	if c.Lockstep {
		if o.Judged == 0 {
			o.Judged = explore.Judgeable
		}
		o.Judged |= model.SetOf(model.Lockstep)
	}
	o.MaxStates, o.MaxMemory, o.MaxDepth, o.Workers = c.MaxStates, uint64(c.MaxMemory), c.MaxDepth, c.Workers
	if o.Workers < 0 {
		return o, "", errors.New("--workers cannot be negative; 0 stands for all cores")
	}
	return o, what, c.faults(&o)
}

func (c *exploreCmd) faults(o *explore.Options) error {
	var set [3]explore.Faults
	for i, f := range []struct {
		flag  string
		names []string
	}{{"--faults", c.Faults}, {"--with", c.With}, {"--without", c.Without}} {
		var err error
		if set[i], err = explore.ParseFaults(f.names); err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	all, with, without := set[0], set[1], set[2]
	if c.Faults != nil {
		o.Faults = all
	}
	if (all|with)&explore.Drifting == 0 && o.Drift < 2 {
		o.Faults &^= explore.Drifting // true clocks were asked for, drift was not
	}
	o.Faults = (o.Faults | with) &^ without
	return nil
}

// byteSize is an amount of memory on the command line.
type byteSize uint64

// UnmarshalText reads a whole number with a unit of B, KiB, MiB, GiB or TiB.
func (b *byteSize) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "KMGTiB")
	shift := map[string]int{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
	by, ok := shift[string(text[len(number):])]
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || n > math.MaxUint64>>by {
		return fmt.Errorf("%q is no amount of memory such as 512MiB or 8GiB", text)
	}
	*b = byteSize(n << by)
	return nil
}

// exploration is what was explored and what came of it.
type exploration struct {
	what    string // the subject, for a sentence
	mutant  string // the planted bug; "" if none
	options explore.Options
	report  *explore.Report
	took    time.Duration
	// The files that were written, where they were.
	file, page, longest string
}

func (x *exploration) writeCounterexample(dir string) (string, error) {
	if x.report.Counterexample == nil {
		return "", nil
	}
	return x.report.Counterexample.WriteFile(dir)
}

func (x *exploration) writePage(file string) (string, error) {
	s := atlas.Survey{What: x.what, Options: x.options, Report: x.report, Took: x.took}
	if c := x.report.Counterexample; c != nil {
		s.Events = judge.Trace(c, x.options.Subject, x.report.Judged).Events
	}
	return file, writeFile(file, func(w io.Writer) error { return atlas.HTML(w, s) })
}

// writeLongest writes the schedule to the state that waits longest for a
// leader, and the fair time after it.
func (x *exploration) writeLongest(ctx context.Context, file string) (string, error) {
	switch {
	case x.report.Verdict == explore.Violated:
		return "", errors.New("where an invariant breaks no wait is promised; the counterexample is what there is to see")
	case x.report.Fair == nil || x.report.Fair.Key == nil:
		return "", errors.New("no state was given fair time: availability was not judged")
	}
	o := x.options
	o.Reductions = x.report.Reductions // that the key was made by
	s, err := o.Lead(ctx, x.report.Fair.Key)
	if err != nil {
		return "", err
	}
	x.report.Fair.Waiting(s)
	b, err := s.MarshalJSON()
	if err != nil {
		return "", err
	}
	return file, writeFile(file, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// memory is an amount of memory as people read it.
func memory(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func (x *exploration) rate(n uint64) string {
	if x.took <= 0 {
		return "?"
	}
	return count(int64(float64(n)/x.took.Seconds())) + "/s"
}

// kindsOf are the kinds of action that took a step, in the order of their
// declaration.
func kindsOf(steps []uint64) (kinds []sim.Kind) {
	for k, n := range steps {
		if n > 0 {
			kinds = append(kinds, sim.Kind(k))
		}
	}
	return kinds
}
