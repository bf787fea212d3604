package lease

import (
	"context"
	"time"
)

// Handler answers one call: a [Store] as one function, for whoever decides all
// requests in one place, as with [Record.Handle]. A refusal is a reply too; an error
// means that there is none, and is passed on as it is.
type Handler func(ctx context.Context, c Call) (Reply, error)

var _ Store = Handler(nil)

// Acquire implements [Store].
func (h Handler) Acquire(ctx context.Context, resource string, holder Holder, ttl time.Duration) (Grant, error) {
	a := h.answer(ctx, Call{resource, Request{Op: OpAcquire, Holder: holder, TTL: ttl}})
	return a.Grant, a.Err
}

// Renew implements [Store].
func (h Handler) Renew(ctx context.Context, resource string, holder Holder, token Token, ttl time.Duration) (Grant, error) {
	a := h.answer(ctx, Call{resource, Request{Op: OpRenew, Holder: holder, Token: token, TTL: ttl}})
	return a.Grant, a.Err
}

// Release implements [Store].
func (h Handler) Release(ctx context.Context, resource string, holder Holder, token Token) error {
	return h.answer(ctx, Call{resource, Request{Op: OpRelease, Holder: holder, Token: token}}).Err
}

// Get implements [Store].
func (h Handler) Get(ctx context.Context, resource string) (Observation, error) {
	rep, err := h(ctx, Call{resource, Request{Op: OpGet}})
	if err == nil {
		err = rep.Err(resource)
	}
	if err != nil {
		return Observation{}, err
	}
	return Observation{Resource: resource, Holder: rep.Current, Token: rep.Token, Remaining: rep.Remaining}, nil
}

func (h Handler) answer(ctx context.Context, c Call) Answer {
	rep, err := h(ctx, c)
	if err != nil {
		return Answer{Err: err}
	}
	return rep.Answer(c.Resource)
}

// Answer is what the method of [Store] returns whose reply r is.
func (r Reply) Answer(resource string) Answer {
	a := Answer{Err: r.Err(resource)}
	if r.Code == CodeGranted {
		a.Grant = Grant{Resource: resource, Holder: r.Holder, Token: r.Token, TTL: r.TTL}
	}
	return a
}
