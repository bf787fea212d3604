package linearizability

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// Writer writes histories. Its zero value writes fencepost's own JSON lines.
type Writer struct {
	Format Format // FormatUnknown: FormatJSONLines

	// Independent writes the fields key and value of an operation as one value,
	// the tuple [key value] of jepsen.independent. A return that does not repeat
	// its key gets that of its call; a missing value becomes nil.
	Independent bool
}

// Loss is what a format could not say.
type Loss struct {
	What   string // "time", "index" (the numbers, not the order), "meta", or the name of a field
	Events int    // that had it; 0 for meta
	Line   int    // of the first of them where it was read; 0 if it was not read
}

func (l Loss) String() string {
	text := l.What
	switch {
	case l.Events == 1:
		text += " of 1 event"
	case l.Events > 1:
		text += fmt.Sprintf(" of %d events", l.Events)
	}
	text += " is lost"
	if l.Line > 0 {
		text += fmt.Sprintf(", first from line %d", l.Line)
	}
	return text
}

// WriteJSON writes h as JSON lines: the meta line, then an event a line. Read
// gives back the same history.
func (h *History) WriteJSON(w io.Writer) error {
	_, err := Writer{Format: FormatJSONLines}.Write(w, h)
	return err
}

// WriteEDN writes h as Jepsen does: a map a line. A Meta that says more than
// the default comes first, as the only map with the key :meta. Read gives back
// the same history.
func (h *History) WriteEDN(w io.Writer) error {
	_, err := Writer{Format: FormatEDN}.Write(w, h)
	return err
}

// Write writes h and returns what is lost in c's format. Read gives back the
// same history but for that. What cannot be written at all is a *SyntaxError: an
// event longer than MaxEventBytes, a tuple without a key, and no event at all
// where the format has no other line.
func (c Writer) Write(w io.Writer, h *History) ([]Loss, error) {
	return c.write(w, h.Name, h.Meta, func(yield func(*Event, error) bool) {
		for i := range h.Events {
			if !yield(&h.Events[i], nil) {
				return
			}
		}
	})
}

// Convert writes the rest of s, as it is read, and returns what is lost in c's
// format. It holds one event at a time, with two exceptions: fencepost's own
// formats say at their beginning whether times step back, which a journal shows
// only at its end, so a history with times is read in full before it is written
// in one of them; and an operation's line in FormatOps waits for its return, and
// those after it wait with it.
func (c Writer) Convert(w io.Writer, s *Stream) ([]Loss, error) {
	if c.format().ownFormat() && !s.settled() {
		h, err := s.history()
		if err != nil {
			return nil, err
		}
		return c.Write(w, &h)
	}
	return c.write(w, s.name, s.Meta(), s.Events())
}

// settled reports whether the Meta of s is final.
func (s *Stream) settled() bool {
	return !s.v.mayStep || s.v.steps || s.meta.Journal || s.events > 0 && !s.v.timed
}

func (c Writer) format() Format {
	if c.Format == FormatUnknown {
		return FormatJSONLines
	}
	return c.Format
}

func (c Writer) write(w io.Writer, name string, m Meta, events func(yield func(*Event, error) bool)) ([]Loss, error) {
	o := &output{w: bufio.NewWriter(w), name: name, frame: c.format().frame()}
	var enc encoder
	switch c.format() {
	case FormatJSONLines, FormatJSONArray:
		enc = jsonWriter{o, c.format()}
	case FormatEDN, FormatEDNVector, FormatEDNList:
		enc = ednWriter{o}
	case FormatOps:
		enc = &opsWriter{out: o}
	case FormatLog:
		enc = logWriter{o}
	case FormatKVLog:
		enc = kvWriter{o}
	default:
		return nil, fmt.Errorf("history: %v cannot be written", c.Format)
	}
	var tuples joiner
	begun := false
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if !begun {
			begun = true
			if err := enc.meta(m, true); err != nil {
				return nil, err
			}
		}
		if c.Independent {
			joined := *e
			if joined.Fields, err = tuples.join(e); err != nil {
				return nil, o.at(err, e.Line)
			}
			e = &joined
		}
		if err := enc.event(e); err != nil {
			return nil, err
		}
		o.events++
	}
	if !begun {
		if err := enc.meta(m, false); err != nil {
			return nil, err
		}
	}
	if err := enc.end(); err != nil {
		return nil, err
	}
	return o.losses, o.close()
}

// encoder writes the records of one format to an output.
type encoder interface {
	meta(m Meta, hasEvents bool) error
	event(e *Event) error
	end() error
}

// output is what all encoders share: where to write, and what was lost.
type output struct {
	w       *bufio.Writer
	name    string
	frame   frame
	records int
	events  int
	buf     []byte // for the record being made
	losses  []Loss
}

// frame is what stands around and between the records.
type frame struct{ open, between, close string }

func (f Format) frame() frame {
	switch f {
	case FormatJSONArray:
		return frame{"[", ",\n", "]\n"}
	case FormatEDNVector:
		return frame{"[", "\n ", "]\n"}
	case FormatEDNList:
		return frame{"(", "\n ", ")\n"}
	}
	return frame{"", "\n", "\n"}
}

// record writes b, which may have been made in o.buf, as a record of its own.
func (o *output) record(b []byte, line int) error {
	o.buf = b
	if len(b) > MaxEventBytes {
		return o.at(fmt.Errorf("longer than the %d bytes of an event that can be read back", MaxEventBytes), line)
	}
	before := o.frame.between
	if o.records == 0 {
		before = o.frame.open
	}
	o.records++
	o.w.WriteString(before) // its error stays and comes with the next
	if _, err := o.w.Write(b); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

func (o *output) close() error {
	switch {
	case o.records > 0:
		o.w.WriteString(o.frame.close)
	case o.frame.open != "":
		o.w.WriteString(o.frame.open + o.frame.close)
	}
	if err := o.w.Flush(); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

// at gives an error its place: the line its event was read from, or else the
// position of the event.
func (o *output) at(err error, line int) error {
	if line == 0 {
		line = o.events + 1
	}
	return at(err, o.name, line)
}

// lose notes that something of e, nil for the meta, cannot be said.
func (o *output) lose(what string, e *Event) {
	for i := range o.losses {
		if o.losses[i].What == what {
			o.losses[i].Events++
			return
		}
	}
	l := Loss{What: what}
	if e != nil {
		l.Events, l.Line = 1, e.Line
	}
	o.losses = append(o.losses, l)
}

// unordered notes what a format loses that has neither times nor indexes.
func (o *output) unordered(e *Event) {
	if e.Time != NoTime {
		o.lose("time", e)
	}
	if e.Index != int64(o.events) {
		o.lose("index", e)
	}
}

type jsonWriter struct {
	out    *output
	format Format
}

func (j jsonWriter) meta(m Meta, hasEvents bool) error {
	if j.format != FormatJSONLines && hasEvents && m.isDefault() {
		return nil
	}
	return j.out.record(m.appendJSON(j.out.buf[:0]), 0)
}

func (j jsonWriter) event(e *Event) error {
	b := e.appendJSONHead(j.out.buf[:0], j.format == FormatJSONArray)
	return j.out.record(e.appendJSONFields(b), e.Line)
}

func (jsonWriter) end() error { return nil }

type ednWriter struct{ out *output }

func (w ednWriter) meta(m Meta, hasEvents bool) error {
	if hasEvents && m.isDefault() { // an empty file is no history
		return nil
	}
	return w.out.record(m.appendEDN(w.out.buf[:0]), 0)
}

func (w ednWriter) event(e *Event) error {
	return w.out.record(e.appendEDN(w.out.buf[:0]), e.Line)
}

func (ednWriter) end() error { return nil }

func (m Meta) appendJSON(b []byte) []byte {
	b = append(b, `{"meta":{`...)
	for i, f := range m.fields() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSONString(b, f.Name), ':')
		b = f.Value.appendJSON(b)
	}
	return append(b, "}}"...)
}

func (m Meta) appendEDN(b []byte) []byte {
	b = append(b, "{:meta {"...)
	for i, f := range m.fields() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(appendEDNWord(b, f.Name), ' ')
		b = f.Value.appendEDN(b)
	}
	return append(b, "}}"...)
}

func (e *Event) appendJSON(b []byte) []byte {
	return e.appendJSONFields(e.appendJSONHead(b, false))
}

// appendJSONHead appends what is in no field. Others' readers want a fault to
// be the nemesis's.
func (e *Event) appendJSONHead(b []byte, forOthers bool) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, e.Index, 10)
	if e.Time != NoTime {
		b = strconv.AppendInt(append(b, `,"time":`...), e.Time, 10)
	}
	typed := e.Process != NoProcess || !e.Has("type")
	switch {
	case e.Process != NoProcess:
		b = strconv.AppendInt(append(b, `,"process":`...), e.Process, 10)
	case (forOthers || !typed) && !e.Has("process"):
		b = append(b, `,"process":"`+nemesis+`"`...)
	}
	if typed {
		b = append(append(append(b, `,"type":"`...), e.Type.String()...), '"')
	}
	return appendJSONString(append(b, `,"f":`...), e.F)
}

func (e *Event) appendJSONFields(b []byte) []byte {
	for _, f := range e.Fields {
		b = append(appendJSONString(append(b, ','), f.Name), ':')
		// The converse of what a jsonReader does to a plain word.
		switch v := f.Value; {
		case (f.Name == "error" || f.Name == "type") && v.kind == KindKeyword && isKeywordName(v.text):
			b = appendJSONString(b, v.text)
		case f.Name == "error" && v.kind == KindString && isKeywordName(v.text):
			b = append(b, `{"`+ednKey+`":`...)
			b = append(appendJSONString(b, v.String()), '}')
		default:
			b = v.appendJSON(b)
		}
	}
	return append(b, '}')
}

func (e *Event) appendEDN(b []byte) []byte {
	b = strconv.AppendInt(append(b, "{:index "...), e.Index, 10)
	if e.Time != NoTime {
		b = strconv.AppendInt(append(b, ", :time "...), e.Time, 10)
	}
	if e.Process != NoProcess || !e.Has("process") {
		b = e.appendEDNProcess(append(b, ", :process "...))
	}
	if e.Process != NoProcess || !e.Has("type") {
		b = e.appendEDNType(append(b, ", :type "...))
	}
	b = appendEDNWord(append(b, ", :f "...), e.F)
	for _, f := range e.Fields {
		b = append(appendEDNWord(append(b, ", "...), f.Name), ' ')
		b = f.Value.appendEDN(b)
	}
	return append(b, '}')
}

// appendEDNProcess appends the process, be it a number or a name.
func (e *Event) appendEDNProcess(b []byte) []byte {
	if e.Process != NoProcess {
		return strconv.AppendInt(b, e.Process, 10)
	}
	if v := e.Field("process"); !v.IsNil() {
		return v.appendEDN(b)
	}
	return append(b, ":"+nemesis...)
}

// appendEDNType appends the type, which of a fault may be a field.
func (e *Event) appendEDNType(b []byte) []byte {
	if e.Process == NoProcess {
		if v := e.Field("type"); !v.IsNil() {
			return v.appendEDN(b)
		}
	}
	return append(append(b, ':'), e.Type.String()...)
}

// appendEDNWord appends a name: a keyword, or a string where it cannot be one.
func appendEDNWord(b []byte, name string) []byte {
	if isKeywordName(name) {
		return append(append(b, ':'), name...)
	}
	return appendEDNString(b, name)
}
