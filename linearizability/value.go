package linearizability

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind says what a Value is. The kinds are those of EDN, of which JSON is a
// part: nothing that either format can say is lost on the way to the other.
type Kind uint8

// The kinds of Value.
const (
	KindNil     Kind = iota
	KindBool         // true or false
	KindInt          // an integer that fits in int64
	KindNumber       // any other number, kept as it was spelled
	KindString       // text
	KindKeyword      // :name, without the colon
	KindSymbol       // a bare name
	KindChar         // \c, with the backslash
	KindList         // (a b)
	KindVector       // [a b], JSON's array
	KindSet          // #{a b}
	KindMap          // {k v}, JSON's object; keys and values alternate
	KindTagged       // #tag value
)

// Value is one value of an event's field. It is immutable, and its zero value
// is nil. Two values are compared with Equal, never with ==.
//
// It is three words, because a history holds millions: what does not fit is
// behind a pointer, which equal texts of one history share.
type Value struct {
	kind  Kind
	num   int64 // of KindBool and KindInt
	*body       // of all kinds but KindNil, KindBool and KindInt, which have none
}

// body is what a value refers to.
type body struct {
	text string
	list []Value
}

// Bool, Int, Uint, String and Keyword make scalar values, and Vector one of many.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, num: 1}
	}
	return Value{kind: KindBool}
}

// Int makes an integer.
func Int(n int64) Value { return Value{kind: KindInt, num: n} }

// Uint makes an integer, which may be above the range of int64.
func Uint(n uint64) Value {
	if n <= 1<<63-1 {
		return Int(int64(n))
	}
	return textValue(KindNumber, strconv.FormatUint(n, 10))
}

// String makes text.
func String(s string) Value { return textValue(KindString, s) }

// Keyword makes an EDN keyword from its name, which is given without the colon.
func Keyword(name string) Value { return textValue(KindKeyword, name) }

// Vector makes an array.
func Vector(elems ...Value) Value { return listValue(KindVector, slices.Clone(elems)) }

func textValue(kind Kind, text string) Value { return Value{kind: kind, body: &body{text: text}} }

func listValue(kind Kind, list []Value) Value { return Value{kind: kind, body: &body{list: list}} }

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// IsNil reports whether v is nil, JSON's null.
func (v Value) IsNil() bool { return v.kind == KindNil }

// Int returns v as an integer; false if it is none or does not fit.
func (v Value) Int() (int64, bool) { return v.num, v.kind == KindInt }

// Uint returns v as an integer that is not negative; false if it is none or
// does not fit.
func (v Value) Uint() (uint64, bool) {
	switch v.kind {
	case KindInt:
		return uint64(v.num), v.num >= 0
	case KindNumber:
		n, err := strconv.ParseUint(v.text, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Bool returns v as a boolean; false if it is none.
func (v Value) Bool() (b, ok bool) { return v.num == 1, v.kind == KindBool }

// Word returns the text of a string, keyword or symbol; false if v is none.
// Jepsen writes :held where JSON writes "held": they are one word.
func (v Value) Word() (string, bool) {
	switch v.kind {
	case KindString, KindKeyword, KindSymbol:
		return v.text, true
	}
	return "", false
}

// Elems returns the elements of a list, vector or set.
func (v Value) Elems() []Value {
	switch v.kind {
	case KindList, KindVector, KindSet:
		return slices.Clone(v.list)
	}
	return nil
}

// Equal reports whether v and w are one value. The order of the entries of a
// map or set does not matter; a list equals a vector with its elements, as in
// EDN.
func (v Value) Equal(w Value) bool {
	if v.kind == w.kind && v.kind < KindList {
		return v.num == w.num && (v.body == w.body || v.text == w.text)
	}
	return v.kind >= KindList && w.kind >= KindList && v.canonical() == w.canonical()
}

// String returns v in EDN.
func (v Value) String() string { return string(v.appendEDN(nil)) }

// canonical is a spelling that equal values share and others do not, so that
// values can be the keys of a map.
func (v Value) canonical() string {
	switch v.kind {
	case KindList, KindVector:
		parts := make([]string, len(v.list))
		for i, e := range v.list {
			parts[i] = e.canonical()
		}
		return "[" + strings.Join(parts, " ") + "]"
	case KindSet:
		parts := make([]string, len(v.list))
		for i, e := range v.list {
			parts[i] = e.canonical()
		}
		slices.Sort(parts)
		return "#{" + strings.Join(parts, " ") + "}"
	case KindMap:
		parts := make([]string, 0, len(v.list)/2)
		for i := 0; i+1 < len(v.list); i += 2 {
			parts = append(parts, v.list[i].canonical()+" "+v.list[i+1].canonical())
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case KindTagged:
		return "#" + v.text + " " + v.list[0].canonical()
	}
	return v.String()
}

// appendEDN appends v as EDN.
func (v Value) appendEDN(b []byte) []byte {
	switch v.kind {
	case KindNil:
		return append(b, "nil"...)
	case KindBool:
		return strconv.AppendBool(b, v.num == 1)
	case KindInt:
		return strconv.AppendInt(b, v.num, 10)
	case KindString:
		return appendEDNString(b, v.text)
	case KindKeyword:
		return append(append(b, ':'), v.text...)
	case KindList:
		return append(appendEDNList(append(b, '('), v.list), ')')
	case KindVector:
		return append(appendEDNList(append(b, '['), v.list), ']')
	case KindSet:
		return append(appendEDNList(append(b, "#{"...), v.list), '}')
	case KindMap:
		return append(appendEDNList(append(b, '{'), v.list), '}')
	case KindTagged:
		b = append(append(append(b, '#'), v.text...), ' ')
		return v.list[0].appendEDN(b)
	default: // number, symbol, char: kept as spelled
		return append(b, v.text...)
	}
}

func appendEDNList(b []byte, list []Value) []byte {
	for i, e := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		b = e.appendEDN(b)
	}
	return b
}

func appendEDNString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// numberValue makes a value of the spelling of a number: an Int where that is
// all it says, so that 7 is one value in every format.
func numberValue(text []byte) Value {
	if n, ok := plainInt(text); ok {
		return Int(n)
	}
	return textValue(KindNumber, string(text))
}

// plainInt returns the integer that is spelled as strconv would spell it.
func plainInt(text []byte) (int64, bool) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	var n uint64 // 19 digits fit
	for _, c := range digits {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if len(digits) < len(text) {
		return int64(-n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// isKeywordName reports whether :s is a keyword that every EDN reader takes.
func isKeywordName(s string) bool {
	return s != "" && len(s) <= maxWord && isSymbol(s)
}

// isSymbol follows EDN's rule for symbols: it begins with no digit, nor with a
// sign or point before a digit, and has at most one slash, inside.
func isSymbol(s string) bool {
	slash := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', strings.IndexByte("*!_?$%&=<>", c) >= 0:
		case c == '+' || c == '-' || c == '.':
			if i == 0 && len(s) > 1 && isDigit(s[1]) {
				return false
			}
		case isDigit(c) || c == '#' || c == ':' || c == '\'':
			if i == 0 {
				return false
			}
		case c == '/':
			if s == "/" {
				return true
			}
			if slash || i == 0 || i == len(s)-1 {
				return false
			}
			slash = true
		default:
			return false
		}
	}
	return s != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// decimal returns the text of a number as an integer of 10^-digits, exactly;
// false if it has more digits than that or is out of range.
func (v Value) decimal(digits int) (int64, bool) {
	if v.kind != KindInt && v.kind != KindNumber {
		return 0, false
	}
	text := v.String()
	if len(text) > 40 || strings.ContainsAny(text, "/") {
		return 0, false // a ratio, or an exponent meant to cost memory
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(text[i+1:]); err != nil || exp < -40 || exp > 40 {
			return 0, false
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}
