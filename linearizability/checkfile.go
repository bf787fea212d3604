package linearizability

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
)

// inMemory is how many events of a file CheckFile holds before it gives up
// holding them all.
const inMemory = 200_000

// CheckFile checks the history in a file. One that is long is checked as it is
// read, and its events are not kept: what the checks need of 1,000,000
// operations takes some hundred megabytes. What a report shows is then read from
// the file again, so the file must not change before the last use of the verdict.
func CheckFile(ctx context.Context, path string, o Options) (Verdict, error) {
	return checkFile(ctx, path, o, inMemory)
}

// checkFile holds so many events.
func checkFile(ctx context.Context, path string, o Options, hold int) (Verdict, error) {
	f, err := os.Open(path)
	if err != nil {
		return Verdict{}, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	s, err := o.Reader.Open(f, path)
	if err != nil {
		return Verdict{}, err
	}
	h := History{Name: path, Meta: s.Meta()}
	v := Verdict{File: path, source: &fileSource{path, o.Reader}}
	var c *collator
	events := 0
	for e, err := range s.Events() {
		if err != nil {
			return Verdict{}, err
		}
		if events++; events%4096 == 0 && ctx.Err() != nil {
			return Verdict{}, fmt.Errorf("%s: no time to read beyond line %d: %w", path, e.Line, context.Cause(ctx))
		}
		if c != nil {
			if err := c.take(e); err != nil {
				return Verdict{}, err
			}
			continue
		}
		if h.Events = append(h.Events, *e.clone()); len(h.Events) != hold {
			continue
		}
		if err := v.choose(&h, &o); err != nil {
			return Verdict{}, err
		}
		if !streams(&h, o) {
			continue
		}
		if c, err = newCollator(&h, o, s.expect(f, hold)); err != nil {
			return Verdict{}, err
		}
		h.Events = nil
	}
	h.Meta, h.Notes = s.Meta(), s.Notes()
	if c == nil {
		chosen := v.Chosen
		v, err := Check(ctx, h, o)
		v.Chosen = cmp.Or(v.Chosen, chosen)
		return v, err
	}
	d, err := c.end()
	if err != nil {
		return Verdict{}, err
	}
	v.Notes = h.Notes
	return v, v.decide(ctx, d, nil)
}

// streams reports whether a history can be checked as it is read. Where time
// stamps have an error, the order of the events is known only at the end; and
// foreign vocabularies are translated as a whole.
func streams(h *History, o Options) bool {
	return h.Meta.Eps == 0 && !(o.Model.Name == ModelLease && isJepsenLock(h)) && !(o.Model.Name == ModelFencepost && isQueenLease(h))
}

// collator makes operations of events as they come, and digests them.
type collator struct {
	digest *digest
	open   map[int64]*operation
	idle   []*operation // whose events may be written over
}

// expect is about how many events a file has, of which so many have been read.
// What grows by itself would take twice the memory on its way there.
func (s *Stream) expect(f *os.File, events int) int {
	info, err := f.Stat()
	read := s.maxBytes - s.src.left
	if err != nil || !info.Mode().IsRegular() || read <= 0 {
		return events
	}
	return int(float64(events) * float64(info.Size()) / float64(read))
}

// newCollator begins with the events of h, of about so many.
func newCollator(h *History, o Options, events int) (*collator, error) {
	meta := h.Meta
	d, err := newDigest(h.Name, &meta, o)
	if err != nil {
		return nil, err
	}
	d.facts.all = make([]fact, 0, min(events, DefaultMaxEvents)/2+min(events, DefaultMaxEvents)/16)
	c := &collator{digest: d, open: make(map[int64]*operation)}
	for i := range h.Events {
		if err := c.take(&h.Events[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// take adds an event, which is valid only during the call.
func (c *collator) take(e *Event) error {
	pos := c.digest.events
	c.digest.events++
	switch {
	case e.Process == NoProcess:
		return c.digest.fault(e, pos)
	case e.Type == Invoke:
		o := &operation{invoked: new(Event)}
		if n := len(c.idle); n > 0 {
			o, c.idle = c.idle[n-1], c.idle[:n-1]
		}
		*o = operation{span: span{Op: Op{pos, -1, Info}, process: e.Process, call: int64(pos) + 1, ret: Unbounded}, invoked: o.invoked}
		fields := append(o.invoked.Fields[:0], e.Fields...)
		*o.invoked = *e
		o.invoked.Fields = fields
		c.open[e.Process] = o
		return nil
	}
	o := c.open[e.Process]
	delete(c.open, e.Process)
	c.idle = append(c.idle, o)
	o.ended, o.Return, o.Type = e, pos, e.Type
	if e.Type != Info {
		o.ret = int64(pos) + 1
	}
	return c.digest.add(o)
}

// end adds the operations that never returned.
func (c *collator) end() (*digest, error) {
	var open []*operation
	for _, o := range c.open {
		open = append(open, o)
	}
	slices.SortFunc(open, func(a, b *operation) int { return cmp.Compare(a.call, b.call) })
	for _, o := range open {
		if err := c.digest.add(o); err != nil {
			return nil, err
		}
	}
	return c.digest, c.digest.end()
}

// eventSource gives the events of a history again.
type eventSource interface {
	// events calls yield with each, in order, and its position. It is valid only
	// during the call. It ends early when yield returns false.
	events(yield func(pos int, e *Event) bool) error
}

func (h *History) events(yield func(pos int, e *Event) bool) error {
	for i := range h.Events {
		if !yield(i, &h.Events[i]) {
			break
		}
	}
	return nil
}

// fileSource reads them from the file.
type fileSource struct {
	path   string
	reader Reader
}

func (s *fileSource) events(yield func(pos int, e *Event) bool) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("history: read again: %w", err)
	}
	defer f.Close()
	stream, err := s.reader.Open(f, s.path)
	if err != nil {
		return err
	}
	pos := 0
	for e, err := range stream.Events() {
		if err != nil || !yield(pos, e) {
			return err
		}
		pos++
	}
	return nil
}
