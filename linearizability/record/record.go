// Package record records what a live lease store and a live fenced storage
// answer, as a history that linearizability can check.
//
// It must not judge: it writes down calls and returns, and an answer that is no
// answer as unknown, as when a context ended. A call that never returns stays
// without an end, which says the same. Nor does it know which store or storage it
// wraps.
//
// Start at [Store]; [NewStorage] wraps what the lease protects, and [Lead] the
// leader's work. Flush the recorder when all is done. A lease of another kind is
// recorded by hand, with a [linearizability.Recorder]: see the example of it.
//
// # What survives a crash
//
// Every process records into a file of its own, which it begins. The file only
// ever gets whole lines, in order, so what a killed process leaves is a history,
// whose last line may be torn; it has lost the last microseconds, about. In the
// file by itself that does no harm: nothing on record can be an effect of what is
// not.
//
// Where several processes record and one of them is killed, a call may be lost
// that reached the store, and whose effect another process has on record. To have
// each call on record before its request leaves, let the wrapped store call
// [linearizability.Recorder.Flush] first: what is wrapped is called after the call
// was recorded. That costs a write to the file for each call. A machine that loses
// power loses what its file system had not put on the disk: where that matters,
// call Sync on the file after Flush.
package record

import (
	"context"
	"errors"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/linearizability"
)

type field = linearizability.Field

func text(name, s string) field { return field{Name: name, Value: linearizability.String(s)} }

func token(t lease.Token) field {
	return field{Name: "token", Value: linearizability.Uint(uint64(t))}
}

func ttl(d time.Duration) field {
	return field{Name: "ttl", Value: linearizability.Int(d.Nanoseconds())}
}

// Store is s with every call recorded by r.
func Store(s lease.Store, r *linearizability.Recorder) lease.Store { return &store{s, r} }

type store struct {
	lease.Store
	r *linearizability.Recorder
}

func (s *store) Acquire(ctx context.Context, resource string, holder lease.Holder, d time.Duration) (lease.Grant, error) {
	c := s.r.Invoke("acquire", text("key", resource), text("owner", holder.String()), ttl(d))
	g, err := s.Store.Acquire(ctx, resource, holder, d)
	if err != nil {
		refused(c, err)
	} else {
		c.OK(token(g.Token), ttl(g.TTL))
	}
	return g, err
}

func (s *store) Renew(ctx context.Context, resource string, holder lease.Holder, t lease.Token, d time.Duration) (lease.Grant, error) {
	c := s.r.Invoke("renew", text("key", resource), text("owner", holder.String()), token(t), ttl(d))
	g, err := s.Store.Renew(ctx, resource, holder, t, d)
	if err != nil {
		refused(c, err)
	} else {
		c.OK(ttl(g.TTL))
	}
	return g, err
}

func (s *store) Release(ctx context.Context, resource string, holder lease.Holder, t lease.Token) error {
	c := s.r.Invoke("release", text("key", resource), text("owner", holder.String()), token(t))
	err := s.Store.Release(ctx, resource, holder, t)
	if err != nil {
		refused(c, err)
	} else {
		c.OK()
	}
	return err
}

func (s *store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	c := s.r.Invoke("get", text("key", resource))
	o, err := s.Store.Get(ctx, resource)
	switch {
	case err != nil:
		refused(c, err)
	case o.Holder.IsZero():
		c.OK(text("owner", ""))
	default:
		c.OK(text("owner", o.Holder.String()), token(o.Token))
	}
	return o, err
}

// refused records an error of a store. What is none of the refusals, such as
// the end of a context, says nothing of the outcome.
func refused(c linearizability.Call, err error) {
	var held *lease.HeldError
	var delay *lease.DelayError
	var lapsed *lease.LapsedError
	var lost *lease.LostError
	var invalid *lease.InvalidError
	switch {
	case errors.As(err, &held):
		c.Fail("held", text("holder", held.Holder.String()))
	case errors.As(err, &delay):
		c.Fail("delay")
	case errors.As(err, &lapsed):
		c.Fail("lapsed")
	case errors.As(err, &lost):
		c.Fail("lost")
	case errors.As(err, &invalid):
		c.Fail("invalid")
	default:
		c.Info(text("error", err.Error()))
	}
}

// Storage is a fenced storage with every call recorded. It is a [fence.KV].
type Storage struct {
	kv     fence.KV
	name   string
	holder lease.Holder
	r      *linearizability.Recorder
}

var _ fence.KV = (*Storage)(nil)

// NewStorage is kv with every call recorded by r; the name tells it from other
// storages in the history. Who calls is not on record: see [Storage.As].
func NewStorage(kv fence.KV, name string, r *linearizability.Recorder) *Storage {
	return &Storage{kv: kv, name: name, r: r}
}

// As is the same storage with the holder on record as the sender of each call,
// so that a write under somebody else's token is found out.
func (s *Storage) As(holder lease.Holder) *Storage {
	as := *s
	as.holder = holder
	return &as
}

func (s *Storage) invoke(f string, more ...field) linearizability.Call {
	fields := []field{text("key", s.name)}
	if !s.holder.IsZero() {
		fields = append(fields, text("owner", s.holder.String()))
	}
	return s.r.Invoke(f, append(fields, more...)...)
}

// Fence is that of the wrapped storage.
func (s *Storage) Fence(ctx context.Context, t lease.Token) error {
	c := s.invoke("fence", token(t))
	err := s.kv.Fence(ctx, t)
	admitted(c, err)
	return err
}

// Write is that of the wrapped storage.
func (s *Storage) Write(ctx context.Context, t lease.Token, key, value string) error {
	c := s.invoke("write", token(t), text("k", key), text("v", value))
	err := s.kv.Write(ctx, t, key, value)
	admitted(c, err)
	return err
}

// Read is that of the wrapped storage.
func (s *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	c := s.invoke("read", text("k", key))
	value, ok, err = s.kv.Read(ctx, key)
	switch {
	case err != nil:
		c.Info(text("error", err.Error()))
	case ok:
		c.OK(text("v", value))
	default:
		c.OK(field{Name: "v"})
	}
	return value, ok, err
}

// admitted records how a write or fence returned.
func admitted(c linearizability.Call, err error) {
	var stale *fence.StaleTokenError
	switch {
	case err == nil:
		c.OK()
	case errors.As(err, &stale):
		c.Fail("stale", field{Name: "highest", Value: linearizability.Uint(uint64(stale.Highest))})
	case errors.Is(err, fence.ErrStale):
		c.Fail("not-carried")
	default:
		c.Info(text("error", err.Error()))
	}
}

// Lead is the work of a leader with its term on record: from the moment the
// work is called until it returns or its context ends, whichever comes first.
func Lead(r *linearizability.Recorder, work func(context.Context, lease.Term) error) func(context.Context, lease.Term) error {
	return func(ctx context.Context, term lease.Term) error {
		c := r.Invoke("lead", text("key", term.Resource), text("owner", term.Holder.String()), token(term.Token))
		stop := context.AfterFunc(ctx, func() { c.OK() })
		// Only the first end counts. This one is not left to the other, which may
		// still be about to run when the recorder is flushed.
		defer func() {
			stop()
			c.OK()
		}()
		return work(ctx, term)
	}
}
