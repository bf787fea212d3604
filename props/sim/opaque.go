package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// Opaque is offered by StoreRules that keep their state to themselves, such as
// a store of somebody else's or a cluster of nodes. A World with such a store
// can be run again from the beginning, but an assignment is no snapshot: both
// Worlds would go on with one store, and only one of them may.
//
// Handle, Restart and Delete leave in s.Record what the answers have told the
// observer of the tenure. A Handle that answers nothing, since the outcome is
// not known, returns a Reply without a Code.
type Opaque interface {
	StoreRules
	// Begin ends the run before and begins another, with a lease that nobody ever
	// held and a clock that reads now. The first grant gets the token first, as far as the
	// World is concerned.
	Begin(first lease.Token, now Clocks)
	// Crash ends the store's process at now; Restart starts the next.
	Crash(now Clocks)
	// Promise is what the store says of itself. The World goes by its
	// configuration for the lock delay.
	Promise() model.Promise
	// Fault is what made the store break down in this run, such as a panic; nil
	// while it runs.
	Fault() error
}

// Live is a lease store that runs, as one process after the other. Several runs
// after each other may be on one store, each on a lease of its own.
type Live interface {
	// Store is that of the running process. It is asked for once for each call.
	Store() lease.Store
	// Advance moves the clock of the running process, and returns once what is
	// due by it is done.
	Advance(d time.Duration)
	// Restart crashes the process and starts the next from what is durable.
	Restart()
	// Resource is what the store knows the lease of this run by.
	Resource() string
	// Close ends the run.
	Close()
}

// PanicError is a store that panicked.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("the store panicked: %v", e.Value) }

// Unwrap is the value of the panic where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// OpaqueStore is a live [lease.Store] as StoreRules. It must be used by one
// World at a time, and closed after the last.
//
// The observer cannot ask such a store who holds the lease, and so believes its
// answers: a grant begins a tenure, or goes on with it, and holds for the TTL
// that it names, never for less than before; a release or deletion ends it, and
// so does the answer that it lapsed or was lost, or that nobody holds the lease;
// after a restart a tenure holds for its largest TTL again, unless the store's
// clock goes on. That is the least that a correct store keeps to, but for a tenure
// that had run out before a crash with nobody told: the store may have that on
// record all the same, and nobody acts under it any more. Whoever acts as leader
// must do so within it, and whatever another grant does before its end is harm
// done.
//
// Tokens are numbered in the World, so that a schedule means the same to stores
// that start at different tokens: under TokensNext the first one granted is the
// first of the World and all distances stay, and under TokensRising a token is
// as many as were issued below it. A token that is not above all before it thus
// gets a number that is not either, and breaks monotonicity here as it does
// there.
type OpaqueStore struct {
	promise model.Promise
	start   func() Live

	live   Live
	first  lease.Token
	read   time.Duration // the boot clock when the live one was moved last
	issued []lease.Token // rising; under TokensNext the first one granted
	fault  error
}

var _ Opaque = (*OpaqueStore)(nil)

// NewOpaqueStore is the store whose every run is on one that start makes.
func NewOpaqueStore(start func() Live, p model.Promise) *OpaqueStore {
	return &OpaqueStore{promise: p, start: start}
}

// Promise is what the store says of itself.
func (o *OpaqueStore) Promise() model.Promise { return o.promise }

// Fault is a *[PanicError], or nil.
func (o *OpaqueStore) Fault() error { return o.fault }

// Begin has the store of a new run made.
func (o *OpaqueStore) Begin(first lease.Token, now Clocks) {
	o.Close()
	o.first, o.read, o.issued, o.fault = first, now.Boot, o.issued[:0], nil
	o.guard(func() { o.live = o.start() })
}

// Close ends the last run.
func (o *OpaqueStore) Close() {
	if live := o.live; live != nil {
		o.live = nil
		o.guard(live.Close)
	}
}

// Issued are the store's own tokens, in the order of the World's numbers from
// the first on, as far as they differ from these.
func (o *OpaqueStore) Issued() []lease.Token {
	if o.promise.Tokens == model.TokensNext && (len(o.issued) == 0 || o.issued[0] == o.first) {
		return nil
	}
	return slices.Clone(o.issued)
}

// guard makes a panic the fault of this run, which ends it: what a store does
// after a panic says nothing.
func (o *OpaqueStore) guard(f func()) {
	if o.fault != nil {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			o.fault = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	f()
}

// moveTo lets the live store's clock catch up with that of its node.
func (o *OpaqueStore) moveTo(now Clocks) {
	if d := now.Boot - o.read; d > 0 {
		o.read = now.Boot
		o.live.Advance(d)
	}
}

// Crash lets everything happen that was due before.
func (o *OpaqueStore) Crash(now Clocks) { o.guard(func() { o.moveTo(now) }) }

// Restart starts the next process.
func (o *OpaqueStore) Restart(s *StoreState, now Clocks) {
	o.guard(func() { o.live.Restart() })
	if o.promise.SteadyClock {
		return // the next request finds how long it was down
	}
	o.read = now.Boot
	s.Record = lease.Restore(s.Durable, now.Boot)
}

// Delete deletes the lease, if the store can and the observer knows of one. A
// deletion that fails did not happen.
func (o *OpaqueStore) Delete(s *StoreState) (done bool) {
	if s.Status == lease.Free {
		return false
	}
	o.guard(func() {
		if d, ok := o.live.Store().(interface {
			Delete(ctx context.Context, resource string) error
		}); ok {
			done = d.Delete(context.Background(), o.live.Resource()) == nil
		}
	})
	if done {
		s.Record = s.Record.Delete()
	}
	return done
}

// Tenure is what the observer believes.
func (o *OpaqueStore) Tenure(s *StoreState, now Clocks) (lease.Holder, lease.Token, time.Duration, bool) {
	return s.Holder, s.Token, s.Expires, s.Held(now.Boot)
}

// Handle asks the live store, and believes what it says.
func (o *OpaqueStore) Handle(s *StoreState, now Clocks, _ time.Duration, req lease.Request) lease.Reply {
	rep := req.To(lease.CodeNone)
	o.guard(func() {
		o.moveTo(now)
		rep = o.ask(s, now.Boot, req)
	})
	if o.fault != nil {
		return req.To(lease.CodeNone)
	}
	return rep
}

func (o *OpaqueStore) ask(s *StoreState, now time.Duration, req lease.Request) lease.Reply {
	ctx, store, resource := context.Background(), o.live.Store(), o.live.Resource()
	var g lease.Grant
	var err error
	switch req.Op {
	case lease.OpAcquire:
		g, err = store.Acquire(ctx, resource, req.Holder, req.TTL)
	case lease.OpRenew:
		g, err = store.Renew(ctx, resource, req.Holder, o.actual(req.Token), req.TTL)
	case lease.OpRelease:
		if err = store.Release(ctx, resource, req.Holder, o.actual(req.Token)); err == nil {
			s.Status, s.Expires = lease.Free, 0
			rep := req.To(lease.CodeReleased)
			rep.Token = s.Token
			return rep
		}
	case lease.OpGet:
		obs, err := store.Get(ctx, resource)
		if err != nil {
			return req.To(lease.CodeNone)
		}
		return o.observed(s, now, req, obs)
	}
	if err == nil {
		return o.granted(s, now, req, g)
	}
	return o.refused(s, now, req, err)
}

// granted notes the tenure that a grant begins or goes on with.
func (o *OpaqueStore) granted(s *StoreState, now time.Duration, req lease.Request, g lease.Grant) lease.Reply {
	token := o.number(g.Token)
	if s.Holder != req.Holder || s.Token != token || s.Status == lease.Free {
		s.Durable = lease.Durable{Token: token, Holder: req.Holder}
		s.Expires = now
	}
	sure := min(max(g.TTL, 0), math.MaxInt64-max(now, 0))
	s.Status, s.Expires, s.TTL = lease.Running, max(s.Expires, now+sure), max(s.TTL, sure)
	rep := req.To(lease.CodeGranted)
	rep.Token, rep.TTL, rep.Current, rep.Remaining = token, g.TTL, party(g.Holder), s.Expires-now
	return rep
}

// observed is the answer to a Get.
func (o *OpaqueStore) observed(s *StoreState, now time.Duration, req lease.Request, obs lease.Observation) lease.Reply {
	rep := req.To(lease.CodeFree)
	rep.Current, rep.Remaining = party(obs.Holder), obs.Remaining
	switch {
	case !obs.Holder.IsZero():
		rep.Code, rep.Token = lease.CodeHeld, o.number(obs.Token)
		return rep
	case obs.Remaining > 0:
		rep.Code = lease.CodeDelayed
	}
	rep.Token = o.latest(obs.Token)
	s.over(now)
	return rep
}

// refused is the answer in err, if there is one.
func (o *OpaqueStore) refused(s *StoreState, now time.Duration, req lease.Request, err error) lease.Reply {
	own := req.Holder == s.Holder && req.Token == s.Token
	rep := req.To(lease.CodeNone)
	code := lease.Refusal(err)
	switch acquire := req.Op == lease.OpAcquire; {
	case acquire && code == lease.CodeHeld:
		held, _ := errors.AsType[*lease.HeldError](err)
		rep.Code, rep.Token, rep.Current, rep.Remaining = lease.CodeHeld, o.number(held.Token), party(held.Holder), held.Remaining
	case acquire && code == lease.CodeDelayed:
		delay, _ := errors.AsType[*lease.DelayError](err)
		rep.Code, rep.Token, rep.Remaining = lease.CodeDelayed, s.Token, delay.Remaining
		s.over(now)
	case !acquire && code == lease.CodeLapsed:
		rep.Code, rep.Token = lease.CodeLapsed, s.Token
		if own {
			s.over(now)
		}
	case !acquire && code == lease.CodeLost:
		rep.Code, rep.Token = lease.CodeLost, s.Token
		lost, detailed := errors.AsType[*lease.LostError](err)
		if detailed {
			rep.Current = party(lost.Current)
			rep.Token = max(rep.Token, o.latest(lost.Latest))
		}
		if s.Held(now) && rep.Current == s.Holder {
			rep.Remaining = s.Expires - now
		}
		// It names who holds the lease now, unless the store is terse, and so
		// that nobody does.
		nobody := detailed && !o.promise.Terse && lost.Current.IsZero()
		if own || nobody && now >= s.Expires {
			s.over(now)
		}
	case code == lease.CodeInvalid || req.Op != lease.OpRelease && req.TTL <= 0 || !acquire && req.Token == 0:
		rep.Code = lease.CodeInvalid // no store does as such a request asks, whatever it calls it
	}
	return rep
}

// over notes that the store told somebody of the end of the tenure.
func (s *StoreState) over(now time.Duration) {
	if s.Status == lease.Running {
		s.Status, s.Expires = lease.Lapsed, min(s.Expires, now)
	}
}

// number is the World's for one of the store's tokens.
func (o *OpaqueStore) number(t lease.Token) lease.Token {
	switch {
	case t == 0:
		return 0
	case o.promise.Tokens != model.TokensRising:
		if len(o.issued) == 0 {
			o.issued = append(o.issued, t)
		}
		return o.apart(t)
	}
	i, known := slices.BinarySearch(o.issued, t)
	switch {
	case known:
	case i == len(o.issued):
		o.issued = append(o.issued, t)
	default:
		i-- // fell: no higher than what is below it
	}
	return o.first + lease.Token(i)
}

// latest is the number for a token that is the last one issued, as the store
// says; what it says while nobody holds the lease issues nothing.
func (o *OpaqueStore) latest(t lease.Token) lease.Token {
	if len(o.issued) == 0 || t == 0 {
		return t
	}
	if o.promise.Tokens != model.TokensRising {
		return o.apart(t)
	}
	i, known := slices.BinarySearch(o.issued, t)
	if !known {
		i--
	}
	return o.first + lease.Token(i)
}

// apart is as far from the first number as t is from the first token; 0 for
// what would be below 1.
func (o *OpaqueStore) apart(t lease.Token) lease.Token {
	if low := o.issued[0]; t < low {
		return o.first - min(o.first, low-t)
	}
	return o.first + (t - o.issued[0])
}

// actual is the store's token that has a number, or as good as one that nobody
// was granted.
func (o *OpaqueStore) actual(n lease.Token) lease.Token {
	if n == 0 || len(o.issued) == 0 {
		return n
	}
	low, top := o.issued[0], o.issued[len(o.issued)-1]
	last := o.first + lease.Token(len(o.issued)-1)
	switch {
	case n < o.first:
		return low - min(low, o.first-n)
	case n > last:
		return top + min(n-last, math.MaxUint64-top)
	}
	return o.issued[n-o.first]
}

// party is h if it is a party of the World, and somebody who never was one if
// not.
func party(h lease.Holder) lease.Holder {
	if h.IsZero() {
		return h
	}
	n := NodeNamed(h.Node)
	if r := names[n].Role; (r == model.RoleClient || r == model.RoleRaw) && h.Seq <= math.MaxUint32 && h.Nonce <= math.MaxUint16 {
		return h
	}
	return lease.Holder{Node: names[RawNode(MaxRaw-1)].Name, Seq: math.MaxUint32, Nonce: math.MaxUint16}
}
