package wrong

import (
	"sync"
	"time"
)

// Seconds has a column for the second at which a lock ends. What is left of it
// goes by the board, and with it up to a second of every lease.
type Seconds struct {
	Now  func() time.Duration
	mu   sync.Mutex
	rows map[string]record
}

type record struct {
	owner     string
	token     uint64
	expiresAt int64 // in seconds
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func (s *Seconds) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows == nil {
		s.rows = map[string]record{}
	}
	r, now := s.rows[name], s.Now()
	switch {
	case seconds(now) >= r.expiresAt:
		r = record{owner: owner, token: r.token + 1}
	case r.owner != owner:
		return 0, false
	}
	r.expiresAt = max(r.expiresAt, seconds(until(now, ttl)))
	s.rows[name] = r
	return r.token, true
}

func (s *Seconds) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.rows[name], s.Now()
	if r.owner != owner || r.token != token || seconds(now) >= r.expiresAt {
		return false
	}
	r.expiresAt = max(r.expiresAt, seconds(until(now, ttl)))
	s.rows[name] = r
	return true
}

func (s *Seconds) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rows[name]
	if r.owner != owner || r.token != token || seconds(s.Now()) >= r.expiresAt {
		return false
	}
	s.rows[name] = record{token: r.token}
	return true
}
