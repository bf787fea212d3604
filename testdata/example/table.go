package mylease

import (
	"context"
	"math"
	"sync"
	"time"

	"fencepost/impl/lease"
)

// Row is a lease as it is kept. Expires is an instant of the clock of the
// process that wrote it, and of no use to any other.
type Row struct {
	Token   lease.Token
	Holder  lease.Holder  // nobody once it was released
	TTL     time.Duration // the longest asked for in this tenure
	Lapsed  bool          // somebody was told that it has run out
	Expires time.Duration
}

func (r Row) held(now time.Duration) bool {
	return !r.Holder.IsZero() && !r.Lapsed && now < r.Expires
}

func (r Row) extended(now, ttl time.Duration) Row {
	end := now + ttl
	if end < now { // a TTL that means for ever
		end = math.MaxInt64
	}
	r.TTL, r.Expires = max(r.TTL, ttl), max(r.Expires, end)
	return r
}

// Table is a lease store of a map and a mutex. Its rows survive the process,
// in whatever disk is.
type Table struct {
	now  func() time.Duration
	mu   sync.Mutex
	disk map[string]Row
}

var _ lease.Store = (*Table)(nil)

// NewTable starts a process over the rows that earlier ones left. Nobody knows
// how much of a tenure is left, so whoever had one has it for its whole TTL.
func NewTable(now func() time.Duration, disk map[string]Row) *Table {
	for name, r := range disk {
		r.Expires = 0
		disk[name] = r.extended(now(), r.TTL)
	}
	return &Table{now: now, disk: disk}
}

// Acquire grants a lease that nobody holds, and grants again what the holder
// has already.
func (s *Table) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease.Grant{}, err
	}
	if holder.IsZero() || ttl <= 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	r, now := s.disk[resource], s.now()
	if r.held(now) && r.Holder != holder {
		return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: r.Holder, Token: r.Token, Remaining: r.Expires - now}
	}
	if !r.held(now) {
		r = Row{Token: r.Token + 1, Holder: holder}
	}
	s.disk[resource] = r.extended(now, ttl)
	return lease.Grant{Resource: resource, Holder: holder, Token: r.Token, TTL: ttl}, nil
}

// Renew extends what the holder has.
func (s *Table) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease.Grant{}, err
	}
	if ttl <= 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpRenew}
	}
	r, now, err := s.own(resource, lease.OpRenew, holder, token)
	if err != nil {
		return lease.Grant{}, err
	}
	s.disk[resource] = r.extended(now, ttl)
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, nil
}

// Release gives back what the holder has. The row stays, for its token.
func (s *Table) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	r, _, err := s.own(resource, lease.OpRelease, holder, token)
	if err != nil {
		return err
	}
	s.disk[resource] = Row{Token: r.Token}
	return nil
}

// Get says who holds the lease.
func (s *Table) Get(ctx context.Context, resource string) (lease.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return lease.Observation{}, err
	}
	r, now := s.disk[resource], s.now()
	if !r.held(now) {
		s.tell(resource, r)
		return lease.Observation{Resource: resource, Token: r.Token}, nil
	}
	return lease.Observation{Resource: resource, Holder: r.Holder, Token: r.Token, Remaining: r.Expires - now}, nil
}

// own is the row of resource if holder has it under token.
func (s *Table) own(resource string, op lease.Op, holder lease.Holder, token lease.Token) (Row, time.Duration, error) {
	if holder.IsZero() || token == 0 {
		return Row{}, 0, &lease.InvalidError{Resource: resource, Op: op}
	}
	r, now := s.disk[resource], s.now()
	mine := r.Holder == holder && r.Token == token
	switch {
	case mine && r.held(now):
		return r, now, nil
	case r.held(now):
		return r, now, &lease.LostError{Resource: resource, Holder: holder, Token: token, Current: r.Holder, Latest: r.Token}
	}
	s.tell(resource, r)
	if mine {
		return r, now, &lease.LapsedError{Resource: resource, Holder: holder, Token: token}
	}
	return r, now, &lease.LostError{Resource: resource, Holder: holder, Token: token, Latest: r.Token}
}

// tell writes down that the tenure of r is over, before anybody hears of it: a
// restart would bring it back.
func (s *Table) tell(resource string, r Row) {
	if !r.Holder.IsZero() && !r.Lapsed {
		r.Lapsed = true
		s.disk[resource] = r
	}
}
