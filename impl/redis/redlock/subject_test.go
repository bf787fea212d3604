package redlock

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	fpredis "fencepost/impl/redis"
	"fencepost/impl/redis/internal/server"
)

// five are five servers with settings.
func five(t *testing.T, settings ...string) (servers []*server.Server, clients []*goredis.Client) {
	t.Helper()
	for range 5 {
		s := server.Start(t, settings...)
		rdb := fpredis.Dial(goredis.Options{Addr: s.Addr, DialerRetries: 1})
		t.Cleanup(func() { rdb.Close() })
		servers, clients = append(servers, s), append(clients, rdb)
	}
	return servers, clients
}

// numbering is where people get the number from that Redlock does not give.
type numbering interface {
	// number is that of a grant just made.
	number(ctx context.Context, resource string) (lease.Token, error)
}

// oracle numbers perfectly, which nothing outside of this process could.
type oracle struct{ last atomic.Uint64 }

func (o *oracle) number(context.Context, string) (lease.Token, error) {
	return lease.Token(o.last.Add(1)), nil
}

// random is the random value, taken for a number.
type random struct{}

func (random) number(context.Context, string) (lease.Token, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, err
	}
	return lease.Token(binary.BigEndian.Uint64(b[:])>>1 | 1), nil
}

// counters are one on each server, raised wherever it can be reached; the number
// is the highest that any of them gives.
type counters []*goredis.Client

func (c counters) number(ctx context.Context, resource string) (highest lease.Token, err error) {
	for _, s := range c {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		if n, err := s.Incr(ctx, resource+":count").Uint64(); err == nil {
			highest = max(highest, lease.Token(n))
		}
		cancel()
	}
	if highest == 0 {
		return 0, fmt.Errorf("no server counts")
	}
	return highest, nil
}

// timeout is what a server may take: long, because the machine of a test is busy.
const timeout = 100 * time.Millisecond

// padded is how long a key has to last for a grant to be for the whole TTL, after
// what is taken off for drift and for the way to the servers.
func padded(ttl time.Duration) time.Duration { return ttl + ttl/50 + 500*time.Millisecond }

// store is Redlock as a lease store.
type store struct {
	lock   *Lock
	number numbering

	mu   sync.Mutex
	mine map[string]lease.Token // the number of the latest grant, by resource and holder
}

func newStore(clients []*goredis.Client, n numbering) *store {
	return &store{lock: New(clients, clock.Boot(), timeout), number: n, mine: map[string]lease.Token{}}
}

func (s *store) know(resource string, holder lease.Holder) lease.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mine[resource+" "+holder.String()]
}

func (s *store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if ttl <= 0 || holder.IsZero() {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	if err := ctx.Err(); err != nil {
		return lease.Grant{}, err
	}
	if token := s.know(resource, holder); token > 0 {
		if g, err := s.Renew(ctx, resource, holder, token, ttl); err == nil {
			return g, nil
		}
	}
	validity, ok := s.lock.Acquire(ctx, resource, holder.String(), padded(ttl))
	switch {
	case ctx.Err() != nil: // some servers may have been asked
		return lease.Grant{}, ctx.Err()
	case !ok:
		return lease.Grant{}, &lease.HeldError{Resource: resource}
	}
	token, err := s.number.number(ctx, resource)
	if err != nil {
		return lease.Grant{}, err
	}
	if validity < ttl {
		return lease.Grant{}, fmt.Errorf("slow servers: only %v are left", validity)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[resource+" "+holder.String()] = token
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, nil
}

func (s *store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	if ttl <= 0 || holder.IsZero() || token == 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpRenew}
	}
	if err := ctx.Err(); err != nil {
		return lease.Grant{}, err
	}
	if s.know(resource, holder) != token {
		return lease.Grant{}, &lease.LostError{Resource: resource, Holder: holder, Token: token}
	}
	validity, ok := s.lock.Extend(ctx, resource, holder.String(), padded(ttl))
	switch {
	case ctx.Err() != nil:
		return lease.Grant{}, ctx.Err()
	case !ok || validity < ttl:
		return lease.Grant{}, &lease.LostError{Resource: resource, Holder: holder, Token: token}
	}
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, nil
}

func (s *store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if holder.IsZero() || token == 0 {
		return &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := s.know(resource, holder) == token
	released := mine && s.lock.Release(ctx, resource, holder.String())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !released:
		return &lease.LostError{Resource: resource, Holder: holder, Token: token}
	}
	return nil
}

// Get asks nobody: a lock is had or not.
func (s *store) Get(context.Context, string) (lease.Observation, error) {
	return lease.Observation{}, fmt.Errorf("Redlock does not say who has a lock")
}
