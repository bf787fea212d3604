package lease

import "context"

// Call is one request to a store, for one resource.
type Call struct {
	Resource string
	Request
}

// Answer is what the method of [Store] that a [Call] stands for would have
// returned.
type Answer struct {
	Grant Grant // acquire, renew
	Err   error
}

// Batcher is offered by a [Store] that handles many requests at once for less
// than they cost one by one, as in a single transaction or round trip: whoever
// holds thousands of leases renews them so.
type Batcher interface {
	// Batch makes each of calls, which acquire, renew or release, and gives their
	// answers in the same order: as many as there are calls, each by itself as the
	// rules of [Store] have it. That one is refused does not keep another from
	// being granted. Where it is not known what became of the whole, each answer
	// says so. No two calls are for the same resource.
	Batch(ctx context.Context, calls []Call) []Answer
}

var _ Batcher = (*Memory)(nil)

// Batch implements [Batcher]. A Memory has nothing to gain by it: each call is
// handled by itself, one after the other.
func (m *Memory) Batch(ctx context.Context, calls []Call) []Answer {
	answers := make([]Answer, len(calls))
	for i, c := range calls {
		answers[i] = do(ctx, m, c)
	}
	return answers
}

// do makes one call by the method of s that it stands for.
func do(ctx context.Context, s Store, c Call) (a Answer) {
	switch c.Op {
	case OpAcquire:
		a.Grant, a.Err = s.Acquire(ctx, c.Resource, c.Holder, c.TTL)
	case OpRenew:
		a.Grant, a.Err = s.Renew(ctx, c.Resource, c.Holder, c.Token, c.TTL)
	case OpRelease:
		a.Err = s.Release(ctx, c.Resource, c.Holder, c.Token)
	default:
		a.Err = &InvalidError{Resource: c.Resource, Op: c.Op}
	}
	return a
}
