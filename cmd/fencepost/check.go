package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fencepost/linearizability"
	"fencepost/linearizability/report"
)

type checkCmd struct {
	Files       []string       `arg:"" optional:"" help:"History files, directories, quoted globs such as 'runs/**/*.edn'; - reads standard input."`
	Model       string         `help:"What the history is of: ${models}; auto finds out, and says why." default:"auto"`
	TTL         time.Duration  `help:"TTL of a lease whose events carry none, such as 10s."`
	Drift       float64        `help:"Bound on the rate error of the store's clock against the recorder's, such as 0.0002, instead of the history's own." placeholder:"RATE"`
	Ignore      []string       `help:"Operations to leave out, such as those that the model does not know." placeholder:"F"`
	AtLeast     map[string]int `help:"A history in which less happened is unknown, however legal: operations, takeovers, renewals, lapses, writes, stale, such as takeovers=1,writes=10." mapsep:"," placeholder:"WHAT=N"`
	Independent bool           `help:"Values are tuples of jepsen.independent, [key value]: what has no tag cannot be told from a pair."`
	Timeout     time.Duration  `help:"Time for one file; a check that runs out of it says unknown." default:"1m"`
	FailOn      string         `help:"What exits 1: violated, or unknown too." enum:"violated,unknown" default:"violated"`

	JSON        bool   `help:"Print one JSON object a file and one in the end, a line each, instead of text."`
	Schema      bool   `help:"Print the JSON Schema of --json and end."`
	JUnit       string `name:"junit" help:"Write JUnit XML to this file: a test for each history." type:"path" placeholder:"FILE"`
	Annotations *bool  `help:"Print GitHub workflow commands that annotate the lines. On where GITHUB_ACTIONS is true." negatable:""`
	HTML        string `help:"Draw the history, the failing part in view, as a page in this file. For many histories, or where it is a directory: each that is violated, into the directory." type:"path" placeholder:"FILE"`
	SVG         string `name:"svg" help:"The same picture as SVG." type:"path" placeholder:"FILE"`
	Reduce      string `help:"Write the minimal failing part as a history to this file, likewise: as EDN if it ends in .edn, else as JSON lines." type:"path" placeholder:"FILE"`
}

// Help is shown by check --help.
func (checkCmd) Help() string {
	return `Reads each history, whatever its format (fencepost's JSON lines, Jepsen's EDN,
elle-cli's JSON, porcupine's logs, one-line operations: told by content), and
looks for an order of its operations, with their times, that explains every
answer. Of leases and fenced storages, beliefs, tokens and writes are judged
beside that, and each finding says whom to blame.

    fencepost check history.jsonl
    fencepost check --html page.html --reduce small.jsonl history.jsonl
    fencepost check --model 'cas-register(nil)' --independent jepsen.edn
    fencepost check --at-least takeovers=1 --fail-on unknown --junit junit.xml runs

Of a directory, all files below it that look like histories are checked (.jsonl,
.json, .edn, .log, .txt, .ops); the others are counted as skipped.

Exit code 0: every history holds. 1: one is violated. 2: one is unknown, or cannot
be read; the message names file, line and field. So a job that tolerates 2 tolerates
what nobody knows. With --fail-on unknown nobody can: 1 stands for it too, JUnit has
an error where it had a skipped test, and GitHub an error where it had a warning.`
}

// Run is check.
func (c *checkCmd) Run(e *env) error {
	if c.Schema {
		e.printf("%s", checkSchema)
		return nil
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	if len(c.Files) == 0 {
		return fmt.Errorf("no history given: name files, directories, quoted globs, or - for standard input")
	}
	files, skipped, err := historyFiles(c.Files)
	if err != nil {
		return err
	}
	run := checkRun{checkCmd: c, e: e, options: o, many: len(files) > 1 || slices.ContainsFunc(c.Files, several), annotate: os.Getenv("GITHUB_ACTIONS") == "true"}
	if c.Annotations != nil {
		run.annotate = *c.Annotations
	}
	if err := run.places(files); err != nil {
		return err
	}
	// A history takes memory that lives as long as its check: the collector has
	// little to find, and is to leave little room.
	defer debug.SetGCPercent(debug.SetGCPercent(60))
	run.begin = e.clock()
	run.sum.Skipped = skipped
	if err := run.all(files); err != nil {
		return err
	}
	return run.end()
}

// options are those of each check.
func (c *checkCmd) options() (linearizability.Options, error) {
	o := linearizability.Options{TTL: c.TTL, Drift: int64(math.Round(c.Drift * 1e9)), Ignore: c.Ignore, Reader: linearizability.Reader{Independent: c.Independent}}
	var err error
	if o.Model, err = linearizability.ParseModel(c.Model); err != nil {
		return o, err
	}
	if !(c.Drift >= 0 && c.Drift < 1) || c.TTL < 0 || c.Timeout <= 0 {
		return o, fmt.Errorf("--drift must be in [0, 1), --ttl not negative and --timeout above 0")
	}
	gates := map[string]*int{
		"operations": &o.AtLeast.Operations, "takeovers": &o.AtLeast.Takeovers, "renewals": &o.AtLeast.Renewals,
		"lapses": &o.AtLeast.Lapses, "writes": &o.AtLeast.Writes, "stale": &o.AtLeast.Stale,
	}
	for name, n := range c.AtLeast {
		gate := gates[name]
		if gate == nil || n < 0 {
			return o, fmt.Errorf("--at-least %s=%d: want operations, takeovers, renewals, lapses, writes or stale, and a number from 0", name, n)
		}
		*gate = n
	}
	return o, nil
}

// checkRun is one run of check over all files.
type checkRun struct {
	*checkCmd
	e       *env
	options linearizability.Options
	many    bool
	// annotate: a runner of GitHub's sets the variable that decides unless a
	// flag does.
	annotate bool
	names    map[string]string // by file, of what is written about it in a directory
	begin    time.Duration
	sum      checkSummary

	outcomes []report.Outcome // for JUnit: without them nothing is kept
	done     atomic.Int64     // files
	checked  atomic.Int64     // operations
}

// all checks the files in parallel and tells of them in their order.
func (r *checkRun) all(files []string) error {
	workers := min(runtime.GOMAXPROCS(0), len(files))
	r.options.Memory = linearizability.DefaultMemory / int64(workers)
	stop := func() {}
	if r.many {
		stop = r.e.watch(func() string { return count(r.checked.Load()) + " operations" }, "files", int64(len(files)), &r.done)
	} else if info, err := os.Stat(files[0]); err == nil && info.Size() > 0 {
		r.options.Reader.Progress = new(atomic.Int64)
		reading := func() string {
			if r.options.Reader.Progress.Load() < info.Size() {
				return "reading"
			}
			return "looking for an order" // which takes as long as it takes
		}
		stop = r.e.watch(reading, "bytes", info.Size(), r.options.Reader.Progress)
	}
	ctx, cancel := context.WithCancel(r.e.ctx)
	defer cancel()
	// A verdict holds its history: no more of them wait to be told than that.
	slots := make(chan struct{}, 4*workers)
	results := make([]chan checked, len(files))
	for i := range results {
		results[i] = make(chan checked, 1)
	}
	var next atomic.Int64
	var looking sync.WaitGroup
	for range workers {
		looking.Go(func() {
			for {
				slots <- struct{}{}
				i := int(next.Add(1) - 1)
				if i >= len(files) {
					<-slots
					return
				}
				results[i] <- r.one(ctx, files[i])
				r.done.Add(1)
			}
		})
	}
	// On a terminal the progress would be drawn into the text.
	var held []checked
	var failed error
	for i := range files {
		x := <-results[i]
		<-slots
		if r.e.terminal {
			held = append(held, x)
		} else if err := r.tell(x); err != nil && failed == nil {
			failed = err
			cancel()
		}
	}
	looking.Wait()
	stop()
	for _, x := range held {
		if err := r.tell(x); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// checked is a file that was checked.
type checked struct {
	report.Outcome
	wrote   []string // what was written where, in words
	trouble error    // why something was not
}

// one checks one file, and writes the files that are about it.
func (r *checkRun) one(ctx context.Context, file string) (x checked) {
	begin := r.e.clock()
	x.File = file
	defer func() { x.Elapsed = r.e.clock() - begin }()
	if x.Err = context.Cause(ctx); x.Err != nil {
		x.Err = fmt.Errorf("%s: not looked at: %w", file, x.Err)
		return x
	}
	limited, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	history := func() (linearizability.History, error) { return r.options.Reader.ReadFile(file) }
	if file == "-" {
		var h linearizability.History
		if h, x.Err = r.options.Reader.Read(os.Stdin, "standard input"); x.Err != nil {
			return x
		}
		history = func() (linearizability.History, error) { return h, nil }
		x.Verdict, x.Err = linearizability.Check(limited, h, r.options)
	} else {
		x.Verdict, x.Err = linearizability.CheckFile(limited, file, r.options)
	}
	if x.Err != nil {
		return x
	}
	r.checked.Add(int64(x.Verdict.Activity.Operations))
	again, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	x.trouble = r.write(again, history, &x)
	return x
}

// write writes the files that are about one file.
func (r *checkRun) write(ctx context.Context, history func() (linearizability.History, error), x *checked) error {
	violated := x.Verdict.Result == linearizability.Violated
	for _, picture := range []struct {
		out, ext string
		write    func(context.Context, io.Writer) error
	}{{r.HTML, ".html", x.Verdict.WriteHTML}, {r.SVG, ".svg", x.Verdict.WriteSVG}} {
		path := r.place(picture.out, x.File, picture.ext)
		if path == "" || !violated && r.inDirectory(picture.out) {
			continue
		}
		if err := writeFile(path, func(w io.Writer) error { return picture.write(ctx, w) }); err != nil {
			return err
		}
		x.wrote = append(x.wrote, "drawn in "+path)
	}
	if path := r.place(r.Reduce, x.File, historyExt(x.File)); path != "" && violated {
		h, err := history()
		if err != nil {
			return err
		}
		small, err := linearizability.Reduce(ctx, h, r.options)
		if err != nil {
			return err
		}
		write := small.WriteJSON
		if filepath.Ext(path) == ".edn" {
			write = small.WriteEDN
		}
		if err := writeFile(path, write); err != nil {
			return err
		}
		n := int64(len(small.Ops()))
		x.wrote = append(x.wrote, fmt.Sprintf("reduced to %s in %s", counted(n, "operation", "operations"), path))
	}
	return nil
}

// screenful is how many lines are said about one file.
const screenful = 20

// tell prints what came of one file, which counts for the exit code even if that
// cannot be printed.
func (r *checkRun) tell(x checked) error {
	e := r.e
	r.sum.add(x.Outcome)
	switch result := x.Result(); {
	case result == linearizability.Violated, result == linearizability.Unknown && r.FailOn == "unknown":
		e.worse(exitViolated)
	case result == linearizability.Unknown:
		e.worse(exitUnknown)
	}
	if r.JUnit != "" {
		x.Outcome.Verdict = withoutHistory(x.Outcome.Verdict)
		r.outcomes = append(r.outcomes, x.Outcome)
	}
	switch {
	case r.JSON:
		if err := writeCheckJSON(e.out, r.options.Model, x.Outcome); err != nil {
			return err
		}
	case x.Err != nil:
		fmt.Fprintln(e.err, "fencepost:", x.Err)
	default:
		lines := strings.Split(x.Verdict.String(), "\n")
		if more := len(lines) - screenful; more > 0 {
			lines = append(lines[:screenful], fmt.Sprintf("  ... and %d more lines: --json has them all", more))
		}
		e.printf("%s\n", strings.Join(append(lines, x.wrote...), "\n"))
	}
	if x.trouble != nil {
		r.e.worse(exitUnknown) // what was asked for is not there
		fmt.Fprintf(e.err, "fencepost: %s: %v\n", x.File, x.trouble)
	}
	if r.annotate {
		out := e.out
		if r.JSON {
			out = e.err // GitHub reads both
		}
		return report.WriteAnnotations(out, []report.Outcome{x.Outcome}, r.FailOn == "unknown")
	}
	return nil
}

// end prints the sum and writes the report.
func (r *checkRun) end() error {
	r.sum.Seconds, r.sum.Exit = (r.e.clock() - r.begin).Seconds(), r.e.code
	switch {
	case r.JSON:
		if err := r.sum.writeJSON(r.e.out); err != nil {
			return err
		}
	case r.sum.Files+r.sum.Skipped > 1:
		r.e.printf("%v\n", r.sum)
	}
	if r.JUnit == "" {
		return nil
	}
	j := report.JUnit{Suite: "fencepost check", Model: r.options.Model.String(), FailUnknown: r.FailOn == "unknown"}
	return writeFile(r.JUnit, func(w io.Writer) error { return j.Write(w, r.outcomes) })
}

// withoutHistory keeps of a verdict what a report says.
func withoutHistory(v linearizability.Verdict) linearizability.Verdict {
	return linearizability.Verdict{
		Result: v.Result, File: v.File, Model: v.Model, Chosen: v.Chosen, Reading: v.Reading, Reason: v.Reason,
		Activity: v.Activity, Partitions: v.Partitions, Findings: v.Findings, Notes: v.Notes,
	}
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Close()
}
