package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// Options are what a [Store] may be told.
type Options struct {
	// Clock tells how long a lease has been seen unchanged. Default
	// [clock.Boot].
	Clock clock.Clock
	// MaxDriftRate bounds the clock of a holder against the one of whoever
	// challenges it: rate over rate is at least 1-MaxDriftRate. In (0, 1/2].
	// A challenger waits for TTL/(1-MaxDriftRate). Default 0.01.
	MaxDriftRate float64
	// LockDelay is how long after a lapse, or after when another process wrote it down,
	// and not after a release, nobody is granted the lease. Default 0.
	LockDelay time.Duration
	// FirstToken is what the first tenure of a lease without an object gets.
	// Default 1. Where objects were lost, set it above every token that a storage
	// has seen: see also [Store.Raise].
	FirstToken lease.Token
	// Prefix of the keys of lease objects. Default "leases/".
	Prefix string
}

// Store is a [lease.Store] in one object a lease. It remembers what it has seen
// of each lease it was asked about, and since when: see the package comment. A
// new one, in a new process, begins to count anew.
//
// An error that is no refusal, such as that of its context or one of the
// server, leaves the outcome unknown unless it says otherwise.
//
// All methods are safe for concurrent use.
type Store struct {
	bucket bucket
	opts   Options
	sights sights
}

var _ lease.Store = (*Store)(nil)

// New is a store in a bucket that exists. The error is a *[lease.ConfigError]
// that names the option that makes no sense.
func New(objects Objects, bucketName string, opts Options) (*Store, error) {
	opts.MaxDriftRate = cmp.Or(opts.MaxDriftRate, 0.01)
	opts.FirstToken = cmp.Or(opts.FirstToken, 1)
	opts.Prefix = cmp.Or(opts.Prefix, "leases/")
	switch {
	case objects == nil:
		return nil, &lease.ConfigError{Field: "objects", Reason: "must be set"}
	case bucketName == "":
		return nil, &lease.ConfigError{Field: "bucketName", Reason: "must be set"}
	case !(opts.MaxDriftRate > 0 && opts.MaxDriftRate <= 0.5):
		return nil, &lease.ConfigError{Field: "MaxDriftRate", Reason: fmt.Sprintf("%v is not in (0, 0.5]: 0.01 means that a holder's clock may run 1%% slow", opts.MaxDriftRate)}
	case opts.LockDelay < 0:
		return nil, &lease.ConfigError{Field: "LockDelay", Reason: fmt.Sprintf("%v is negative", opts.LockDelay)}
	}
	if opts.Clock == nil {
		opts.Clock = clock.Boot()
	}
	return &Store{bucket: bucket{objects, bucketName}, opts: opts, sights: sights{driftRate: opts.MaxDriftRate}}, nil
}

// Key is that of the object that keeps resource.
func (s *Store) Key(resource string) string {
	return s.opts.Prefix + url.PathEscape(resource) + ".json"
}

// Acquire grants resource to holder for ttl. The refusals are
// *[lease.HeldError], *[lease.DelayError] and, for a holder whose text form
// cannot be read back too, *[lease.InvalidError]; a *[RegressedError] or an
// *[ObjectError] says that nothing was done either.
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.handle).Acquire(ctx, resource, holder, ttl)
}

// Renew extends holder's tenure under token to at least ttl from now. One that
// has lapsed, as far as this process has seen, is not renewed. The refusals are
// *[lease.LapsedError] and *[lease.LostError], which match [lease.ErrNotHeld], and
// *[lease.InvalidError].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.handle).Renew(ctx, resource, holder, token, ttl)
}

// Release ends holder's tenure under token. Its refusals are those of Renew.
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return lease.Handler(s.handle).Release(ctx, resource, holder, token)
}

// Get says who holds resource. Once this process has seen the lease unchanged for
// long enough it is nobody, and Get writes that down, for all others to see. It
// needs the right to write for that.
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return lease.Handler(s.handle).Get(ctx, resource)
}

// Delete takes the lease from whoever holds it, for an operator. The object
// stays, since it is what counts the tokens.
func (s *Store) Delete(ctx context.Context, resource string) error {
	return s.change(ctx, "delete", resource, func(r lease.Record, _ time.Duration) (lease.Record, bool, bool) {
		return r.Delete(), r.Token > 0, false
	})
}

// Raise makes every token granted from now on higher than token, for an operator
// whose lease object was deleted or restored from a backup. Nobody holds the
// lease then. A lease whose last token is token or higher is left alone.
func (s *Store) Raise(ctx context.Context, resource string, token lease.Token) error {
	asked, _ := s.sights.get(resource)
	for {
		seen, err := s.look(ctx, resource)
		if err != nil && !errors.Is(err, ErrRegressed) {
			return fmt.Errorf("lease %q: raise: nothing done: %w", resource, err)
		}
		if r, ok := errors.AsType[*RegressedError](err); ok {
			if token < lease.Token(r.Seen) {
				return err
			}
			// What is there now, not what was seen once, is what to replace.
			if seen, err = s.read(ctx, resource); err != nil {
				return fmt.Errorf("lease %q: raise: nothing done: %w", resource, err)
			}
		}
		if seen.Version != "" && seen.Token >= token {
			return nil
		}
		after, err := s.write(ctx, resource, seen, lease.Durable{Token: token})
		if errors.Is(err, errConflict) {
			continue
		}
		if err == nil {
			s.sights.saw(resource, after, asked.Sight)
			return nil
		}
		return fmt.Errorf("lease %q: raise: outcome unknown: %w", resource, err)
	}
}

// handle has [lease.Record] answer c.
func (s *Store) handle(ctx context.Context, c lease.Call) (lease.Reply, error) {
	if c.Op != lease.OpGet && !c.Holder.Valid() {
		return c.To(lease.CodeInvalid), nil
	}
	var reply lease.Reply
	err := s.change(ctx, c.Op.String(), c.Resource, func(r lease.Record, now time.Duration) (lease.Record, bool, bool) {
		var after lease.Record
		after, reply = r.Handle(now, s.opts.LockDelay, c.Request)
		// A renewal is written though it changes nothing: that it was is what
		// challengers look at.
		write := after.Durable != r.Durable || reply.Code == lease.CodeGranted
		return after, write, reply.Err(c.Resource) != nil
	})
	return reply, err
}

// change writes what decide makes of the lease, on the condition that it is
// still as decide saw it. A refusal may go with something to write, too: a lapse.
//
// What is remembered may be out of date. It is good enough to write on, since
// that fails then, and saves a request; but never to answer on.
func (s *Store) change(ctx context.Context, what, resource string, decide func(lease.Record, time.Duration) (next lease.Record, write, refused bool)) error {
	for seen, remembered := s.sights.get(resource); ; remembered = false {
		if !remembered {
			var err error
			if seen, err = s.look(ctx, resource); err != nil {
				return fmt.Errorf("lease %q: %s: nothing done: %w", resource, what, err)
			}
		}
		next, write, refused := decide(seen.record(s.opts.MaxDriftRate), s.opts.Clock.Now())
		if remembered && (!write || refused) {
			continue
		}
		if !write {
			return nil
		}
		asked, _ := s.sights.get(resource)
		after, err := s.write(ctx, resource, seen, next.Durable)
		// Each conflict is somebody else's write, so that all together get on.
		if errors.Is(err, errConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("lease %q: %s: outcome unknown: %w", resource, what, err)
		}
		s.sights.saw(resource, after, asked.Sight)
		return nil
	}
}

// look reads the lease and takes down what it saw.
func (s *Store) look(ctx context.Context, resource string) (sight, error) {
	asked, _ := s.sights.get(resource)
	found, err := s.read(ctx, resource)
	if err != nil {
		return sight{}, err
	}
	seen, ok := s.sights.saw(resource, found, asked.Sight)
	if !ok {
		r := &RegressedError{Resource: resource, Key: s.Key(resource), Seen: uint64(seen.Token)}
		if found.Version != "" {
			r.Found = uint64(found.Token)
		}
		return sight{}, r
	}
	return seen, nil
}

// read is the lease as it is in the bucket.
func (s *Store) read(ctx context.Context, resource string) (sight, error) {
	key := s.Key(resource)
	body, etag, err := s.bucket.get(ctx, key)
	switch {
	case errors.Is(err, errMissing):
		return sight{state: state{Durable: lease.Durable{Token: s.opts.FirstToken - 1}}}, nil
	case err != nil:
		return sight{}, err
	}
	st, err := decode(key, body)
	return sight{st, lease.Sight{}.See(etag, s.opts.Clock.Now())}, err
}

// write puts d in the place of what was seen. A conflict with a copy of the same
// request is none.
func (s *Store) write(ctx context.Context, resource string, seen sight, d lease.Durable) (sight, error) {
	next := seen.next(d)
	body, err := next.encode()
	if err != nil {
		return sight{}, err
	}
	etag, err := s.bucket.put(ctx, s.Key(resource), body, seen.Version)
	if errors.Is(err, errConflict) {
		now, failed := s.read(ctx, resource)
		switch {
		case failed != nil:
			return sight{}, failed
		case now.nonce != next.nonce:
			return sight{}, errConflict
		}
		return now, nil
	}
	return sight{next, lease.Sight{}.See(etag, s.opts.Clock.Now())}, err
}
