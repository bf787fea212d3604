package mutant

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// plain is a lease store as people write it: a map under a mutex, and a disk
// that survives. By itself it is right. A wrong one replaces one of its habits,
// or, where the fault is in how the parts go together, one of its methods.
type plain struct {
	clk    clock.Clock
	habits habits

	mu   sync.Mutex
	rows map[string]row
	disk map[string]row
}

// row is a lease. All of it is on disk, though until is an instant, which means
// nothing to the process after unless its clock goes on.
type row struct {
	token  lease.Token
	holder lease.Holder  // of the latest tenure; nobody once it was given back
	ttl    time.Duration // the longest asked for in the tenure
	lapsed bool          // somebody was told that it has run out
	until  time.Duration
}

// habits are the decisions of a store, each in the one place where it is taken.
type habits struct {
	lockDelay time.Duration
	// name is what the row of a resource is found under.
	name func(resource string) string
	// held says whether the tenure runs at now.
	held func(r row, now time.Duration) bool
	// retry says whether an acquire by h while r is held is one that h has
	// been granted already.
	retry func(r row, h lease.Holder) bool
	// mayRenew and mayRelease say whose tenure it is.
	mayRenew, mayRelease func(r row, h lease.Holder, t lease.Token) bool
	// next is the token of the ownership of h that comes after r.
	next func(r row, h lease.Holder) lease.Token
	// extend makes r last for ttl from now, unless it lasts longer.
	extend func(r row, now, ttl time.Duration) row
	// again is extend where the holder repeats its acquire.
	again func(r row, now, ttl time.Duration) row
	// release is r given back.
	release func(r row) row
	// remove is r deleted by an operator.
	remove func(r row) row
	// save is what of r reaches the disk.
	save func(r row) row
	// restore is what a new process makes of what it finds there.
	restore func(r row, now time.Duration) row
}

func owns(r row, h lease.Holder, t lease.Token) bool { return r.holder == h && r.token == t }

// rightly are the habits of a right store.
func rightly() habits {
	return habits{
		name:       func(resource string) string { return resource },
		held:       func(r row, now time.Duration) bool { return !r.holder.IsZero() && !r.lapsed && now < r.until },
		retry:      func(r row, h lease.Holder) bool { return r.holder == h },
		mayRenew:   owns,
		mayRelease: owns,
		next:       func(r row, _ lease.Holder) lease.Token { return r.token + 1 },
		extend:     longer,
		again:      longer,
		release:    func(r row) row { return row{token: r.token} },
		remove:     func(r row) row { return row{token: r.token} },
		save:       func(r row) row { return r },
		restore:    anew,
	}
}

// longer is r for at least ttl from now.
func longer(r row, now, ttl time.Duration) row {
	r.ttl, r.until = max(r.ttl, ttl), max(r.until, sum(now, ttl))
	return r
}

// anew is r after a restart. How much of a tenure is left nobody knows, so it
// gets all of it, and a lapse that was told starts its lock delay again.
func anew(r row, now time.Duration) row {
	r.until = now
	if !r.lapsed {
		r.until = sum(now, r.ttl)
	}
	return r
}

// sum is a + b, or the last instant there is.
func sum(a, b time.Duration) time.Duration {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// keeping makes a store whose habits are right but for what change does.
func keeping(change func(*habits)) func(kit.Env) lease.Store {
	return func(e kit.Env) lease.Store { return start(e, change) }
}

// steadily is keeping on a clock that goes on over restarts.
func steadily(change func(*habits)) func(kit.Env) lease.Store {
	return keeping(func(h *habits) {
		h.restore = func(r row, _ time.Duration) row { return r }
		change(h)
	})
}

func start(e kit.Env, change func(*habits)) *plain {
	s := &plain{clk: e.Clock, habits: rightly(), rows: map[string]row{}}
	if change != nil {
		change(&s.habits)
	}
	s.disk = kit.Durable(e, "leases", func() map[string]row { return map[string]row{} })
	now := s.clk.Now()
	for name, r := range s.disk {
		s.rows[name] = s.habits.restore(r, now)
	}
	return s
}

// turn does one request: it reads the row, lets decide say what becomes of it,
// and writes that down before anybody is answered.
func (s *plain) turn(ctx context.Context, resource string, decide func(r row, now time.Duration) (row, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	name := s.habits.name(resource)
	r, err := decide(s.rows[name], s.clk.Now())
	s.put(name, r)
	return err
}

// put writes a row. The caller has the mutex.
func (s *plain) put(name string, r row) {
	s.disk[name] = s.habits.save(r)
	s.rows[name] = r
}

func (s *plain) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		r, granted, err := s.acquire(resource, r, now, h, ttl)
		g = granted
		return r, err
	})
	return g, err
}

func (s *plain) acquire(resource string, r row, now time.Duration, h lease.Holder, ttl time.Duration) (row, lease.Grant, error) {
	if h.IsZero() || ttl <= 0 || r.token == math.MaxUint64 {
		return r, lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	held := s.habits.held(r, now)
	switch {
	case held && s.habits.retry(r, h):
		r = s.habits.again(r, now, ttl)
		r.holder = h
		return r, grant(resource, r, ttl), nil
	case held:
		return r, lease.Grant{}, &lease.HeldError{Resource: resource, Holder: r.holder, Token: r.token, Remaining: r.until - now}
	}
	r = told(r)
	if left := s.delay(r, now); left > 0 {
		return r, lease.Grant{}, &lease.DelayError{Resource: resource, Remaining: left}
	}
	r = s.habits.extend(row{token: s.habits.next(r, h), holder: h, until: now}, now, ttl)
	return r, grant(resource, r, ttl), nil
}

func (s *plain) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		r, granted, err := s.renew(resource, r, now, h, t, ttl)
		g = granted
		return r, err
	})
	return g, err
}

func (s *plain) renew(resource string, r row, now time.Duration, h lease.Holder, t lease.Token, ttl time.Duration) (row, lease.Grant, error) {
	if h.IsZero() || t == 0 || ttl <= 0 {
		return r, lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpRenew}
	}
	if !s.habits.held(r, now) || !s.habits.mayRenew(r, h, t) {
		r, err := s.notYours(resource, r, now, h, t)
		return r, lease.Grant{}, err
	}
	r = s.habits.extend(r, now, ttl)
	return r, lease.Grant{Resource: resource, Holder: h, Token: t, TTL: ttl}, nil
}

func (s *plain) Release(ctx context.Context, resource string, h lease.Holder, t lease.Token) error {
	return s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		if h.IsZero() || t == 0 {
			return r, &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
		}
		if !s.habits.held(r, now) || !s.habits.mayRelease(r, h, t) {
			return s.notYours(resource, r, now, h, t)
		}
		return s.habits.release(r), nil
	})
}

func (s *plain) Get(ctx context.Context, resource string) (o lease.Observation, err error) {
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		if s.habits.held(r, now) {
			o = lease.Observation{Resource: resource, Holder: r.holder, Token: r.token, Remaining: r.until - now}
			return r, nil
		}
		r = told(r)
		o = lease.Observation{Resource: resource, Token: r.token, Remaining: s.delay(r, now)}
		return r, nil
	})
	return o, err
}

// Delete makes it a [kit.Deleter].
func (s *plain) Delete(ctx context.Context, resource string) error {
	return s.turn(ctx, resource, func(r row, _ time.Duration) (row, error) { return s.habits.remove(r), nil })
}

// notYours refuses a renewal or a release.
func (s *plain) notYours(resource string, r row, now time.Duration, h lease.Holder, t lease.Token) (row, error) {
	if s.habits.held(r, now) {
		return r, &lease.LostError{Resource: resource, Holder: h, Token: t, Current: r.holder, Latest: r.token}
	}
	r = told(r)
	if owns(r, h, t) {
		return r, &lease.LapsedError{Resource: resource, Holder: h, Token: t}
	}
	return r, &lease.LostError{Resource: resource, Holder: h, Token: t, Latest: r.token}
}

// told is r, which is not held, once somebody is told so.
func told(r row) row {
	r.lapsed = !r.holder.IsZero()
	return r
}

// delay is what is left at now of the lock delay of r, which is not held.
func (s *plain) delay(r row, now time.Duration) time.Duration {
	if r.holder.IsZero() {
		return 0
	}
	return max(0, sum(r.until, s.habits.lockDelay)-now)
}

func grant(resource string, r row, ttl time.Duration) lease.Grant {
	return lease.Grant{Resource: resource, Holder: r.holder, Token: r.token, TTL: ttl}
}

// untyped is a store whose refusals are errors like any other.
type untyped struct{ *plain }

var errInUse = errors.New("lock is in use")

func (s untyped) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.plain.Acquire(ctx, resource, h, ttl)
	if err != nil {
		return g, errInUse
	}
	return g, nil
}

// inSteps is a store that reads, looks at the clock, decides, and writes, and
// has the mutex for the reading and for the writing.
type inSteps struct{ *plain }

func (s inSteps) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	r := s.rows[resource]
	s.mu.Unlock()
	r, g, err := s.acquire(resource, r, s.clk.Now(), h, ttl)
	s.mu.Lock()
	s.put(resource, r)
	s.mu.Unlock()
	return g, err
}

// renewsInSteps is one that does so only where it renews.
type renewsInSteps struct{ *plain }

func (s renewsInSteps) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	r := s.rows[resource]
	s.mu.Unlock()
	r, g, err := s.renew(resource, r, s.clk.Now(), h, t, ttl)
	if err != nil {
		return s.plain.Renew(ctx, resource, h, t, ttl)
	}
	s.mu.Lock()
	s.put(resource, r)
	s.mu.Unlock()
	return g, nil
}
