// Command fencepost checks lease-based leader election: the built-in
// implementation by random schedules and by every interleaving, single schedules
// by replay, and recorded histories of any lease system.
//
// It holds no rule of its own: packages judge, explore, mutant, scenario,
// timeline, atlas and linearizability do the work, and it prints. Start at [cli].
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"fencepost/impl/clock"
	"fencepost/linearizability"
)

// The exit codes.
const (
	exitHolds    = 0
	exitViolated = 1
	exitUnknown  = 2 // or could not run
)

// cli is the command line.
type cli struct {
	Verify    verifyCmd    `cmd:"" help:"Check the built-in implementation with random schedules, and that planted bugs are caught. The main job."`
	Explore   exploreCmd   `cmd:"" help:"Run every interleaving of the built-in implementation: what holds then holds for schedules of any length."`
	Soak      soakCmd      `cmd:"" help:"Check the built-in implementation with random schedules for a given time."`
	Replay    replayCmd    `cmd:"" help:"Replay a schedule file and show what happens in it."`
	Scenarios scenariosCmd `cmd:"" help:"List or run the named scenarios."`
	Mutants   mutantsCmd   `cmd:"" help:"Hunt the planted bugs: each must be caught."`
	Stores    storesCmd    `cmd:"" help:"Show wrong lease stores and fenced storages, and how the conformance kit convicts them."`
	Check     checkCmd     `cmd:"" help:"Check recorded histories: holds, violated or unknown."`
	Convert   convertCmd   `cmd:"" help:"Convert a recorded history from one format to another, and say what is lost."`
}

// env is what a command may touch.
type env struct {
	ctx      context.Context
	out, err io.Writer
	clock    func() time.Duration
	terminal bool // err is one: show progress there
	width    int  // columns of out; 0: not a terminal
	code     int
}

func (e *env) printf(format string, args ...any) { fmt.Fprintf(e.out, format, args...) }

// worse raises the exit code: a violation outranks what is unknown.
func (e *env) worse(code int) {
	switch {
	case e.code == exitViolated || code == exitViolated:
		e.code = exitViolated
	default:
		e.code = max(e.code, code)
	}
}

// output remembers the first error of a writer, so that no print need look.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // whoever waits for input that never comes is ended by the second one
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width = 0 // not a terminal
	}
	os.Exit(run(&env{ctx: ctx, out: os.Stdout, err: os.Stderr, clock: clock.Monotonic().Now,
		terminal: term.IsTerminal(int(os.Stderr.Fd())), width: min(width, 100)}, os.Args[1:]))
}

// exited ends kong's own exits (--help) without ending the process.
type exited int

// run is the whole command but for the process around it.
func run(e *env, args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			x, ok := r.(exited)
			if !ok {
				panic(r)
			}
			code = int(x)
		}
	}()
	var c cli
	parser, err := kong.New(&c, kong.Name("fencepost"), kong.Writers(e.out, e.err), kong.Exit(func(n int) { panic(exited(n)) }),
		kong.UsageOnError(), kong.Vars{"models": strings.Join(linearizability.Models()[1:], ", ")}, kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Description("Check lease-based leader election with fencing tokens.\n\n"+
			"Exit codes: 0 holds, 1 violated, 2 unknown or could not run."))
	if err != nil {
		panic(err) // the tags of cli are wrong
	}
	out := &output{w: e.out}
	e.out = out
	k, err := parser.Parse(args)
	if err == nil {
		err = k.Run(e)
	}
	if err == nil {
		err = out.err // what was said is not there
	}
	if err != nil {
		fmt.Fprintln(e.err, "fencepost:", err)
		var parse *kong.ParseError
		if errors.As(err, &parse) {
			fmt.Fprintln(e.err, "Run \"fencepost --help\" for the commands and their flags.")
		}
		e.worse(exitUnknown)
	}
	return e.code
}
