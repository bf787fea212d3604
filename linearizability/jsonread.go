package linearizability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// jsonLines reads one object a line. A recording that was killed may end inside
// one: what is left of that line is no event.
type jsonLines struct {
	s    *source
	d    jsonReader
	read int // lines that were events
	torn int // the line that is left out; 0 if none is
}

func (l *jsonLines) next() ([]Field, int, error) {
	for {
		line := l.s.line
		text, err := l.s.readLine()
		if err != nil {
			return nil, line, err
		}
		if len(bytes.Trim(text, " \t\r")) == 0 { // JSON's spaces, and no others
			continue
		}
		fields, err := l.d.event(text)
		if err != nil && l.read > 0 && l.s.line == line && text[0] == '{' { // no newline ends it
			l.torn = line
			return nil, line, io.EOF
		}
		l.read++
		return fields, line, err
	}
}

// jsonArray reads an array of objects without holding more than one.
type jsonArray struct {
	s     *source
	d     jsonReader
	begun bool
	ended bool
}

func (a *jsonArray) next() ([]Field, int, error) {
	if a.ended {
		return nil, a.s.line, io.EOF
	}
	if !a.begun {
		if c, err := a.s.next(); err != nil || c != '[' {
			return nil, a.s.line, errors.New("want an array of events")
		}
	}
	c, err := a.token()
	if err == nil && c == ']' {
		a.s.next()
		a.ended = true
		if err = a.onlySpace(); err == nil {
			err = io.EOF
		}
	} else if err == nil && a.begun {
		if c != ',' {
			return nil, a.s.line, fmt.Errorf("want a comma between the objects of an array, not %q", c)
		}
		a.s.next()
		c, err = a.token()
	}
	if err != nil {
		return nil, a.s.line, err
	}
	a.begun = true
	if c != '{' {
		return nil, a.s.line, fmt.Errorf("want an object in the array, not %q", c)
	}
	line := a.s.line
	text, err := a.s.readObject()
	if err != nil {
		return nil, line, err
	}
	fields, err := a.d.event(text)
	return fields, line, err
}

// token returns the next byte that is no space, which must exist, without
// consuming it.
func (a *jsonArray) token() (byte, error) {
	if err := a.s.skipSpace(); err != nil {
		return 0, err
	}
	c, err := a.s.peek()
	return c, truncated(err)
}

// onlySpace checks that nothing follows.
func (a *jsonArray) onlySpace() error {
	if err := a.s.skipSpace(); err != nil {
		return err
	}
	switch c, err := a.s.peek(); err {
	case nil:
		return fmt.Errorf("%q after the end of the history", c)
	case io.EOF:
		return nil
	default:
		return err
	}
}

// jsonReader reads the values of one event after another. It is our own because
// encoding/json, which can neither keep the order of fields nor find one twice
// but by tokens, takes most of the time of a check with those.
type jsonReader struct {
	texts  *interner
	text   []byte // of the event, which is UTF-8
	at     int
	values int
	fields []Field
	names  []*body // of the event before: as a rule those of this one
}

// event reads the fields of one JSON object, which are valid until the next.
func (d *jsonReader) event(text []byte) ([]Field, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8 text")
	}
	d.text, d.at, d.values = text, 0, 0
	if d.token() != '{' {
		return nil, errors.New("want an object")
	}
	d.at++
	fields := d.fields[:0]
	for d.more('}', len(fields) == 0) {
		key, err := d.fieldName(len(fields))
		if err != nil {
			return nil, err
		}
		name := key.text
		if len(name) > maxWord {
			return nil, badField(name, "a name longer than %d bytes", maxWord)
		}
		f := Field{Name: name}
		if f.Value, err = d.value(1); err != nil {
			return nil, &fieldError{name, err.Error()}
		}
		// An error is named by a plain word in JSON, where Jepsen has a keyword.
		// What ends with a brace instead was EDN's string.
		if name == "error" && f.Value.kind == KindString && isKeywordName(f.Value.text) && d.text[d.at-1] == '"' {
			f.Value.kind = KindKeyword
		}
		fields = append(fields, f)
	}
	d.fields = fields
	if err := d.closed('}'); err != nil {
		return nil, err
	}
	if d.token() != 0 || d.at < len(d.text) {
		return nil, errors.New("more than one value: want one event a line")
	}
	return fields, nil
}

// token returns the next byte that is no space; 0 at the end.
func (d *jsonReader) token() byte {
	for ; d.at < len(d.text); d.at++ {
		if c := d.text[d.at]; !isSpace(c) {
			return c
		}
	}
	return 0
}

// more reports whether another entry is next, of those that are parted by
// commas up to a closing bracket, and reads the comma.
func (d *jsonReader) more(closing byte, first bool) bool {
	c := d.token()
	switch {
	case c == closing:
		return false
	case first:
		return true
	case c == ',':
		d.at++
		return true
	}
	return false
}

// closed reads the bracket at which more stopped, and nothing else.
func (d *jsonReader) closed(closing byte) error {
	if d.token() != closing {
		return d.unexpected("a comma")
	}
	d.at++
	return nil
}

func (d *jsonReader) unexpected(want string) error {
	if d.at >= len(d.text) {
		return errTruncated
	}
	r, _ := utf8.DecodeRune(d.text[d.at:])
	return fmt.Errorf("%q where %s should be", r, want)
}

// fieldName reads the name of the event's nth field, and its colon.
func (d *jsonReader) fieldName(n int) (*body, error) {
	if d.token() == '"' && n < len(d.names) {
		guess := d.names[n]
		rest := d.text[d.at+1:]
		if k := len(guess.text); len(rest) > k+1 && rest[k] == '"' && rest[k+1] == ':' && string(rest[:k]) == guess.text {
			d.at += k + 3
			return guess, nil
		}
	}
	name, err := d.key()
	if err != nil {
		return nil, err
	}
	if n < len(d.names) {
		d.names[n] = name
	} else if n < maxGuessed {
		d.names = append(d.names, name)
	}
	return name, nil
}

// maxGuessed bounds the names that a reader remembers.
const maxGuessed = 16

// key reads the name of an entry, and its colon.
func (d *jsonReader) key() (*body, error) {
	if d.token() != '"' {
		return nil, d.unexpected("a name in quotes")
	}
	name, err := d.quoted()
	if err != nil {
		return nil, err
	}
	if d.token() != ':' {
		return nil, d.unexpected("a colon")
	}
	d.at++
	return name, nil
}

// value reads a value. Depth counts the collections around it, from 1.
func (d *jsonReader) value(depth int) (Value, error) {
	if d.values++; d.values > MaxEventValues {
		return Value{}, errTooMany
	}
	switch c := d.token(); {
	case c == '"':
		s, err := d.quoted()
		if err != nil {
			return Value{}, err
		}
		if len(s.text) > 1 && s.text[0] == ':' && isKeywordName(s.text[1:]) {
			return Keyword(s.text[1:]), nil
		}
		return Value{kind: KindString, body: s}, nil
	case c == '-' || isDigit(c):
		return d.number()
	case (c == '[' || c == '{') && depth > MaxDepth:
		return Value{}, errTooDeep
	case c == '[':
		d.at++
		return d.array(depth)
	case c == '{':
		d.at++
		return d.object(depth)
	}
	for _, l := range jsonLiterals {
		if bytes.HasPrefix(d.text[d.at:], l.text) {
			d.at += len(l.text)
			return l.value, nil
		}
	}
	return Value{}, d.unexpected("a value")
}

var jsonLiterals = [...]struct {
	text  []byte
	value Value
}{{[]byte("null"), Value{}}, {[]byte("true"), Bool(true)}, {[]byte("false"), Bool(false)}}

func (d *jsonReader) array(depth int) (Value, error) {
	var list []Value
	for d.more(']', len(list) == 0) {
		e, err := d.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		list = append(list, e)
	}
	return listValue(KindVector, list), d.closed(']')
}

func (d *jsonReader) object(depth int) (Value, error) {
	var list []Value
	for d.more('}', len(list) == 0) {
		name, err := d.key()
		if err != nil {
			return Value{}, err
		}
		e, err := d.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		list = append(list, decodeKey(name, depth), e)
	}
	if err := d.closed('}'); err != nil {
		return Value{}, err
	}
	if len(list) == 2 && list[1].kind == KindString {
		if name, _ := list[0].Word(); name == ednKey {
			if e, err := parseEDN(list[1].text, depth); err == nil {
				return e, nil
			}
		}
	}
	return listValue(KindMap, list), nil
}

// quoted reads a string from its opening quote to its closing one.
func (d *jsonReader) quoted() (*body, error) {
	start := d.at + 1
	plain := true
	for d.at = start; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			text := d.text[start:d.at]
			d.at++
			if plain {
				return d.texts.text(text), nil
			}
			var s string
			if err := json.Unmarshal(d.text[start-1:d.at], &s); err != nil {
				return nil, fmt.Errorf("a string with a bad escape: %s", quote(string(text)))
			}
			return &body{text: s}, nil
		case c == '\\':
			plain = false
			d.at++
		case c < 0x20:
			return nil, fmt.Errorf("byte %#02x in a string", c)
		}
	}
	d.at = len(d.text)
	return nil, errTruncated
}

func (d *jsonReader) number() (Value, error) {
	start := d.at
	next := func(set string) bool {
		if d.at < len(d.text) && strings.IndexByte(set, d.text[d.at]) >= 0 {
			d.at++
			return true
		}
		return false
	}
	next("-")
	ok := next("0") || d.digits()
	if ok && next(".") {
		ok = d.digits()
	}
	if ok && next("eE") {
		next("+-")
		ok = d.digits()
	}
	if !ok {
		return Value{}, d.unexpected("a digit")
	}
	return numberValue(d.text[start:d.at]), nil
}

func (d *jsonReader) digits() bool {
	from := d.at
	for d.at < len(d.text) && isDigit(d.text[d.at]) {
		d.at++
	}
	return d.at > from
}

// decodeKey reads the key of a nested object. EDN's maps have keywords for
// keys, as a rule, where JSON has strings.
func decodeKey(name *body, depth int) Value {
	if text, ok := strings.CutPrefix(name.text, ednKey+" "); ok {
		if v, err := parseEDN(text, depth+1); err == nil {
			return v
		}
	}
	if isKeywordName(name.text) {
		return Value{kind: KindKeyword, body: name}
	}
	return Value{kind: KindString, body: name}
}
