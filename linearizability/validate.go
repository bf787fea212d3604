package linearizability

import "slices"

// validator checks, event by event, that a history is one: a checker answers
// "violated" to a malformed history as readily as to a wrong service.
type validator struct {
	n       int
	index   int64 // of the last event
	time    int64 // of the last event
	timed   bool
	eps     int64
	mayStep bool // times may step back, as in a journal
	steps   bool // and one did
	process map[int64]*caller
}

// caller is what is known of one process.
type caller struct {
	open bool
	dead bool // its last operation ended as info
	line int  // of its last event
	time int64
	f    string
	key  Value
}

// add checks the next event.
func (v *validator) add(e *Event) error {
	first := v.n == 0
	v.n++
	if e.Process == NoProcess && e.Type != Info {
		return badField("process", "missing: only a fault, of type info, has no process")
	}
	if e.Process < NoProcess {
		return badField("process", "%d is negative", e.Process)
	}
	if int(e.Type) >= len(typeNames) {
		return badField("type", "%s is no type", e.Type)
	}
	switch {
	case first:
	case e.Index == v.index:
		return badField("index", "%d appears twice: every event has its own", e.Index)
	case e.Index < v.index:
		return badField("index", "%d comes after %d: want the events in the order of their index", e.Index, v.index)
	}
	v.index = e.Index
	switch timed := e.Time != NoTime; {
	case first:
		v.timed = timed
	case timed != v.timed:
		return badField("time", "on some events only: want it on all or on none")
	case timed && e.Time < v.time && v.eps == 0:
		if !v.mayStep {
			return badField("time", "%d is before %d, the event before it: want one clock that never steps back, or meta's eps or journal", e.Time, v.time)
		}
		v.steps = true
	}
	v.time = e.Time
	if e.Process == NoProcess {
		return nil
	}
	return v.call(e)
}

// call checks an event against its process, which is sequential.
func (v *validator) call(e *Event) error {
	if v.process == nil {
		v.process = make(map[int64]*caller)
	}
	c := v.process[e.Process]
	if c == nil {
		c = &caller{time: NoTime}
		v.process[e.Process] = c
	}
	switch {
	case c.dead:
		return badField("process", "%d goes on after its operation of line %d ended as info: give it a new number", e.Process, c.line)
	case e.Time < c.time:
		return badField("time", "%d is before %d, the event of process %d in line %d", e.Time, c.time, e.Process, c.line)
	case e.Type == Invoke && c.open:
		return badField("process", "%d calls %s while its %s of line %d is open", e.Process, quote(e.F), quote(c.f), c.line)
	case e.Type != Invoke && !c.open:
		return badField("process", "%d returns from %s without a call", e.Process, quote(e.F))
	case e.Type != Invoke && e.F != c.f:
		return badField("f", "%s returns, but process %d called %s in line %d", quote(e.F), e.Process, quote(c.f), c.line)
	}
	if key := e.Field("key"); e.Type == Invoke {
		c.key = key
	} else if !key.IsNil() && !c.key.IsNil() && !key.Equal(c.key) {
		return badField("key", "%s returns, but process %d called with %s in line %d", quote(key.String()), e.Process, quote(c.key.String()), c.line)
	}
	c.open, c.dead = e.Type == Invoke, e.Type == Info
	c.line, c.time, c.f = e.Line, e.Time, e.F
	return nil
}

// checkName refuses a field that stands for what an event has by itself. Only a
// fault may say who brought it about, and as which type of event.
func (e *Event) checkName(f Field) error {
	word, named := f.Value.Word()
	switch f.Name {
	case "process":
		if e.Process == NoProcess && named {
			return nil
		}
	case "type":
		if e.Process == NoProcess && slices.Contains(typeNames[:], word) {
			return nil
		}
	case "index", "time", "f":
	default:
		return nil
	}
	return badField(f.Name, "is the event's own: want another name for a field")
}

// Validate reports the first event that breaks the rules of a history: each
// process is sequential and calls no more after an info, an index rises, a
// time never steps back (unless Meta's Eps or Journal says why), and the
// fields that all operations share have their type. Read does so by itself.
func (h *History) Validate() error {
	v := validator{eps: h.Meta.Eps, mayStep: h.Meta.Journal}
	for i := range h.Events {
		e := &h.Events[i]
		line := e.Line
		if line == 0 {
			line = i + 1
		}
		if !isOperation(e.F) {
			return at(badField("f", "want the name of an operation, not %s", quote(e.F)), h.Name, line)
		}
		if e.Time != NoTime && (e.Time < 0 || e.Time > maxInstant) {
			return at(badField("time", "%d is out of range: want 0 to 2^61", e.Time), h.Name, line)
		}
		if name, ok := repeated(e.Fields); ok {
			return at(badField(name, "appears twice"), h.Name, line)
		}
		for _, f := range e.Fields {
			if err := e.checkName(f); err != nil {
				return at(err, h.Name, line)
			}
			if err := checkField(f); err != nil {
				return at(err, h.Name, line)
			}
		}
		numbered := *e
		numbered.Line = line
		if err := v.add(&numbered); err != nil {
			return at(err, h.Name, line)
		}
	}
	return nil
}
