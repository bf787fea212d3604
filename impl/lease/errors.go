package lease

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotHeld matches both ways of not holding a lease any more,
// [LapsedError] and [LostError]: stop acting under the token.
var ErrNotHeld = errors.New("lease is not held")

// ErrStale matches the refusal of a fencing token by a storage that has seen a
// higher one: the tenure under it is over, and nothing under it will land.
var ErrStale = errors.New("fencing token is stale")

// HeldError refuses an acquire: another holder has the lease.
type HeldError struct {
	Resource  string
	Holder    Holder
	Token     Token
	Remaining time.Duration // on the store's clock; it may be renewed
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %v under token %d for another %v; try again later", e.Resource, e.Holder, e.Token, e.Remaining)
}

// DelayError refuses an acquire: the lease lapsed a short while ago and its
// lock delay is still running.
type DelayError struct {
	Resource  string
	Remaining time.Duration
}

func (e *DelayError) Error() string {
	return fmt.Sprintf("lease %q lapsed and is in its lock delay for another %v; try again then", e.Resource, e.Remaining)
}

// LapsedError refuses a renew or release: the tenure ran out before it came.
type LapsedError struct {
	Resource string
	Holder   Holder
	Token    Token
}

func (e *LapsedError) Error() string {
	return fmt.Sprintf("lease %q of %v under token %d has lapsed; stop, and acquire anew as a new incarnation", e.Resource, e.Holder, e.Token)
}

// Is makes errors.Is(err, ErrNotHeld) hold.
func (e *LapsedError) Is(target error) bool { return target == ErrNotHeld }

// LostError refuses a renew or release: the lease was released, or it belongs
// to somebody else by now, or never belonged to this holder under this token.
type LostError struct {
	Resource string
	Holder   Holder
	Token    Token
	Current  Holder // who holds it now, if anybody is known to
	Latest   Token  // the last token issued
}

func (e *LostError) Error() string {
	by := ""
	if !e.Current.IsZero() {
		by = ", held by " + e.Current.String()
	}
	return fmt.Sprintf("lease %q is not held by %v under token %d: the last token is %d%s; stop, and acquire anew as a new incarnation",
		e.Resource, e.Holder, e.Token, e.Latest, by)
}

// Is makes errors.Is(err, ErrNotHeld) hold.
func (e *LostError) Is(target error) bool { return target == ErrNotHeld }

// InvalidError refuses a request that makes no sense whatever the state: a TTL
// that is not positive, nobody as holder, no token, or no token left to issue.
type InvalidError struct {
	Resource string
	Op       Op
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("lease %q: %v refused: it needs a holder, a positive TTL (acquire, renew), the token that was granted (renew, release) and one left to grant (acquire)", e.Resource, e.Op)
}

// GrantError is a grant that its holder can never lead under, because it does
// not say what a [Store] must: for whom it is, under which token, and for how
// long. It ends [Elector.Run], since each retry would only hold the lease on.
type GrantError struct {
	Grant  Grant // as the store gave it
	Reason string
}

func (e *GrantError) Error() string {
	return fmt.Sprintf("lease %q: grant to %q under token %d for %v is of no use: %s", e.Grant.Resource, e.Grant.Holder, e.Grant.Token, e.Grant.TTL, e.Reason)
}

// Refusal is which refusal of a store err is, by the types and [ErrNotHeld] of
// this package: the code whose [Reply.Err] is such an error. [CodeNone] is none
// of them: the outcome of the request is unknown.
func Refusal(err error) Code {
	switch {
	case is[*HeldError](err):
		return CodeHeld
	case is[*DelayError](err):
		return CodeDelayed
	case is[*LapsedError](err):
		return CodeLapsed
	case errors.Is(err, ErrNotHeld):
		return CodeLost
	case is[*InvalidError](err):
		return CodeInvalid
	}
	return CodeNone
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Err is the refusal in r as an error, or nil where r is none.
func (r Reply) Err(resource string) error {
	switch r.Code {
	case CodeHeld:
		if r.Op == OpGet {
			return nil
		}
		return &HeldError{Resource: resource, Holder: r.Current, Token: r.Token, Remaining: r.Remaining}
	case CodeDelayed:
		if r.Op == OpGet {
			return nil
		}
		return &DelayError{Resource: resource, Remaining: r.Remaining}
	case CodeLapsed:
		return &LapsedError{Resource: resource, Holder: r.Holder, Token: r.Asked}
	case CodeLost:
		return &LostError{Resource: resource, Holder: r.Holder, Token: r.Asked, Current: r.Current, Latest: r.Token}
	case CodeInvalid:
		return &InvalidError{Resource: resource, Op: r.Op}
	}
	return nil
}
