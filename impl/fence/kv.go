package fence

import (
	"context"
	"fmt"

	"fencepost/impl/lease"
)

// KV is a key-value storage under one lease: all that the leader may change.
// [Storage], [CompareAndSwap] and [Unfenced] are such, and so is anybody's
// database behind a few lines.
//
// An error that matches [ErrStale] says that the token was refused and nothing
// landed. After any other error of Write or Fence the outcome is unknown: the
// call may have taken effect, or may yet.
//
// All methods are safe for concurrent use.
type KV interface {
	// Fence tells the storage of token. Once it has returned nil no write
	// with a lower token lands: it is the barrier of a new leader.
	lease.Fencer
	// Write lands value under key on the strength of token.
	Write(ctx context.Context, token lease.Token, key, value string) error
	// Read gives the value that landed last under key, and whether any did.
	// It needs no token, so it says nothing about who may act on the answer:
	// a leader that decides by what it reads fences first.
	Read(ctx context.Context, key string) (value string, ok bool, err error)
}

// ErrStale matches every refusal for the sake of the token, [StaleTokenError]
// and [NotCarriedError]. Nothing landed.
var ErrStale = lease.ErrStale

// StaleTokenError refuses a write or a fence: the storage has seen a higher
// token, so the sender's tenure is over. It matches [ErrStale].
type StaleTokenError struct {
	Token   lease.Token // what was refused
	Highest lease.Token // the highest the storage has seen
}

func (e *StaleTokenError) Error() string {
	if e.Token == 0 {
		return "token 0 is refused: no lease grants it; use the token of the grant"
	}
	return fmt.Sprintf("token %d is stale: the storage has seen %d; stop, and acquire the lease anew", e.Token, e.Highest)
}

// Is makes errors.Is(err, ErrStale) hold.
func (e *StaleTokenError) Is(target error) bool { return target == ErrStale }
