package linearizability_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
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
	h, err := linearizability.Read(&b, "h")
	if err != nil || len(h.Ops()) != 800 {
		t.Errorf("%d operations, %v, want 800", len(h.Ops()), err)
	}
}

type brokenWriter struct{ left int }

var errFull = errors.New("disk is full")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestRecorderReportsWhatItCouldNotWrite(t *testing.T) {
	if _, err := linearizability.NewRecorder(&brokenWriter{}, linearizability.DefaultMeta(), ticks()); !errors.Is(err, errFull) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	r, err := linearizability.NewRecorder(&brokenWriter{left: 2}, linearizability.DefaultMeta(), ticks())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Invoke("read")
	if err := r.Flush(); err != nil {
		t.Errorf("the first event was written: %v", err)
	}
	c.OK()
	if err := r.Flush(); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "event 1") {
		t.Errorf("got %v, want that event 1 was not written", err)
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
