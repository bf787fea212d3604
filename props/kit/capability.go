package kit

import "context"

// Deleter is offered by a store whose leases an operator can delete. What is
// deleted is free at once, without lock delay; its tokens go on where they
// were. To delete what nobody holds may be an error, and then changes nothing.
type Deleter interface {
	Delete(ctx context.Context, resource string) error
}

// Snapshotter is offered by a store whose state can be taken down and put
// back, so that exploring it need not play every script from the beginning.
//
// The state is everything that answers depend on besides the clock, what is
// durable included, with instants relative to the clock's reading: equal states
// give equal bytes, whenever they are reached. It is a contract of its own that
// nothing else tests: what Snapshot leaves out is not explored.
type Snapshotter interface {
	Snapshot() []byte
	// Restore puts the store into a state that Snapshot gave, at what the
	// clock reads now. A process after this one finds what is durable of it.
	Restore(state []byte)
}
