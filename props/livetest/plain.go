package livetest

import (
	"context"
	"errors"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// plain is a process's store whose calls end and whose answers can be written
// down: what is odd about an answer by itself is for the rules to tell.
type plain struct {
	store lease.Store
	clk   clock.Clock
}

func (p plain) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	var g lease.Grant
	err := guarded(ctx, p.clk, patience, func(ctx context.Context) (err error) {
		g, err = p.store.Acquire(ctx, resource, holder, ttl)
		return err
	})
	if err != nil {
		return lease.Grant{}, among(err, lease.CodeHeld, lease.CodeDelayed, lease.CodeInvalid)
	}
	return g, nil
}

func (p plain) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	var g lease.Grant
	err := guarded(ctx, p.clk, patience, func(ctx context.Context) (err error) {
		g, err = p.store.Renew(ctx, resource, holder, token, ttl)
		return err
	})
	if err != nil {
		return lease.Grant{}, among(err, lease.CodeLapsed, lease.CodeLost, lease.CodeInvalid)
	}
	return g, nil
}

func (p plain) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	err := guarded(ctx, p.clk, patience, func(ctx context.Context) error {
		return p.store.Release(ctx, resource, holder, token)
	})
	return among(err, lease.CodeLapsed, lease.CodeLost, lease.CodeInvalid)
}

func (p plain) Get(ctx context.Context, resource string) (lease.Observation, error) {
	var seen lease.Observation
	err := guarded(ctx, p.clk, patience, func(ctx context.Context) (err error) {
		seen, err = p.store.Get(ctx, resource)
		return err
	})
	if err != nil {
		return lease.Observation{}, among(err)
	}
	return seen, nil
}

// among is err if it is one of these refusals, and otherwise an error that
// leaves the outcome open. One that only matches lease.ErrNotHeld, in words of
// the store's own, is lost.
func among(err error, codes ...lease.Code) error {
	if err == nil {
		return nil
	}
	code := lease.Refusal(err)
	for _, c := range codes {
		if c != code {
			continue
		}
		if _, ok := errors.AsType[*lease.LostError](err); code == lease.CodeLost && !ok {
			return &lease.LostError{}
		}
		return err
	}
	return &openError{err}
}

// openError is an error that is no refusal of what was asked.
type openError struct{ err error }

func (e *openError) Error() string { return e.err.Error() }

// Unwrap keeps what guarded found, and hides a refusal that answers another
// question.
func (e *openError) Unwrap() error {
	if lease.Refusal(e.err) != lease.CodeNone {
		return nil
	}
	return e.err
}
