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
// resource, the holder and the token, and says how long the tenure is sure to last: the TTL
// that was asked for, or what the store made of it. An [Elector] refuses one
// without, with a *[GrantError].
//
// What is asked of an implementation, beside what its methods say:
//
//   - It decides and writes in one atomic step, and answers at once. An acquire
//     of a lease that somebody holds is refused; to wait for it is the
//     candidate's part.
//   - It judges expiry by its own clock alone, when a request comes: a tenure is
//     held while now is before its expiry, and no instant of a caller's counts.
//   - Each new ownership, of the last holder too, gets the next token. The
//     counter outlives release, lapse, deletion and restart.
//   - An expiry never moves back: a shorter TTL, or a late copy of a renewal,
//     shortens nothing.
//   - Nothing is answered before it is durable, a lapse included. After a restart
//     on a new clock, a tenure that has not lapsed is held for its whole TTL
//     again, the largest granted in it: see [Restore]. So may be one whose lapse
//     nobody was told of, unless it is on record all the same.
//   - A request that makes no sense (nobody as holder, a TTL that is not
//     positive, token 0) is refused with an *[InvalidError], and changes nothing.
//
// [Record] has the rules as code, to be called with a row in hand; [Handler] makes
// the methods of one function that does. Package
// fencepost/props checks an implementation in one call, props.TestStore.
//
// All methods are safe for concurrent use.
type Store interface {
	// Acquire asks for the lease as holder for ttl. While holder holds it
	// already it is an idempotent retry under the same token, which extends the
	// tenure as a renewal does.
	Acquire(ctx context.Context, resource string, holder Holder, ttl time.Duration) (Grant, error)
	// Renew extends holder's tenure under token to at least ttl from now, while
	// it is held by holder under token.
	Renew(ctx context.Context, resource string, holder Holder, token Token, ttl time.Duration) (Grant, error)
	// Release ends holder's tenure under token; the lease is free at once. Like
	// a renewal, one that comes after a lapse, or by anybody else, is refused.
	Release(ctx context.Context, resource string, holder Holder, token Token) error
	// Get says who holds the lease: nobody, once the tenure has run out.
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
