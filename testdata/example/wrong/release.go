package wrong

import (
	"sync"
	"time"
)

// Release frees a lock as DEL does, without looking at whose it is. Tokens
// come from a sequence of their own, so at least those are in order.
type Release struct {
	Now   func() time.Duration
	mu    sync.Mutex
	locks map[string]lock
	last  map[string]uint64
}

func (s *Release) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks, s.last = map[string]lock{}, map[string]uint64{}
	}
	l, ok := s.locks[name]
	now := s.Now()
	if ok = ok && now < l.expires; ok && l.owner != owner {
		return 0, false
	}
	if !ok {
		s.last[name]++
		l = lock{owner: owner, token: s.last[name]}
	}
	l.expires = max(l.expires, until(now, ttl))
	s.locks[name] = l
	return l.token, true
}

func (s *Release) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, now := s.locks[name], s.Now()
	if l.owner != owner || l.token != token || now >= l.expires {
		return false
	}
	l.expires = max(l.expires, until(now, ttl))
	s.locks[name] = l
	return true
}

func (s *Release) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.locks[name]
	if !ok || s.Now() >= l.expires {
		return false
	}
	delete(s.locks, name)
	return true
}
