package mutant

import (
	"context"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Wrong stores whose fault is no habit but a method.

// raises gives a new token with each renewal.
type raises struct{ *plain }

// Renew counts the versions of the row.
func (s raises) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		r, granted, err := s.renew(resource, r, now, h, t, ttl)
		if err == nil {
			r.token++
			granted.Token = r.token
		}
		g = granted
		return r, err
	})
	return g, err
}

// revives lets the last holder renew what has lapsed.
type revives struct{ *plain }

// Renew does not ask whether the tenure still runs.
func (s revives) Renew(ctx context.Context, resource string, h lease.Holder, t lease.Token, ttl time.Duration) (g lease.Grant, err error) {
	if ttl <= 0 {
		return s.plain.Renew(ctx, resource, h, t, ttl)
	}
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		if h.IsZero() || !owns(r, h, t) {
			return s.notYours(resource, r, now, h, t)
		}
		r.lapsed = false
		r = s.habits.extend(r, now, ttl)
		g = grant(resource, r, ttl)
		return r, nil
	})
	return g, err
}

// drawsFirst numbers the requests, and the number is the token.
type drawsFirst struct {
	*plain
	last map[string]lease.Token // on disk, under the mutex
}

func openDrawsFirst(e kit.Env) lease.Store {
	last := kit.Durable(e, "counters", func() map[string]lease.Token { return map[string]lease.Token{} })
	return drawsFirst{start(e, nil), last}
}

// Acquire takes a number, whether it is served or not.
func (s drawsFirst) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	s.mu.Lock()
	s.last[resource]++
	number := s.last[resource]
	s.mu.Unlock()
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		after, granted, err := s.acquire(resource, r, now, h, ttl)
		if after.token != r.token {
			after.token, granted.Token = number, number
		}
		g = granted
		return after, err
	})
	return g, err
}

// undoes frees a lease in memory and not on disk.
type undoes struct{ *plain }

// Release leaves the disk to whoever writes the row next.
func (s undoes) Release(ctx context.Context, resource string, h lease.Holder, t lease.Token) error {
	s.mu.Lock()
	before, ok := s.disk[resource]
	s.mu.Unlock()
	err := s.plain.Release(ctx, resource, h, t)
	if err == nil && ok {
		s.mu.Lock()
		s.disk[resource] = before
		s.mu.Unlock()
	}
	return err
}

// remembers answers Get from a row whose expiry it does not look at.
type remembers struct{ *plain }

// Get names whom the row names.
func (s remembers) Get(ctx context.Context, resource string) (lease.Observation, error) {
	if err := ctx.Err(); err != nil {
		return lease.Observation{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[resource]
	o := lease.Observation{Resource: resource, Holder: r.holder, Token: r.token}
	if !r.holder.IsZero() {
		o.Remaining = max(0, r.until-s.clk.Now())
	}
	return o, nil
}

// careless takes any TTL.
type careless struct{ *plain }

// Acquire answers a TTL that is none with a grant for as long.
func (s careless) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if ttl > 0 || h.IsZero() {
		return s.plain.Acquire(ctx, resource, h, ttl)
	}
	g, err := s.plain.Acquire(ctx, resource, h, 1)
	g.TTL = ttl
	return g, err
}

// lazy leaves it to Get to notice that a lease has lapsed.
type lazy struct{ *plain }

// forEver holds what has a holder.
func forEver(s *habits) {
	s.held = func(r row, _ time.Duration) bool { return !r.holder.IsZero() && !r.lapsed }
}

// Get is where the clock is looked at.
func (s lazy) Get(ctx context.Context, resource string) (lease.Observation, error) {
	s.mu.Lock()
	if r := s.rows[resource]; !r.holder.IsZero() && s.clk.Now() >= r.until {
		s.put(resource, told(r))
	}
	s.mu.Unlock()
	return s.plain.Get(ctx, resource)
}

// outlasts is a store that never makes an expiry earlier, not even for another
// tenure.
type outlasts struct{ *plain }

// keepsExpiry leaves it in the row of a released lease.
func keepsExpiry(s *habits) {
	s.release = func(r row) row { return row{token: r.token, until: r.until} }
}

// Acquire sets the greater expiry, whosever it was.
func (s outlasts) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (g lease.Grant, err error) {
	err = s.turn(ctx, resource, func(r row, now time.Duration) (row, error) {
		before := r.until
		r, granted, err := s.acquire(resource, r, now, h, ttl)
		if err == nil {
			r.until = max(r.until, before)
		}
		g = granted
		return r, err
	})
	return g, err
}
