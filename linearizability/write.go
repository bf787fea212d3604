package linearizability

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// WriteJSON writes h as JSON lines: the meta line, then an event a line. Read
// gives back the same history.
func (h *History) WriteJSON(w io.Writer) error {
	return h.write(w, h.Meta.appendJSON, func(b []byte, e *Event) []byte { return e.appendJSON(b) })
}

// WriteEDN writes h as Jepsen does: a map a line. A Meta that says more than
// the default comes first, as the only map with the key :meta. Read gives back
// the same history.
func (h *History) WriteEDN(w io.Writer) error {
	meta := h.Meta.appendEDN
	if h.Meta.isDefault() && len(h.Events) > 0 { // an empty file is no history
		meta = nil
	}
	return h.write(w, meta, func(b []byte, e *Event) []byte { return e.appendEDN(b) })
}

func (h *History) write(w io.Writer, meta func([]byte) []byte, event func([]byte, *Event) []byte) error {
	out := bufio.NewWriter(w)
	var line []byte
	if meta != nil {
		line = append(meta(line), '\n')
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("history: write: %w", err)
		}
	}
	for i := range h.Events {
		line = append(event(line[:0], &h.Events[i]), '\n')
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("history: write: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

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
		b = append(appendEDNName(b, f.Name), ' ')
		b = f.Value.appendEDN(b)
	}
	return append(b, "}}"...)
}

func (e *Event) appendJSON(b []byte) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, e.Index, 10)
	if e.Time != NoTime {
		b = strconv.AppendInt(append(b, `,"time":`...), e.Time, 10)
	}
	if e.Process != NoProcess {
		b = strconv.AppendInt(append(b, `,"process":`...), e.Process, 10)
	}
	b = append(append(b, `,"type":"`...), e.Type.String()...)
	b = appendJSONString(append(b, `","f":`...), e.F)
	for _, f := range e.Fields {
		b = append(appendJSONString(append(b, ','), f.Name), ':')
		// The converse of what decodeObject does to a plain word.
		switch v := f.Value; {
		case f.Name == "error" && v.kind == KindKeyword && isKeywordName(v.text):
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
	switch {
	case e.Process != NoProcess:
		b = strconv.AppendInt(append(b, ", :process "...), e.Process, 10)
	case !e.Has("process"):
		b = append(b, ", :process :nemesis"...)
	}
	b = append(append(b, ", :type :"...), e.Type.String()...)
	b = append(b, ", :f "...)
	if isKeywordName(e.F) {
		b = append(append(b, ':'), e.F...)
	} else {
		b = appendEDNString(b, e.F)
	}
	for _, f := range e.Fields {
		b = append(appendEDNName(append(b, ", "...), f.Name), ' ')
		b = f.Value.appendEDN(b)
	}
	return append(b, '}')
}

// appendEDNName appends the name of a field: a keyword, or a string where it
// cannot be one.
func appendEDNName(b []byte, name string) []byte {
	if isKeywordName(name) {
		return append(append(b, ':'), name...)
	}
	return appendEDNString(b, name)
}
