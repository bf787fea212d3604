package linearizability

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// logMark stands before the event in a line of Jepsen's log.
const logMark = "jepsen.util - "

// logReader reads lines such as
//
//	INFO  jepsen.util - 3	:invoke	:cas	[1 4]
//
// which have no times: order is all there is. A fifth column is the error, which
// Jepsen prints as bare text. Lines of other loggers are skipped.
type logReader struct {
	s      *source
	texts  *interner
	fields []Field
}

var logColumns = [...]string{"process", "type", "f", "value"}

func (l *logReader) next() ([]Field, int, error) {
	for {
		line := l.s.line
		text, err := l.s.readLine()
		if err != nil {
			return nil, line, err
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		_, event, ok := bytes.Cut(text, []byte(logMark))
		if !ok {
			if bytes.Contains(text, []byte(" - ")) {
				continue
			}
			return nil, line, fmt.Errorf("want a line of a log, with %q before the event", strings.TrimSpace(logMark))
		}
		err = l.columns(event)
		return l.fields, line, err
	}
}

// columns reads the values of a line into l.fields.
func (l *logReader) columns(event []byte) error {
	l.fields = l.fields[:0]
	r := textReader(event, l.texts)
	for i, name := range logColumns {
		if _, err := r.skip(1); err == io.EOF {
			return fmt.Errorf("want process, type, f and value, not %d values", i)
		} else if err != nil {
			return err
		}
		v, err := r.value(1)
		if err != nil {
			return truncated(err)
		}
		l.fields = append(l.fields, Field{name, v})
	}
	rest := bytes.TrimSpace(r.s.buf[r.s.at:r.s.end])
	if len(rest) == 0 {
		return nil
	}
	if !utf8.Valid(rest) {
		return errors.New("not UTF-8 text")
	}
	l.fields = append(l.fields, Field{"error", bareText(rest, l.texts)})
	return nil
}

// bareText returns the value that text spells, or the text itself if it spells
// none.
func bareText(text []byte, texts *interner) Value {
	r := textReader(text, texts)
	if v, err := r.value(1); err == nil && r.s.at == r.s.end && text[0] != '#' {
		return v
	}
	return Value{kind: KindString, body: texts.text(text)}
}

// logWriter is the inverse of logReader.
type logWriter struct{ out *output }

func (l logWriter) meta(m Meta, hasEvents bool) error {
	if !hasEvents {
		return l.out.at(errors.New("a history without an event cannot be written in a format that has nothing else"), 0)
	}
	if !m.isDefault() {
		l.out.lose("meta", nil)
	}
	return nil
}

func (l logWriter) event(e *Event) error {
	l.out.unordered(e)
	var value, failure Value
	for _, f := range e.Fields {
		switch {
		case f.Name == "value":
			value = f.Value
		case f.Name == "error":
			failure = f.Value
		case f.Value.IsNil():
		case e.Process == NoProcess && (f.Name == "process" || f.Name == "type"):
		default:
			l.out.lose(f.Name, e)
		}
	}
	b := append(l.out.buf[:0], "INFO  "+logMark...)
	b = e.appendEDNProcess(b)
	b = e.appendEDNType(append(b, '\t'))
	b = appendEDNWord(append(b, '\t'), e.F)
	b = value.appendEDN(append(b, '\t'))
	if !failure.IsNil() {
		b = append(b, '\t')
		if text := failure.String(); bareText([]byte(text), &interner{}).Equal(failure) {
			b = append(b, text...)
		} else {
			l.out.lose("error", e)
			b = appendEDNString(b, text)
		}
	}
	return l.out.record(b, e.Line)
}

func (logWriter) end() error { return nil }

// kvWriter writes the shape in which porcupine's tests have the log of a
// key-value store. Porcupine itself reads get, put and append of strings, and
// takes a call whose return is of type fail or info for one without a return.
type kvWriter struct{ out *output }

func (k kvWriter) meta(m Meta, hasEvents bool) error { return logWriter(k).meta(m, hasEvents) }

func (k kvWriter) event(e *Event) error {
	k.out.unordered(e)
	b := e.appendEDNProcess(append(k.out.buf[:0], "{:process "...))
	b = e.appendEDNType(append(b, ", :type "...))
	b = appendEDNWord(append(b, ", :f "...), e.F)
	if key := e.Field("key"); !key.IsNil() {
		b = key.appendEDN(append(b, ", :key "...))
	}
	b = e.Field("value").appendEDN(append(b, ", :value "...))
	for _, f := range e.Fields {
		switch {
		case f.Name == "key" || f.Name == "value" || f.Value.IsNil():
		case e.Process == NoProcess && (f.Name == "process" || f.Name == "type"):
		default:
			k.out.lose(f.Name, e)
		}
	}
	return k.out.record(append(b, '}'), e.Line)
}

func (kvWriter) end() error { return nil }
