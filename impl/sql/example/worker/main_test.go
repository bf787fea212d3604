package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary a worker too.
func TestMain(m *testing.M) {
	if os.Getenv("WORKER_TEST") == "1" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type process struct {
	cmd   *exec.Cmd
	lines chan string // closed when it has ended
}

func start(t *testing.T, args ...string) process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := process{exec.CommandContext(t.Context(), exe, args...), make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), "WORKER_TEST=1")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-read
		p.cmd.Wait()
	})
	return p
}

// await reads until a line has what is wanted.
func (p process) await(t *testing.T, want string, within time.Duration) {
	t.Helper()
	timeout := time.After(within)
	var seen []string
	for {
		select {
		case line, ok := <-p.lines:
			seen = append(seen, line)
			if strings.Contains(line, want) {
				return
			}
			if !ok {
				t.Fatalf("it ended without %q:\n%s", want, strings.Join(seen, "\n"))
			}
		case <-timeout:
			t.Fatalf("no %q within %v:\n%s", want, within, strings.Join(seen, "\n"))
		}
	}
}

// slack is for a machine that is busy; the bound itself is 2.2 s at this TTL.
const (
	ttl   = "2s"
	bound = 2200 * time.Millisecond
	slack = 5 * time.Second
)

func TestTheOtherTakesOverFromOneThatIsKilled(t *testing.T) {
	db := filepath.Join(t.TempDir(), "jobs.db")
	a := start(t, "-db", db, "-name", "a", "-ttl", ttl)
	a.await(t, "takes over within 2.2", slack)
	a.await(t, "wrote job 1 under token 1", slack)
	b := start(t, "-db", db, "-name", "b", "-ttl", ttl)
	b.await(t, "waiting to lead", slack)
	a.cmd.Process.Kill()
	b.await(t, "leading under token 2", bound+slack)
	b.await(t, "under token 2", slack)
}

func TestALateWriteIsRefused(t *testing.T) {
	db := filepath.Join(t.TempDir(), "jobs.db")
	a := start(t, "-db", db, "-name", "a", "-ttl", ttl, "-freeze", "8s")
	a.await(t, "standing still", slack)
	b := start(t, "-db", db, "-name", "b", "-ttl", ttl)
	b.await(t, "leading under token 2", bound+slack)
	b.await(t, "wrote job", slack)
	a.await(t, "write refused: token 1 is stale: the storage has seen 2", 8*time.Second+slack)
}
