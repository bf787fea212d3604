package kit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fencepost/impl/lease"
)

// Funcs is a lease store made of plain functions, for code that does not use
// fencepost's types. A holder is a string that no two candidates share; ok
// says whether the store did as asked, and an error that the outcome is
// unknown.
type Funcs struct {
	// Acquire asks for the lease for holder: ok and the fencing token, or not
	// ok while somebody else has it.
	Acquire func(ctx context.Context, resource, holder string, ttl time.Duration) (token uint64, ok bool, err error)
	// Renew extends the lease, or is not ok where holder does not have it
	// under token.
	Renew func(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (ok bool, err error)
	// Release gives the lease back, or is not ok where holder does not have it
	// under token.
	Release func(ctx context.Context, resource, holder string, token uint64) (ok bool, err error)
	// Get says who holds the lease under which token; "" is nobody. Optional.
	Get func(ctx context.Context, resource string) (holder string, token uint64, err error)
	// Close ends the process: see [Lab.Restart]. Optional.
	Close func()
}

// Store is f as a lease.Store, whose refusals have no details. Without Acquire,
// Renew or Release there is no store, which ends the check as [Env.Fatal] does.
func (f Funcs) Store() lease.Store {
	name := ""
	switch {
	case f.Acquire == nil:
		name = "Acquire"
	case f.Renew == nil:
		name = "Renew"
	case f.Release == nil:
		name = "Release"
	default:
		return &funcs{f}
	}
	panic(&SetupError{fmt.Errorf("Funcs.%s is nil: set it", name)})
}

type funcs struct{ f Funcs }

var errNoGet = errors.New("this store has no Get")

// limit notes what a store made of functions lacks.
func (s *funcs) limit(o *Options) {
	o.Terse = true
	o.NoGet = o.NoGet || s.f.Get == nil
}

// For is o with what store is known to lack.
func (o Options) For(store lease.Store) Options {
	if s, ok := store.(*funcs); ok {
		s.limit(&o)
	}
	return o
}

func (s *funcs) Close() {
	if s.f.Close != nil {
		s.f.Close()
	}
}

func (s *funcs) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if ttl <= 0 || holder.IsZero() {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	token, ok, err := s.f.Acquire(ctx, resource, holder.String(), ttl)
	switch {
	case err != nil:
		return lease.Grant{}, err
	case !ok:
		return lease.Grant{}, &lease.HeldError{Resource: resource}
	}
	return lease.Grant{Resource: resource, Holder: holder, Token: lease.Token(token), TTL: ttl}, nil
}

func (s *funcs) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	if ttl <= 0 || holder.IsZero() || token == 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpRenew}
	}
	ok, err := s.f.Renew(ctx, resource, holder.String(), uint64(token), ttl)
	switch {
	case err != nil:
		return lease.Grant{}, err
	case !ok:
		return lease.Grant{}, &lease.LostError{Resource: resource, Holder: holder, Token: token}
	}
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, nil
}

func (s *funcs) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if holder.IsZero() || token == 0 {
		return &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
	}
	ok, err := s.f.Release(ctx, resource, holder.String(), uint64(token))
	switch {
	case err != nil:
		return err
	case !ok:
		return &lease.LostError{Resource: resource, Holder: holder, Token: token}
	}
	return nil
}

func (s *funcs) Get(ctx context.Context, resource string) (lease.Observation, error) {
	if s.f.Get == nil {
		return lease.Observation{}, errNoGet
	}
	holder, token, err := s.f.Get(ctx, resource)
	if err != nil {
		return lease.Observation{}, err
	}
	h, err := lease.ParseHolder(holder)
	return lease.Observation{Resource: resource, Holder: h, Token: lease.Token(token)}, err
}
