package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"fencepost/impl/lease"
)

// electCmd runs a command while leading.
type electCmd struct {
	Backend  string        `required:"" placeholder:"URL" help:"Where the lease lives, such as sqlite:///var/lib/jobs.db, postgres://..., mysql://..., etcd://host:2379, redis://host:6379, zookeeper://host:2181, kubernetes://namespace, nats://host:4222/bucket, s3://bucket/prefix/."`
	Resource string        `required:"" help:"What is leased: one name for all of whom one may run."`
	Node     string        `help:"This candidate's name. Default: the host's."`
	TTL      time.Duration `default:"15s" help:"How long a grant lasts. Where a leader dies, another starts within about this."`
	MaxDrift float64       `default:"0.01" help:"How much slower than the store's clock this machine's may run."`
	Margin   time.Duration `default:"500ms" help:"Taken off the time to act besides: what a SIGKILL takes to work."`
	Grace    time.Duration `help:"From SIGTERM to SIGKILL where no renewal comes through. Default: a quarter of the time to act."`
	Restart  bool          `help:"Campaign again when the command has ended, whatever its exit code, instead of ending with it."`
	JSON     bool          `help:"Log as JSON, one object a line."`

	Command []string `arg:"" passthrough:"" help:"The command and its arguments, after --."`
}

// Help is shown by --help.
func (*electCmd) Help() string {
	return `The command runs in a process group of its own, with
  FENCEPOST_RESOURCE, FENCEPOST_HOLDER
  FENCEPOST_TOKEN          the fencing token: hand it to what you write to
  FENCEPOST_DEADLINE       until when it may act unless the lease is renewed, in ns of CLOCK_BOOTTIME
  FENCEPOST_DEADLINE_FILE  a file that has the same, and is replaced after renewals

It is sent SIGTERM when leadership is to end (fencepost-live is told to stop, or no
renewal came through until --grace before the deadline), and its group SIGKILL at
the deadline, at once where the lease turns out to be lost. Then fencepost-live
campaigns again. If the command ends by itself, fencepost-live releases the
lease and ends with its exit code, unless --restart. If fencepost-live dies, the
command's process group is killed. If it is stopped (SIGSTOP, a frozen machine), the
command goes on: only storage that checks the token helps then.`
}

// Run is called by kong.
func (c *electCmd) Run(e *env) error {
	if c.JSON {
		e.log = slog.New(slog.NewJSONHandler(e.err, nil))
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return errors.New("no command: name it after --")
	}
	node := c.Node
	if node == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("this host's name: %w; give --node", err)
		}
		node = host
	}
	timing := lease.Config{TTL: c.TTL, MaxDriftRate: c.MaxDrift, SafetyMargin: c.Margin}
	if err := timing.Validate(); err != nil {
		return err
	}
	grace := cmp.Or(c.Grace, timing.SafeWindow()/4)
	if latest := timing.SafeWindow() - timing.RenewAfter(); grace < 0 || grace >= latest {
		return fmt.Errorf("--grace %v is not between 0 and %v, when the first renewal is sent: the command would be stopped before any could come through", grace, latest)
	}
	store, closeStore, err := open(e.ctx, c.Backend)
	if err != nil {
		return err
	}
	defer closeStore()
	elector, err := lease.NewElector(store, lease.ElectorConfig{Resource: c.Resource, Node: node, Timing: timing, Clock: e.clk, Logger: e.log})
	if err != nil {
		return err
	}
	err = elector.Run(e.ctx, func(ctx context.Context, term lease.Term) error {
		g := guarded{clk: e.clk, log: e.log, command: command, out: e.out, err: e.err, grace: grace, look: timing.SafeWindow() / 50}
		code, byItself, err := g.run(ctx, term)
		switch {
		case err != nil:
			return err
		case byItself && !c.Restart:
			return &exitError{code}
		}
		return nil
	})
	if e.ctx.Err() != nil && errors.Is(err, context.Cause(e.ctx)) {
		return nil // it was told to stop, and has
	}
	return err
}
