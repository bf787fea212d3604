package linearizability

import (
	"bytes"
	"encoding/json"
	"strings"
)

// ednKey marks, in JSON, a value or key that only EDN can say: the object
// {"#edn": "text"}, or the key "#edn text".
const ednKey = "#edn"

func encodeKey(v Value) string {
	switch {
	case v.kind == KindKeyword && isKeywordName(v.text):
		return v.text
	case v.kind == KindString && !isKeywordName(v.text) && v.text != ednKey && !strings.HasPrefix(v.text, ednKey+" "):
		return v.text
	}
	return ednKey + " " + v.String()
}

// appendJSON appends v as JSON, so that a jsonReader gives it back.
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
