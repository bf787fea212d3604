//go:build unix

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fencepost/props/daemon"
)

func TestMain(m *testing.M) { daemon.Main(m, serve) }

// serve is a server that answers with its process id.
func serve(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprint(c, os.Getpid())
		c.Close()
	}
}

// server is one that answers on port with its process id, as ask reads it.
func server(t *testing.T, port int) (spec daemon.Spec, ask func(context.Context) (int, error)) {
	t.Helper()
	spec, err := daemon.Self(port)
	if err != nil {
		t.Fatal(err)
	}
	ask = func(ctx context.Context) (int, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return 0, err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Second))
		b := make([]byte, 20)
		n, err := c.Read(b)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(string(b[:n]))
	}
	spec.Ready = func(ctx context.Context) error {
		_, err := ask(ctx)
		return err
	}
	return spec, ask
}

func TestAServerRunsUntilItIsKilledAndComesBack(t *testing.T) {
	spec, ask := server(t, daemon.Port(t))
	d := daemon.Start(t, spec)
	first, err := ask(t.Context())
	if err != nil || first != d.Pid() {
		t.Fatalf("answered %d, %v, and is %d", first, err, d.Pid())
	}
	d.Kill()
	d.Kill() // harmless
	if _, err := ask(t.Context()); err == nil {
		t.Error("it answers when it is gone")
	}
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := ask(t.Context()); err != nil || again == first || again != d.Pid() {
		t.Errorf("answered %d, %v, and is %d", again, err, d.Pid())
	}
	if err := d.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	if _, err := ask(t.Context()); err == nil {
		t.Error("it answers while it is stopped")
	}
	if err := d.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if err := d.Await(t.Context()); err != nil {
		t.Error(err)
	}
	d.Stop()
}

// Two servers of which each is ready once both are.
func TestWhatIsLaunchedIsWaitedForLater(t *testing.T) {
	first, askFirst := server(t, daemon.Port(t))
	second, askSecond := server(t, daemon.Port(t))
	both := func(ctx context.Context) error {
		_, err1 := askFirst(ctx)
		_, err2 := askSecond(ctx)
		return errors.Join(err1, err2)
	}
	first.Ready, second.Ready, first.Within = both, both, 500*time.Millisecond
	d := daemon.Launch(t, first)
	if err := d.Await(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one alone: %v; want it not ready in time", err)
	}
	daemon.Start(t, second)
	if err := d.Await(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a server prints before it gives up says why.
func TestAServerThatEndsSaysWhatItPrinted(t *testing.T) {
	d := new(failing)
	d.TB = t
	func() {
		defer func() { recover() }()
		daemon.Start(d, daemon.Spec{
			Command: []string{"sh", "-c", "echo no such disk; exit 3"},
			Ready:   func(context.Context) error { return errors.New("not yet") },
		})
	}()
	if !strings.Contains(d.said, "exit status 3") || !strings.Contains(d.said, "no such disk") {
		t.Errorf("it says %q", d.said)
	}
}

func TestAMissingServerSkipsAndFailsWhereItIsRequired(t *testing.T) {
	for _, c := range []struct{ required, want string }{{"", "skip: "}, {"1", "fatal: "}} {
		t.Setenv(daemon.Required, c.required)
		d := &failing{TB: t}
		func() {
			defer func() { recover() }()
			daemon.Find(d, "apt-get install no-such-server", "no-such-server", "/nowhere/*/no-such-server")
		}()
		if !strings.HasPrefix(d.said, c.want) || !strings.HasSuffix(d.said, "apt-get install no-such-server") {
			t.Errorf("with %s=%q it says %q", daemon.Required, c.required, d.said)
		}
	}
}

func TestTheNewestOfSeveralIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"14", "15"} {
		if err := os.Mkdir(filepath.Join(dir, v), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := daemon.Find(t, "install it", "no-such-server", filepath.Join(dir, "*")), filepath.Join(dir, "15"); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

// failing is a test that may fail without failing the one it stands in.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatal(args ...any) {
	f.said = "fatal: " + fmt.Sprint(args...)
	panic(f)
}
func (f *failing) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }
func (f *failing) Skipf(format string, args ...any) {
	f.said = "skip: " + fmt.Sprintf(format, args...)
	panic(f)
}
