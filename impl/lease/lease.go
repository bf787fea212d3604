// Package lease is a lease with fencing tokens: the rules of the store and of
// the candidate as pure values, and the thin shells that run them.
//
// It must not know who checks it (no simulation, no test hook), nor any clock
// but the injected one, nor what the lease protects: storage that rejects
// stale tokens is package fence.
//
// Start at [Elector] to lead under one lease, [Group] for thousands, [Leaders] to
// follow who leads, and [Elector.Health] to see that an elector is not stuck; for
// the rules, at [Record] for what a store does, [Sight] for one that keeps no time,
// [Client] for what a candidate does, and [Config] for how long a client may believe.
// The rules follow Gray and Cheriton, "Leases: An Efficient Fault-Tolerant
// Mechanism for Distributed File Cache Consistency" (SOSP 1989), with fencing
// tokens as in Burrows, "The Chubby lock service" (OSDI 2006; there called
// sequencers).
package lease

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Token is a fencing token: it starts at 1, is unique per ownership of its
// resource, rises by exactly one at each change of ownership and never falls.
// Zero is no token.
type Token uint64

// Holder is the identity of one candidate incarnation. Two processes never
// share one, and no process uses one twice: Seq rises after every term, and
// Nonce is drawn at process start because a counter that a restart loses
// cannot be unique. The zero Holder is nobody.
type Holder struct {
	Node  string // the candidate's name; not empty, and free of '#'
	Seq   uint64 // incarnation within the process, from 1
	Nonce uint64 // drawn at random when the process starts
}

// Next is the incarnation that follows h in the same process.
func (h Holder) Next() Holder {
	h.Seq++
	return h
}

// IsZero reports whether h is nobody.
func (h Holder) IsZero() bool { return h == Holder{} }

// Valid reports whether h can hold a lease in a store that keeps its text form:
// it is somebody, and [ParseHolder] reads it back.
func (h Holder) Valid() bool { return h.Node != "" && !strings.Contains(h.Node, "#") }

// String gives node#seq.nonce with the nonce in hexadecimal, and the empty
// string for nobody. [ParseHolder] reads it back.
func (h Holder) String() string {
	if h.IsZero() {
		return ""
	}
	return h.Node + "#" + strconv.FormatUint(h.Seq, 10) + "." + strconv.FormatUint(h.Nonce, 16)
}

// MarshalText writes what String does, so that a holder is a string in JSON.
func (h Holder) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads it as [ParseHolder] does.
func (h *Holder) UnmarshalText(b []byte) error {
	parsed, err := ParseHolder(string(b))
	if err == nil {
		*h = parsed
	}
	return err
}

// ErrHolder marks a holder that is empty or cannot be read back.
var ErrHolder = errors.New("holder is not of the form node#seq.nonce")

// ParseHolder reads what [Holder.String] wrote. The empty string is nobody.
// The error matches [ErrHolder].
func ParseHolder(s string) (Holder, error) {
	if s == "" {
		return Holder{}, nil
	}
	node, rest, ok := strings.Cut(s, "#")
	seq, nonce, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || node == "" {
		return Holder{}, fmt.Errorf("%w: %q", ErrHolder, s)
	}
	n, err1 := strconv.ParseUint(seq, 10, 64)
	x, err2 := strconv.ParseUint(nonce, 16, 64)
	if err := errors.Join(err1, err2); err != nil {
		return Holder{}, fmt.Errorf("%w: %q: %w", ErrHolder, s, err)
	}
	h := Holder{Node: node, Seq: n, Nonce: x}
	if h.String() != s {
		// Two spellings of one holder would be two holders to whoever compares text.
		return Holder{}, fmt.Errorf("%w: %q is spelled %q", ErrHolder, s, h)
	}
	return h, nil
}

// Op is what a request asks for.
type Op uint8

// The operations. All but OpFence go to the store; OpFence goes to the
// protected storage.
const (
	OpNone Op = iota
	OpAcquire
	OpRenew
	OpRelease
	OpGet
	OpFence
)

var opNames = [...]string{"none", "acquire", "renew", "release", "get", "fence"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Request is what a candidate asks of a store, or (OpFence) of a storage. Sent
// is the instant of sending on the sender's own clock: a reply echoes it, and
// nobody but the sender may read it.
type Request struct {
	Op     Op
	Holder Holder
	Token  Token         // renew, release, fence
	TTL    time.Duration // acquire, renew
	Sent   time.Duration
}

// Code is the outcome of a request.
type Code uint8

// The outcomes.
const (
	CodeNone     Code = iota
	CodeGranted       // acquire, renew: held under Token for TTL from now
	CodeReleased      // release: free, without lock delay
	CodeHeld          // acquire refused: Current holds it for Remaining; get: likewise
	CodeDelayed       // acquire refused: lock delay for Remaining; get: nobody holds it, lock delay
	CodeFree          // get: nobody holds it
	CodeLapsed        // renew, release refused: this tenure ran out
	CodeLost          // renew, release refused: another holds it, or it was released
	CodeInvalid       // refused: the request itself makes no sense
	CodeFenced        // fence: Token is the highest seen
	CodeStale         // fence refused: Token, the highest seen, is higher
)

var codeNames = [...]string{"none", "granted", "released", "held", "delayed", "free", "lapsed", "lost", "invalid", "fenced", "stale"}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code(%d)", uint8(c))
}

// Reply answers a Request and echoes what the sender needs to place it: Op,
// Holder, Asked (the request's token) and Sent.
type Reply struct {
	Op     Op
	Code   Code
	Holder Holder
	Asked  Token
	Sent   time.Duration

	Token     Token         // granted, current or highest token
	TTL       time.Duration // granted TTL
	Current   Holder        // who holds it, where the answer is that somebody does
	Remaining time.Duration // of the tenure or of the lock delay, on the store's clock
}

// To starts the reply to req.
func (req Request) To(code Code) Reply {
	return Reply{Op: req.Op, Code: code, Holder: req.Holder, Asked: req.Token, Sent: req.Sent}
}

// Grant is what a store answers to a successful acquire or renew. It echoes the
// holder, and for a renewal the token. The TTL counts on the store's clock, from
// an instant no earlier than the call.
type Grant struct {
	Resource string
	Holder   Holder
	Token    Token
	TTL      time.Duration
}

// Observation is what a store answers to Get. The zero Holder means nobody;
// Token is then the last one issued.
type Observation struct {
	Resource  string
	Holder    Holder
	Token     Token
	Remaining time.Duration // of the tenure, or of the lock delay; by the store's clock when it answered
}
