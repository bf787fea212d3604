package linearizability

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Type says what an event is: the start of an operation, or one of its three
// ends. Its text is Jepsen's.
type Type uint8

// The types of an event.
const (
	Invoke Type = iota // the operation is called
	OK                 // it returned and took effect
	Fail               // it returned and certainly had no effect
	Info               // unknown: it may take effect at any instant from its call on, or never
)

var typeNames = [...]string{Invoke: "invoke", OK: "ok", Fail: "fail", Info: "info"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

const (
	// NoProcess is the process of a fault.
	NoProcess = -1
	// NoTime is the time of an event in a history that only has an order.
	NoTime = math.MinInt64
	// Unbounded is an instant or a bound that never comes: infinity.
	Unbounded = math.MaxInt64
)

// Field is one named value of an event.
type Field struct {
	Name  string
	Value Value
}

// Event is one line of a history: the call or the return of an operation, or
// a fault (an Info without a process, named by F).
type Event struct {
	Index   int64   // orders the events; unique, rising
	Time    int64   // nanoseconds on one monotonic clock, or NoTime
	Process int64   // the sequential caller, from 0, or NoProcess
	Type    Type    //
	F       string  // the operation, or the fault
	Fields  []Field // everything else, in the order of the file
	Line    int     // where the event was read, from 1; 0 if it was not read
}

// Field returns the value of the named field, nil if e has none.
func (e *Event) Field(name string) Value {
	for i := range e.Fields {
		if e.Fields[i].Name == name {
			return e.Fields[i].Value
		}
	}
	return Value{}
}

// clone returns an event that shares no fields with e.
func (e *Event) clone() *Event {
	c := *e
	c.Fields = slices.Clone(e.Fields)
	return &c
}

// Has reports whether e has the named field, be it nil.
func (e *Event) Has(name string) bool {
	return slices.ContainsFunc(e.Fields, func(f Field) bool { return f.Name == name })
}

// TokenRule says how the tokens of one resource follow each other.
type TokenRule string

// The token rules.
const (
	TokensNext   TokenRule = "next"   // each change of ownership gets exactly the next integer
	TokensRising TokenRule = "rising" // strictly greater: tokens from a replicated revision
	TokensNone   TokenRule = "none"   // the service has none
)

// Anchor says from when on a granted TTL may run.
type Anchor string

// The anchors.
const (
	AnchorGrant Anchor = "grant" // from the instant of the grant
	AnchorCall  Anchor = "call"  // from any instant since the call: a blocking acquire may start its TTL before it wins
)

// Meta says how a history was recorded and what the recorded service promises.
type Meta struct {
	// Drift bounds the rate error of the store's clock against the recorder's,
	// in parts per billion.
	Drift int64
	// Early and Late bound how long before its time, and how long after it, a
	// lease may lapse, in nanoseconds. Unbounded promises nothing.
	Early, Late int64
	// Eps is the error of a time stamp in nanoseconds. With 0 the order of the
	// events is real; above it two events closer than 2 Eps are unordered,
	// except within a process.
	Eps             int64
	Tokens          TokenRule
	Anchor          Anchor
	LockDelay       int64  // after a lapse nobody is granted for this long, in nanoseconds
	RenewAfterLapse bool   // an owner may renew a lapsed lease that nobody took
	First           uint64 // the first token granted; 0: any
	Barrier         bool   // clients fence the storages they write to before they lead
	// Slots is how many may hold one lease at once, each in a slot of its own; 0
	// for a lease without slots.
	Slots int
	// Journal says that times step back somewhere, as Jepsen's do: it stamps an
	// event first and puts it in order after. The order is then the journal's,
	// and an operation lies within its events both by order and by time.
	Journal bool
	Extra   []Field // what this version does not know
}

// DefaultMeta is what a history promises that does not say otherwise.
func DefaultMeta() Meta {
	return Meta{Late: Unbounded, Tokens: TokensNext, Anchor: AnchorGrant}
}

// History is a recorded run: what clients could observe of a service. Read
// makes it from a file, a Recorder from live code.
type History struct {
	Name   string // of the file, for messages
	Meta   Meta
	Events []Event
	// Notes say, for people, what the reader changed to make a file a history.
	Notes []string

	// effects are the calls, as positions in Events, in the order in which the
	// service carried them out, where that is known. It need not be searched for
	// then, unless it turns out to explain nothing.
	effects []int
}

// Op is one operation: its call and, if it returned, its return, as positions
// in History.Events.
type Op struct {
	Call   int
	Return int  // -1 if the history ends before
	Type   Type // OK, Fail or Info; Info if it did not return
}

// Ops returns the operations of a valid history in the order of their calls.
func (h *History) Ops() []Op {
	ops := make([]Op, 0, len(h.Events)/2)
	open := make(map[int64]int)
	for i := range h.Events {
		e := &h.Events[i]
		switch {
		case e.Process == NoProcess:
		case e.Type == Invoke:
			open[e.Process] = len(ops)
			ops = append(ops, Op{Call: i, Return: -1, Type: Info})
		default:
			op := &ops[open[e.Process]]
			op.Return, op.Type = i, e.Type
		}
	}
	return ops
}

// Faults returns the positions of the faults.
func (h *History) Faults() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range h.Events {
			if h.Events[i].Process == NoProcess && !yield(i) {
				return
			}
		}
	}
}

// Timed reports whether the events have times.
func (h *History) Timed() bool { return len(h.Events) > 0 && h.Events[0].Time != NoTime }
