package wrong

import (
	"sync"
	"time"
)

// Acquire needs no mutex, since a sync.Map is safe for concurrent use: each of
// its calls is. Two of them in a row are not one.
type Acquire struct {
	Now   func() time.Duration
	locks sync.Map // name: lock
}

func (s *Acquire) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	var l lock
	if v, ok := s.locks.Load(name); ok {
		l = v.(lock)
	}
	now := s.Now()
	switch {
	case now >= l.expires:
		l = lock{owner: owner, token: l.token + 1, expires: until(now, ttl)}
	case l.owner != owner:
		return 0, false
	}
	l.expires = max(l.expires, until(now, ttl))
	s.locks.Store(name, l)
	return l.token, true
}

func (s *Acquire) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	v, ok := s.locks.Load(name)
	if !ok {
		return false
	}
	l, now := v.(lock), s.Now()
	if l.owner != owner || l.token != token || now >= l.expires {
		return false
	}
	renewed := l
	renewed.expires = max(l.expires, until(now, ttl))
	return s.locks.CompareAndSwap(name, l, renewed)
}

func (s *Acquire) Release(name, owner string, token uint64) bool {
	v, ok := s.locks.Load(name)
	if !ok {
		return false
	}
	l := v.(lock)
	if l.owner != owner || l.token != token || s.Now() >= l.expires {
		return false
	}
	return s.locks.CompareAndSwap(name, l, lock{token: l.token})
}
