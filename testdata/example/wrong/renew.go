package wrong

import (
	"sync"
	"time"
)

// Renew extends a lock without looking at whose it is: a leader that slept
// through its lease extends its successor's, and goes on.
type Renew struct {
	Now   func() time.Duration
	mu    sync.Mutex
	locks map[string]*lock
}

func (s *Renew) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.lock(name), s.Now()
	switch {
	case now >= l.expires:
		*l = lock{owner: owner, token: l.token + 1, expires: until(now, ttl)}
	case l.owner != owner:
		return 0, false
	default:
		l.expires = max(l.expires, until(now, ttl))
	}
	return l.token, true
}

func (s *Renew) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.lock(name), s.Now()
	if now >= l.expires {
		return false
	}
	l.expires = max(l.expires, until(now, ttl))
	return true
}

func (s *Renew) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(name)
	if l.owner != owner || l.token != token || s.Now() >= l.expires {
		return false
	}
	l.expires = 0
	return true
}

func (s *Renew) lock(name string) *lock {
	if s.locks == nil {
		s.locks = map[string]*lock{}
	}
	if s.locks[name] == nil {
		s.locks[name] = &lock{}
	}
	return s.locks[name]
}
