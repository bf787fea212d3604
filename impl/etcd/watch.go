package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Watch implements [lease.Watcher] by a watch on the leader key. It hints at a
// lapse too, once etcd has ended the tenure. Over a short loss of the connection
// it goes on where it was; the channel is closed when etcd says that it cannot,
// as where the member that is asked has no leader.
func (s *Store) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	// Its end ends the watch in the client, also where it never began.
	ctx, cancel := context.WithCancel(ctx)
	events := s.client.Watch(clientv3.WithRequireLeader(ctx), s.LeaderKey(resource), clientv3.WithCreatedNotify())
	// Only what follows the creation is sure to be told.
	var first clientv3.WatchResponse
	select {
	case first = <-events:
	case <-ctx.Done():
	}
	if !first.Created || first.Err() != nil {
		err := first.Err()
		if err == nil {
			err = context.Cause(ctx)
		}
		cancel()
		return nil, fmt.Errorf("lease %q in etcd: watch: %w", resource, err)
	}
	unwatch := s.reserve.watch(resource)
	// Room for one: a hint that was not taken yet stands for those that follow.
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		defer cancel()
		defer unwatch()
		for resp := range events {
			if resp.Err() != nil {
				return
			}
			if len(resp.Events) == 0 {
				continue
			}
			last := resp.Events[len(resp.Events)-1]
			s.reserve.saw(resource, last.Type == clientv3.EventTypeDelete)
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}()
	return hints, nil
}
