package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// Leases is what a [Store] needs of client-go's
// kubernetes/typed/coordination/v1.LeaseInterface: the verbs get, create and
// update, and watch for [Store.Watch].
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordination.Lease, error)
	Create(ctx context.Context, l *coordination.Lease, opts metav1.CreateOptions) (*coordination.Lease, error)
	Update(ctx context.Context, l *coordination.Lease, opts metav1.UpdateOptions) (*coordination.Lease, error)
	Watcher
}

// Options are what a [Store] may be told.
type Options struct {
	// Clock tells how long a lease has been seen unchanged. Default
	// [clock.Boot].
	Clock clock.Clock
	// MaxDriftRate bounds the clock of a holder against the one of whoever
	// challenges it: rate over rate is at least 1-MaxDriftRate. In [0, 1/2].
	// A challenger waits for TTL/(1-MaxDriftRate), so that a holder may
	// count on all of its TTL. Default 0.01. (That of a [lease.Config] bounds the same and is taken
	// off the holder's side; one of the two would do.)
	MaxDriftRate float64
	// Foreign lets candidates of client-go's leaderelection hold the lease
	// meanwhile: see the package comment. They appear as a holder whose Node is their
	// identity, under token 0.
	Foreign bool
	// Wall gives the time of day that a Lease shows to people and other tools,
	// and that no rule reads. Default time.Now.
	Wall func() time.Time
}

// MinTTL is the shortest TTL: the unit of the API. Shorter ones are refused.
const MinTTL = time.Second

// Store is a [lease.Store] in the Lease objects of one namespace. It remembers
// what it has seen of each lease it was asked about, and since when: see the
// package comment. A new one, in a new process, begins to count anew.
//
// The error of a request that was not refused, such as that of its context or
// one of the API server, leaves the outcome unknown unless it says otherwise.
//
// All methods are safe for concurrent use.
type Store struct {
	leases Leases
	clk    clock.Clock
	rules  rules
	sights sights
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// New is a store in the namespace that leases is for, as
// clientset.CoordinationV1().Leases("NAMESPACE") gives it. The error is a
// *[lease.ConfigError] that names the option that makes no sense.
func New(leases Leases, opts Options) (*Store, error) {
	drift := cmp.Or(opts.MaxDriftRate, 0.01)
	switch {
	case leases == nil:
		return nil, &lease.ConfigError{Field: "leases", Reason: "must be set"}
	case !(drift > 0 && drift <= 0.5):
		return nil, &lease.ConfigError{Field: "MaxDriftRate", Reason: fmt.Sprintf("%v is not in [0, 0.5]: 0.01 means that a holder's clock may run 1%% slow", drift)}
	}
	s := &Store{leases: leases, clk: opts.Clock, rules: rules{driftRate: drift, foreign: opts.Foreign, wall: opts.Wall}}
	if s.clk == nil {
		s.clk = clock.Boot()
	}
	if s.rules.wall == nil {
		s.rules.wall = time.Now
	}
	return s, nil
}

// Acquire grants resource to holder for ttl, of which a Lease keeps whole
// seconds, rounded up. The refusals are *[lease.HeldError] and, for a TTL below
// [MinTTL] and a holder whose text form cannot be read back too,
// *[lease.InvalidError]; a *[ForeignError] says that nothing was
// done either.
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if !holder.Valid() || ttl < MinTTL {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	token, err := s.change(ctx, lease.OpAcquire, resource, func(before sight, now time.Duration) (*coordination.Lease, error) {
		return s.rules.acquire(before, now, resource, holder, wholeSeconds(ttl))
	})
	return grant(resource, holder, token, ttl, err)
}

// Renew extends holder's tenure under token to at least ttl from now. One that
// has lapsed is renewed too, until somebody takes the lease over. The refusals are
// *[lease.LostError], which matches [lease.ErrNotHeld], and *[lease.InvalidError].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	if !holder.Valid() || token == 0 || ttl < MinTTL {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpRenew}
	}
	token, err := s.change(ctx, lease.OpRenew, resource, func(before sight, now time.Duration) (*coordination.Lease, error) {
		return s.rules.renew(before, now, resource, holder, token, wholeSeconds(ttl))
	})
	return grant(resource, holder, token, ttl, err)
}

// Release ends holder's tenure under token. Its refusals are those of Renew, and
// *[lease.LapsedError], after which the lease is free too.
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if !holder.Valid() || token == 0 {
		return &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
	}
	var was error
	_, err := s.change(ctx, lease.OpRelease, resource, func(before sight, now time.Duration) (next *coordination.Lease, refused error) {
		next, was, refused = s.rules.release(before, now, resource, holder, token)
		return next, refused
	})
	return cmp.Or(err, was)
}

// Get says who holds resource. Once this process has seen the lease unchanged for
// long enough it is nobody, and Get writes that down, for all others to see. A
// process that may not update leases names the last holder instead, with nothing
// remaining. It refuses nothing but a Lease that is not fencepost's, with a
// *[ForeignError].
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	for {
		seen, err := s.look(ctx, lease.OpGet, resource)
		if err != nil {
			return lease.Observation{}, err
		}
		o, free, err := s.rules.get(seen, s.clk.Now(), resource)
		if err != nil || free == nil {
			return o, err
		}
		_, err = s.write(ctx, lease.OpGet, resource, seen, free)
		switch {
		case errors.Is(err, errConflict):
		case apierrors.IsForbidden(err):
			return o, nil
		case err != nil:
			return lease.Observation{}, err
		default:
			return lease.Observation{Resource: resource, Token: o.Token}, nil
		}
	}
}

// change writes what decide makes of the lease, on the condition that it is
// still as decide saw it, and gives the token of its tenure.
//
// What is remembered may be out of date. It is good enough to write on, since
// that fails then, and saves a request; but never to refuse on.
func (s *Store) change(ctx context.Context, op lease.Op, resource string, decide func(sight, time.Duration) (*coordination.Lease, error)) (lease.Token, error) {
	for seen, remembered := s.sights.get(resource); ; remembered = false {
		if !remembered {
			var err error
			if seen, err = s.look(ctx, op, resource); err != nil {
				return 0, err
			}
		}
		next, err := decide(seen, s.clk.Now())
		switch {
		case err != nil && remembered:
			continue
		case err != nil:
			return 0, err
		}
		token, err := s.write(ctx, op, resource, seen, next)
		// Each conflict is somebody else's write, so that all together get on.
		if !errors.Is(err, errConflict) {
			return token, err
		}
	}
}

// look asks the server for the lease.
func (s *Store) look(ctx context.Context, op lease.Op, resource string) (sight, error) {
	asked, _ := s.sights.get(resource)
	l, err := s.leases.Get(ctx, ObjectName(resource), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.sights.forget(resource)
		return sight{}, nil
	case err != nil:
		return sight{}, fmt.Errorf("lease %q: %v: nothing done: %w", resource, op, err)
	}
	seen, err := s.sights.saw(resource, l, asked.Sight, s.clk.Now())
	if err != nil {
		return sight{}, fmt.Errorf("lease %q: %v: nothing done: %w", resource, op, err)
	}
	return seen, nil
}

// errConflict says that nothing was written, since the object is not as it was
// seen.
var errConflict = errors.New("conflict")

// write stores next in the place of what was seen, and gives the token of its
// tenure.
func (s *Store) write(ctx context.Context, op lease.Op, resource string, seen sight, next *coordination.Lease) (lease.Token, error) {
	asked, _ := s.sights.get(resource)
	var after *coordination.Lease
	var err error
	if seen.object == nil {
		after, err = s.leases.Create(ctx, next, metav1.CreateOptions{})
	} else {
		after, err = s.leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && seen.object != nil:
		return 0, errConflict
	case err != nil:
		return 0, fmt.Errorf("lease %q: %v: %s: %w", resource, op, outcome(err), err)
	}
	if _, err := s.sights.saw(resource, after, asked.Sight, s.clk.Now()); err != nil {
		return 0, fmt.Errorf("lease %q: %v: outcome unknown: %w", resource, op, err)
	}
	if seen.object != nil && sameTenure(seen.object, after) {
		return seen.token, nil
	}
	return version(after)
}

func grant(resource string, holder lease.Holder, token lease.Token, ttl time.Duration, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	// Of a TTL of centuries the API can say only so much.
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: min(ttl, time.Duration(wholeSeconds(ttl))*time.Second)}, nil
}
