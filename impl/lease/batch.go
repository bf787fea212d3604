package lease

import "context"

// Call is one request among several to one store. Its Op is OpAcquire, OpRenew
// or OpRelease.
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
	// Batch makes each of calls, and gives their answers in the same order: as
	// many as there are calls, each by itself as the rules of [Store] have it.
	// That one is refused does not keep another from being granted. Where it is
	// not known what became of the whole, each answer says so. No two calls are
	// for the same resource.
	Batch(ctx context.Context, calls []Call) []Answer
}
