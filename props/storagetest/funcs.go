package storagetest

import (
	"context"
	"errors"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Funcs is a fenced storage made of plain functions, for code that does not use
// fencepost's types. ok says whether the token was admitted, and an error that
// the outcome is unknown.
type Funcs struct {
	// Write lands value under key, or is not ok where the token is stale.
	Write func(ctx context.Context, token uint64, key, value string) (ok bool, err error)
	// Fence bars all tokens below token, or is not ok where the token is stale
	// itself. Optional: see [Options].NoFence.
	Fence func(ctx context.Context, token uint64) (ok bool, err error)
	// Read gives the value under key, if there is one. Optional: see
	// [Options].NoRead.
	Read func(ctx context.Context, key string) (value string, found bool, err error)
	// Close ends the process, as its death would: see [kit.Lab.Restart].
	// Optional.
	Close func()
}

// KV is f as a fence.KV, whose refusals do not say which token was seen. Without
// Write there is no storage, which ends the check as [kit.Env.Fatal] does.
func (f Funcs) KV() fence.KV {
	if f.Write == nil {
		panic(&kit.SetupError{Err: errors.New("Funcs.Write is nil: set it")})
	}
	return &funcs{f}
}

type funcs struct{ f Funcs }

var (
	errNoRead  = errors.New("this storage has no Read")
	errNoFence = errors.New("this storage has no Fence")
)

func (s *funcs) Close() {
	if s.f.Close != nil {
		s.f.Close()
	}
}

func (s *funcs) Write(ctx context.Context, token lease.Token, key, value string) error {
	return admitted(s.f.Write(ctx, uint64(token), key, value))
}

func (s *funcs) Fence(ctx context.Context, token lease.Token) error {
	if s.f.Fence == nil {
		return errNoFence
	}
	return admitted(s.f.Fence(ctx, uint64(token)))
}

func (s *funcs) Read(ctx context.Context, key string) (value string, found bool, err error) {
	if s.f.Read == nil {
		return "", false, errNoRead
	}
	return s.f.Read(ctx, key)
}

func admitted(ok bool, err error) error {
	switch {
	case err != nil:
		return err
	case !ok:
		return fence.ErrStale
	}
	return nil
}
