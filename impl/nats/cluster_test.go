package nats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"fencepost/impl/nats"
	"fencepost/props"
)

// leader is the number of the server that leads the stream of the leases.
func (c *cluster) leader(ctx context.Context) (int, error) {
	js, err := dial(c.url())
	if err != nil {
		return 0, err
	}
	defer js.Conn().Close()
	s, err := js.Stream(ctx, "KV_"+leases)
	if err != nil {
		return 0, err
	}
	for i, m := range c.members {
		if cluster := s.CachedInfo().Cluster; cluster != nil && cluster.Leader == m.Name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("nobody leads the stream at %s", c.url())
}

// The leader of the stream is what is killed: another takes its place.
func TestStoreOnThreeServers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	// The three have one clock.
	offset := time.Millisecond
	o := promises()
	o.Late = offset
	props.TestLiveStore(t, opener(c.url(), nats.Options{ClockOffset: offset}), props.LiveOptions{
		Options: o,
		Latency: time.Second,
		Restart: func(ctx context.Context) error {
			i, err := c.leader(ctx)
			if err != nil {
				return err
			}
			return c.restart(ctx, i)
		},
		Delete: deleter(t, c.url()),
	})
}
