//go:build unix

package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Required is the environment variable which, set to 1, makes a missing server
// an error instead of a skip: nothing may go untested in CI.
const Required = "FENCEPOST_SERVERS"

// Find gives the path of the first of candidates that is there: a name is
// looked up in PATH, a pattern with a slash globbed, of whose matches the last is taken. Where
// there is none the test is skipped, or fails if servers are [Required]; install
// says what brings it, such as "apt-get install redis-server".
func Find(t testing.TB, install string, candidates ...string) string {
	t.Helper()
	for _, c := range candidates {
		if filepath.Base(c) == c {
			if path, err := exec.LookPath(c); err == nil {
				return path
			}
			continue
		}
		if paths, _ := filepath.Glob(c); len(paths) > 0 {
			return paths[len(paths)-1]
		}
	}
	Missing(t, install, fmt.Errorf("none of %q is here", candidates))
	return ""
}

// Missing ends a test for want of a server, as [Find] does.
func Missing(t testing.TB, install string, err error) {
	t.Helper()
	if os.Getenv(Required) == "1" {
		t.Fatalf("%v, and %s=1 lets no test skip: %s", err, Required, install)
	}
	t.Skipf("%v: %s", err, install)
}

// Spec is what to start.
type Spec struct {
	// Command is the program and its arguments.
	Command []string
	// Env is added to the test's own.
	Env []string
	// Dir is the working directory.
	Dir string
	// User runs the server where the test is root, for those that refuse to be:
	// "nobody" for example. Whatever it writes must belong to it: see [Chown].
	User string
	// Ready returns nil once the server answers. It is called again and again.
	Ready func(ctx context.Context) error
	// Within is how long that may take. Default a minute.
	Within time.Duration
}

// Daemon is a server. Its methods are for one goroutine at a time.
type Daemon struct {
	spec Spec
	cmd  *exec.Cmd
	out  tail
	done chan struct{} // closed once cmd has ended
}

// Start starts what spec says, returns once it is ready, and ends it with the test.
func Start(t testing.TB, spec Spec) *Daemon {
	t.Helper()
	d := Launch(t, spec)
	if err := d.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// Launch starts what spec says, and ends it with the test, but does not wait:
// where several servers are ready only together all are launched first, and then
// each is waited for with [Daemon.Await].
func Launch(t testing.TB, spec Spec) *Daemon {
	t.Helper()
	d := &Daemon{spec: spec}
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("the last of what %s printed:\n%s", filepath.Base(spec.Command[0]), d.out.String())
		}
	})
	if err := d.launch(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Start starts the server anew after a Kill or a Stop, and returns once it is
// ready.
func (d *Daemon) Start(ctx context.Context) error {
	if err := d.launch(); err != nil {
		return err
	}
	return d.Await(ctx)
}

func (d *Daemon) launch() error {
	cmd := exec.Command(d.spec.Command[0], d.spec.Command[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), d.spec.Env...), d.spec.Dir
	cmd.Stdout, cmd.Stderr = &d.out, &d.out
	cmd.WaitDelay = 5 * time.Second
	// A group of its own, so that a Kill reaches what it has started, too; and
	// an end with the test, also where that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	if d.spec.User != "" && os.Getuid() == 0 {
		uid, gid, err := ids(d.spec.User)
		if err != nil {
			return err
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", d.spec.Command[0], err)
	}
	done := make(chan struct{})
	d.cmd, d.done = cmd, done
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	return nil
}

// Await returns once the server is ready.
func (d *Daemon) Await(ctx context.Context) error {
	within := d.spec.Within
	if within == 0 {
		within = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := d.spec.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.done:
			return fmt.Errorf("%s has ended (%v):\n%s", d.spec.Command[0], d.cmd.ProcessState, d.out.String())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; last: %w\n%s", d.spec.Command[0], context.Cause(ctx), err, d.out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the server and all that it has started with SIGKILL, and returns
// once it is gone. It is harmless where that has ended already.
func (d *Daemon) Kill() {
	if d.cmd == nil {
		return
	}
	d.Signal(syscall.SIGKILL)
	<-d.done
}

// Stop asks the server to end with SIGTERM, and waits for that.
func (d *Daemon) Stop() {
	if d.cmd == nil {
		return
	}
	syscall.Kill(d.cmd.Process.Pid, syscall.SIGTERM)
	<-d.done
}

// Restart kills the server and starts it again.
func (d *Daemon) Restart(ctx context.Context) error {
	d.Kill()
	return d.Start(ctx)
}

// Signal sends s to the server and all that it has started. SIGSTOP makes it
// hang, and on Linux it does once Signal returns; SIGCONT goes on.
func (d *Daemon) Signal(s syscall.Signal) error {
	if err := syscall.Kill(-d.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %v to %s: %w", s, d.spec.Command[0], err)
	}
	for s == syscall.SIGSTOP && !standsStill(d.cmd.Process.Pid) {
		select {
		case <-d.done: // it was killed all the same
			return nil
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// Pid is that of the server.
func (d *Daemon) Pid() int { return d.cmd.Process.Pid }

// Port is a TCP port on 127.0.0.1 that was free a moment ago.
func Port(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Dir is a directory that ends with the test and belongs to name where the test
// is root. Servers that run as somebody else can get at it, as they cannot at
// t.TempDir.
func Dir(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fencepost-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := Chown(dir, name); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Chown gives path to name, where the test is root.
func Chown(path, name string) error {
	if os.Getuid() != 0 || name == "" {
		return nil
	}
	uid, gid, err := ids(name)
	if err != nil {
		return err
	}
	return os.Chown(path, int(uid), int(gid))
}

func ids(name string) (uid, gid uint32, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	uid64, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid64, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(uid64), uint32(gid64), errors.Join(err1, err2)
}

// tail keeps the end of what was written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - tailBytes; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
