package lease

import (
	"context"
	"fmt"
	"sync"
)

// Watcher is offered by a [Store] that can tell when a lease may have changed,
// so that a candidate need not wait for its next poll.
type Watcher interface {
	// Watch gives a channel on which a value arrives after each release,
	// deletion and change of holder of resource that follows the call. It is a
	// hint and no more: several changes may come as one value, a value may come
	// without a change, and a lapse that nobody has asked about sends none.
	// Whoever gets one asks the store.
	//
	// The channel is closed once ctx has ended, or when the store can watch no
	// longer. An error means that nothing is watched.
	Watch(ctx context.Context, resource string) (<-chan struct{}, error)
}

var _ Watcher = (*Memory)(nil)

// Watch implements [Watcher]; it also hints at a lapse once somebody was told of
// it. The error is that of a ctx that had ended before.
func (m *Memory) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lease %q: watch: nothing done: %w", resource, err)
	}
	hints := m.watchers.add(resource)
	context.AfterFunc(ctx, func() { m.watchers.remove(resource, hints) })
	return hints, nil
}

// watchers are the channels that wait for each resource. A channel is sent to
// and closed only under mu, and closed only when it is no longer in byResource.
type watchers struct {
	mu         sync.Mutex
	byResource map[string]map[chan struct{}]struct{}
}

func (w *watchers) add(resource string) chan struct{} {
	// Room for one: a hint that was not taken yet stands for those that follow.
	hints := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byResource == nil {
		w.byResource = map[string]map[chan struct{}]struct{}{}
	}
	if w.byResource[resource] == nil {
		w.byResource[resource] = map[chan struct{}]struct{}{}
	}
	w.byResource[resource][hints] = struct{}{}
	return hints
}

func (w *watchers) remove(resource string, hints chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byResource[resource], hints)
	if len(w.byResource[resource]) == 0 {
		delete(w.byResource, resource)
	}
	close(hints)
}

func (w *watchers) hint(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for hints := range w.byResource[resource] {
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}

// worthAHint reports whether a watcher wants to know that d became next: not
// that a tenure was renewed.
func (d Durable) worthAHint(next Durable) bool {
	return d.Token != next.Token || d.Holder != next.Holder || d.Status != next.Status
}
