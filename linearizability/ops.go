package linearizability

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// opsHeader begins a file of FormatOps. Format has its grammar.
const opsHeader = "# fencepost ops"

// opsReader reads operations, and gives their events in order. It holds the
// returns that are not due, as many as operations are under way.
type opsReader struct {
	s     *source
	texts *interner
	call  *opsEvent          // of the line read last, unless it was given out
	ret   *opsEvent          // of the same line
	held  opsHeap            // returns that are not due
	open  map[int64]opsEvent // those among them by process
	ended bool
}

// opsEvent is one end of an operation.
type opsEvent struct {
	at      int64 // index, or time where there is none
	line    int
	process int64
	fields  []Field
}

func (o *opsReader) next() ([]Field, int, error) {
	for {
		if o.call == nil && !o.ended {
			line := o.s.line
			text, err := o.s.readLine()
			if err == io.EOF {
				o.ended = true
				continue
			}
			if err != nil {
				return nil, line, err
			}
			text = bytes.TrimRight(text, " \t\r")
			if len(text) == 0 || text[0] == '#' {
				continue
			}
			if meta, err := o.line(text, line); err != nil || meta != nil {
				return meta, line, err
			}
		}
		if len(o.held) > 0 && o.due() {
			e := heap.Pop(&o.held).(opsEvent)
			if o.open[e.process].line == e.line {
				delete(o.open, e.process)
			}
			return e.fields, e.line, nil
		}
		if o.call == nil {
			return nil, o.s.line, io.EOF
		}
		e := *o.call
		o.call = nil
		if o.ret != nil {
			heap.Push(&o.held, *o.ret)
			if o.open == nil {
				o.open = make(map[int64]opsEvent)
			}
			o.open[e.process] = *o.ret
			o.ret = nil
		}
		return e.fields, e.line, nil
	}
}

// due reports whether the first of the held returns comes before the next call.
func (o *opsReader) due() bool {
	if o.call == nil || o.held[0].at < o.call.at {
		return true
	}
	own, ok := o.open[o.call.process]
	return ok && own.at <= o.call.at
}

// opsHeap has the earliest event first, and of two at one instant that of the
// earlier line.
type opsHeap []opsEvent

func (h opsHeap) Len() int { return len(h) }
func (h opsHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].line < h[j].line
}
func (h opsHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *opsHeap) Push(e any)   { *h = append(*h, e.(opsEvent)) }
func (h *opsHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// line reads a line into o.call and o.ret, or returns the meta record.
func (o *opsReader) line(text []byte, line int) ([]Field, error) {
	instants, rest := column(text)
	if string(instants) == "meta" {
		fields, ret, err := o.fields(rest, nil)
		if err == nil && ret != nil {
			err = errors.New("a meta line has no return")
		}
		entries := make([]Value, 0, 2*len(fields))
		for _, f := range fields {
			entries = append(entries, String(f.Name), f.Value)
		}
		return []Field{{"meta", listValue(KindMap, entries)}}, err
	}
	from, to, isOp := bytes.Cut(instants, []byte(".."))
	process, rest := column(rest)
	f, rest, err := o.operation(rest)
	if err != nil {
		return nil, err
	}
	outcome, rest := column(rest)
	switch {
	case len(outcome) == 0:
		return nil, errors.New("want instants, process, f and outcome")
	case isOp == (string(process) == "-") || isOp == (string(outcome) == "fault"):
		return nil, errors.New("want call..return, a process and its outcome, or one instant, - and fault")
	case isOp && (string(outcome) == Invoke.String() || !slices.Contains(typeNames[:], string(outcome))):
		return nil, badField("outcome", "want ok, fail, info or fault, not %s", quote(string(outcome)))
	case isOp && len(to) == 0 && string(outcome) != Info.String():
		return nil, badField("outcome", "%s without the instant of the return: want info", quote(string(outcome)))
	}
	columns := faultColumns
	if isOp {
		columns = opColumns
	}
	fields, ret, err := o.fields(rest, columns)
	if err != nil {
		return nil, err
	}
	if ret != nil && len(to) == 0 {
		return nil, errors.New("fields of a return, but no instant of one")
	}
	call := opsEvent{line: line, process: NoProcess}
	head, err := instantFields(from, &call.at)
	if err != nil {
		return nil, err
	}
	if !isOp {
		for name, v := range map[string]Value{"process": Keyword(nemesis), "type": Keyword(Info.String())} {
			if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
				head = append(head, Field{name, v})
			}
		}
		call.fields = append(append(head, Field{"f", f}), fields...)
		o.call = &call
		return nil, nil
	}
	n, ok := plainInt(process)
	if !ok || n < 0 {
		return nil, badField("process", "want an integer from 0, or - for a fault, not %s", quote(string(process)))
	}
	call.process = n
	common := []Field{{"process", Int(n)}, {"f", f}}
	call.fields = slices.Concat(head, common, []Field{{"type", Keyword(Invoke.String())}}, fields)
	o.call = &call
	if len(to) == 0 {
		return nil, nil
	}
	end := opsEvent{line: line, process: n}
	if head, err = instantFields(to, &end.at); err != nil {
		return nil, err
	}
	if end.at < call.at {
		return nil, fmt.Errorf("returns at %s, before its call at %s", quote(string(to)), quote(string(from)))
	}
	end.fields = slices.Concat(head, common, []Field{{"type", Value{kind: KindKeyword, body: o.texts.text(outcome)}}}, ret)
	o.ret = &end
	return nil, nil
}

// column splits text after its first column.
func column(text []byte) (col, rest []byte) {
	i := bytes.IndexAny(text, " \t")
	if i < 0 {
		return text, nil
	}
	return text[:i], bytes.TrimLeft(text[i:], " \t")
}

// operation reads the column of the operation, which may be in quotes.
func (o *opsReader) operation(text []byte) (Value, []byte, error) {
	if len(text) == 0 || text[0] != '"' {
		name, rest := column(text)
		if len(name) > 0 && !isKeywordName(string(name)) {
			return Value{}, nil, badField("f", "%s: want it in quotes", quote(string(name)))
		}
		return Value{kind: KindString, body: o.texts.text(name)}, rest, nil
	}
	r := textReader(text, o.texts)
	v, err := r.value(1)
	if err != nil {
		return Value{}, nil, &fieldError{"f", truncated(err).Error()}
	}
	_, rest := column(text[r.s.at:])
	return v, rest, nil
}

// instantFields reads index, index@time or @time. At is what orders it.
func instantFields(text []byte, at *int64) ([]Field, error) {
	index, time, timed := bytes.Cut(text, []byte{'@'})
	fields := make([]Field, 0, 2)
	for _, part := range []struct {
		name string
		text []byte
		used bool
	}{{"time", time, timed}, {"index", index, len(index) > 0 || !timed}} {
		if !part.used {
			continue
		}
		n, ok := plainInt(part.text)
		if !ok || n < 0 {
			return nil, badField(part.name, "%s is no instant: want index, index@time or @time", quote(string(text)))
		}
		*at = n
		fields = append(fields, Field{part.name, Int(n)})
	}
	return fields, nil
}

// The columns of an operation and of a fault, which are no fields of it.
var (
	opColumns    = []string{"index", "time", "f", "process", "type"}
	faultColumns = opColumns[:3]
)

// fields reads the fields of a call and, after an arrow, those of its return;
// ret is nil if there is no arrow.
func (o *opsReader) fields(text []byte, columns []string) (call, ret []Field, err error) {
	list := &call
	r := textReader(text, o.texts)
	for r.s.at < r.s.end {
		word, _ := column(r.s.buf[r.s.at:r.s.end])
		if len(word) == 0 {
			r.s.at++
			continue
		}
		if string(word) == "->" {
			if list == &ret {
				return nil, nil, errors.New("two arrows")
			}
			list, ret = &ret, []Field{}
			r.s.at += len(word)
			continue
		}
		f, err := opsField(r)
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(columns, f.Name) {
			return nil, nil, badField(f.Name, "is a column, and not a field")
		}
		*list = append(*list, f)
	}
	return call, ret, nil
}

// opsField reads a name, an equals sign and a value.
func opsField(r *ednReader) (Field, error) {
	var name string
	rest := r.s.buf[r.s.at:r.s.end]
	if rest[0] == '"' {
		v, err := r.value(1)
		if err != nil {
			return Field{}, truncated(err)
		}
		name = v.text
	} else {
		i := bytes.IndexByte(rest, '=')
		if i < 0 || !isFieldName(string(rest[:i])) {
			word, _ := column(rest)
			return Field{}, fmt.Errorf("%s is no field: want name=value, and a name that is no keyword's in quotes", quote(string(word)))
		}
		name = r.texts.text(rest[:i]).text
		r.s.at += i
	}
	if len(name) > maxWord {
		return Field{}, badField(name, "a name longer than %d bytes", maxWord)
	}
	if r.s.at == r.s.end || r.s.buf[r.s.at] != '=' {
		return Field{}, badField(name, "want an equals sign after the name")
	}
	r.s.at++
	if _, err := r.skip(1); err != nil {
		return Field{}, &fieldError{name, truncated(err).Error()}
	}
	v, err := r.value(1)
	if err != nil {
		return Field{}, &fieldError{name, truncated(err).Error()}
	}
	if r.s.at < r.s.end && !isSpace(r.s.buf[r.s.at]) {
		return Field{}, badField(name, "want a space after the value")
	}
	return Field{name, v}, nil
}

// isFieldName reports whether a name needs no quotes.
func isFieldName(name string) bool {
	return isKeywordName(name) && name[0] != '-' && !bytes.ContainsRune([]byte(name), '=')
}

// opsWriter is the inverse of opsReader.
type opsWriter struct {
	out  *output
	wait []*opsLine // lines in order, from the first that is not complete
	open map[int64]*opsLine
}

// opsLine is a line that waits for its return.
type opsLine struct {
	call   []byte // the instant
	middle []byte // process and f
	ret    []byte // the instant, if it returned
	end    Type
	fields []byte
	done   bool
	fault  bool
	line   int // its event was read from
}

func (o *opsWriter) meta(m Meta, _ bool) error {
	b := append(o.out.buf[:0], opsHeader+": call..return, process, f, outcome, fields of the call -> fields of the return; an instant is index@nanoseconds\nmeta\t"...)
	return o.out.record(bytes.TrimRight(appendOpsFields(b, m.fields()), " "), 0)
}

func (o *opsWriter) event(e *Event) error {
	switch {
	case e.Process == NoProcess:
		l := &opsLine{call: appendOpsInstant(nil, e), done: true, fault: true, line: e.Line}
		l.middle = appendOpsWord([]byte("\t-\t"), e.F, isKeywordName(e.F))
		l.fields = appendOpsFields(nil, e.Fields)
		o.wait = append(o.wait, l)
	case e.Type == Invoke:
		l := &opsLine{call: appendOpsInstant(nil, e), end: Info, line: e.Line}
		l.middle = strconv.AppendInt([]byte{'\t'}, e.Process, 10)
		l.middle = appendOpsWord(append(l.middle, '\t'), e.F, isKeywordName(e.F))
		l.fields = appendOpsFields(nil, e.Fields)
		if o.open == nil {
			o.open = make(map[int64]*opsLine)
		}
		o.open[e.Process] = l
		o.wait = append(o.wait, l)
	default:
		l := o.open[e.Process]
		if l == nil {
			return o.out.at(badField("process", "%d returns from %s without a call", e.Process, quote(e.F)), e.Line)
		}
		delete(o.open, e.Process)
		l.ret, l.end, l.done = appendOpsInstant(nil, e), e.Type, true
		if len(e.Fields) > 0 {
			l.fields = appendOpsFields(append(l.fields, "-> "...), e.Fields)
		}
	}
	return o.flush(false)
}

func (o *opsWriter) end() error { return o.flush(true) }

// flush writes the lines that wait for nothing; all writes those that wait for
// a return, too.
func (o *opsWriter) flush(all bool) error {
	n := 0
	for ; n < len(o.wait) && (all || o.wait[n].done); n++ {
		l := o.wait[n]
		b := append(o.out.buf[:0], l.call...)
		outcome := "fault"
		if !l.fault {
			b, outcome = append(append(b, ".."...), l.ret...), l.end.String()
		}
		b = append(append(append(b, l.middle...), '\t'), outcome...)
		if len(l.fields) > 0 {
			b = append(append(b, '\t'), bytes.TrimSuffix(l.fields, []byte{' '})...)
		}
		if err := o.out.record(b, l.line); err != nil {
			return err
		}
		o.wait[n] = nil
	}
	o.wait = o.wait[n:]
	return nil
}

func appendOpsInstant(b []byte, e *Event) []byte {
	b = strconv.AppendInt(b, e.Index, 10)
	if e.Time != NoTime {
		b = strconv.AppendInt(append(b, '@'), e.Time, 10)
	}
	return b
}

// appendOpsFields appends each field and a space.
func appendOpsFields(b []byte, fields []Field) []byte {
	for _, f := range fields {
		b = append(appendOpsWord(b, f.Name, isFieldName(f.Name)), '=')
		b = append(f.Value.appendEDN(b), ' ')
	}
	return b
}

func appendOpsWord(b []byte, word string, plain bool) []byte {
	if plain {
		return append(b, word...)
	}
	return appendEDNString(b, word)
}
