package wrong

import (
	"sync"
	"time"
)

// Reuse keeps the token in the lock, and deletes the lock when it is released:
// the next owner gets the token of the first one again, and what the first one
// still has under way looks as good as its own.
type Reuse struct {
	Now   func() time.Duration
	mu    sync.Mutex
	locks map[string]*lock
}

func (s *Reuse) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks = map[string]*lock{}
	}
	l, ok := s.locks[name]
	switch now := s.Now(); {
	case !ok:
		l = &lock{owner: owner, token: 1, expires: until(now, ttl)}
		s.locks[name] = l
	case now >= l.expires:
		l.owner, l.token, l.expires = owner, l.token+1, until(now, ttl)
	case l.owner != owner:
		return 0, false
	default:
		l.expires = max(l.expires, until(now, ttl))
	}
	return l.token, true
}

func (s *Reuse) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.locks[name], s.Now()
	if l == nil || l.owner != owner || l.token != token || now >= l.expires {
		return false
	}
	l.expires = max(l.expires, until(now, ttl))
	return true
}

func (s *Reuse) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	if l == nil || l.owner != owner || l.token != token || s.Now() >= l.expires {
		return false
	}
	delete(s.locks, name)
	return true
}
