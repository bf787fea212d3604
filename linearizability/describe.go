package linearizability

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// String says what an operation was, with all its fields.
func (o *operation) String() string {
	s := o.invoked.F
	for _, f := range o.invoked.Fields {
		if !f.Value.IsNil() {
			s += " " + showField(f)
		}
	}
	if o.ended == nil {
		return s + " → never returned"
	}
	s += " → " + o.Type.String()
	for _, f := range o.ended.Fields {
		if !f.Value.IsNil() && !f.Value.Equal(o.invoked.Field(f.Name)) {
			s += " " + showField(f)
		}
	}
	return s
}

func showField(f Field) string {
	v := f.Value.String()
	if word, ok := f.Value.Word(); ok {
		v = word
	}
	if len(v) > 40 || !plain(v) {
		v = quote(v)
	}
	if f.Name == "value" {
		return v
	}
	return f.Name + "=" + v
}

// label says in a few words what it was asked and told.
func (o *operation) label() string {
	s := o.invoked.F
	for _, name := range [...]string{"token", "k", "v", "value"} {
		if v := o.invoked.Field(name); !v.IsNil() {
			s += " " + brief(v)
		}
	}
	if o.ended == nil || o.Type == Info {
		return s + " ?"
	}
	if o.Type == Fail {
		s += " refused"
		if word := o.errorWord(); word != "" {
			s += ": " + word
		}
	}
	told := ""
	for _, name := range [...]string{"token", "owner", "holder", "highest", "v", "value"} {
		if v := o.ended.Field(name); !v.IsNil() && !v.Equal(o.invoked.Field(name)) {
			told += " " + brief(v)
		}
	}
	if told != "" {
		s += " →" + told
	}
	return s
}

func brief(v Value) string {
	text, ok := v.Word()
	if !ok {
		text = v.String()
	}
	if len(text) > 16 {
		return quote(text[:12])
	}
	if !plain(text) {
		return quote(text)
	}
	return text
}

// plain reports whether a text does no more to a terminal than to be read.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// where names the event that ended it, or its call.
func (o *operation) where() string {
	e := o.invoked
	if o.ended != nil {
		e = o.ended
	}
	if e.Line > 0 {
		return fmt.Sprintf("line %d", e.Line)
	}
	return fmt.Sprintf("event %d", e.Index)
}

// tell puts into words where each violated partition has no explanation, and
// what findings show: it reads the events in question once more.
func (v *Verdict) tell() error {
	stuck, ends := make(map[int]*operation), make(map[int]*operation) // by position of the call, and of the return
	last := -1
	for _, p := range v.Partitions {
		if p.Result == Violated && p.Reason == "" {
			o := &operation{span: span{Op: p.stuck}}
			stuck[p.stuck.Call], ends[p.stuck.Return] = o, o
			last = max(last, p.stuck.Return)
		}
	}
	shown := make(map[int64]string) // by index
	until := int64(-1)
	for _, f := range v.Findings {
		for _, index := range f.Indexes {
			shown[index] = ""
			until = max(until, index)
		}
	}
	if last < 0 && until < 0 {
		return nil
	}
	err := v.source.events(func(pos int, e *Event) bool {
		if o := stuck[pos]; o != nil {
			o.invoked = e.clone()
		}
		if o := ends[pos]; o != nil {
			o.ended = e.clone()
		}
		if _, ok := shown[e.Index]; ok {
			shown[e.Index] = string(e.appendJSON(nil))
		}
		return pos < last || e.Index < until
	})
	if err != nil {
		return err
	}
	for i := range v.Findings {
		f := &v.Findings[i]
		for _, index := range f.Indexes {
			f.Shows = append(f.Shows, shown[index])
		}
	}
	for i := range v.Partitions {
		p := &v.Partitions[i]
		if p.Result != Violated || p.Reason != "" {
			continue
		}
		o := stuck[p.stuck.Call]
		if o.invoked == nil || o.ended == nil {
			return fmt.Errorf("history: %s changed while it was checked", v.File)
		}
		p.Line, p.Index = o.ended.Line, o.ended.Index
		p.Reason = fmt.Sprintf("no order of the operations explains %s: process %d: %v", o.where(), o.ended.Process, o)
		if o.Type == Fail && p.Model != ModelLease && p.Model != ModelStorage {
			// Until then it could have been the explanation.
			p.Reason = fmt.Sprintf("no order explains the operations before %s, where one turns out to have failed: process %d: %v", o.where(), o.ended.Process, o)
		}
	}
	return nil
}
