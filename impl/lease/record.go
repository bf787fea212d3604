package lease

import (
	"fmt"
	"math"
	"time"
)

// Status says how the latest tenure of a lease stands.
type Status uint8

// The statuses. Free covers both "never held" and "released": neither is
// followed by a lock delay. Lapsed is a lapse that the store has answered to
// somebody, so that a restart must not forget it.
const (
	Free Status = iota
	Running
	Lapsed
)

var statusNames = [...]string{"free", "running", "lapsed"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Durable is the part of a [Record] that must reach stable storage before any
// answer that depends on it leaves the store. It holds no instant: a restarted
// store has a new clock, and an absolute expiry judged on it would be early,
// late or never.
type Durable struct {
	Token  Token         // the highest token issued; the counter
	Holder Holder        // of the latest tenure
	TTL    time.Duration // the largest granted in the latest tenure
	Status Status
}

// Record is one lease as its store keeps it: the rules of the store as a pure
// value. Every method takes now on the store's clock, which must never fall
// between a Restore and the next, and returns the record that follows and the
// reply to send. All shells (memory, simulation, databases) run these methods.
//
// Tenures are half-open: held on [granted, Expires). The zero Record is a
// lease nobody ever held; set Token to start the tokens elsewhere.
type Record struct {
	Durable
	// Expires is the end of a running tenure, and the instant of the lapse of
	// a lapsed one, on the store's clock.
	Expires time.Duration
}

// Restore is the record of a store that came back with d at now on its new
// clock. An unreleased tenure whose lapse was never answered is held for its
// whole TTL again, since nobody knows how much of it is left; an answered
// lapse stays, and its lock delay starts anew.
func Restore(d Durable, now time.Duration) Record {
	r := Record{Durable: d}
	switch d.Status {
	case Running:
		r.Expires = add(now, d.TTL)
	case Lapsed:
		r.Expires = now
	}
	return r
}

// Held reports whether a tenure runs at now.
func (r Record) Held(now time.Duration) bool { return r.Status == Running && now < r.Expires }

// Handle answers req at now. lockDelay is the time after a lapse, not after a
// release, in which nobody is granted the lease.
func (r Record) Handle(now, lockDelay time.Duration, req Request) (Record, Reply) {
	switch req.Op {
	case OpAcquire:
		return r.Acquire(now, lockDelay, req)
	case OpRenew:
		return r.Renew(now, req)
	case OpRelease:
		return r.Release(now, req)
	case OpGet:
		return r.Get(now, lockDelay, req)
	}
	return r, req.To(CodeInvalid)
}

// Acquire grants a free or lapsed lease as a new ownership under the next
// token. While the same holder holds it, it is an idempotent retry: the same
// token, and an expiry that never moves back.
func (r Record) Acquire(now, lockDelay time.Duration, req Request) (Record, Reply) {
	if req.TTL <= 0 || req.Holder.IsZero() {
		return r, req.To(CodeInvalid)
	}
	if r.Held(now) {
		if r.Holder == req.Holder {
			return r.extend(now, req)
		}
		return r, r.held(now, req)
	}
	r = r.observe(now)
	if free := add(r.Expires, lockDelay); r.Status == Lapsed && now < free {
		rep := req.To(CodeDelayed)
		rep.Token, rep.Remaining = r.Token, free-now
		return r, rep
	}
	if r.Token == math.MaxUint64 {
		return r, req.To(CodeInvalid)
	}
	r.Durable = Durable{Token: r.Token + 1, Holder: req.Holder, Status: Running}
	r.Expires = now
	return r.extend(now, req)
}

// Renew extends a running tenure of this holder under this token; the expiry
// never moves back, so that a late copy or a shorter TTL shortens nothing.
func (r Record) Renew(now time.Duration, req Request) (Record, Reply) {
	if req.TTL <= 0 {
		return r, req.To(CodeInvalid)
	}
	r, code := r.own(now, req)
	if code != CodeGranted {
		return r, r.refuse(now, req, code)
	}
	return r.extend(now, req)
}

// Release ends a running tenure of this holder under this token.
func (r Record) Release(now time.Duration, req Request) (Record, Reply) {
	r, code := r.own(now, req)
	if code != CodeGranted {
		return r, r.refuse(now, req, code)
	}
	r.Status, r.Expires = Free, 0
	rep := req.To(CodeReleased)
	rep.Token = r.Token
	return r, rep
}

// Get says who holds the lease. It may change the record: an answer that
// nobody holds it is a lapse made known.
func (r Record) Get(now, lockDelay time.Duration, req Request) (Record, Reply) {
	if r.Held(now) {
		return r, r.held(now, req)
	}
	r = r.observe(now)
	rep := req.To(CodeFree)
	rep.Token = r.Token
	if free := add(r.Expires, lockDelay); r.Status == Lapsed && now < free {
		rep.Code, rep.Remaining = CodeDelayed, free-now
	}
	return r, rep
}

// Delete is an operator removing the lease object: nobody holds it, and the
// counter stays, because a token issued twice would undo all fencing.
func (r Record) Delete() Record {
	return Record{Durable: Durable{Token: r.Token}}
}

// own decides whether the requester holds the lease under the token it names.
func (r Record) own(now time.Duration, req Request) (Record, Code) {
	switch {
	case req.Holder.IsZero() || req.Token == 0:
		return r, CodeInvalid
	case req.Holder != r.Holder || req.Token != r.Token || r.Status == Free:
		// It names who holds the lease now, so that nobody is an answer too.
		return r.observe(now), CodeLost
	case r.Held(now):
		return r, CodeGranted
	}
	return r.observe(now), CodeLapsed
}

// observe records a lapse that is about to be answered: a restart would hold the
// tenure for its whole TTL again, after somebody was told that nobody has it.
func (r Record) observe(now time.Duration) Record {
	if r.Status == Running && now >= r.Expires {
		r.Status = Lapsed
	}
	return r
}

func (r Record) extend(now time.Duration, req Request) (Record, Reply) {
	r.Expires = max(r.Expires, add(now, req.TTL))
	r.TTL = max(r.TTL, req.TTL)
	rep := req.To(CodeGranted)
	rep.Token, rep.TTL, rep.Current, rep.Remaining = r.Token, req.TTL, r.Holder, r.Expires-now
	return r, rep
}

func (r Record) held(now time.Duration, req Request) Reply {
	rep := req.To(CodeHeld)
	rep.Token, rep.Current, rep.Remaining = r.Token, r.Holder, r.Expires-now
	return rep
}

func (r Record) refuse(now time.Duration, req Request, code Code) Reply {
	rep := req.To(code)
	if code == CodeInvalid {
		return rep
	}
	rep.Token = r.Token
	if r.Held(now) {
		rep.Current, rep.Remaining = r.Holder, r.Expires-now
	}
	return rep
}

// add saturates: a TTL near the largest duration means "for ever", not "in the past".
func add(a, b time.Duration) time.Duration {
	if s := a + b; b <= 0 || s >= a {
		return s
	}
	return math.MaxInt64
}
