package redis

import (
	"context"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/props"
)

// liveOptions are what a store here promises.
func liveOptions(s *server.Server) props.LiveOptions {
	o := props.LiveOptions{Restart: s.Restart}
	o.SteadyClock = true
	o.Granularity = time.Microsecond
	o.TTL = 300 * time.Millisecond
	return o
}

func TestStoreOnItsServer(t *testing.T) {
	s := server.Start(t, server.Durable...)
	for _, o := range []Options{{}, {Prefix: "delayed:", LockDelay: 200 * time.Millisecond}} {
		t.Run(o.prefix(), func(t *testing.T) {
			live := liveOptions(s)
			live.LockDelay = o.LockDelay
			if o.LockDelay > 0 { // else by the store's own Delete
				live.Delete = func(ctx context.Context, resource string) error {
					return s.Control.Del(ctx, o.prefix()+"{"+resource+"}:lease").Err()
				}
			}
			props.TestLiveStore(t, func(env props.LiveEnv) lease.Store {
				store, err := New(env.Context, dial(t, s), o)
				if err != nil {
					env.Fatal(err)
				}
				return store
			}, live)
		})
	}
}

func TestStorageOnItsServer(t *testing.T) {
	s := server.Start(t, server.Durable...)
	props.TestLiveStorage(t, func(env props.LiveEnv) fence.KV {
		return NewStorage(dial(t, s), "", "shard-1")
	}, props.LiveStorageOptions{Restart: s.Restart})
}
