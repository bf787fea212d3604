package model

import (
	"fmt"
	"math"
	"time"
)

// Unbounded stands for "never" where an instant or a duration is asked for: an
// operation that never returned, a lateness without any promise.
const Unbounded = math.MaxInt64

// TokenRule says which token a change of ownership may get.
type TokenRule uint8

// The token rules.
const (
	// TokensNext: exactly one more than the last token granted.
	TokensNext TokenRule = iota
	// TokensRising: any token above the last one granted, for stores whose
	// tokens come from a replicated revision, such as etcd.
	TokensRising
	// TokensNone: the history carries no tokens, as a recording of a mutex.
	// Token fields are not read, and only owners tell tenures apart: an acquire
	// by the owner who holds the lease may be a retry under the running tenure
	// or, if that can have lapsed, a new ownership.
	TokensNone
)

func (r TokenRule) String() string { return timedName("TokenRule", timedTokenRules[:], uint8(r)) }

// Anchor says when a granted TTL starts to run.
type Anchor uint8

// The anchors.
const (
	// AnchorGrant: at the instant the acquire takes effect.
	AnchorGrant Anchor = iota
	// AnchorCall: anywhere between the acquire's call and the instant it takes
	// effect, for acquires that create a lease and then wait for their turn.
	// The lease must still be held when its turn comes. Renewals do not wait:
	// theirs always runs from when they take effect.
	AnchorCall
)

func (a Anchor) String() string { return timedName("Anchor", timedAnchors[:], uint8(a)) }

// TimedParams is the timed specification of a lease store: what a client may
// have recorded of a lease that lapses by itself (Gray & Cheriton 1989). All
// durations are in ns and all instants are the recorder's; no instant of the
// store's clock appears.
//
// An operation takes effect at one instant n between its call and its return
// (Wing & Gong 1993). With a TTL that runs since g, what it was answered needs
//
//	the lease still held   n - g <  ttl/(1-d) + late
//	the lease lapsed       n - g >= ttl/(1+d) - early
//
// for d = DriftPPB/1e9. The store's rate may vary freely within the bound, so
// each is judged by itself; where both hold, two operations at one and the same
// instant may have been told either. A history is legal if one order of its
// operations and one choice of all instants explains every answer; the choice
// is made over real numbers and exactly.
//
// A renewal, or an acquire by the owner who holds the lease, never shortens:
// with several TTLs running, the lease is held while any of them says so. A
// lapse that was answered to somebody is final: nothing but the grant of a new
// token leaves it.
//
// Step takes one state and one operation at a time; a search over orders, such
// as porcupine's, makes it a check of histories.
type TimedParams struct {
	// DriftPPB bounds the store's clock against the recorder's, in parts per
	// billion: 0 <= DriftPPB < 1e9.
	DriftPPB int64
	// Early and Late say how long before and after a TTL has run out the store
	// may let the lease lapse. Late Unbounded: it need never lapse, for
	// histories in which renewals are not recorded.
	Early, Late int64
	// Tokens is the rule for tokens at a change of ownership.
	Tokens TokenRule
	// First is the token of the first grant (TokensRising: the lowest it may
	// have). 0 stands for any.
	First uint64
	// Anchor says when a granted TTL starts to run.
	Anchor Anchor
	// LockDelay is how long after a lapse nobody is granted the lease, on the
	// store's clock: for LockDelay/(1+d) at least and LockDelay/(1-d) at most
	// from the very instant of the lapse. There is none after a release.
	LockDelay int64
	// RenewAfterLapse allows the last owner to renew, or to acquire again under
	// the same token, after a lapse, until somebody else is granted the lease:
	// Kubernetes does so. The store may still refuse it.
	RenewAfterLapse bool
	// NoRestarts promises that the history has no TimedRestart, which saves
	// following what only a restart could tell apart.
	NoRestarts bool
}

// Validate names the first field that is out of its bounds. Under parameters it
// refuses, no operation is legal.
func (p TimedParams) Validate() error {
	for _, f := range [...]struct {
		field string
		value int64
		limit int64
	}{
		{"DriftPPB", p.DriftPPB, 1e9 - 1},
		{"Early", p.Early, Unbounded},
		{"Late", p.Late, Unbounded},
		{"LockDelay", p.LockDelay, Unbounded},
		{"Tokens", int64(p.Tokens), int64(TokensNone)},
		{"Anchor", int64(p.Anchor), int64(AnchorCall)},
	} {
		if f.value < 0 || f.value > f.limit {
			return fmt.Errorf("timed lease: %s is %d: want 0 to %d", f.field, f.value, f.limit)
		}
	}
	if p.Tokens == TokensNone && p.First != 0 {
		return fmt.Errorf("timed lease: First is %d, but under the rule %q the history carries no tokens: want 0", p.First, TokensNone)
	}
	return nil
}

func (p TimedParams) valid() bool {
	return uint64(p.DriftPPB) < 1e9 && p.Early >= 0 && p.Late >= 0 && p.LockDelay >= 0 && p.Anchor <= AnchorCall &&
		(p.Tokens < TokensNone || p.Tokens == TokensNone && p.First == 0)
}

// TimedKind is the kind of a TimedOp.
type TimedKind uint8

// The kinds. TimedWrite is a write that the lease itself guards: it applies
// only while its sender holds the lease. TimedRestart is the store coming back
// from durable state between Call and Return, with a clock that says nothing of
// the time before: a tenure is held for the largest TTL it was promised, and the
// lock delay of a lapse starts anew. A lapse that nobody was told of may have
// been on record or not, once all TTLs can have run out. TimedDelete is an
// operator deleting the lease. Both have no owner, and take effect like any other
// operation.
const (
	TimedAcquire TimedKind = iota
	TimedRenew
	TimedRelease
	TimedGet
	TimedWrite
	TimedRestart
	TimedDelete
)

func (k TimedKind) String() string { return timedName("TimedKind", timedKinds[:], uint8(k)) }

// TimedOutcome is what the caller of a TimedOp learned.
type TimedOutcome uint8

// The outcomes.
const (
	// TimedOK: done, as asked.
	TimedOK TimedOutcome = iota
	// TimedHeld: an acquire refused because somebody else holds the lease;
	// Holder may name them. Unnamed it may also be the lock delay.
	TimedHeld
	// TimedDelay: an acquire refused because of the lock delay.
	TimedDelay
	// TimedRefused: a renewal, release or write refused because this owner does
	// not hold the lease under this token. It stands for "lapsed" and for
	// "lost": stores differ in which of the two they say when.
	TimedRefused
	// TimedUnknown: no answer. It may take effect at any instant from Call on,
	// or never; Return is not read.
	TimedUnknown
)

func (o TimedOutcome) String() string { return timedName("TimedOutcome", timedOutcomes[:], uint8(o)) }

// TimedOp is one operation of a recorded history of one lease. The zero value
// of a field that its kind or outcome does not use means nothing.
type TimedOp struct {
	Kind    TimedKind
	Outcome TimedOutcome
	// Call and Return bound the instant of its effect, on the recorder's clock,
	// already widened by the error of the timestamps. Instants count up to
	// 2^62 ns either side of zero (Unix time until the year 2116); beyond that,
	// and for Return Unbounded, there is no bound.
	Call, Return int64
	// Owner is who asks: a number above 0 of the caller's choice.
	Owner int32
	// Token is the one that a renewal, release or write carries, or that a
	// successful acquire was granted.
	Token uint64
	// TTL asked for by an acquire or renewal, above 0.
	TTL int64
	// Holder is who a refusal as held names (0: not said), or who a get says
	// holds the lease (0: nobody).
	Holder int32
	// HolderToken is the token that a get says the Holder has; 0: not said.
	HolderToken uint64
}

// String is the operation in one line, for drawings and reports.
func (op TimedOp) String() string {
	s := op.Kind.String()
	if op.Owner != 0 {
		s = fmt.Sprintf("%d: %s", op.Owner, s)
	}
	if op.TTL != 0 {
		s += fmt.Sprintf(" for %v", time.Duration(op.TTL))
	}
	if op.Token != 0 {
		s += fmt.Sprintf(" token %d", op.Token)
	}
	s += " -> " + op.Outcome.String()
	switch {
	case op.Holder != 0:
		s += fmt.Sprintf(" by %d", op.Holder)
	case op.Kind == TimedGet && op.Outcome == TimedOK:
		s += " by nobody"
	}
	if op.HolderToken != 0 {
		s += fmt.Sprintf(" token %d", op.HolderToken)
	}
	return s
}

// Init is the states a history may start in: nobody has held the lease yet.
func (p TimedParams) Init() []TimedState {
	s := TimedState{near: [4]zoneBound{zoneNone}}
	switch {
	case p.Tokens == TokensNone:
	case p.First > 0:
		s.lo, s.hi = p.First-1, p.First-1
	case p.Tokens == TokensNext:
		s.hi = math.MaxUint64
	}
	return []TimedState{s}
}

// Step is the states that op may lead to from s: none if op cannot have
// happened in s, several if what happened is not known, as for an unknown
// outcome.
func (p TimedParams) Step(s TimedState, op TimedOp) []TimedState {
	return p.AppendStep(nil, s, op)
}

// AppendStep adds the states of [TimedParams.Step] to dst. It takes dst for a
// set of states the same operations may have led to: of two states of which
// one covers the other, it keeps the wider.
//
// A step takes constant time, but for tenures in which several TTLs run and
// none outlasts the others: k of them cost k squared, and each may be the one
// that still holds, so that up to k states follow.
func (p TimedParams) AppendStep(dst []TimedState, s TimedState, op TimedOp) []TimedState {
	if !p.valid() {
		return dst
	}
	w := timedStep{TimedParams: p, scale: newZoneScale(p.DriftPPB), s: s, op: op, dst: dst}
	if op.Outcome == TimedUnknown {
		w.op.Return = Unbounded
		w.add(s)
	}
	switch op.Kind {
	case TimedAcquire:
		w.acquire()
	case TimedRenew:
		w.renew()
	case TimedRelease, TimedWrite:
		w.use()
	case TimedGet:
		w.get()
	case TimedRestart:
		w.restart()
	case TimedDelete:
		w.remove()
	}
	return w.dst
}

var (
	timedTokenRules = [...]string{"next", "rising", "none"}
	timedAnchors    = [...]string{"grant", "call"}
	timedKinds      = [...]string{"acquire", "renew", "release", "get", "write", "restart", "delete"}
	timedOutcomes   = [...]string{"ok", "held", "delay", "refused", "unknown"}
)

func timedName(kind string, names []string, v uint8) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", kind, v)
}
