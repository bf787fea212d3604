package mylease

import (
	"context"
	"math"
	"time"
)

// Registry is a lease store in one process, for the threads of that process:
// it forgets everything with it. A goroutine owns the leases, and calls are
// functions that it runs.
type Registry struct {
	calls chan func(map[string]*entry)
	ended <-chan struct{}
	now   func() time.Duration
}

type entry struct {
	token   uint64
	owner   string // "": nobody
	expires time.Duration
}

// NewRegistry starts the goroutine, which ends with ctx.
func NewRegistry(ctx context.Context, now func() time.Duration) *Registry {
	r := &Registry{calls: make(chan func(map[string]*entry)), ended: ctx.Done(), now: now}
	go func() {
		leases := map[string]*entry{}
		for {
			select {
			case call := <-r.calls:
				call(leases)
			case <-ctx.Done():
				return
			}
		}
	}()
	return r
}

// do calls f with the entry of name, which says that nobody has it if it has
// run out.
func (r *Registry) do(ctx context.Context, name string, f func(e *entry, now time.Duration)) error {
	done := make(chan struct{})
	call := func(leases map[string]*entry) {
		defer close(done)
		e, now := leases[name], r.now()
		if e == nil {
			e = &entry{}
			leases[name] = e
		}
		if now >= e.expires {
			e.owner = ""
		}
		f(e, now)
	}
	select {
	case r.calls <- call:
		<-done // it has begun, and takes no time
		return nil
	case <-r.ended:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Acquire gives name to owner for ttl, unless somebody else has it.
func (r *Registry) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (token uint64, ok bool, err error) {
	err = r.do(ctx, name, func(e *entry, now time.Duration) {
		if e.owner != "" && e.owner != owner {
			return
		}
		if e.owner == "" {
			e.owner, e.expires = owner, now
			e.token++
		}
		e.extend(now, ttl)
		token, ok = e.token, true
	})
	return token, ok, err
}

// Renew lets owner have name for ttl from now, if it has it.
func (r *Registry) Renew(ctx context.Context, name, owner string, token uint64, ttl time.Duration) (ok bool, err error) {
	err = r.do(ctx, name, func(e *entry, now time.Duration) {
		if ok = e.owner == owner && e.token == token; ok {
			e.extend(now, ttl)
		}
	})
	return ok, err
}

// Release gives name back, if owner has it.
func (r *Registry) Release(ctx context.Context, name, owner string, token uint64) (ok bool, err error) {
	err = r.do(ctx, name, func(e *entry, _ time.Duration) {
		if ok = e.owner == owner && e.token == token; ok {
			e.owner = ""
		}
	})
	return ok, err
}

func (e *entry) extend(now, ttl time.Duration) {
	end := now + ttl
	if end < now {
		end = math.MaxInt64
	}
	e.expires = max(e.expires, end)
}
