package fence

import (
	"context"
	"fmt"
	"sync"

	"fencepost/impl/lease"
)

// Unfenced is a plain map that ignores tokens: what storage is before it is
// fenced. It is here to show what breaks, in examples and in tests of checkers.
// Protect nothing with it. The zero Unfenced is empty and ready for use.
type Unfenced struct {
	mu     sync.RWMutex
	values map[string]string
}

var _ KV = (*Unfenced)(nil)

// Write lands value under key, whatever the token. The error is that of ctx.
func (u *Unfenced) Write(ctx context.Context, _ lease.Token, key, value string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write of %q did nothing: %w", key, err)
	}
	if u.values == nil {
		u.values = make(map[string]string)
	}
	u.values[key] = value
	return nil
}

// Fence acknowledges a barrier that it does not keep. The error is that of ctx.
func (u *Unfenced) Fence(ctx context.Context, token lease.Token) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("fence under token %d did nothing: %w", token, err)
	}
	return nil
}

// Read gives the value that landed last under key. The error is that of ctx.
func (u *Unfenced) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return "", false, fmt.Errorf("read of %q: %w", key, err)
	}
	value, ok = u.values[key]
	return value, ok, nil
}
