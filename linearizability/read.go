package linearizability

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync/atomic"
)

// Reader reads histories. Its zero value is ready: it tells the format by the
// content and has the default bounds.
type Reader struct {
	Format    Format // FormatUnknown: by content
	MaxEvents int    // 0: DefaultMaxEvents
	MaxBytes  int64  // of input; 0: DefaultMaxBytes

	// Progress, if it is set, counts the bytes of input that were read so far.
	Progress *atomic.Int64

	// Independent says that the value of every operation is a tuple of Jepsen's
	// jepsen.independent: a key and the value proper. The event then has the
	// fields key and value. A tuple is printed like any vector of two, which
	// might as well be the two values of a cas, so this is not guessed; only a
	// value under a tag, #jepsen.independent/tuple [k v], is always known as one.
	Independent bool
}

// Read reads a history with the default bounds. The name is for messages.
// Every error about the content is a *SyntaxError.
//
// A file with a meta record promises the rules of a history, and is held to
// them, but for a process that goes on after an info if the meta says "reuse":
// true. In a file without one, a recorder's of another house, such a process is
// given a fresh number each time, and History.Notes say so.
func Read(r io.Reader, name string) (History, error) { return Reader{}.Read(r, name) }

// ReadFile reads a history from a file with the default bounds.
func ReadFile(path string) (History, error) { return Reader{}.ReadFile(path) }

// ReadFile reads a history from a file.
func (c Reader) ReadFile(path string) (History, error) {
	f, err := os.Open(path)
	if err != nil {
		return History{}, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	return c.Read(f, path)
}

// Read reads one history to the end of r.
func (c Reader) Read(r io.Reader, name string) (History, error) {
	s, err := c.Open(r, name)
	if err != nil {
		return History{}, err
	}
	return s.history()
}

// Open begins to read a history. It reads on to the first event, so that what
// is no history at all is an error here. The name is for messages.
func (c Reader) Open(r io.Reader, name string) (*Stream, error) {
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxEvents <= 0 {
		c.MaxEvents = DefaultMaxEvents
	}
	s := &Stream{name: name, meta: DefaultMeta(), src: newSource(c.counted(r), c.MaxBytes), maxBytes: c.MaxBytes, maxEvents: c.MaxEvents, independent: c.Independent}
	if err := s.open(c.Format); err != nil {
		return nil, at(err, name, s.src.line)
	}
	return s, nil
}

// counted is r, whose bytes count as progress.
func (c Reader) counted(r io.Reader) io.Reader {
	if c.Progress == nil {
		return r
	}
	return readCounter{r, c.Progress}
}

type readCounter struct {
	r     io.Reader
	bytes *atomic.Int64
}

func (c readCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// Stream is a history that is being read: one event of it is in memory at a
// time, however long it is. What it reads is checked like by History.Validate.
type Stream struct {
	name        string
	format      Format
	meta        Meta
	src         *source
	dec         decoder
	v           validator
	fresh       renumber
	maxBytes    int64
	maxEvents   int
	independent bool

	records int
	events  int
	indexed bool
	event   Event
	held    bool  // event was read by open and not given out
	err     error // what reading ended with
}

// decoder reads the records of one format: their fields, which are valid until
// the next, and the line they begin in. Its errors need no place in the file;
// the line is then that of the error.
type decoder interface {
	next() (fields []Field, line int, err error)
}

// open finds out the format and reads the first event.
func (s *Stream) open(format Format) error {
	switch err := s.src.need(3); {
	case err == nil && string(s.src.buf[:3]) == "\ufeff":
		s.src.take(3)
	case err != nil && err != io.EOF:
		return err
	}
	if err := s.src.skipSpace(); err != nil {
		return err
	}
	if format == FormatUnknown {
		if err := s.src.need(1024); err != nil && s.src.at == s.src.end {
			if err == io.EOF {
				err = errEmpty
			}
			return err
		}
		format = Detect(s.src.buf[s.src.at:s.src.end])
	}
	s.format = format
	// The order of journals is real even where their times step back. Files of
	// our own promise more, unless their meta says otherwise.
	s.v.mayStep = !format.ownFormat()
	texts := &interner{}
	switch format {
	case FormatJSONLines:
		s.dec = &jsonLines{s: s.src, d: jsonReader{texts: texts}}
	case FormatJSONArray:
		s.dec = &jsonArray{s: s.src, d: jsonReader{texts: texts}}
	case FormatEDN, FormatEDNVector, FormatEDNList, FormatKVLog:
		s.dec = &ednMaps{r: ednReader{s: s.src, texts: texts}}
	case FormatOps:
		s.dec = &opsReader{s: s.src, texts: texts}
	case FormatLog:
		s.dec = &logReader{s: s.src, texts: texts}
	default:
		return fmt.Errorf("no known format: want one of %s", formatList)
	}
	if s.advance(); s.err != nil && s.err != io.EOF {
		return s.err
	}
	s.held = s.err == nil
	if s.records == 0 {
		return errEmpty
	}
	return nil
}

const formatList = "JSON lines, a JSON array, EDN, operations of one line, a jepsen.util log"

var errEmpty = errors.New("empty: a history has at least one event")

// Meta returns how the history was recorded. Only its Journal may still turn
// true, with an event whose time is before the one before it.
func (s *Stream) Meta() Meta {
	m := s.meta
	m.Journal = m.Journal || s.v.steps
	return m
}

// Format returns the format that is being read.
func (s *Stream) Format() Format { return s.format }

// Notes returns what had to be changed so far to make the file a history, one
// sentence each, for people. They are complete when Events has ended.
func (s *Stream) Notes() []string {
	notes := s.fresh.notes()
	if l, ok := s.dec.(*jsonLines); ok && l.torn > 0 {
		notes = append(notes, fmt.Sprintf("line %d, the last, ends inside an event and is left out: whoever wrote it was cut off", l.torn))
	}
	return notes
}

// Events returns the events in their order. An event and its Fields are valid
// until the next; its texts and values for good. An error about the content, a
// *SyntaxError, ends the events. A loop that stops early leaves the rest to the
// next one.
func (s *Stream) Events() iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for {
			if !s.held && s.err == nil {
				s.advance()
			}
			s.held = false
			if s.err == io.EOF {
				return
			}
			if s.err != nil {
				yield(nil, s.err)
				return
			}
			if !yield(&s.event, nil) {
				return
			}
		}
	}
}

// history reads all that is left.
func (s *Stream) history() (History, error) {
	h := History{Name: s.name}
	var fields arena
	// In pieces, for what append makes room for in vain is a quarter.
	var full [][]Event
	last := make([]Event, 0, 256)
	for e, err := range s.Events() {
		if err != nil {
			return History{}, err
		}
		kept := *e
		kept.Fields = fields.clone(e.Fields)
		if len(last) == cap(last) {
			full = append(full, last)
			last = make([]Event, 0, min(2*cap(last), 1<<14))
		}
		last = append(last, kept)
	}
	h.Events = slices.Clip(slices.Concat(append(full, last)...))
	h.Meta, h.Notes = s.Meta(), s.Notes()
	return h, nil
}

// arena copies short slices of fields into long ones.
type arena struct{ free []Field }

func (a *arena) clone(fields []Field) []Field {
	n := len(fields)
	if n == 0 {
		return nil
	}
	if n > len(a.free) {
		a.free = make([]Field, max(n, 1024))
	}
	c := a.free[:n:n]
	a.free = a.free[n:]
	copy(c, fields)
	return c
}

// advance reads the next event into s.event, or sets s.err.
func (s *Stream) advance() {
	for {
		fields, line, err := s.dec.next()
		if err == io.EOF {
			s.err = io.EOF
			return
		}
		isEvent := false
		if err == nil {
			isEvent, err = s.record(fields, line)
		}
		if err != nil {
			s.err = at(err, s.name, line)
			return
		}
		if isEvent {
			return
		}
	}
}

// record takes the fields of the record that begins in the given line. It
// reports whether that is an event, and not the meta record.
func (s *Stream) record(fields []Field, line int) (bool, error) {
	s.records++
	if name, ok := repeated(fields); ok {
		return false, badField(name, "appears twice")
	}
	if len(fields) == 1 && fields[0].Name == "meta" {
		return false, s.readMeta(fields[0].Value)
	}
	e := &s.event
	indexed, err := readEvent(e, fields)
	if err != nil {
		return false, err
	}
	if err := separate(e, s.independent); err != nil {
		return false, err
	}
	e.Line = line
	switch {
	case s.events == 0:
		s.indexed = indexed
	case s.events >= s.maxEvents:
		return false, fmt.Errorf("more than %d events: raise the bound or cut the history", s.maxEvents)
	case indexed != s.indexed:
		return false, badField("index", "on some events only: want it on all or on none")
	}
	if !indexed {
		e.Index = int64(s.events)
	}
	s.events++
	s.fresh.apply(e, &s.v)
	return true, s.v.add(e)
}

// repeated returns the name of a field that is there twice, if one is.
func repeated(fields []Field) (string, bool) {
	if len(fields) > 16 {
		seen := make(map[string]bool, len(fields))
		for _, f := range fields {
			if seen[f.Name] {
				return f.Name, true
			}
			seen[f.Name] = true
		}
		return "", false
	}
	for i := range fields {
		for j := range fields[:i] {
			if fields[i].Name == fields[j].Name {
				return fields[i].Name, true
			}
		}
	}
	return "", false
}

func (s *Stream) readMeta(v Value) error {
	if s.records > 1 {
		return badField("meta", "only the first record of a history says how it was recorded")
	}
	fields, ok := v.appendFields(nil)
	if !ok {
		return badField("meta", "want an object, not %s", quote(v.String()))
	}
	s.fresh.strict = true
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == "reuse" }); i >= 0 {
		reuse, err := flag(fields[i])
		if err != nil {
			return err
		}
		// What is read has new numbers, so that its Meta does not say it again.
		s.fresh.strict, fields = !reuse, slices.Delete(fields, i, i+1)
	}
	var err error
	if s.meta, err = readMeta(fields); err != nil {
		return err
	}
	s.v.eps, s.v.mayStep = s.meta.Eps, s.v.mayStep || s.meta.Journal
	return nil
}

// appendFields appends the entries of a map whose keys are names; false if v is
// none.
func (v Value) appendFields(fields []Field) ([]Field, bool) {
	if v.kind != KindMap {
		return nil, false
	}
	for i := 0; i+1 < len(v.list); i += 2 {
		name, ok := v.list[i].Word()
		if !ok {
			return nil, false
		}
		fields = append(fields, Field{name, v.list[i+1]})
	}
	return fields, true
}
