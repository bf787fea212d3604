package wrong

import (
	"sync"
	"sync/atomic"
	"time"
)

// Counter writes its locks to a disk, and draws its tokens from an atomic
// counter: unique, rising, fast, and back at zero after a restart.
type Counter struct {
	Now  func() time.Duration
	Disk map[string]Saved
	last atomic.Uint64
	mu   sync.Mutex
	ends map[string]time.Duration // by this process's clock
}

// Saved is a lock on the disk.
type Saved struct {
	Owner string
	Token uint64
	TTL   time.Duration // the longest of the tenure
}

// NewCounter starts a process. Nobody knows how much of a tenure is left, so
// whoever had a lock has it for its whole TTL.
func NewCounter(now func() time.Duration, disk map[string]Saved) *Counter {
	s := &Counter{Now: now, Disk: disk, ends: map[string]time.Duration{}}
	for name, d := range disk {
		s.ends[name] = until(now(), d.TTL)
	}
	return s
}

// current is who has the lock. That it has run out is on the disk before
// anybody hears of it.
func (s *Counter) current(name string, now time.Duration) Saved {
	if now >= s.ends[name] {
		s.free(name)
	}
	return s.Disk[name]
}

func (s *Counter) free(name string) {
	delete(s.Disk, name)
	delete(s.ends, name)
}

func (s *Counter) Acquire(name, owner string, ttl time.Duration) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	d := s.current(name, now)
	if d.Owner != "" && d.Owner != owner {
		return 0, false
	}
	if d.Owner == "" {
		d = Saved{Owner: owner, Token: s.last.Add(1)}
	}
	s.extend(name, d, now, ttl)
	return d.Token, true
}

func (s *Counter) Renew(name, owner string, token uint64, ttl time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	d := s.current(name, now)
	if d.Owner != owner || d.Token != token {
		return false
	}
	s.extend(name, d, now, ttl)
	return true
}

func (s *Counter) Release(name, owner string, token uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.current(name, s.Now()); d.Owner != owner || d.Token != token {
		return false
	}
	s.free(name)
	return true
}

func (s *Counter) extend(name string, d Saved, now, ttl time.Duration) {
	d.TTL = max(d.TTL, ttl)
	s.Disk[name], s.ends[name] = d, max(s.ends[name], until(now, ttl))
}
