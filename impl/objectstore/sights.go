package objectstore

import (
	"sync"

	"fencepost/impl/lease"
)

// sight is a lease object as one process knows it.
type sight struct {
	state
	lease.Sight // by ETag, of which an object that is not there has none
}

// record is the lease as it stands to whoever saw s.
func (s sight) record(driftRate float64) lease.Record {
	r := lease.Record{Durable: s.Durable, Expires: s.Since}
	if s.Status == lease.Running {
		r.Expires = s.Lapse(s.TTL, driftRate)
	}
	return r
}

// sights are what one process has seen of each lease. Safe for concurrent use.
type sights struct {
	driftRate float64

	mu    sync.Mutex
	known map[string]sight // by resource
}

func (m *sights) get(resource string) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.known[resource]
	return s, ok
}

// saw takes down s, which arrived in answer to what was asked when asked was the
// latest sight, and gives the latest one; false where the object has lost tokens
// since.
func (m *sights) saw(resource string, s sight, asked lease.Sight) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.known[resource]; ok {
		s.Sight = before.See(s.Version, s.Since)
		older := s.Token < before.Token || s.Token == before.Token && s.seq < before.seq
		switch {
		case s.Sight == before.Sight:
			return before, true
		case older && before.After(asked):
			return before, true
		case s.Token < before.Token || s.Version == "":
			return before, false
		case s.Status == lease.Lapsed && before.Status == lease.Running && s.seq == before.seq+1 && s.Token == before.Token:
			// Nothing came between, so that it lapsed when it should have: the lock
			// delay counts from then, not from when that was written down.
			s.Since = min(s.Since, before.record(m.driftRate).Expires)
		}
	}
	if s.Version == "" {
		return s, true
	}
	if m.known == nil {
		m.known = map[string]sight{}
	}
	m.known[resource] = s
	return s, true
}
