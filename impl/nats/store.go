package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/lease"
)

// Options are what a [Store] may be told.
type Options struct {
	// ClockOffset bounds how far apart the wall clocks of any two servers of the
	// cluster are. A tenure is held for that much longer, since a new leader of
	// the stream judges by its own clock what another has stamped. At most a
	// minute. Default: none for a bucket with one replica, else one second.
	ClockOffset time.Duration
}

// Store is a [lease.Store] in one bucket. The error of a request that was not
// refused leaves the outcome unknown unless it says otherwise.
//
// All methods are safe for concurrent use.
type Store struct {
	bucket bucket
	offset time.Duration
	known  known
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// New is a store in the bucket of that name, which is there already: see
// [CreateBucket]. The error is a *[lease.ConfigError] where an option, or the
// bucket as it is configured, makes no sound store.
func New(ctx context.Context, js jetstream.JetStream, name string, opts Options) (*Store, error) {
	if opts.ClockOffset < 0 || opts.ClockOffset > time.Minute {
		return nil, &lease.ConfigError{Field: "ClockOffset", Reason: fmt.Sprintf("%v is not between 0 and a minute", opts.ClockOffset)}
	}
	b, err := openBucket(ctx, js, name)
	if err != nil {
		return nil, err
	}
	s := &Store{bucket: b, offset: opts.ClockOffset}
	if b.stream.CachedInfo().Config.Replicas > 1 {
		s.offset = cmp.Or(opts.ClockOffset, time.Second)
	}
	return s, nil
}

// Acquire grants resource to holder for ttl, exact to the nanosecond. The
// refusals are *[lease.HeldError] and *[lease.InvalidError].
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.ask).Acquire(ctx, resource, holder, ttl)
}

// Renew extends holder's tenure under token to at least ttl from now: in one
// message, where this store wrote the lease last. One that has lapsed may be
// renewed too, until somebody was told of it. The refusals are
// *[lease.LapsedError] and *[lease.LostError], which match [lease.ErrNotHeld],
// and *[lease.InvalidError].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	return lease.Handler(s.ask).Renew(ctx, resource, holder, token, ttl)
}

// Release ends holder's tenure under token. Its refusals are those of Renew.
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return lease.Handler(s.ask).Release(ctx, resource, holder, token)
}

// Get says who holds resource, and under which token the last one did: 0 where
// the key was deleted. A lapse that it finds it writes down.
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	return lease.Handler(s.ask).Get(ctx, resource)
}

// ask has the rules of [lease.Record] answer c, and writes what they make of
// the lease on the condition that it is still as they saw it.
//
// What is remembered may be out of date. It is good enough to write on, since
// that fails then, and saves two requests; but never to refuse on.
func (s *Store) ask(ctx context.Context, c lease.Call) (lease.Reply, error) {
	if c.Op != lease.OpGet && !c.Holder.Valid() {
		return c.To(lease.CodeInvalid), nil
	}
	st, now, remembered := s.remembered(c)
	for ; ; remembered = false {
		if !remembered {
			var err error
			if st, now, err = s.look(ctx, c.Resource); err != nil {
				return lease.Reply{}, fmt.Errorf("lease %q: %v: nothing done: %w", c.Resource, c.Op, err)
			}
		}
		next, rep := st.Handle(now, 0, c.Request)
		if remembered && rep.Code != lease.CodeGranted {
			continue
		}
		if next == st.Record && rep.Code != lease.CodeGranted {
			return rep, nil
		}
		// The next token of the rules is not the one: the server counts.
		fresh := next.Token != st.Token
		ttl := cmp.Or(c.TTL, st.TTL)
		after, err := s.write(ctx, c.Resource, st, st.after(next, fresh, ttl, s.offset))
		switch {
		case errors.Is(err, errConflict):
			continue
		case err != nil:
			return lease.Reply{}, fmt.Errorf("lease %q: %v: outcome unknown: %w", c.Resource, c.Op, err)
		}
		if fresh {
			rep.Token = lease.Token(after)
		}
		return rep, nil
	}
}

// remembered is the lease as this store wrote it last, if that is c's own
// tenure, and an instant at which that ran. How long it runs is known at least,
// which is why a shorter TTL needs a look: it must not end it earlier.
func (s *Store) remembered(c lease.Call) (state, time.Duration, bool) {
	if c.Op != lease.OpRenew {
		return state{}, 0, false
	}
	st, ok := s.known.get(c.Resource)
	return st, st.stored, ok && st.Token == c.Token && st.Holder == c.Holder && c.TTL >= st.TTL
}

// look reads the lease, and after it the clock of the stream's leader, which
// stamped the message too.
func (s *Store) look(ctx context.Context, resource string) (state, time.Duration, error) {
	m, now, err := s.bucket.read(ctx, Key(resource))
	if err != nil || m == nil {
		s.known.forget(resource)
		return state{}, now, err
	}
	st, err := stateOf(m, s.offset)
	if err == nil && st.Status == lease.Running {
		s.known.set(resource, st)
	} else {
		s.known.forget(resource)
	}
	return st, now, err
}

// write puts v in the place of st, and gives its revision.
func (s *Store) write(ctx context.Context, resource string, st state, v value) (uint64, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	s.known.forget(resource)
	revision, err := s.bucket.write(ctx, Key(resource), st.revision, data)
	if err != nil || v.Ended != "" {
		return revision, err
	}
	// When the server stored it is not in its answer. Its end is no earlier than
	// that of the last one, by Until.
	m := &jetstream.RawStreamMsg{Sequence: revision, Data: data, Header: nats.Header{}, Time: time.Unix(0, int64(st.stored))}
	if st, err := stateOf(m, s.offset); err == nil {
		s.known.set(resource, st)
	}
	return revision, nil
}
