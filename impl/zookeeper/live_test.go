package zookeeper_test

import (
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
	"fencepost/model"
	"fencepost/props"
	"fencepost/props/kit"
)

// promises are what the store promises on the server that serve starts.
func (s *server) promises() props.LiveOptions {
	return props.LiveOptions{
		Options: kit.Options{
			Tokens:      model.TokensRising,
			Granularity: time.Millisecond,
			MinTTL:      2 * tick,
			MaxTTL:      2 * time.Minute,
			// A session ends with the tick in which its time is up, and the end
			// of it is written down like any change.
			Late:   2 * tick,
			Shared: true,
		},
		TTL:     2 * time.Second,
		Latency: time.Second,
		Restart: s.Restart,
	}
}

func testLive(t *testing.T, s *server) {
	props.TestLiveStore(t, func(env props.LiveEnv) lease.Store {
		store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}, Logger: env.Logger})
		if err != nil {
			env.Fatal(err)
		}
		return store
	}, s.promises())
}
