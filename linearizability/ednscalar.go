package linearizability

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// This file reads the values of EDN that are no collections and no names.

// char reads a character: one letter, or the name of one.
func (r *ednReader) char() (Value, error) {
	c, err := r.s.next()
	if err != nil {
		return Value{}, truncated(err)
	}
	if isSpace(c) {
		return Value{}, errors.New("a backslash without a character")
	}
	char, err := r.word('\\', c)
	if err != nil {
		return Value{}, err
	}
	word := char.text
	switch name := word[1:]; {
	case utf8.RuneCountInString(name) == 1:
	case name == "newline", name == "return", name == "space", name == "tab", name == "formfeed", name == "backspace":
	case len(name) == 5 && name[0] == 'u':
		if _, err := strconv.ParseUint(name[1:], 16, 16); err != nil {
			return Value{}, fmt.Errorf("%s is no character", quote(word))
		}
	default:
		return Value{}, fmt.Errorf("%s is no character", quote(word))
	}
	return Value{kind: KindChar, body: char}, nil
}

// text reads a string after its opening quote.
func (r *ednReader) text() (Value, error) {
	r.buf = r.buf[:0]
	for {
		c, err := r.s.next()
		if err != nil {
			return Value{}, truncated(err)
		}
		switch c {
		case '"':
			if !utf8.Valid(r.buf) {
				return Value{}, errors.New("not UTF-8 text")
			}
			return Value{kind: KindString, body: r.texts.text(r.buf)}, nil
		case '\\':
			if err := r.escape(); err != nil {
				return Value{}, truncated(err)
			}
		default:
			r.buf = append(r.buf, c)
		}
	}
}

func (r *ednReader) escape() error {
	c, err := r.s.next()
	if err != nil {
		return err
	}
	if i := strings.IndexByte(`"\/nrtbf`, c); i >= 0 {
		r.buf = append(r.buf, "\"\\/\n\r\t\b\f"[i])
		return nil
	}
	if c != 'u' {
		return fmt.Errorf("unknown escape %q in a string", `\`+string(rune(c)))
	}
	u, err := r.hex4()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(u) {
		low, err := r.lowSurrogate()
		if err != nil {
			return err
		}
		if u = utf16.DecodeRune(u, low); u == utf8.RuneError {
			return errSurrogate
		}
	}
	r.buf = utf8.AppendRune(r.buf, u)
	return nil
}

// lowSurrogate reads the second half of a pair: \uXXXX\uXXXX.
func (r *ednReader) lowSurrogate() (rune, error) {
	for _, want := range []byte(`\u`) {
		c, err := r.s.next()
		if err != nil {
			return 0, err
		}
		if c != want {
			return 0, errSurrogate
		}
	}
	return r.hex4()
}

var errSurrogate = errors.New("half of a surrogate pair")

func (r *ednReader) hex4() (rune, error) {
	var digits [4]byte
	for i := range digits {
		c, err := r.s.next()
		if err != nil {
			return 0, err
		}
		digits[i] = c
	}
	n, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil {
		return 0, fmt.Errorf("\\u%s is no character", quote(string(digits[:])))
	}
	return rune(n), nil
}

// isEDNNumber accepts integers, decimals and ratios, with the marks of
// arbitrary precision.
func isEDNNumber(s string) bool {
	s = strings.TrimLeft(s[:1], "+-") + s[1:]
	digits := func() bool {
		n := 0
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if !digits() {
		return false
	}
	if s == "" || s == "N" || s == "M" {
		return true
	}
	if rest, ok := strings.CutPrefix(s, "/"); ok {
		s = rest
		return digits() && s == ""
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		s = rest
		digits()
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == "" || s == "M"
}
