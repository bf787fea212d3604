package etcd

import (
	"sync"

	"fencepost/impl/lease"
)

// known remembers to which etcd lease each tenure is attached that was granted
// or renewed here, so that a renewal need not read it first. It is a hint: what
// a renewal answers is proved by the read after the keep-alive.
type known struct {
	mu         sync.Mutex
	byResource map[string]tenure
}

// find gives what is known of the tenure of holder under token.
func (k *known) find(resource string, holder lease.Holder, token lease.Token) (t tenure, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t = k.byResource[resource]
	return t, t.holder == holder && t.token == token
}

func (k *known) set(resource string, t tenure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byResource == nil {
		k.byResource = map[string]tenure{}
	}
	k.byResource[resource] = t
}

// forget forgets the tenure under token, and no later one.
func (k *known) forget(resource string, token lease.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byResource[resource].token == token {
		delete(k.byResource, resource)
	}
}
