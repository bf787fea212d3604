package etcd_test

import (
	"context"
	"testing"
	"time"

	"fencepost/impl/etcd"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props"
)

// promises of a cluster whose shortest TTL is least. Late: the leader looks for
// what has run out every half second; and after a restart an election timeout is
// added to each TTL.
func promises(least time.Duration) props.Options {
	return props.Options{
		Tokens:      model.TokensRising,
		Granularity: time.Second,
		MinTTL:      least,
		Late:        1500 * time.Millisecond,
		Shared:      true,
	}
}

func opener(endpoints []string) func(props.LiveEnv) lease.Store {
	return func(env props.LiveEnv) lease.Store { return open(env, endpoints) }
}

func open(env props.LiveEnv, endpoints []string) *etcd.Store {
	client, err := dial(endpoints...)
	if err != nil {
		env.Fatal(err)
	}
	context.AfterFunc(env.Context, func() { client.Close() })
	return etcd.New(client, etcd.Options{})
}

func deleter(t *testing.T, endpoints []string) func(context.Context, string) error {
	client := connect(t, endpoints...)
	store := etcd.New(client, etcd.Options{})
	return func(ctx context.Context, resource string) error {
		_, err := client.Delete(ctx, store.LeaderKey(resource))
		return err
	}
}

func TestStoreOnOneServer(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, briskTick, briskElection)
	props.TestLiveStore(t, opener(c.endpoints()), props.LiveOptions{
		Options: promises(time.Second),
		Restart: func(ctx context.Context) error { return c.restart(ctx, 0) },
		Delete:  deleter(t, c.endpoints()),
	})
}

// The leader of the cluster is what restarts: the others elect a new one.
func TestStoreOnThreeServers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, briskTick, briskElection)
	props.TestLiveStore(t, opener(c.endpoints()), props.LiveOptions{
		Options: promises(time.Second),
		Latency: time.Second,
		Restart: func(ctx context.Context) error {
			i, err := c.leader(ctx)
			if err != nil {
				return err
			}
			return c.restart(ctx, i)
		},
		Delete: deleter(t, c.endpoints()),
	})
}

func TestStoreWithDefaultTimeouts(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, 0, 0)
	props.TestLiveStore(t, opener(c.endpoints()), props.LiveOptions{
		Options:   promises(2 * time.Second),
		NoRestart: "TestStoreOnOneServer restarts one",
		Delete:    deleter(t, c.endpoints()),
	})
}

func TestStorage(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(map[int]string{1: "one", 3: "three"}[n], func(t *testing.T) {
			c := startCluster(t, n, briskTick, briskElection)
			props.TestLiveStorage(t, func(env props.LiveEnv) fence.KV {
				return etcd.NewStorage(open(env, c.endpoints()), "r", "data/r/")
			}, props.LiveStorageOptions{
				Lease:    opener(c.endpoints()),
				Resource: "r",
				Restart:  func(ctx context.Context) error { return c.restart(ctx, 0) },
			})
		})
	}
}
