//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// guarded runs a command inside a term, and never beyond it.
type guarded struct {
	clk      clock.Clock
	log      *slog.Logger
	command  []string
	out, err io.Writer
	grace    time.Duration // from SIGTERM to the deadline, where no renewal comes through
	look     time.Duration // between looks at a deadline that renewals move
}

// run starts the command and returns once its process has ended: with its exit
// code, and whether it ended without being told to.
//
// The process group gets SIGTERM at the end of ctx, or grace before the deadline
// if no renewal has moved it by then; SIGKILL at the deadline that was known
// at that moment. Where the lease turned out to be lost, or has lapsed,
// there is nothing to wait for, and SIGKILL comes at once.
func (g guarded) run(ctx context.Context, term lease.Term) (code int, byItself bool, err error) {
	deadline := term.Deadline()
	dir, err := os.MkdirTemp("", "fencepost-live-")
	if err != nil {
		return 0, false, fmt.Errorf("a directory for FENCEPOST_DEADLINE_FILE: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "deadline")
	if err := publish(file, deadline); err != nil {
		return 0, false, err
	}
	cmd := exec.Command(g.command[0], g.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, g.out, g.err
	cmd.Env = append(os.Environ(),
		"FENCEPOST_RESOURCE="+term.Resource,
		"FENCEPOST_HOLDER="+term.Holder.String(),
		fmt.Sprintf("FENCEPOST_TOKEN=%d", term.Token),
		fmt.Sprintf("FENCEPOST_DEADLINE=%d", deadline),
		"FENCEPOST_DEADLINE_FILE="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // what the command leaves behind may hold its output open
	endWithParent(cmd.SysProcAttr)
	if !term.Valid() {
		return 0, false, nil // it paused since: nothing was started
	}
	exited, err := start(cmd)
	if err != nil {
		return 0, false, fmt.Errorf("starting %q: %w", g.command[0], err)
	}
	pid := cmd.Process.Pid
	dismiss, err := startGuard(pid)
	if err != nil {
		signalGroup(pid, syscall.SIGKILL)
		<-exited
		return 0, false, fmt.Errorf("starting the guard of %q: %w", g.command[0], err)
	}
	notes, told := make(chan note, 64), make(chan struct{})
	go func() {
		defer close(told)
		g.tell(notes, file, "pid", pid, "token", term.Token)
	}()
	notes <- note{level: slog.LevelInfo, what: "command runs"}
	byItself = g.watch(ctx, term, pid, deadline, notes, exited)
	endGroup(pid) // also what it has started and not waited for
	dismiss()
	code = exitCode(cmd.ProcessState)
	post(notes, note{level: slog.LevelInfo, what: "command has ended", more: []any{"code", code, "byItself", byItself}})
	close(notes)
	<-told
	return code, byItself, nil
}

// note is what watch leaves to tell to say or to publish.
type note struct {
	level    slog.Level
	what     string
	more     []any
	deadline time.Duration // a new one, to be published, if it is not 0
}

// post leaves n, or drops it where those before it are not told yet: a log that
// nobody reads must not keep a command alive.
func post(notes chan<- note, n note) {
	select {
	case notes <- n:
	default:
	}
}

// tell says and publishes what it is left, which may take for ever.
func (g guarded) tell(notes <-chan note, file string, about ...any) {
	for n := range notes {
		if n.deadline == 0 {
			g.log.With(about...).Log(context.Background(), n.level, n.what, n.more...)
		} else if err := publish(file, n.deadline); err != nil {
			g.log.With(about...).Warn("the deadline could not be published", "err", err)
		}
	}
}

// watch returns once the process has ended, and reports whether it was not told
// to. It does nothing but look at the clock and send signals, so that nothing can
// keep those from being sent.
func (g guarded) watch(ctx context.Context, term lease.Term, pid int, deadline time.Duration, notes chan<- note, exited <-chan struct{}) (byItself bool) {
	timer := g.clk.Timer(g.clk.Now())
	defer timer.Stop()
	ended, told, killed := ctx.Done(), false, false
	for {
		now := g.clk.Now()
		if d := term.Deadline(); !told && ctx.Err() == nil && d > deadline {
			deadline = d
			post(notes, note{deadline: d})
		}
		if !told && now >= deadline-g.grace {
			signalGroup(pid, syscall.SIGTERM)
			told = true
			post(notes, note{level: slog.LevelWarn, what: "no renewal came through: the command is told to stop", more: []any{"left", deadline - now}})
		}
		if !killed && now >= deadline {
			signalGroup(pid, syscall.SIGKILL)
			killed = true
			post(notes, note{level: slog.LevelWarn, what: "the term is over: the command is killed"})
		}
		switch {
		case killed:
			timer.Reset(now + time.Hour)
		case told:
			timer.Reset(deadline)
		default:
			timer.Reset(min(deadline-g.grace, now+g.look))
		}
		select {
		case <-exited:
			return !told
		case <-timer.C():
		case <-ended:
			ended = nil
			cause := context.Cause(ctx)
			signalGroup(pid, syscall.SIGTERM)
			told = true
			post(notes, note{level: slog.LevelInfo, what: "leadership ends: the command is told to stop", more: []any{"cause", cause}})
			if errors.Is(cause, lease.ErrLapsed) || errors.Is(cause, lease.ErrRefused) {
				deadline = min(deadline, g.clk.Now()) // another may lead already
			}
		}
	}
}

// start starts cmd on a thread of its own that lives as long as the process:
// Linux sends the death signal when that thread ends, not the parent. exited is
// closed once cmd has been waited for.
func start(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() // its error is in ProcessState, or is about the pipes
		}
	}()
	return done, <-started
}

// signalGroup sends s to all that the command is made of. That it is gone
// already is no error.
func signalGroup(pid int, s syscall.Signal) { _ = syscall.Kill(-pid, s) }

// endGroup kills what is left of a group whose first process has ended, and waits
// until it is gone: what a SIGKILL cannot end within a second, nothing can.
func endGroup(pid int) {
	for range 200 {
		if syscall.Kill(-pid, syscall.SIGKILL) != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// exitCode is that of a shell: 128 and the signal's number for one that was
// killed.
func exitCode(p *os.ProcessState) int {
	if status, ok := p.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}

// publish replaces file in one step, so that nobody reads half of it.
func publish(file string, deadline time.Duration) error {
	next := file + ".next"
	if err := os.WriteFile(next, []byte(strconv.FormatInt(int64(deadline), 10)+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}
