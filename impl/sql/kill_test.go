package leasesql_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	leasesql "fencepost/impl/sql"
	"fencepost/linearizability"
)

// victim is a candidate as the test sees it.
type victim struct {
	node  string
	cmd   *exec.Cmd
	stdin io.Closer
	said  bytes.Buffer // whole once ended is closed
	ended chan struct{}
	spoke atomic.Bool // it has asked for the lease
}

// run is one database, its candidates, and what they have said.
type run struct {
	t      *testing.T
	s      server
	flaw   string
	j      *journal
	living []*victim
	all    []*victim
	kv     func(*leasesql.Store) fence.KV // how late writes go
}

func (r *run) start() {
	v := &victim{node: fmt.Sprintf("n%d", len(r.all)+1), ended: make(chan struct{})}
	r.j.mu.Lock()
	first := max(1, len(r.j.acks)-100)
	r.j.mu.Unlock()
	text, err := json.Marshal(orders{r.s.driver, r.s.dsn, v.node, uint64(len(r.all) + 1), first, r.flaw})
	if err != nil {
		r.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	v.cmd = exec.Command(exe)
	v.cmd.Env = append(os.Environ(), candidateEnv+"="+string(text))
	v.cmd.Stderr = os.Stderr
	out, err1 := v.cmd.StdoutPipe()
	in, err2 := v.cmd.StdinPipe()
	if err := errors.Join(err1, err2, v.cmd.Start()); err != nil {
		r.t.Fatal(err)
	}
	v.stdin = in
	go func() {
		defer close(v.ended)
		v.listen(out, r.j)
		v.cmd.Wait()
	}()
	r.living, r.all = append(r.living, v), append(r.all, v)
}

// listen takes in what the candidate says until it is dead.
func (v *victim) listen(out io.Reader, j *journal) {
	calls := make(map[int64]said)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		v.said.Write(line)
		if err != nil {
			return
		}
		var e said
		if json.Unmarshal(line, &e) != nil || e.Process == nil {
			continue // the first line; whether all can be read is seen at the end
		}
		v.spoke.Store(true)
		if e.Type == "invoke" {
			calls[*e.Process] = e
			continue
		}
		j.heard(v, calls[*e.Process], e)
	}
}

// kill ends candidates with SIGKILL, and waits for their end.
func (r *run) kill(victims ...*victim) {
	for _, v := range victims {
		v.cmd.Process.Kill()
	}
	for _, v := range victims {
		<-v.ended
		for i := range r.living {
			if r.living[i] == v {
				r.living = append(r.living[:i:i], r.living[i+1:]...)
				break
			}
		}
	}
}

// killServer ends PostgreSQL with SIGKILL, and the processes that it has
// started, each of which leads a group of its own.
func (r *run) killServer() {
	pid := r.s.daemon.Pid()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	r.s.daemon.Signal(syscall.SIGKILL)
	for _, child := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(child); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	r.s.daemon.Kill()
}

// startServer tries again while what is left of the server before is in the way.
func (r *run) startServer() error {
	var err error
	for range 5 {
		if err = r.s.daemon.Start(r.t.Context()); err == nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return err
}

// answered asks until there is an answer: an error that is no refusal is none. The
// connections of a pool whose server was killed give one each.
func answered(ask func() error) error {
	for from := clock.Boot().Now(); ; time.Sleep(10 * time.Millisecond) {
		err := ask()
		if err == nil || errors.Is(err, lease.ErrStale) || clock.Boot().Now()-from > patience {
			return err
		}
	}
}

// What a round kills: the leader, or also others.
type kills struct {
	leader, standby, server bool
}

const patience = 30 * time.Second

// round lets a leader write, kills, and sees that somebody writes on.
func (r *run) round(rng *rand.Rand, what kills, candidates int, verify func(ack) error) error {
	for len(r.living) < candidates {
		r.start()
	}
	began := clock.Boot().Now()
	before, err := r.j.await(patience, "write before the kill", func(acks []ack) (ack, bool) {
		for _, v := range r.living {
			if !v.spoke.Load() { // nobody is killed before it has begun
				return ack{}, false
			}
		}
		if len(acks) == 0 || acks[len(acks)-1].at < began {
			return ack{}, false
		}
		return acks[len(acks)-1], true
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(rng.IntN(60_000)) * time.Microsecond) // into the middle of whatever is going on
	var victims []*victim
	for _, v := range r.living {
		if v == before.by && what.leader || v != before.by && what.standby {
			victims = append(victims, v)
		}
	}
	if what.server && rng.IntN(2) == 0 {
		r.killServer()
		r.kill(victims...)
	} else {
		r.kill(victims...)
		if what.server {
			r.killServer()
		}
	}
	killed := clock.Boot().Now()
	if what.server {
		if err := r.startServer(); err != nil {
			return err
		}
	}
	for len(r.living) < candidates {
		r.start()
	}
	after, err := r.j.await(patience, "write after the kill", func(acks []ack) (ack, bool) {
		for i := len(acks) - 1; i >= 0 && acks[i].at > killed; i-- {
			if acks[i].by != before.by || !what.leader {
				return acks[i], true
			}
		}
		return ack{}, false
	})
	if err != nil {
		return err
	}
	if what.leader && after.token <= before.token {
		return fmt.Errorf("writes landed under token %d, and after the kill under %d", before.token, after.token)
	}
	if after.token > before.token {
		return verify(before)
	}
	return nil
}

// killing makes rounds of kills, and gives the first thing that is wrong.
func (r *run) killing(rounds, candidates int, seed uint64, what kills) (report string, err error) {
	r.j = newJournal()
	defer func() { r.kill(r.living...) }()
	rng := rand.New(rand.NewPCG(seed, 6))
	db := r.s.created(r.t)
	if r.flaw == unloggedTable {
		if _, err := db.ExecContext(r.t.Context(), `ALTER TABLE fencepost_lease SET UNLOGGED`); err != nil {
			return "", err
		}
	}
	store, err := leasesql.New(db, r.s.dialect, leasesql.Options{})
	if err != nil {
		return "", err
	}
	kv := fence.KV(store.KV(killResource))
	late := kv
	if r.kv != nil {
		late = r.kv(store)
	}
	read := func(n int) (value string, ok bool, err error) {
		err = answered(func() (err error) {
			value, ok, err = kv.Read(r.t.Context(), strconv.Itoa(n))
			return err
		})
		return value, ok, err
	}
	seen, refused := 0, 0
	for i := range rounds {
		err := r.round(rng, what, candidates, func(a ack) error {
			refused++
			err := answered(func() error { return late.Write(r.t.Context(), a.token, fmt.Sprint("late ", i), "late") })
			if !errors.Is(err, lease.ErrStale) {
				return fmt.Errorf("a late write under token %d was not refused: %v", a.token, err)
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("round %d, seed %d: %w", i+1, seed, err)
		}
		r.j.mu.Lock()
		fresh := r.j.acks[seen:len(r.j.acks):len(r.j.acks)]
		seen = len(r.j.acks)
		r.j.mu.Unlock()
		for _, a := range fresh {
			if value, ok, err := read(a.n); err != nil || !ok || value != a.value {
				return "", fmt.Errorf("round %d, seed %d: write %d (%q) was acknowledged, and there is %q (%t, %v)", i+1, seed, a.n, a.value, value, ok, err)
			}
		}
	}
	r.kill(r.living...)
	if r.j.fault != nil {
		return "", r.j.fault
	}
	numbers, err := numberedAgainst(r.j.acks, read)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	least := linearizability.Activity{Writes: rounds}
	if what.leader {
		least.Takeovers = rounds
	}
	v, err := judged(ctx, r.all, least)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d kills: %d tokens up to %d, %d writes acknowledged of %d that landed, %d late ones refused; %v",
		rounds, len(r.j.grants), r.j.last, len(r.j.acks), numbers, refused, v), nil
}

// unloggedTable is a flaw of the table, not of a candidate: PostgreSQL empties
// such tables after a crash.
const unloggedTable = "unlogged table"

func killRounds(t *testing.T, s server, what kills) {
	rounds := 5
	if os.Getenv("FENCEPOST_LONG") == "1" {
		rounds = 100
	}
	r := &run{t: t, s: s}
	report, err := r.killing(rounds, 2, 1, what)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(report)
}

// SQLite has no server: those that have the file open are all there is. Killed
// are the leader of two, its standby while it asks for the lease, and both.
func TestKilledOnSQLite(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]kills{
		"holder":  {leader: true},
		"standby": {standby: true},
		"both":    {leader: true, standby: true},
	} {
		t.Run(name, func(t *testing.T) { killRounds(t, file(t), what) })
	}
}

// Killed are the leader of two, the server with all its processes, and both.
func TestKilledOnPostgreSQL(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]kills{
		"holder": {leader: true},
		"server": {server: true},
		"both":   {leader: true, server: true},
	} {
		t.Run(name, func(t *testing.T) { killRounds(t, postgreSQL(t), what) })
	}
}

func TestWhatAKillLosesIsCaught(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open       func(testing.TB) server
		run        run
		candidates int
		what       kills
		caught     string
	}{
		"a counter in memory":  {file, run{flaw: counterInMemory}, 1, kills{leader: true}, "token 1 was granted to"},
		"a counter not logged": {postgreSQL, run{flaw: unloggedTable}, 2, kills{server: true}, "token 1 was granted to"},
		"writes behind":        {file, run{flaw: writesBehind}, 2, kills{leader: true}, "was acknowledged, and"},
		"a token for each key": {file, run{kv: unfenced}, 2, kills{leader: true}, "was not refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.run
			r.t, r.s = t, c.open(t)
			report, err := r.killing(5, c.candidates, 1, c.what)
			if err == nil || !strings.Contains(err.Error(), c.caught) {
				t.Errorf("want an error with %q; got %v %s", c.caught, err, report)
			}
		})
	}
}

// unfenced takes any token: it guards what nobody has fenced.
func unfenced(store *leasesql.Store) fence.KV { return store.KV("something else") }
