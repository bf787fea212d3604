package linearizability

import "fmt"

// operation is one operation on its way into the checks: its place, and its
// events, which are valid only while it is handed over.
type operation struct {
	span
	file    string
	meta    *Meta
	ttl     int64 // of a lease, in nanoseconds, where the events say none; 0: they must
	invoked *Event
	ended   *Event // nil if it did not return
}

// field returns the named field of an operation: that of its return if it says
// something, else that of its call.
func (o *operation) field(name string) Value {
	if o.ended != nil {
		if v := o.ended.Field(name); !v.IsNil() {
			return v
		}
	}
	return o.invoked.Field(name)
}

// leaseTTL returns the TTL that it asks for; 0 if it says none.
func (o *operation) leaseTTL() int64 {
	if v := o.field("ttl"); !v.IsNil() {
		ttl, _ := v.Int()
		return ttl
	}
	if o.invoked.F == "acquire" || o.invoked.F == "renew" {
		return o.ttl
	}
	return 0
}

// clone returns an operation whose events stay.
func (o *operation) clone() *operation {
	c := *o
	c.invoked = o.invoked.clone()
	if o.ended != nil {
		c.ended = o.ended.clone()
	}
	return &c
}

// name returns the text of the named field, "" if absent.
func (o *operation) name(field string) string {
	s, _ := o.field(field).identity()
	return s
}

// errorWord returns the first word of its error: "stale" also of ["stale", 34].
func (o *operation) errorWord() string {
	if o.ended == nil {
		return ""
	}
	v := o.ended.Field("error")
	if (v.kind == KindVector || v.kind == KindList) && len(v.list) > 0 {
		v = v.list[0]
	}
	word, _ := v.Word()
	return word
}

// invokedError says what is wrong with one field of the call, endedError with
// one of the return.
func (o *operation) invokedError(field, format string, args ...any) error {
	return o.errorAt(o.invoked, o.Call, field, format, args...)
}

func (o *operation) endedError(field, format string, args ...any) error {
	return o.errorAt(o.ended, o.Return, field, format, args...)
}

func (o *operation) errorAt(e *Event, pos int, field, format string, args ...any) error {
	line := e.Line
	if line == 0 {
		line = pos + 1
	}
	return &SyntaxError{File: o.file, Line: line, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// compiler makes a partition of operations that it is given one by one. It
// keeps nothing of their events.
type compiler interface {
	// add takes an operation. They may come in any order.
	add(o *operation) error
	// compile makes the partition of what had been called before a place;
	// whatever returned only after it is of unknown outcome there.
	compile(until int64) (partition, error)
}

// by is the operation as it was known at a place: false if it had not been
// called.
func (s span) by(until int64) (span, bool) {
	if s.ret > until {
		s.Return, s.Type, s.ret = -1, Info, Unbounded
	}
	return s, s.call <= until
}
