package lease

import (
	"context"
	"time"
)

// Store is the authority on who holds what. It keeps time on its own clock and
// issues the fencing tokens. Implementations answer refusals with the typed
// errors of this package ([HeldError], [DelayError], [LapsedError],
// [LostError], [InvalidError]); any other error means that the outcome is
// unknown: the request may have taken effect, or may yet. A [Grant] names the
// holder and the token, and says how long the tenure is sure to last: the TTL
// that was asked for, or what the store made of it. An [Elector] refuses one
// without, with a *[GrantError].
//
// All methods are safe for concurrent use.
type Store interface {
	// Acquire asks for the lease as holder for ttl. While holder holds it
	// already it is an idempotent retry under the same token.
	Acquire(ctx context.Context, resource string, holder Holder, ttl time.Duration) (Grant, error)
	// Renew extends holder's tenure under token to at least ttl from now.
	Renew(ctx context.Context, resource string, holder Holder, token Token, ttl time.Duration) (Grant, error)
	// Release ends holder's tenure under token.
	Release(ctx context.Context, resource string, holder Holder, token Token) error
	// Get says who holds the lease.
	Get(ctx context.Context, resource string) (Observation, error)
}

// Fencer is a storage that can be told of a token before anything is written:
// the barrier of a new leader. Once Fence has returned nil no write with a
// lower token lands, ever. An error that matches [ErrStale] refuses the token;
// after any other the outcome is unknown, and the barrier is tried again.
//
// Fence is safe for concurrent use.
type Fencer interface {
	Fence(ctx context.Context, token Token) error
}
