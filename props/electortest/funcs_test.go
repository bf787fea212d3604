package electortest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/lease"
)

// plain is a client that knows nothing of package lease: names are strings,
// and the end of a term is a context's deadline.
func plain(env Env) Candidate {
	store := env.Funcs()
	ttl, window, pause := env.Config.TTL, env.Config.SafeWindow(), env.Config.Retry()
	limited := func(ctx context.Context, call func(context.Context) (bool, error)) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, window/3)
		defer cancel()
		type answer struct {
			ok  bool
			err error
		}
		done := make(chan answer, 1)
		go func() {
			ok, err := call(ctx)
			done <- answer{ok, err}
		}()
		select {
		case a := <-done:
			return a.ok, a.err
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return Candidate{Run: func(ctx context.Context) error {
		for term := 1; ctx.Err() == nil; term++ {
			name := fmt.Sprintf("%s/%x/%d", env.Node, env.Nonce, term)
			sent := time.Now()
			var token atomic.Uint64
			ok, err := limited(ctx, func(ctx context.Context) (bool, error) {
				n, ok, err := store.Acquire(ctx, env.Resource, name, ttl)
				token.Store(n)
				return ok, err
			})
			for left := window - time.Since(sent); ok && err == nil && left > 0; {
				work, cancel := context.WithCancel(ctx)
				end := time.AfterFunc(left, cancel)
				done := make(chan struct{})
				go func() {
					defer close(done)
					env.Lead(work, token.Load())
				}()
				for work.Err() == nil {
					select {
					case <-work.Done():
						continue
					case <-time.After(pause):
					}
					sent := time.Now()
					ok, err := limited(work, func(ctx context.Context) (bool, error) {
						return store.Renew(ctx, env.Resource, name, token.Load(), ttl)
					})
					switch {
					case err == nil && !ok:
						cancel()
					case err == nil && end.Stop():
						end.Reset(window - time.Since(sent))
					}
				}
				cancel()
				<-done
				limited(context.WithoutCancel(ctx), func(ctx context.Context) (bool, error) {
					return store.Release(ctx, env.Resource, name, token.Load())
				})
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		return nil
	}}
}

func TestAClientOfPlainFunctionsPasses(t *testing.T) {
	passes(t, plain, Options{FullTTL: true, Plans: 30})
}

func TestAClientOfPlainFunctionsCannotBeToldOfAShorterGrant(t *testing.T) {
	f := outcomes(t, plain, Options{Plans: 1})["belief/grant-with-a-shorter-ttl"].Failure
	if f == nil {
		t.Error("it believes for what it asked for, and holds")
	}
}

func TestAnyNameIsAHolderOfItsOwn(t *testing.T) {
	seen := map[lease.Holder]string{}
	for _, name := range []string{"a", "b", "a#1", "a/1", "a#1.2", "a#2.2", "a b"} {
		h := holderOf(name)
		if other, ok := seen[h]; ok || h.IsZero() {
			t.Errorf("%q is %+v, as %q", name, h, other)
		}
		seen[h] = name
	}
	if !holderOf("").IsZero() {
		t.Error("no name is somebody")
	}
}
