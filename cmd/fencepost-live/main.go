// Command fencepost-live works on the systems that leases live on: it runs a
// command on one machine at a time, and says on which.
//
// It must hold no rule: who leads is the elector's part, and how long a store's
// tenure lasts that of the store. Start at [cli], at [guarded] for when a command
// is told to stop, and at [schemes] for the backends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"fencepost/impl/clock"
)

// exitFailed is the exit code where the command could not be run, or nobody be
// asked. Others are those of the command, and of [leaderCmd].
const exitFailed = 2

// cli is the command line.
type cli struct {
	Elect  electCmd  `cmd:"" help:"Run a command only while leading: a cron job or a daemon of which there may be only one."`
	Leader leaderCmd `cmd:"" help:"Say who leads. Exit code 0: somebody does, 1: nobody, 2: it could not be asked."`
}

// env is what a command may touch.
type env struct {
	ctx      context.Context
	out, err io.Writer
	clk      clock.Clock
	log      *slog.Logger
}

func main() {
	if isGuard() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	code := 0
	parser, err := kong.New(&c, kong.Name("fencepost-live"),
		kong.Description("Leases with fencing tokens, on the systems that they live on."),
		kong.Writers(stdout, stderr), kong.Exit(func(n int) { code = n }))
	if err != nil {
		fmt.Fprintln(stderr, "fencepost-live:", err)
		return exitFailed
	}
	k, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintln(stderr, "fencepost-live:", err)
		return exitFailed
	}
	if k.Command() == "" { // help was asked for
		return code
	}
	err = k.Run(&env{ctx: ctx, out: stdout, err: stderr, clk: clock.Boot(), log: slog.New(slog.NewTextHandler(stderr, nil))})
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if err != nil {
		fmt.Fprintln(stderr, "fencepost-live:", err)
		return exitFailed
	}
	return code
}

// exitError ends the program with a code that says all there is to say.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }
