package linearizability

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Format is one of the ways to write a history down.
type Format uint8

// The formats that Read knows.
const (
	FormatUnknown   Format = iota
	FormatJSONLines        // one JSON object a line: fencepost's own
	FormatJSONArray        // one JSON array of objects (elle-cli)
	FormatEDN              // maps one after another, or in a vector or list (Jepsen, Knossos, porcupine's key-value logs)
	FormatLog              // lines of jepsen.util: process, type, f, value
)

var formatNames = [...]string{"unknown", "JSON lines", "JSON array", "EDN", "jepsen.util log"}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// Detect tells the format by the beginning of a file; a few hundred bytes do.
func Detect(head []byte) Format {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	text := bytes.TrimLeft(head, " \t\r\n,")
	if len(text) == 0 {
		return FormatUnknown
	}
	switch inner := bytes.TrimLeft(text[1:], " \t\r\n,"); text[0] {
	case '{':
		if len(inner) == 0 || inner[0] == '"' || inner[0] == '}' {
			return FormatJSONLines
		}
		return FormatEDN
	case '[':
		if len(inner) == 0 || inner[0] == ']' {
			return FormatJSONArray
		}
		if inner[0] == '{' {
			key := bytes.TrimLeft(inner[1:], " \t\r\n,")
			if len(key) == 0 || key[0] == '"' || key[0] == '}' {
				return FormatJSONArray
			}
		}
		return FormatEDN
	case '(', ';', '#':
		return FormatEDN
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.Contains(line, []byte(logMark)) {
		return FormatLog
	}
	return FormatUnknown
}

// Reader reads histories. Its zero value is ready: it tells the format by the
// content and has the default bounds.
type Reader struct {
	Format    Format // FormatUnknown: by content
	MaxEvents int    // 0: DefaultMaxEvents
	MaxBytes  int64  // of input; 0: DefaultMaxBytes
}

// Read reads a history with the default bounds. The name is for messages.
// Every error about the content is a *SyntaxError.
func Read(r io.Reader, name string) (History, error) { return Reader{}.Read(r, name) }

// ReadFile reads a history from a file.
func ReadFile(path string) (History, error) {
	f, err := os.Open(path)
	if err != nil {
		return History{}, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads one history to the end of r.
func (c Reader) Read(r io.Reader, name string) (History, error) {
	s := &source{r: bufio.NewReaderSize(r, 64<<10), line: 1, left: c.MaxBytes, budget: noBudget}
	if s.left <= 0 {
		s.left = DefaultMaxBytes
	}
	b := &builder{h: History{Name: name, Meta: DefaultMeta()}, maxEvents: c.MaxEvents}
	if b.maxEvents <= 0 {
		b.maxEvents = DefaultMaxEvents
	}
	if err := c.read(s, b); err != nil {
		return History{}, at(err, name, s.line)
	}
	if b.records == 0 {
		return History{}, &SyntaxError{File: name, Line: s.line, Msg: "empty: a history has at least one event"}
	}
	b.h.Events = slices.Clip(b.h.Events)
	b.h.Meta.Journal = b.h.Meta.Journal || b.v.steps
	return b.h, nil
}

func (c Reader) read(s *source, b *builder) error {
	if bom, _ := s.r.Peek(3); string(bom) == "\ufeff" {
		s.r.Discard(3)
	}
	if err := s.skipSpace(); err != nil {
		return err
	}
	format := c.Format
	if format == FormatUnknown {
		head, err := s.r.Peek(1024)
		if len(head) == 0 {
			if err == io.EOF {
				return nil
			}
			return &readError{err: err}
		}
		format = Detect(head)
	}
	// The order of journals is real even where their times step back. Lines of
	// our own promise more, unless their meta says otherwise.
	b.v.mayStep = format != FormatJSONLines
	switch format {
	case FormatJSONLines:
		return readJSONLines(s, b)
	case FormatJSONArray:
		return readJSONArray(s, b)
	case FormatEDN:
		return readEDN(s, b)
	case FormatLog:
		return readLog(s, b)
	}
	return errors.New("no known format: want JSON lines, a JSON array, EDN, or a jepsen.util log")
}

// builder collects the records of a file into a history.
type builder struct {
	h         History
	v         validator
	records   int
	maxEvents int
	indexed   bool
}

// record takes the fields of the record that begins in the given line.
func (b *builder) record(fields []Field, line int) error {
	b.records++
	if name, ok := repeated(fields); ok {
		return at(badField(name, "appears twice"), b.h.Name, line)
	}
	if len(fields) == 1 && fields[0].Name == "meta" {
		return at(b.meta(fields[0].Value), b.h.Name, line)
	}
	e, indexed, err := readEvent(fields)
	if err != nil {
		return at(err, b.h.Name, line)
	}
	e.Line = line
	switch {
	case len(b.h.Events) == 0:
		b.indexed = indexed
	case len(b.h.Events) >= b.maxEvents:
		return at(fmt.Errorf("more than %d events: raise the bound or cut the history", b.maxEvents), b.h.Name, line)
	case indexed != b.indexed:
		return at(badField("index", "on some events only: want it on all or on none"), b.h.Name, line)
	}
	if !indexed {
		e.Index = int64(len(b.h.Events))
	}
	if err := b.v.add(&e); err != nil {
		return at(err, b.h.Name, line)
	}
	b.h.Events = append(b.h.Events, e)
	return nil
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
	for i, f := range fields {
		if slices.ContainsFunc(fields[:i], func(g Field) bool { return g.Name == f.Name }) {
			return f.Name, true
		}
	}
	return "", false
}

func (b *builder) meta(v Value) error {
	if b.records > 1 {
		return badField("meta", "only the first record of a history says how it was recorded")
	}
	fields, ok := v.fields()
	if !ok {
		return badField("meta", "want an object, not %s", quote(v.String()))
	}
	var err error
	if b.h.Meta, err = readMeta(fields); err != nil {
		return err
	}
	b.v.eps, b.v.mayStep = b.h.Meta.Eps, b.v.mayStep || b.h.Meta.Journal
	return nil
}

// fields returns the entries of a map whose keys are names; false if v is none.
func (v Value) fields() ([]Field, bool) {
	if v.kind != KindMap {
		return nil, false
	}
	fields := make([]Field, 0, len(v.list)/2)
	for i := 0; i+1 < len(v.list); i += 2 {
		name, ok := v.list[i].Word()
		if !ok {
			return nil, false
		}
		fields = append(fields, Field{name, v.list[i+1]})
	}
	return fields, true
}
