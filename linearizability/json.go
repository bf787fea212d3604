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
	d := jsonReader{dec: json.NewDecoder(bytes.NewReader(text))}
	d.dec.UseNumber()
	tok, err := d.dec.Token()
	if err != nil {
		return nil, jsonError(err)
	}
	if tok != json.Delim('{') {
		return nil, errors.New("want an object")
	}
	fields := make([]Field, 0, 10)
	for d.dec.More() {
		name, err := d.dec.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		f := Field{Name: name.(string)}
		if len(f.Name) > maxWord {
			return nil, badField(f.Name, "a name longer than %d bytes", maxWord)
		}
		if f.Value, err = d.field(f.Name); err != nil {
			return nil, &fieldError{f.Name, jsonError(err).Error()}
		}
		fields = append(fields, f)
	}
	if _, err := d.dec.Token(); err != nil {
		return nil, jsonError(err)
	}
	if _, err := d.dec.Token(); err != io.EOF {
		return nil, errors.New("more than one value: want one event a line")
	}
	return fields, nil
}

func jsonError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
}

// jsonReader reads the values of one event.
type jsonReader struct {
	dec    *json.Decoder
	values int
}

// field reads the value of an event's field. An error is named by a plain word
// in JSON, where Jepsen has a keyword.
func (d *jsonReader) field(name string) (Value, error) {
	tok, err := d.dec.Token()
	if err != nil {
		return Value{}, err
	}
	if word, ok := tok.(string); ok && name == "error" && isKeywordName(word) {
		return Keyword(word), nil
	}
	return d.value(tok, 1)
}

// value reads the value that begins with a token.
func (d *jsonReader) value(tok json.Token, depth int) (Value, error) {
	if d.values++; d.values > MaxEventValues {
		return Value{}, errTooMany
	}
	switch t := tok.(type) {
	case nil:
		return Value{}, nil
	case bool:
		return Bool(t), nil
	case json.Number:
		return numberValue(t.String()), nil
	case string:
		if len(t) > 1 && t[0] == ':' && isKeywordName(t[1:]) {
			return Keyword(t[1:]), nil
		}
		return String(t), nil
	case json.Delim:
		if depth > MaxDepth {
			return Value{}, errTooDeep
		}
		if t == '[' {
			return d.array(depth)
		}
		return d.object(depth)
	}
	return Value{}, fmt.Errorf("unexpected %v", tok)
}

func (d *jsonReader) array(depth int) (Value, error) {
	v := Value{kind: KindVector}
	for d.dec.More() {
		tok, err := d.dec.Token()
		if err != nil {
			return Value{}, err
		}
		e, err := d.value(tok, depth+1)
		if err != nil {
			return Value{}, err
		}
		v.list = append(v.list, e)
	}
	_, err := d.dec.Token()
	return v, err
}

func (d *jsonReader) object(depth int) (Value, error) {
	v := Value{kind: KindMap}
	for d.dec.More() {
		name, err := d.dec.Token()
		if err != nil {
			return Value{}, err
		}
		tok, err := d.dec.Token()
		if err != nil {
			return Value{}, err
		}
		e, err := d.value(tok, depth+1)
		if err != nil {
			return Value{}, err
		}
		v.list = append(v.list, decodeKey(name.(string), depth), e)
	}
	if _, err := d.dec.Token(); err != nil {
		return Value{}, err
	}
	if len(v.list) == 2 && v.list[0].text == ednKey && v.list[1].kind == KindString {
		if e, err := parseEDN(v.list[1].text, depth); err == nil {
			return e, nil
		}
	}
	return v, nil
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
