package wrong

import (
	"sync"
	"time"
)

// Clock is a library and a server. The library tells the server when the lease
// ends, by the clock of the machine that it runs on; the server compares that
// with its own. The two have nothing to do with each other: here the library's
// counts from 1970.
type Clock struct {
	Now   func() time.Duration // the server's
	mu    sync.Mutex
	locks map[string]lock
}

// The library.

func deadline(ttl time.Duration) time.Duration {
	return time.Duration(time.Now().Add(ttl).UnixNano())
}

func (s *Clock) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	return s.acquire(name, owner, deadline(ttl))
}

func (s *Clock) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	return s.renew(name, owner, token, deadline(ttl))
}

// The server.

func (s *Clock) acquire(name, owner string, expires time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks == nil {
		s.locks = map[string]lock{}
	}
	l := s.locks[name]
	switch {
	case s.Now() >= l.expires:
		l = lock{owner: owner, token: l.token + 1}
	case l.owner != owner:
		return 0, false
	}
	l.expires = max(l.expires, expires)
	s.locks[name] = l
	return l.token, true
}

func (s *Clock) renew(name, owner string, token uint64, expires time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	if l.owner != owner || l.token != token || s.Now() >= l.expires {
		return false
	}
	l.expires = max(l.expires, expires)
	s.locks[name] = l
	return true
}

func (s *Clock) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	if l.owner != owner || l.token != token || s.Now() >= l.expires {
		return false
	}
	s.locks[name] = lock{token: l.token}
	return true
}
