package linearizability_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/linearizability"
)

// ticks is a clock that moves by one nanosecond whenever it is read.
func ticks() func() time.Duration {
	var now time.Duration
	return func() time.Duration { now++; return now }
}

func record(t *testing.T, w *bytes.Buffer, now func() time.Duration) *linearizability.Recorder {
	t.Helper()
	r, err := linearizability.NewRecorder(w, linearizability.DefaultMeta(), now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecorderWritesAHistory(t *testing.T) {
	var b bytes.Buffer
	r := record(t, &b, ticks())
	value := linearizability.Field{Name: "value", Value: linearizability.Int(3)}
	first := r.Invoke("write", value)
	second := r.Invoke("read")
	first.OK()
	first.Fail("late") // of an operation that has ended: counts for nothing
	third := r.Invoke("cas")
	first.OK()
	second.Info()
	r.Fault("kill", linearizability.Field{Name: "node", Value: linearizability.String("n1")})
	fourth := r.Invoke("read")
	third.Fail("mismatch")
	fourth.OK(value)
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `{"meta":{"version":1,"drift":0,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
{"index":0,"time":1,"process":0,"type":"invoke","f":"write","value":3}
{"index":1,"time":2,"process":1,"type":"invoke","f":"read"}
{"index":2,"time":3,"process":0,"type":"ok","f":"write"}
{"index":3,"time":4,"process":0,"type":"invoke","f":"cas"}
{"index":4,"time":5,"process":1,"type":"info","f":"read"}
{"index":5,"time":6,"type":"info","f":"kill","node":"n1"}
{"index":6,"time":7,"process":2,"type":"invoke","f":"read"}
{"index":7,"time":8,"process":0,"type":"fail","f":"cas","error":"mismatch"}
{"index":8,"time":9,"process":2,"type":"ok","f":"read","value":3}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if _, err := linearizability.Read(&b, "h"); err != nil {
		t.Error(err)
	}
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	var b bytes.Buffer
	r := record(t, &b, ticks())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				c := r.Invoke("read")
				if i%10 == 0 {
					c.Info()
				} else {
					c.OK()
				}
			}
		})
	}
	wg.Wait()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := linearizability.Read(&b, "h")
	if err != nil || len(h.Ops()) != 800 {
		t.Errorf("%d operations, %v, want 800", len(h.Ops()), err)
	}
}

// flaky is a writer that takes so many writes, and of the next a part.
type flaky struct {
	bytes.Buffer
	left int
}

var errFull = errors.New("disk is full")

func (w *flaky) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		n, _ := w.Buffer.Write(p[:min(5, len(p))])
		return n, errFull
	}
	return w.Buffer.Write(p)
}

func TestRecorderReportsWhatItCouldNotWrite(t *testing.T) {
	if _, err := linearizability.NewRecorder(&flaky{}, linearizability.DefaultMeta(), ticks()); !errors.Is(err, errFull) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	w := &flaky{left: 2}
	r, err := linearizability.NewRecorder(w, linearizability.DefaultMeta(), ticks())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Invoke("read")
	if err := r.Flush(); err != nil {
		t.Errorf("the first event was written: %v", err)
	}
	c.OK()
	if err := r.Flush(); !errors.Is(err, errFull) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	// There is room again, but it would be in the middle of a line.
	w.left = 10
	r.Invoke("write").OK()
	if err := r.Flush(); !errors.Is(err, errFull) {
		t.Errorf("got %v, want that the disk was full", err)
	}
	if lines := strings.Split(w.String(), "\n"); len(lines) != 3 || lines[2] != `{"ind` {
		t.Errorf("got %q, want the meta, an event, and the beginning of another", lines)
	}
}

// gate is a writer that waits to be let through.
type gate struct {
	bytes.Buffer
	open chan struct{}
}

func (w *gate) Write(p []byte) (int, error) {
	<-w.open
	return w.Buffer.Write(p)
}

// TestRecorderWaitsForASlowWriter: what is in line stays bounded, nothing is
// lost, and recording goes on once the writer does.
func TestRecorderWaitsForASlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &gate{open: make(chan struct{}, 1)}
		w.open <- struct{}{} // for the meta
		r, err := linearizability.NewRecorder(w, linearizability.DefaultMeta(), ticks())
		if err != nil {
			t.Fatal(err)
		}
		value := linearizability.Field{Name: "value", Value: linearizability.String(strings.Repeat("x", 1000))}
		recorded := 0
		go func() {
			for range 5000 {
				r.Invoke("write", value).OK()
				recorded++
			}
		}()
		synctest.Wait()
		if recorded < 800 || recorded > 2000 {
			t.Errorf("%d operations of 1000 bytes are in line, want one megabyte to two", recorded)
		}
		close(w.open)
		synctest.Wait()
		if err := r.Flush(); err != nil || recorded != 5000 {
			t.Errorf("%d operations, %v, want 5000", recorded, err)
		}
		if n := bytes.Count(w.Bytes(), []byte("\n")); n != 10_001 {
			t.Errorf("%d lines, want 10001", n)
		}
	})
}

// TestAKilledProcessLeavesABeginning: all that was flushed before is there, and
// no line but the last is torn.
func TestAKilledProcessLeavesABeginning(t *testing.T) {
	const env = "FENCEPOST_TEST_RECORD_AND_DIE"
	if path := os.Getenv(env); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := linearizability.NewRecorder(f, linearizability.DefaultMeta(), ticks())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20_000 {
			r.Invoke("write", linearizability.Field{Name: "value", Value: linearizability.Int(int64(i))}).OK()
			if i == 1000 {
				if err := r.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		self.Kill()
		select {}
	}
	path := filepath.Join(t.TempDir(), "h.jsonl")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"="+path)
	if err := cmd.Run(); err == nil || cmd.ProcessState.Success() {
		t.Fatal("the process was not killed")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	h, err := linearizability.Read(bytes.NewReader(whole), "h")
	if err != nil || len(h.Ops()) < 1001 {
		t.Errorf("%d operations, %v, want what was flushed at least", len(h.Ops()), err)
	}
}

func TestRecorderRefusesAClockThatStepsBack(t *testing.T) {
	var b bytes.Buffer
	now := 9 * time.Second
	r := record(t, &b, func() time.Duration { now -= time.Second; return now })
	r.Invoke("read").OK()
	if err := r.Flush(); err == nil || !strings.Contains(err.Error(), "stepped back from 8s to 7s") {
		t.Errorf("got %v, want that the clock stepped back", err)
	}
}

func TestRecorderRefusesWhatCannotBeReadBack(t *testing.T) {
	text := func(name, s string) linearizability.Field {
		return linearizability.Field{Name: name, Value: linearizability.String(s)}
	}
	for _, c := range []struct {
		f      string
		fields []linearizability.Field
		want   string
	}{
		{"write", []linearizability.Field{text("value", strings.Repeat("x", linearizability.MaxEventBytes))}, "longer than"},
		{"", nil, "f: want the name"},
		{":write", nil, "f: want the name"},
		{"write", []linearizability.Field{text("token", "7")}, "token: want a fencing token"},
		{"write", []linearizability.Field{text("k", "a"), text("k", "b")}, "k: appears twice"},
		{"write", []linearizability.Field{text("type", "ok")}, "type: is the recorder's own"},
	} {
		var b bytes.Buffer
		r := record(t, &b, ticks())
		r.Invoke(c.f, c.fields...).OK()
		if err := r.Flush(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.f, err, c.want)
		}
	}
}
