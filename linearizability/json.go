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

// ednKey marks, in JSON, a value or key that only EDN can say: the object
// {"#edn": "text"}, or the key "#edn text".
const ednKey = "#edn"

// readJSONLines reads one object a line.
func readJSONLines(s *source, b *builder) error {
	var buf []byte
	for {
		line := s.line
		var err error
		buf, err = s.readLine(buf[:0])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return at(err, b.h.Name, line)
		}
		if len(bytes.TrimSpace(buf)) == 0 {
			continue
		}
		fields, err := decodeObject(buf)
		if err != nil {
			return at(err, b.h.Name, line)
		}
		if err := b.record(fields, line); err != nil {
			return err
		}
	}
}

// readJSONArray reads an array of objects without holding more than one.
func readJSONArray(s *source, b *builder) error {
	if c, err := s.next(); err != nil || c != '[' {
		return errors.New("want an array of events")
	}
	var buf []byte
	for first := true; ; first = false {
		c, err := s.token()
		if err != nil {
			return err
		}
		if c == ']' {
			return s.onlySpace()
		}
		if !first {
			if c != ',' {
				return fmt.Errorf("want a comma between the objects of an array, not %q", c)
			}
			if c, err = s.token(); err != nil {
				return err
			}
		}
		if c != '{' {
			return fmt.Errorf("want an object in the array, not %q", c)
		}
		line := s.line
		if buf, err = s.readObject(buf[:0]); err != nil {
			return err
		}
		fields, err := decodeObject(buf)
		if err != nil {
			return at(err, b.h.Name, line)
		}
		if err := b.record(fields, line); err != nil {
			return err
		}
	}
}

// token returns the next byte that is no space, which must exist.
func (s *source) token() (byte, error) {
	if err := s.skipSpace(); err != nil {
		return 0, err
	}
	c, err := s.next()
	if err == io.EOF {
		err = errTruncated
	}
	return c, err
}

// onlySpace checks that nothing follows.
func (s *source) onlySpace() error {
	if err := s.skipSpace(); err != nil {
		return err
	}
	if c, err := s.next(); err == nil {
		return fmt.Errorf("%q after the end of the history", c)
	}
	return nil
}

// readObject appends to buf an object whose opening brace was just read, up
// to its closing one.
func (s *source) readObject(buf []byte) ([]byte, error) {
	s.begin()
	defer s.end()
	buf = append(buf, '{')
	for depth, quoted := 1, false; depth > 0; {
		c, err := s.next()
		if err == io.EOF {
			return nil, errTruncated
		}
		if err != nil {
			return nil, err
		}
		buf = append(buf, c)
		switch {
		case quoted && c == '\\':
			if c, err = s.next(); err == nil {
				buf = append(buf, c)
			}
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return buf, nil
}

// decodeObject reads the fields of one JSON object.
func decodeObject(text []byte) ([]Field, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8 text")
	}
	d := jsonReader{text: text}
	if d.token() != '{' {
		return nil, errors.New("want an object")
	}
	d.at++
	fields := make([]Field, 0, 10)
	err := d.entries('}', func() error {
		name, err := d.key()
		if err != nil {
			return err
		}
		if len(name) > maxWord {
			return badField(name, "a name longer than %d bytes", maxWord)
		}
		f := Field{Name: name}
		if f.Value, err = d.value(1); err != nil {
			return &fieldError{name, err.Error()}
		}
		// An error is named by a plain word in JSON, where Jepsen has a keyword.
		// What ends with a brace instead was EDN's string.
		if f.Name == "error" && f.Value.kind == KindString && isKeywordName(f.Value.text) && d.text[d.at-1] == '"' {
			f.Value = Keyword(f.Value.text)
		}
		fields = append(fields, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if d.token() != 0 || d.at < len(d.text) {
		return nil, errors.New("more than one value: want one event a line")
	}
	return fields, nil
}

// jsonReader reads the values of one event, which is UTF-8 text. It is our own
// because encoding/json, which can neither keep the order of fields nor find
// one twice but by tokens, takes most of the time of a check with those.
type jsonReader struct {
	text   []byte
	at     int
	values int
}

// token returns the next byte that is no space; 0 at the end.
func (d *jsonReader) token() byte {
	for d.at < len(d.text) && isSpace(d.text[d.at]) {
		d.at++
	}
	if d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// entries reads what is parted by commas up to a closing bracket.
func (d *jsonReader) entries(closing byte, entry func() error) error {
	for first := true; ; first = false {
		c := d.token()
		if c == closing {
			d.at++
			return nil
		}
		if !first {
			if c != ',' {
				return d.unexpected("a comma")
			}
			d.at++
		}
		if err := entry(); err != nil {
			return err
		}
	}
}

func (d *jsonReader) unexpected(want string) error {
	if d.at >= len(d.text) {
		return errTruncated
	}
	r, _ := utf8.DecodeRune(d.text[d.at:])
	return fmt.Errorf("%q where %s should be", r, want)
}

// key reads the name of an entry, and its colon.
func (d *jsonReader) key() (string, error) {
	if d.token() != '"' {
		return "", d.unexpected("a name in quotes")
	}
	name, err := d.quoted()
	if err != nil {
		return "", err
	}
	if d.token() != ':' {
		return "", d.unexpected("a colon")
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
		if len(s) > 1 && s[0] == ':' && isKeywordName(s[1:]) {
			return Keyword(s[1:]), err
		}
		return String(s), err
	case c == '-' || isDigit(c):
		return d.number()
	case (c == '[' || c == '{') && depth > MaxDepth:
		return Value{}, errTooDeep
	case c == '[':
		d.at++
		v := Value{kind: KindVector}
		err := d.entries(']', func() error {
			e, err := d.value(depth + 1)
			v.list = append(v.list, e)
			return err
		})
		return v, err
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

func (d *jsonReader) object(depth int) (Value, error) {
	v := Value{kind: KindMap}
	err := d.entries('}', func() error {
		name, err := d.key()
		if err != nil {
			return err
		}
		e, err := d.value(depth + 1)
		v.list = append(v.list, decodeKey(name, depth), e)
		return err
	})
	if err == nil && len(v.list) == 2 && v.list[0].text == ednKey && v.list[1].kind == KindString {
		if e, err := parseEDN(v.list[1].text, depth); err == nil {
			return e, nil
		}
	}
	return v, err
}

// quoted reads a string from its opening quote to its closing one.
func (d *jsonReader) quoted() (string, error) {
	start := d.at + 1
	plain := true
	for d.at = start; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			text := d.text[start:d.at]
			d.at++
			if name, ok := commonNames[string(text)]; ok {
				return name, nil
			}
			if plain {
				return string(text), nil
			}
			var s string
			if err := json.Unmarshal(d.text[start-1:d.at], &s); err != nil {
				return "", fmt.Errorf("a string with a bad escape: %s", quote(string(text)))
			}
			return s, nil
		case c == '\\':
			plain = false
			d.at++
		case c < 0x20:
			return "", fmt.Errorf("byte %#02x in a string", c)
		}
	}
	d.at = len(d.text)
	return "", errTruncated
}

// commonNames spares most names and words of a history a copy of their own.
var commonNames = func() map[string]string {
	m := make(map[string]string)
	for _, s := range []string{
		"index", "time", "process", "type", "f", "key", "owner", "holder", "token", "highest", "ttl", "error", "value", "k", "v",
		"invoke", "ok", "fail", "info", "acquire", "renew", "release", "get", "write", "read", "fence", "lead", "cas", "held", "lost", "lapsed", "stale",
	} {
		m[s] = s
	}
	return m
}()

func (d *jsonReader) number() (Value, error) {
	start := d.at
	digits := func() bool {
		from := d.at
		for d.at < len(d.text) && isDigit(d.text[d.at]) {
			d.at++
		}
		return d.at > from
	}
	next := func(set string) bool {
		if d.at < len(d.text) && strings.IndexByte(set, d.text[d.at]) >= 0 {
			d.at++
			return true
		}
		return false
	}
	next("-")
	ok := next("0") || digits()
	if ok && next(".") {
		ok = digits()
	}
	if ok && next("eE") {
		next("+-")
		ok = digits()
	}
	if !ok {
		return Value{}, d.unexpected("a digit")
	}
	return numberValue(string(d.text[start:d.at])), nil
}

// decodeKey reads the key of a nested object. EDN's maps have keywords for
// keys, as a rule, where JSON has strings.
func decodeKey(name string, depth int) Value {
	if text, ok := strings.CutPrefix(name, ednKey+" "); ok {
		if v, err := parseEDN(text, depth+1); err == nil {
			return v
		}
	}
	if isKeywordName(name) {
		return Keyword(name)
	}
	return String(name)
}

func encodeKey(v Value) string {
	switch {
	case v.kind == KindKeyword && isKeywordName(v.text):
		return v.text
	case v.kind == KindString && !isKeywordName(v.text) && v.text != ednKey && !strings.HasPrefix(v.text, ednKey+" "):
		return v.text
	}
	return ednKey + " " + v.String()
}

// appendJSON appends v as JSON, so that decodeValue gives it back.
func (v Value) appendJSON(b []byte) []byte {
	switch v.kind {
	case KindNil:
		return append(b, "null"...)
	case KindBool, KindInt:
		return v.appendEDN(b)
	case KindNumber:
		if json.Valid([]byte(v.text)) {
			return append(b, v.text...)
		}
	case KindString:
		if len(v.text) < 2 || v.text[0] != ':' || !isKeywordName(v.text[1:]) {
			return appendJSONString(b, v.text)
		}
	case KindKeyword:
		if isKeywordName(v.text) {
			return appendJSONString(b, ":"+v.text)
		}
	case KindVector:
		b = append(b, '[')
		for i, e := range v.list {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.appendJSON(b)
		}
		return append(b, ']')
	case KindMap:
		b = append(b, '{')
		for i := 0; i+1 < len(v.list); i += 2 {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSONString(b, encodeKey(v.list[i])), ':')
			b = v.list[i+1].appendJSON(b)
		}
		return append(b, '}')
	}
	b = append(b, `{"`+ednKey+`":`...)
	return append(appendJSONString(b, v.String()), '}')
}

func appendJSONString(b []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\'
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		panic("linearizability: a string that JSON cannot say")
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
