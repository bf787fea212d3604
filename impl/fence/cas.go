package fence

import (
	"context"
	"fmt"

	"fencepost/impl/lease"
)

// Carries is the rule of compare-and-swap as a pure function: whether the lease
// that stands as d carries token, so that a write may land. It does from the
// grant of the token until the lease is released, deleted or granted anew.
//
// The clock takes no part. Whether a tenure has lapsed is known only to whoever
// asks the store at that moment, and until somebody else is granted the lease
// a late write stands in nobody's way. Systems that remove a lease when it
// lapses, as etcd does, refuse from then on.
func Carries(d lease.Durable, token lease.Token) bool {
	return token != 0 && token == d.Token && d.Status != lease.Free
}

// Carrier keeps a lease in the same place as the data under it, so that the one
// can be looked at while the other changes.
type Carrier interface {
	// View calls f once with the lease on resource as it stands (the zero
	// Durable where nobody ever held it), and lets nothing change that lease
	// until f returns. f does not block and does not call the carrier. An
	// error means that f was not called.
	View(ctx context.Context, resource string, f func(d lease.Durable)) error
}

// CompareAndSwap is a [KV] in memory that looks at the lease itself: a write
// lands only while the lease carries its token, see [Carries]. It remembers no
// token of its own. A call whose context has ended does nothing.
//
// Where the data must survive a restart it belongs in the database that has the
// lease, with the comparison in the same transaction: in etcd a Txn that compares
// the create revision of the leader's key; in SQL an update under the condition
// that the lease row has this token and is not released, with that row locked
// (FOR SHARE) or under serializable isolation, else a takeover can commit
// between the comparison and the write.
type CompareAndSwap struct {
	carrier  Carrier
	resource string
	data     Unfenced // written only from within a View
}

var _ KV = (*CompareAndSwap)(nil)

// NewCompareAndSwap is an empty storage under the lease on resource.
func NewCompareAndSwap(c Carrier, resource string) *CompareAndSwap {
	return &CompareAndSwap{carrier: c, resource: resource}
}

// Write lands value under key if the lease carries token. The error is a
// *[NotCarriedError], or that of ctx or of the carrier.
func (c *CompareAndSwap) Write(ctx context.Context, token lease.Token, key, value string) error {
	return c.ifCarried(ctx, token, func() error { return c.data.Write(ctx, token, key, value) })
}

// Fence succeeds if the lease carries token. There is nothing to remember: once
// it does, it never again carries a lower one. Its errors are those of
// [CompareAndSwap.Write].
func (c *CompareAndSwap) Fence(ctx context.Context, token lease.Token) error {
	return c.ifCarried(ctx, token, func() error { return c.data.Fence(ctx, token) })
}

// Read gives the value that landed last under key. The error is that of ctx.
func (c *CompareAndSwap) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	return c.data.Read(ctx, key)
}

func (c *CompareAndSwap) ifCarried(ctx context.Context, token lease.Token, do func() error) error {
	// Refused unless the lease has been seen, whatever the carrier does.
	var seen struct {
		carried bool
		latest  lease.Token
		err     error
	}
	err := c.carrier.View(ctx, c.resource, func(d lease.Durable) {
		seen.carried, seen.latest = Carries(d, token), d.Token
		if seen.carried {
			seen.err = do()
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("lease %q cannot be compared with token %d: %w", c.resource, token, err)
	case !seen.carried:
		return &NotCarriedError{Resource: c.resource, Token: token, Latest: seen.latest}
	}
	return seen.err
}

// NotCarriedError refuses a write or a fence: the lease does not carry the
// token. It matches [ErrStale].
type NotCarriedError struct {
	Resource string
	Token    lease.Token // what was refused
	Latest   lease.Token // the last one issued; equal to Token after a release or a deletion
}

func (e *NotCarriedError) Error() string {
	why := fmt.Sprintf("the last one issued is %d", e.Latest)
	switch e.Token {
	case 0:
		return fmt.Sprintf("lease %q does not carry token 0: no lease grants it; use the token of the grant", e.Resource)
	case e.Latest:
		why = "it was released or deleted"
	}
	return fmt.Sprintf("lease %q does not carry token %d: %s; stop, and acquire the lease anew", e.Resource, e.Token, why)
}

// Is makes errors.Is(err, ErrStale) hold.
func (e *NotCarriedError) Is(target error) bool { return target == ErrStale }
