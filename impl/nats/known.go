package nats

import "sync"

// known is what a store remembers of the tenures it wrote, so that a renewal
// need not read first. The zero known is ready to use.
type known struct {
	mu         sync.Mutex
	byResource map[string]state
}

func (k *known) get(resource string) (state, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.byResource[resource]
	return s, ok
}

// set keeps what is newest: two answers may come in any order.
func (k *known) set(resource string, s state) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byResource == nil {
		k.byResource = map[string]state{}
	}
	if k.byResource[resource].revision <= s.revision {
		k.byResource[resource] = s
	}
}

func (k *known) forget(resource string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.byResource, resource)
}
