package objectstore

import (
	"math"
	"sync"
	"time"

	"fencepost/impl/lease"
)

// sight is a lease object as one process knows it.
type sight struct {
	state
	etag string // "": there is none
	// since is when, on the store's clock, the first answer that showed this ETag
	// had come. So it is no earlier than whoever wrote it sent that.
	since time.Duration
	nth   uint64 // among all sights of the process
}

// record is the lease as it stands to whoever saw s: a tenure lapses once it has
// been seen unchanged for its TTL and what clocks may differ by.
func (s sight) record(driftRate float64) lease.Record {
	r := lease.Record{Durable: s.Durable, Expires: s.since}
	if s.Status == lease.Running {
		allowance := math.Ceil(float64(s.TTL) * driftRate / (1 - driftRate))
		for _, d := range []time.Duration{s.TTL, time.Duration(min(allowance, math.MaxInt64/2))} {
			r.Expires = min(r.Expires, math.MaxInt64-d) + d
		}
	}
	return r
}

// sights are what one process has seen of each lease. Safe for concurrent use.
type sights struct {
	driftRate float64

	mu    sync.Mutex
	count uint64
	known map[string]sight // by resource
}

func (m *sights) get(resource string) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.known[resource]
	return s, ok
}

// ask is to be called before a request, and its result given to saw.
func (m *sights) ask() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// saw takes down s, which arrived in answer to what was asked at asked, and gives
// the latest sight; false where the object has lost tokens since.
//
// An answer that is older than what is known was overtaken if it was asked for
// before that arrived. Otherwise the server has gone back.
func (m *sights) saw(resource string, s sight, asked uint64) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.known[resource]; ok {
		older := s.Token < before.Token || s.Token == before.Token && s.seq < before.seq
		switch {
		case s.etag == before.etag:
			return before, true
		case older && asked < before.nth:
			return before, true
		case s.Token < before.Token || s.etag == "":
			return before, false
		case s.Status == lease.Lapsed && before.Status == lease.Running && s.seq == before.seq+1 && s.Token == before.Token:
			// Nothing came between, so that it lapsed when it should have: the lock
			// delay counts from then, not from when that was written down.
			s.since = min(s.since, before.record(m.driftRate).Expires)
		}
	}
	if s.etag == "" {
		return s, true
	}
	m.count++
	s.nth = m.count
	if m.known == nil {
		m.known = map[string]sight{}
	}
	m.known[resource] = s
	return s, true
}
