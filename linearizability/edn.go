package linearizability

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// This file reads EDN, the notation of Clojure in which Jepsen writes its
// histories. It is our own because the one Go library for EDN that is in use
// has had no release since 2020, bounds neither depth nor memory, and cannot
// say in which line an error is. It reads one event at a time: what is not in
// the event is not in memory.

// ednMaps reads maps, one after another or in one vector or list.
type ednMaps struct {
	r       ednReader
	begun   bool
	ended   bool
	closing byte // of the bracket around all events; 0 if there is none
	fields  []Field
}

func (m *ednMaps) next() ([]Field, int, error) {
	if !m.begun {
		m.begun = true
		if err := m.open(); err != nil {
			return nil, m.r.s.line, err
		}
	}
	if m.ended {
		return nil, m.r.s.line, io.EOF
	}
	c, err := m.r.skip(1)
	switch {
	case err == io.EOF && m.closing == 0:
		return nil, m.r.s.line, io.EOF
	case err != nil:
		return nil, m.r.s.line, truncated(err)
	case c == m.closing:
		m.r.s.next()
		m.ended = true
		if err := m.r.onlyComments(); err != nil {
			return nil, m.r.s.line, err
		}
		return nil, m.r.s.line, io.EOF
	}
	line := m.r.s.line
	m.r.s.begin()
	m.r.values, m.r.stack = 0, m.r.stack[:0]
	v, err := m.r.value(0) // as deep as the values of a JSON object
	m.r.s.done()
	if err != nil {
		return nil, m.r.s.line, truncated(err)
	}
	if v.kind == KindTagged && strings.HasSuffix(v.text, ".Op") {
		v = v.list[0] // #jepsen.history.Op{...}: how Jepsen prints a record
	}
	fields, ok := v.appendFields(m.fields[:0])
	if !ok {
		return nil, line, fmt.Errorf("want a map whose keys are keywords, not %s", quote(v.String()))
	}
	m.fields = fields
	for _, f := range fields {
		if len(f.Name) > maxWord {
			return nil, line, badField(f.Name, "a name longer than %d bytes", maxWord)
		}
	}
	return fields, line, nil
}

// open reads the bracket around all events, if there is one.
func (m *ednMaps) open() error {
	c, err := m.r.skip(1)
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	switch c {
	case '[':
		m.closing = ']'
	case '(':
		m.closing = ')'
	default:
		return nil
	}
	_, err = m.r.s.next()
	return err
}

// onlyComments checks that no value follows.
func (r *ednReader) onlyComments() error {
	c, err := r.skip(1)
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%q after the end of the history", c)
}

// parseEDN reads text that is one value.
func parseEDN(text string, depth int) (Value, error) {
	r := textReader([]byte(text), &interner{})
	if _, err := r.skip(depth); err != nil {
		return Value{}, truncated(err)
	}
	v, err := r.value(depth)
	if err != nil {
		return Value{}, truncated(err)
	}
	return v, r.onlyComments()
}

// textReader returns a reader of values in text, which is part of one event.
func textReader(text []byte, texts *interner) *ednReader {
	return &ednReader{s: &source{buf: text, end: len(text), line: 1, budget: MaxEventBytes}, texts: texts}
}

// ednReader reads values from a source.
type ednReader struct {
	s      *source
	texts  *interner
	buf    []byte  // the token or text being read
	stack  []Value // elements of the collections being read
	values int     // of the event
}

// skip skips spaces, comments and discarded values, and returns the next byte
// without consuming it.
func (r *ednReader) skip(depth int) (byte, error) {
	for {
		c, err := r.s.peek()
		if err != nil {
			return 0, err
		}
		switch {
		case isBlank(c):
			_, err = r.s.next()
		case c == ';':
			for err = nil; err == nil && c != '\n'; {
				c, err = r.s.next()
			}
		case c == '#':
			switch err = r.s.need(2); {
			case err == io.EOF:
				return c, nil
			case err != nil:
				return 0, err
			case r.s.buf[r.s.at+1] != '_':
				return c, nil
			}
			err = truncated(r.discard(depth))
		default:
			return c, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// discard reads a discard mark and drops the value after it, which counts as an
// event of its own where it is in none.
func (r *ednReader) discard(depth int) error {
	if depth > MaxDepth {
		return errTooDeep
	}
	if r.s.budget > MaxEventBytes {
		r.s.begin()
		defer r.s.done()
		r.values = 0
	}
	for range "#_" {
		if _, err := r.s.next(); err != nil {
			return err
		}
	}
	if _, err := r.skip(depth + 1); err != nil {
		return err
	}
	_, err := r.value(depth + 1)
	return err
}

// value reads a value whose first byte is next. Depth counts the collections
// and tags around it, from 1.
func (r *ednReader) value(depth int) (Value, error) {
	if r.values++; r.values > MaxEventValues {
		return Value{}, errTooMany
	}
	c, err := r.s.next()
	if err != nil {
		return Value{}, err
	}
	switch c {
	case '"':
		return r.text()
	case '(':
		return r.collection(KindList, ')', depth)
	case '[':
		return r.collection(KindVector, ']', depth)
	case '{':
		return r.collection(KindMap, '}', depth)
	case ')', ']', '}':
		return Value{}, fmt.Errorf("%q closes nothing", c)
	case '#':
		return r.dispatch(depth)
	case '\\':
		return r.char()
	case ':':
		word, err := r.word()
		if err == nil && word.text == "" {
			err = errors.New("a keyword without a name")
		}
		return Value{kind: KindKeyword, body: word}, err
	}
	if err := r.token(c); err != nil {
		return Value{}, err
	}
	switch word := r.buf; {
	case string(word) == "nil":
		return Value{}, nil
	case string(word) == "true" || string(word) == "false":
		return Bool(word[0] == 't'), nil
	case isDigit(c) || len(word) > 1 && (c == '+' || c == '-') && isDigit(word[1]):
		if n, ok := plainInt(word); ok {
			return Int(n), nil
		}
		if !isEDNNumber(string(word)) {
			return Value{}, fmt.Errorf("%s is no number", quote(string(word)))
		}
		return textValue(KindNumber, string(word)), nil
	case !isSymbol(string(word)):
		return Value{}, fmt.Errorf("%s is no value", quote(string(word)))
	}
	return Value{kind: KindSymbol, body: r.texts.text(r.buf)}, nil
}

// word reads on to the end of a token, which begins with head.
func (r *ednReader) word(head ...byte) (*body, error) {
	if err := r.token(head...); err != nil {
		return nil, err
	}
	return r.texts.text(r.buf), nil
}

// endsToken is the table of the bytes at which a token ends, or is wrong.
var endsToken = func() (t [256]bool) {
	for c := range t {
		t[c] = isBlank(byte(c)) || isControl(byte(c)) || strings.IndexByte(";()[]{}\"\\", byte(c)) >= 0
	}
	return t
}()

// isBlank reports whether c parts values.
func isBlank(c byte) bool { return isSpace(c) || c == ',' || c == '\f' || c == '\v' }

func isControl(c byte) bool { return c < 0x20 || c == 0x7f }

// token reads the same into r.buf.
func (r *ednReader) token(head ...byte) error {
	r.buf = append(r.buf[:0], head...)
	for {
		if _, err := r.s.peek(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		ahead := r.s.buf[r.s.at:r.s.end]
		n := 0
		for n < len(ahead) && !endsToken[ahead[n]] {
			n++
		}
		r.buf = append(r.buf, ahead[:n]...)
		if err := r.s.skip(n); err != nil {
			return err
		}
		if n < len(ahead) {
			if c := ahead[n]; isControl(c) && !isBlank(c) {
				return fmt.Errorf("byte %#02x in a token", c)
			}
			break
		}
	}
	if !utf8.Valid(r.buf) {
		return errors.New("not UTF-8 text")
	}
	return nil
}

func (r *ednReader) collection(kind Kind, closing byte, depth int) (Value, error) {
	if depth > MaxDepth {
		return Value{}, errTooDeep
	}
	from := len(r.stack)
	for {
		c, err := r.skip(depth + 1)
		if err != nil {
			return Value{}, truncated(err)
		}
		if c == closing {
			r.s.next()
			break
		}
		e, err := r.value(depth + 1)
		if err != nil {
			return Value{}, truncated(err)
		}
		r.stack = append(r.stack, e)
	}
	list := slices.Clone(r.stack[from:])
	r.stack = r.stack[:from]
	if kind == KindMap && len(list)%2 != 0 {
		return Value{}, errors.New("a map with a key but no value")
	}
	return listValue(kind, list), nil
}

// dispatch reads what begins with a hash: a set, a symbolic value or a tag.
func (r *ednReader) dispatch(depth int) (Value, error) {
	c, err := r.s.next()
	if err != nil {
		return Value{}, truncated(err)
	}
	switch {
	case c == '{':
		return r.collection(KindSet, '}', depth)
	case c == '#':
		word, err := r.word('#', '#')
		if err != nil {
			return Value{}, err
		}
		switch word.text {
		case "##Inf", "##-Inf", "##NaN":
			return Value{kind: KindSymbol, body: word}, nil
		}
		return Value{}, fmt.Errorf("%s is no value", quote(word.text))
	case depth > MaxDepth:
		return Value{}, errTooDeep
	}
	tag, err := r.word(c)
	if err != nil {
		return Value{}, err
	}
	if !isSymbol(tag.text) {
		return Value{}, fmt.Errorf("%s is no tag", quote("#"+tag.text))
	}
	if _, err := r.skip(depth + 1); err != nil {
		return Value{}, truncated(err)
	}
	v, err := r.value(depth + 1)
	if err != nil {
		return Value{}, truncated(err)
	}
	return Value{kind: KindTagged, body: &body{tag.text, []Value{v}}}, nil
}
