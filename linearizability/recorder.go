package linearizability

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Recorder writes down what live code observes, as JSON lines. Its clock stamps
// the events in the order in which they are recorded, which makes that order
// real. It is safe for concurrent use, and adds less than a microsecond to an
// operation: events are put in line in memory, and a goroutine that lives while
// there are any writes them out, many at once where many are waiting.
//
// The writer only ever sees whole lines, in order. A process that is killed
// therefore leaves a beginning of its history, of which the last line may be
// torn, and loses what it recorded within the duration of a write, about: some
// microseconds to a page cache. What it leaves is still a history, and judged as
// one: nothing in it can have seen the effect of what was called only after its
// end. That is no longer so where other processes record on, and their histories
// are merged with it. There, Flush after Invoke has the call on record before the
// request leaves. A machine that loses power may lose what its file system had
// not put on the disk: calling Sync on the file is up to its owner.
//
// To add to a history that was begun before is to give it a second clock: every
// process begins a file of its own.
type Recorder struct {
	now func() time.Duration

	mu       sync.Mutex
	progress sync.Cond // something was written, or failed to be
	w        io.Writer
	buf      []byte // whole lines to be written
	spare    []byte // the buffer that was written last
	added    int64  // bytes ever put in line
	written  int64  // bytes of these that are out
	writing  bool   // a goroutine is writing them out
	index    int64
	last     int64
	process  int64
	idle     []int64
	open     map[int64]recorded // by process
	fields   []Field            // of the event being recorded
	err      error
}

// maxBacklog bounds, about, the bytes in line, besides as many being written.
// Where w is slower than what is recorded, recording waits for it.
const maxBacklog = 1 << 20

// NewRecorder begins a history. The clock is read for each event and must not
// step back: a monotonic clock of the one host that records. Histories of
// several recorders can be merged by time into one, whose Meta.Eps is the error
// of their clocks against each other. Call Flush when all is done.
func NewRecorder(w io.Writer, meta Meta, now func() time.Duration) (*Recorder, error) {
	r := &Recorder{now: now, w: w, open: make(map[int64]recorded)}
	r.progress.L = &r.mu
	if _, err := w.Write(append(meta.appendJSON(nil), '\n')); err != nil {
		return nil, fmt.Errorf("recorder: begin the history: %w", err)
	}
	return r, nil
}

// Flush returns once all that was recorded before is written, with the first
// error there was: of a write, of an event that could not be read back, or of a
// clock that stepped back. Nothing that comes after it is recorded.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for all := r.added; r.written < all && r.writing; {
		r.progress.Wait()
	}
	return r.err
}

// lock waits for the recorder, and while there is no room in line.
func (r *Recorder) lock() {
	r.mu.Lock()
	for len(r.buf) > maxBacklog && r.writing {
		r.progress.Wait()
	}
}

// drain writes out what is in line until nothing is.
func (r *Recorder) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.buf) > 0 {
		out := r.buf
		r.buf = r.spare[:0]
		r.mu.Unlock()
		_, err := r.w.Write(out)
		r.mu.Lock()
		r.spare = out
		r.written += int64(len(out))
		if err != nil {
			// What came out may end inside a line: nothing may follow.
			r.err = fmt.Errorf("recorder: write the history: %w", err)
			r.buf = nil
		}
		r.progress.Broadcast()
	}
	r.writing = false
	r.progress.Broadcast()
}

// Invoke records that an operation is called, by a process that has none under
// way. Call it before the operation begins, and one method of the Call after it
// returned.
func (r *Recorder) Invoke(f string, fields ...Field) Call {
	r.lock()
	defer r.mu.Unlock()
	p := r.process
	if n := len(r.idle); n > 0 {
		p, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		r.process++
	}
	c := Call{r: r, process: p, index: r.index}
	r.open[p] = recorded{f, c.index}
	r.write(p, Invoke, f, fields)
	return c
}

// recorded is a call under way.
type recorded struct {
	f     string
	index int64
}

// Fault records that something happened to the system under test.
func (r *Recorder) Fault(name string, fields ...Field) {
	r.lock()
	defer r.mu.Unlock()
	r.write(NoProcess, Info, name, fields)
}

// write stamps an event and puts it in line.
func (r *Recorder) write(p int64, t Type, f string, fields []Field) {
	index := r.index
	r.index++
	if r.err != nil {
		return
	}
	// A copy, so that the caller's fields can live on its stack.
	r.fields = append(r.fields[:0], fields...)
	e := Event{Index: index, Process: p, Type: t, F: f, Fields: r.fields}
	if err := recordable(&e); err != nil {
		r.err = fmt.Errorf("recorder: event %d cannot be read back: %w", index, err)
		return
	}
	e.Time = r.now().Nanoseconds()
	if e.Time < r.last {
		r.err = fmt.Errorf("recorder: the clock stepped back from %v to %v: give it a monotonic one", time.Duration(r.last), time.Duration(e.Time))
		return
	}
	r.last = e.Time
	before := len(r.buf)
	r.buf = append(e.appendJSON(r.buf), '\n')
	n := len(r.buf) - before
	if n > MaxEventBytes {
		r.buf = r.buf[:before]
		r.err = fmt.Errorf("recorder: event %d, %s, is longer than the %d bytes that can be read back", index, quote(f), MaxEventBytes)
		return
	}
	r.added += int64(n)
	if !r.writing {
		r.writing = true
		go r.drain()
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
	r.lock()
	defer r.mu.Unlock()
	op, open := r.open[c.process]
	if !open || op.index != c.index {
		return
	}
	delete(r.open, c.process)
	r.write(c.process, t, op.f, fields)
	if t != Info {
		r.idle = append(r.idle, c.process)
	}
}
