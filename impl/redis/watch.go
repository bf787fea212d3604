package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// Watch implements [lease.Watcher] by publish and subscribe; it also hints at a
// lapse once somebody was told of it. Each time that the subscription is made
// anew, the first time included, a value arrives, since something may have been
// missed before: so a server that cannot be reached is no error.
//
// A key that somebody deletes behind the store's back sends no hint: see
// [Store.Delete]. All watches of a store share one connection, which gets one message for each
// change of a lease under the store's prefix. It ends with the last of them.
// The error is that of a ctx that had ended before, or [ErrClosed].
func (s *Store) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lease %q: watch: nothing done: %w", resource, err)
	}
	hints, err := s.hub.add(resource)
	if err != nil {
		return nil, fmt.Errorf("lease %q: watch: nothing done: %w", resource, err)
	}
	context.AfterFunc(ctx, func() { s.hub.remove(resource, hints) })
	return hints, nil
}

// ErrClosed refuses a watch after [Store.Close].
var ErrClosed = errors.New("the store is closed")

// hub hands on what one subscription tells. A channel is sent to and closed only
// under mu, and closed only when it is no longer in byResource.
type hub struct {
	rdb     goredis.UniversalClient
	channel string

	mu         sync.Mutex
	byResource map[string]map[chan struct{}]struct{}
	sub        *goredis.PubSub // not nil while anybody watches
	closed     bool
	listening  sync.WaitGroup
}

func newHub(rdb goredis.UniversalClient, channel string) *hub {
	return &hub{rdb: rdb, channel: channel, byResource: map[string]map[chan struct{}]struct{}{}}
}

func (h *hub) add(resource string) (chan struct{}, error) {
	// Room for one: a hint that was not taken yet stands for those that follow.
	hints := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.byResource[resource] == nil {
		h.byResource[resource] = map[chan struct{}]struct{}{}
	}
	h.byResource[resource][hints] = struct{}{}
	if h.sub == nil {
		// Without a channel it does not connect, so nobody waits for it here.
		sub := h.rdb.Subscribe(context.Background())
		h.sub = sub
		h.listening.Go(func() { h.listen(sub) })
	}
	return hints, nil
}

func (h *hub) remove(resource string, hints chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.byResource[resource][hints]; !ok {
		return // closed before
	}
	close(hints)
	delete(h.byResource[resource], hints)
	if len(h.byResource[resource]) == 0 {
		delete(h.byResource, resource)
	}
	h.hangUp()
}

// hangUp ends the subscription once nobody watches. The caller has mu.
func (h *hub) hangUp() {
	if len(h.byResource) == 0 && h.sub != nil {
		h.sub.Close()
		h.sub = nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for resource, all := range h.byResource {
		for hints := range all {
			close(hints)
		}
		delete(h.byResource, resource)
	}
	h.hangUp()
	h.mu.Unlock()
	h.listening.Wait()
}

// listen hands on until sub is closed. It connects anew by itself.
func (h *hub) listen(sub *goredis.PubSub) {
	// An error is not the end: the channel stays asked for.
	_ = sub.Subscribe(context.Background(), h.channel)
	for msg := range sub.ChannelWithSubscriptions() {
		switch msg := msg.(type) {
		case *goredis.Message:
			h.mu.Lock()
			hint(h.byResource[msg.Payload])
			h.mu.Unlock()
		case *goredis.Subscription:
			h.mu.Lock()
			for _, all := range h.byResource {
				hint(all)
			}
			h.mu.Unlock()
		}
	}
}

func hint(watchers map[chan struct{}]struct{}) {
	for hints := range watchers {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}
