package model

import "fmt"

// Node is a party of a run: a small number that the run's Names give a name.
// Zero is nobody.
type Node uint8

// MaxNodes bounds the parties of one run, nobody included.
const MaxNodes = 10

// Role says what a node is.
type Role uint8

// The roles. A raw party sends requests that no candidate would: it is not
// bound by what clients promise.
const (
	RoleNone Role = iota
	RoleStore
	RoleStorage
	RoleClient
	RoleRaw
)

// Names gives each node its name and role; Names[0] is nobody.
type Names [MaxNodes]struct {
	Name string
	Role Role
}

// Of is the name of n.
func (ns *Names) Of(n Node) string {
	if n == 0 || int(n) >= len(ns) || ns[n].Name == "" {
		return "nobody"
	}
	return ns[n].Name
}

// Owner is one incarnation of a candidate: its node, which process of the node
// (rises at each restart) and which attempt of the process (rises at each
// step-down). The zero Owner is nobody.
type Owner struct {
	Node Node
	Boot uint16
	Seq  uint32
}

// Owner renders o as node#seq, with .boot after a restart.
func (ns *Names) Owner(o Owner) string {
	switch {
	case o == Owner{}:
		return "nobody"
	case o.Boot == 0:
		return fmt.Sprintf("%s#%d", ns.Of(o.Node), o.Seq)
	}
	return fmt.Sprintf("%s#%d.%d", ns.Of(o.Node), o.Seq, o.Boot)
}

// Msg names a message: the action that created it, and its number among the
// messages of that action. The zero Msg is none.
type Msg struct {
	Action int32
	N      int32
}

func (m Msg) String() string { return fmt.Sprintf("%d.%d", m.Action, m.N) }

// Op is what a request asks for.
type Op uint8

// The operations on a store (acquire to get) and on a storage (fence to read).
const (
	OpNone Op = iota
	OpAcquire
	OpRenew
	OpRelease
	OpGet
	OpFence
	OpWrite
	OpRead
)

var opNames = [...]string{"none", "acquire", "renew", "release", "get", "fence", "write", "read"}

func (o Op) String() string { return nameOf(opNames[:], "op", o) }

// Code is the outcome of an operation.
type Code uint8

// The outcomes. Lapsed and Lost are one piece of evidence to whoever reads a
// history: this owner does not hold the lease under this token.
const (
	CodeNone     Code = iota
	CodeGranted       // acquire, renew
	CodeReleased      // release
	CodeHeld          // acquire refused, and get: Holder has it under Token
	CodeDelayed       // acquire refused, and get: nobody has it; lock delay
	CodeFree          // get: nobody has it
	CodeLapsed        // renew, release refused
	CodeLost          // renew, release refused
	CodeInvalid       // refused whatever the state
	CodeFenced        // fence: accepted
	CodeStale         // fence, write refused; Token is the highest seen
	CodeLanded        // write: accepted
	CodeValue         // read: Value is what is stored
)

var codeNames = [...]string{"none", "granted", "released", "held", "delayed", "free", "lapsed", "lost", "invalid", "fenced", "stale", "landed", "value"}

func (c Code) String() string { return nameOf(codeNames[:], "code", c) }

// Kind is what happened in an Event.
type Kind uint8

// The kinds of events, with the fields each one fills besides At, Kind, Node
// and Action.
const (
	KindNone Kind = iota

	// Operations. Req is the request's message; a reply and a copy carry it too.
	KindInvoke    // Node sends a request to Peer: Req, Op, Owner, Asked, TTL, Key, Value
	KindHandle    // Node (store, storage) handles a request of Peer: Req, Msg, Copy, Op, Owner, Asked, TTL, Key, Value, and the answer: Code, Token, Holder, Remaining; Local is the handler's clock
	KindReturn    // Node receives the reply to its request Req: Msg, Copy, and what KindHandle has
	KindDuplicate // the message Msg is a copy of Peer's message Req, made by the network
	KindLose      // the message Msg is lost: Code is none; Reason says how

	// The lease in the store, beside the answers.
	KindLapse  // the tenure of Holder under Token runs out at this instant
	KindDelete // an operator deletes the lease object

	// Clients.
	KindLead     // Owner begins to act as leader under Token
	KindExtend   // Owner's term under Token got a later deadline
	KindStepDown // Owner stops acting, or fencing, under Token; Reason says why
	KindFencing  // Owner holds the lease under Token and waits for the barrier
	KindResign   // Owner resigns
	KindWork     // Owner begins work under Token
	KindWorkDone // its work has stopped

	// Faults and the environment.
	KindPause
	KindResume // ends pause, suspend and freeze
	KindSuspend
	KindFreeze
	KindCrash
	KindRestart // of the store: Holder, Token are its tenure after it; of a storage: Token is the highest it remembers
	KindDrift   // Node's clock now runs at Value parts per million of true time
	KindJump    // Node's wall clock jumps by Value ns
	KindCut     // the link of Node and Peer is cut
	KindHeal    // all links work again
	KindCalm    // faults and raw requests stop; messages take at most Remaining ns, ticks are at most TTL ns apart
	KindCalmEnd // the calm is over

	kinds
)

var kindNames = [...]string{"none", "invoke", "handle", "return", "duplicate", "lose", "lapse", "delete", "lead", "extend", "stepdown", "fencing",
	"resign", "work", "workdone", "pause", "resume", "suspend", "freeze", "crash", "restart", "drift", "jump", "cut", "heal", "calm", "calmend"}

func (k Kind) String() string { return nameOf(kindNames[:], "kind", k) }

// Reason says why a message was lost or a term ended.
type Reason uint8

// The reasons.
const (
	ReasonNone    Reason = iota
	ReasonLapsed         // the deadline passed
	ReasonRefused        // the store or storage said no
	ReasonResigned
	ReasonCrashed
	ReasonDropped  // by the network
	ReasonOverflow // more messages in flight than the run allows
	ReasonDown     // the receiver had crashed
)

var reasonNames = [...]string{"none", "lapsed", "refused", "resigned", "crashed", "dropped", "overflow", "down"}

func (r Reason) String() string { return nameOf(reasonNames[:], "reason", r) }

// nameOf is the name of v, or its number where it has none: events come from
// others too, and a report must not fail over them.
func nameOf[T ~uint8](names []string, what string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(v))
}

// Event is one thing that happened, as the observer saw it, who alone reads
// real time. It is the whole vocabulary between whatever runs (simulation or
// real processes) and whatever judges or draws. Fields that mean nothing for a
// kind are zero.
type Event struct {
	At     int64 // ns of real time since the run began
	Kind   Kind
	Node   Node
	Peer   Node
	Op     Op
	Code   Code
	Reason Reason
	Key    uint8
	Copy   bool // of a message that a network copied: nobody waits for it
	// Slow has bit n set where the observer knows that the clock of client n
	// broke its promise: over the countdown of its running term it ran below
	// the bound on average against the store's. Filled in on KindLead,
	// KindHandle, KindLapse, KindRestart and KindDelete.
	Slow   uint16
	Action int32 // the id of the action that made it happen
	Req    Msg
	Msg    Msg
	Owner  Owner
	Holder Owner
	Asked  uint64 // the token that the request carried
	Token  uint64
	TTL    int64 // ns
	// Remaining is the rest of a tenure or lock delay, in ns of the store's clock.
	Remaining int64
	Value     int64
	Local     int64 // ns on the clock of Node
}
