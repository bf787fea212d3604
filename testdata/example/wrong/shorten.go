package wrong

import (
	"sync"
	"time"
)

// Shorten sets the end of a lock to what the renewal asks for. One that asks
// for less than is left, or that was sent long ago and comes late, takes away
// what the leader was promised before.
type Shorten struct {
	Now   func() time.Duration
	mu    sync.Mutex
	locks map[string]lock
}

func (s *Shorten) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks = map[string]lock{}
	}
	l, now := s.locks[name], s.Now()
	switch {
	case now >= l.expires:
		l = lock{owner: owner, token: l.token + 1}
	case l.owner != owner:
		return 0, false
	}
	l.expires = max(l.expires, until(now, ttl))
	s.locks[name] = l
	return l.token, true
}

func (s *Shorten) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.locks[name], s.Now()
	if l.owner != owner || l.token != token || now >= l.expires {
		return false
	}
	l.expires = until(now, ttl)
	s.locks[name] = l
	return true
}

func (s *Shorten) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	if l.owner != owner || l.token != token || s.Now() >= l.expires {
		return false
	}
	s.locks[name] = lock{token: l.token}
	return true
}
