package evidence

import "math"

// Unbounded is the instant that never comes: the return of an operation
// without one, the end of a lease that may never lapse. -Unbounded is before
// every instant. An infinite end is drawn as open.
const Unbounded int64 = math.MaxInt64

// Page is all that a picture says. Instants are in its Unit, on one axis for
// all resources. Every string may hold anything.
type Page struct {
	Title   string // what was checked: a file, a test
	Verdict Verdict
	Model   string   // what it was checked against
	Reason  string   // one sentence: what is violated, or why it is unknown
	Blame   Blame    // of the verdict
	Notes   []string // what weakens the verdict
	Command string   // that reproduces it
	Unit    Unit
	// Findings are in the order in which a reader goes through them. The first
	// that violates is in view when the page opens.
	Findings []Finding
	Faults   []Fault // that concern every resource
	// Resources are drawn one below the other. Of more than a few, those that
	// are violated or have a finding come first.
	Resources []Resource
	// Omitted counts the operations which the caller left out of Resources.
	Omitted int
}

// Verdict is the result of a check, of all or of one resource.
type Verdict string

// The verdicts. Unknown is not a pass.
const (
	Holds    Verdict = "holds"
	Violated Verdict = "violated"
	Unknown  Verdict = "unknown"
)

// Blame is whose fault a violation is.
type Blame string

// The parties.
const (
	Nobody   Blame = ""         // or nobody knows
	Store    Blame = "store"    // granted what it must not
	Client   Blame = "client"   // acted without the right to
	Storage  Blame = "storage"  // let land what it must refuse
	Recorder Blame = "recorder" // what it wrote cannot have happened
)

// Unit is what instants count.
type Unit uint8

// The units.
const (
	Nanoseconds Unit = iota // on one clock, from any zero
	Order                   // places in the history: it has no times
)

// Span is a stretch of time, from From up to To. It is empty if From > To, and
// a point if they are equal.
type Span struct{ From, To int64 }

// Finding is one thing that is wrong, or only worth knowing.
type Finding struct {
	Check    string // its name, such as belief-safety
	Text     string // one sentence
	Blame    Blame
	Violates bool  // false if only worth knowing
	Ops      []int // the operations that show it
	// Spans are when it was so, such as the overlap of two beliefs. With none
	// it is drawn from the first call to the last return of Ops.
	Spans []Span
	Lines []Line // of the history, that prove it
}

// Line is one line of the file of the history.
type Line struct {
	Number int // from 1
	Text   string
}

// Fault is what was done to the system: a stretch, such as a partition, or
// a point, such as a restart.
type Fault struct {
	Name    string
	Details string
	Span
	Lines []int
}

// Resource is one lease, lock, register or storage. Only its operations are
// needed.
type Resource struct {
	Name    string
	Model   string
	Verdict Verdict
	Reason  string
	Tenures []Tenure // as the store may have had them
	Beliefs []Belief
	// Operations may be in any order. Those of one process share a row.
	Operations []Operation
	Highest    []Step  // of a storage: what its highest token became, in order of time
	Writes     []Write // of a storage, under a token
	Order      Linearization
}

// Tenure is one ownership of a lease. Nobody saw when the store granted it and
// when it lapsed, so there are two spans for it.
type Tenure struct {
	Who   string
	Token uint64 // 0 if there are none
	// Must is from the latest possible grant to the earliest possible lapse:
	// then it was held, whatever happened. It may be empty.
	Must Span
	// May is from the earliest possible grant to the latest possible lapse:
	// outside it was not held. It includes Must.
	May      Span
	Violates bool
}

// Belief is one term: while a client believed to lead.
type Belief struct {
	Who   string
	Token uint64 // 0 if there are none
	Span
	Derived  bool   // from its operations: as a correct client may have believed
	Waived   string // why it may overlap with others; empty if it may not
	Violates bool
}

// Outcome is how an operation ended.
type Outcome uint8

// The outcomes.
const (
	OK   Outcome = iota
	Fail         // refused: it certainly had no effect
	Info         // nobody knows: it may take effect at any time after its call, or never
)

// Operation is one call of a client.
type Operation struct {
	ID           int    // unique in the page
	Process      string // its row
	Who          string // on whose behalf, as in Tenure and Belief: it has the same colour there
	Call, Return int64  // Return is Unbounded if there is none
	Outcome      Outcome
	Label        string // a few words: "acquire: token 12"
	Details      string
	Lines        []int // of the file
	Violates     bool  // it is where the history breaks
	Evidence     bool  // it is one of the fewest operations that cannot be explained
}

// Step is the highest token that a storage had processed from At on.
type Step struct {
	At    int64
	Token uint64
}

// Write is an operation at a storage under a token.
type Write struct {
	Op     int // the ID of an Operation of the same Resource
	Token  uint64
	Landed bool // false if the storage refused it
}

// Linearization is one order of the operations which explains them, or
// explains as many as any.
type Linearization struct {
	Start  string // the state before the first
	Placed []Placed
	// Partial says that this is the longest order found, and that no
	// operation can come next: not Stuck, which must, and none of Tried.
	Partial bool
	Stuck   int // the ID of an operation, if Partial
	Tried   []Attempt
}

// Placed is an operation in its place, and the state after it.
type Placed struct {
	Op    int
	State string
}

// Attempt is an operation that cannot come next, and why.
type Attempt struct {
	Op  int
	Why string
}
