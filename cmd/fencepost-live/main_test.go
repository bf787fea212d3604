//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// TestMain makes the test binary the program itself, and the command that it
// runs.
func TestMain(m *testing.M) {
	if isGuard() {
		return
	}
	switch os.Getenv("FENCEPOST_LIVE_TEST") {
	case "program":
		// The command that it runs is the test binary too.
		os.Setenv("FENCEPOST_LIVE_TEST", "command")
		main()
	case "command":
		command(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command says that it lives, in a file that it shares with others, until it is
// told to stop; "deaf" does not listen.
func command(args []string) {
	file, name := args[0], args[1]
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	clk := clock.Boot()
	say := func(what string) {
		fmt.Fprintf(f, "%d %s %s %s\n", clk.Now(), name, os.Getenv("FENCEPOST_TOKEN"), what)
	}
	say("starts")
	ticker := time.NewTicker(5 * time.Millisecond)
	for {
		select {
		case <-told:
			if len(args) < 3 || args[2] != "deaf" {
				say("stops")
				return
			}
			say("hears")
		case <-ticker.C:
			say("lives")
		}
	}
}

// line is what a command said.
type line struct {
	at    time.Duration
	name  string
	token string
	what  string
}

func lines(t *testing.T, file string) (all []line) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(text)) {
		f := strings.Fields(text)
		if len(f) != 4 {
			continue // one that died in the middle
		}
		at, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line{time.Duration(at), f[1], f[2], f[3]})
	}
	return all
}

// await returns once somebody has said what under name ("" is anybody) and a
// token that is not not.
func await(t *testing.T, file, name, what, not string) line {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		for _, l := range lines(t, file) {
			if (name == "" || l.name == name) && l.what == what && l.token != not {
				return l
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nobody %q %s under another token than %q; said: %+v", name, what, not, lines(t, file))
	return line{}
}

// program is a process of fencepost-live.
func program(t *testing.T, out *output, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "FENCEPOST_LIVE_TEST=program")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// output may be written to by several.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// alone checks that no two commands ever lived at once.
func alone(t *testing.T, file string) {
	t.Helper()
	all := lines(t, file)
	slices.SortStableFunc(all, func(a, b line) int { return int(a.at - b.at) })
	last := map[string]time.Duration{}
	for _, l := range all {
		last[l.token] = l.at
	}
	for i, l := range all {
		for _, before := range all[:i] {
			if before.token != l.token && last[before.token] > l.at {
				t.Fatalf("the command under token %s goes on beside that under %s: %+v", before.token, l.token, l)
			}
		}
	}
}

func elect(dir, name string, more ...string) []string {
	return append([]string{"elect", "--backend", "sqlite://" + filepath.Join(dir, "leases.db"), "--resource", "job",
		"--ttl", "1s", "--margin", "100ms", "--node", name}, more...)
}

func TestACommandRunsOnlyOnceAtATime(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out output
	start := func(name string) *exec.Cmd {
		return program(t, &out, elect(dir, name, "--", exe, said, name)...)
	}
	running := map[string]*exec.Cmd{"a": start("a"), "b": start("b")}
	token := ""
	for round := range 6 {
		l := await(t, said, "", "starts", token)
		for _, later := range lines(t, said) { // the latest one
			if later.what == "starts" {
				l = later
			}
		}
		token = l.token
		leader := running[l.name]
		if round%2 == 0 {
			leader.Process.Kill() // kill -9: the command dies with it
		} else {
			leader.Process.Signal(syscall.SIGTERM)
		}
		err := leader.Wait()
		if round%2 == 1 && err != nil {
			t.Errorf("told to stop, it ended with %v", err)
		}
		running[l.name] = start(l.name)
		for again := false; !again; {
			for _, next := range lines(t, said) {
				n, err1 := strconv.Atoi(next.token)
				was, err2 := strconv.Atoi(token)
				again = again || err1 == nil && err2 == nil && n > was
			}
			time.Sleep(10 * time.Millisecond)
			if t.Context().Err() != nil {
				t.Fatal(out.String())
			}
		}
	}
	alone(t, said)
	if t.Failed() {
		t.Log(out.String())
	}
}

// The store does not answer any more: the command is told to stop while its
// term runs, and is dead when it ends.
func TestACommandIsDeadByTheDeadlineWhileTheStoreHangs(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out output
	cmd := program(t, &out, elect(dir, "a", "--grace", "300ms", "--", exe, said, "a", "deaf")...)
	await(t, said, "a", "starts", "")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "leases.db")+"?_txlock=exclusive&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil) // nobody else gets at the file
	if err != nil {
		t.Fatal(err)
	}
	hung := clock.Boot().Now()
	heard := await(t, said, "a", "hears", "")
	// The last renewal was sent before the store hung: the term ends within a window of
	// 1s - 10ms - 100ms of that.
	end := hung + 890*time.Millisecond
	for clock.Boot().Now() < end+300*time.Millisecond {
		time.Sleep(10 * time.Millisecond)
	}
	all := lines(t, said)
	if last := all[len(all)-1]; last.at > end {
		t.Errorf("it lives %v after its term has ended", last.at-end)
	} else if heard.at >= last.at {
		t.Errorf("it was told to stop at %v, and lived until %v", heard.at, last.at)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	await(t, said, "a", "starts", "1") // and campaigns again
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	alone(t, said)
}

// A wrapper that forks: its child dies too.
func TestWhatTheCommandHasStartedDiesWithTheProgram(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out output
	cmd := program(t, &out, elect(dir, "a", "--", "sh", "-c", exe+" "+said+" a deaf & wait")...)
	await(t, said, "a", "starts", "")
	cmd.Process.Kill()
	cmd.Wait()
	program(t, &out, elect(dir, "b", "--", exe, said, "b")...)
	await(t, said, "b", "starts", "")
	time.Sleep(200 * time.Millisecond)
	alone(t, said)
}

// Nobody reads what the program logs: its command is dead by the deadline all the
// same.
func TestALogThatNobodyReadsKeepsNoCommandAlive(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for err == nil { // until it is full
		_, err = w.Write(make([]byte, 4096))
	}
	a := exec.Command(exe, elect(dir, "a", "--", exe, said, "a", "deaf")...)
	a.Env, a.Stderr = append(os.Environ(), "FENCEPOST_LIVE_TEST=program"), w
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	defer a.Wait()
	defer a.Process.Kill()
	await(t, said, "a", "starts", "")
	// The first line that a logs keeps its elector from renewing, too.
	var out output
	program(t, &out, elect(dir, "b", "--", exe, said, "b")...)
	await(t, said, "b", "starts", "")
	time.Sleep(200 * time.Millisecond)
	alone(t, said)
}

// inProcess runs the program to its end.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err output
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	dir := t.TempDir()
	for want, script := range map[int]string{0: "true", 7: "exit 7", 128 + 15: "kill -TERM $$"} {
		if code, _, stderr := inProcess(t, elect(dir, "a", "--", "sh", "-c", script)...); code != want {
			t.Errorf("%q: exit code %d, want %d\n%s", script, code, want, stderr)
		}
	}
}

func TestTheCommandIsToldWhatItLeadsUnder(t *testing.T) {
	dir := t.TempDir()
	clk := clock.Boot()
	before := clk.Now()
	code, stdout, stderr := inProcess(t, elect(dir, "a", "--", "sh", "-c",
		`echo "$FENCEPOST_RESOURCE $FENCEPOST_TOKEN ${FENCEPOST_HOLDER%%#*} $FENCEPOST_DEADLINE $(cat $FENCEPOST_DEADLINE_FILE)"`)...)
	f := strings.Fields(stdout)
	if code != 0 || len(f) != 5 || f[0] != "job" || f[1] != "1" || f[2] != "a" || f[3] != f[4] {
		t.Fatalf("exit code %d, %q\n%s", code, stdout, stderr)
	}
	deadline, err := strconv.ParseInt(f[3], 10, 64)
	if d := time.Duration(deadline); err != nil || d <= before || d > clk.Now()+890*time.Millisecond {
		t.Errorf("the deadline is %q, asked between %v and %v", f[3], before, clk.Now())
	}
}

func TestLeaderSaysWhoLeads(t *testing.T) {
	dir := t.TempDir()
	ask := []string{"leader", "--backend", "sqlite://" + filepath.Join(dir, "leases.db"), "--resource", "job", "--json"}
	if code, stdout, _ := inProcess(t, ask...); code != 1 || stdout != `{"resource":"job","holder":"","token":0}`+"\n" {
		t.Errorf("before anybody led: exit code %d, %s", code, stdout)
	}
	said := filepath.Join(dir, "said")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out output
	program(t, &out, elect(dir, "a", "--", exe, said, "a")...)
	await(t, said, "a", "starts", "")
	if code, stdout, _ := inProcess(t, ask...); code != 0 || !strings.HasPrefix(stdout, `{"resource":"job","holder":"a#1.`) || !strings.Contains(stdout, `"token":1`) {
		t.Errorf("while a leads: exit code %d, %s", code, stdout)
	}
}

func TestWhatMakesNoSenseIsSaid(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"elect", "--resource", "r", "--", "true"}, "--backend"},
		{[]string{"elect", "--backend", "mongodb://x", "--resource", "r", "--", "true"}, `scheme "mongodb" is none of etcd, kubernetes, mariadb`},
		{[]string{"elect", "--backend", "sqlite://relative.db", "--resource", "r", "--", "true"}, "sqlite:///absolute/path"},
		{[]string{"elect", "--backend", "sqlite:///x.db?mode=ro", "--resource", "r", "--", "true"}, `parameter "mode"`},
		{[]string{"elect", "--backend", "etcd:///prefix", "--resource", "r", "--", "true"}, "name the servers"},
		{[]string{"elect", "--backend", "mysql://u:secret@h", "--resource", "r", "--", "true"}, "name a database"},
		{elect(dir, "a#b", "--", "true"), "a candidate needs a node name without '#'"},
		{elect(dir, "a", "--grace", "700ms", "--", "true"), "--grace 700ms is not between 0 and"},
		{elect(dir, "a", "--max-drift", "1", "--", "true"), "MaxDriftRate"},
		{elect(dir, "a", "--", filepath.Join(dir, "no-such-command")), "no-such-command"},
	} {
		code, stdout, stderr := inProcess(t, c.args...)
		if code != exitFailed || !strings.Contains(stderr, c.says) || stdout != "" {
			t.Errorf("%q: exit code %d, want %d, and %q in\n%s", c.args, code, exitFailed, c.says, stderr)
		}
		if strings.Contains(stderr, "secret") {
			t.Errorf("%q: the password is shown: %s", c.args, stderr)
		}
	}
}
