package kubernetes

import (
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"

	"fencepost/impl/lease"
)

// sights are what one process has seen of each lease. Safe for concurrent use.
type sights struct {
	mu    sync.Mutex
	known map[string]sight // by resource
}

func (m *sights) get(resource string) (sight, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.known[resource]
	return s, ok
}

// forget drops an object that is not there any more.
func (m *sights) forget(resource string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, resource)
}

// saw takes down an object that arrived at now, in answer to what was asked when
// asked was the latest sight, and gives the latest one.
func (m *sights) saw(resource string, l *coordination.Lease, asked lease.Sight, now time.Duration) (sight, error) {
	v, err := version(l)
	if err != nil {
		return sight{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.known[resource]
	s := sight{Sight: before.See(string(l.UID)+"/"+l.ResourceVersion, now), object: l}
	if ok {
		latest, err := version(before.object)
		switch {
		case s.Sight == before.Sight:
			return before, nil
		case err == nil && v < latest && before.After(asked):
			return before, nil
		case sameTenure(l, before.object):
			s.token = before.token
		}
	}
	if kept, ok := keptToken(l); ok && s.token == 0 {
		s.token = kept
	}
	if s.token == 0 && ours(l) {
		s.token = v
	}
	if m.known == nil {
		m.known = map[string]sight{}
	}
	m.known[resource] = s
	return s, nil
}
