package nats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Watch implements [lease.Watcher] by a key-value watcher on the one key. It is
// made again by the client after a lost connection, which may take some seconds.
//
// The channel is closed, and nothing is left running, once ctx has ended.
func (s *Store) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	w, err := s.watcher(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("lease %q: watch: %w", resource, err)
	}
	// Room for one: a hint that was not taken yet stands for those that follow.
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		// Its error is that of a connection that is gone, and the watch with it.
		defer func() { _ = w.Stop() }()
		follow(ctx, w.Updates(), hints)
	}()
	return hints, nil
}

func (s *Store) watcher(ctx context.Context, resource string) (jetstream.KeyWatcher, error) {
	kv, err := s.bucket.js.KeyValue(ctx, s.bucket.name)
	if err != nil {
		return nil, err
	}
	return kv.Watch(ctx, Key(resource))
}

// follow hints at what changes after the first entries, which are what was there
// before: a nil entry ends those.
func follow(ctx context.Context, updates <-chan jetstream.KeyValueEntry, hints chan<- struct{}) {
	var last tenure
	for started := false; ; {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-updates:
			switch {
			case !ok:
				return
			case e == nil:
				started = true
				continue
			}
			next := tenureOf(e)
			if started && next != last {
				select {
				case hints <- struct{}{}:
				default:
				}
			}
			last = next
		}
	}
}

// tenure is what a watcher wants to know of a lease.
type tenure struct {
	token uint64
	ended string
}

func tenureOf(e jetstream.KeyValueEntry) tenure {
	v, err := parse(e.Value())
	switch {
	case e.Operation() != jetstream.KeyValuePut || err != nil:
		return tenure{ended: "deleted"}
	case v.Token == 0:
		return tenure{token: e.Revision(), ended: v.Ended}
	}
	return tenure{token: uint64(v.Token), ended: v.Ended}
}
