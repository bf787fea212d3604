package linearizability

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Recorder writes down what live code observes, as JSON lines: one Write for
// each event, so that a crash loses nothing but the event being written. Its
// clock stamps the events in the order in which they are written, which makes
// that order real. It is safe for concurrent use.
type Recorder struct {
	now func() time.Duration

	mu      sync.Mutex
	w       io.Writer
	buf     []byte
	index   int64
	last    int64
	process int64
	idle    []int64
	open    map[int64]recorded // by process
	err     error
}

// NewRecorder begins a history. The clock is read for each event and must not
// step back: a monotonic clock of the one host that records. Histories of
// several recorders can be merged by time into one, whose Meta.Eps is the error
// of their clocks against each other.
func NewRecorder(w io.Writer, meta Meta, now func() time.Duration) (*Recorder, error) {
	r := &Recorder{now: now, w: w, open: make(map[int64]recorded)}
	r.buf = append(meta.appendJSON(r.buf), '\n')
	if _, err := w.Write(r.buf); err != nil {
		return nil, fmt.Errorf("recorder: begin the history: %w", err)
	}
	return r, nil
}

// Err returns the first error of a write, or of a clock that stepped back. What
// comes after it is not recorded.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Invoke records that an operation is called, by a process that has none under
// way. Call it before the operation begins, and one method of the Call after it
// returned.
func (r *Recorder) Invoke(f string, fields ...Field) Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.process
	if n := len(r.idle); n > 0 {
		p, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		r.process++
	}
	c := Call{r: r, process: p, index: r.index}
	r.open[p] = recorded{f, c.index}
	r.write(Event{Process: p, Type: Invoke, F: f, Fields: fields})
	return c
}

// recorded is a call under way.
type recorded struct {
	f     string
	index int64
}

// Fault records that something happened to the system under test.
func (r *Recorder) Fault(name string, fields ...Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(Event{Process: NoProcess, Type: Info, F: name, Fields: fields})
}

// write stamps and writes an event.
func (r *Recorder) write(e Event) {
	e.Index = r.index
	r.index++
	if r.err != nil {
		return
	}
	if err := recordable(&e); err != nil {
		r.err = fmt.Errorf("recorder: event %d cannot be read back: %w", e.Index, err)
		return
	}
	at := r.now().Nanoseconds()
	if at < r.last {
		r.err = fmt.Errorf("recorder: the clock stepped back from %v to %v: give it a monotonic one", time.Duration(r.last), time.Duration(at))
		return
	}
	e.Time, r.last = at, at
	r.buf = append(e.appendJSON(r.buf[:0]), '\n')
	if len(r.buf) > MaxEventBytes {
		r.err = fmt.Errorf("recorder: event %d, %s, is longer than the %d bytes that can be read back", e.Index, quote(e.F), MaxEventBytes)
		return
	}
	if _, err := r.w.Write(r.buf); err != nil {
		r.err = fmt.Errorf("recorder: write event %d: %w", e.Index, err)
	}
}

// recordable reports what a reader would refuse of the content of an event.
func recordable(e *Event) error {
	if !isOperation(e.F) {
		return badField("f", "want the name of an operation, not %s", quote(e.F))
	}
	if name, ok := repeated(e.Fields); ok {
		return badField(name, "appears twice")
	}
	for _, f := range e.Fields {
		switch f.Name {
		case "index", "time", "process", "type", "f":
			return badField(f.Name, "is the recorder's own")
		}
		if err := checkField(f); err != nil {
			return err
		}
	}
	return nil
}

// Call is an operation under way. Only the first of its methods counts.
type Call struct {
	r       *Recorder
	process int64
	index   int64
}

// OK records that the operation returned and took effect.
func (c Call) OK(fields ...Field) { c.end(OK, fields) }

// Fail records that it returned and certainly had no effect, with the word that
// says why, such as held or not-sent.
func (c Call) Fail(why string, fields ...Field) {
	c.end(Fail, append([]Field{{"error", Keyword(why)}}, fields...))
}

// Info records that nobody knows its outcome, as when a context ended: it may
// yet take effect. Its process calls no more.
func (c Call) Info(fields ...Field) { c.end(Info, fields) }

func (c Call) end(t Type, fields []Field) {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	op, open := r.open[c.process]
	if !open || op.index != c.index {
		return
	}
	delete(r.open, c.process)
	r.write(Event{Process: c.process, Type: t, F: op.f, Fields: fields})
	if t != Info {
		r.idle = append(r.idle, c.process)
	}
}
