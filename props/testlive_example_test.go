package props_test

import (
	"context"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props"
)

// A store on a server of one's own, which the test can kill. Here the server is
// in memory, and open would dial it.
func ExampleTestLiveStore() {
	_ = func(t *testing.T) { // TestLeasesLive
		server, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		props.TestLiveStore(t, func(env props.LiveEnv) lease.Store {
			return server
		}, props.LiveOptions{
			TTL:     2 * time.Second,
			Options: props.Options{SteadyClock: true, Late: time.Second},
			Restart: func(ctx context.Context) error {
				return nil // kill -9, start it again, and wait until it answers
			},
		})
	}
	// Output:
}

// A storage that writes only while the lease beside it carries the token.
func ExampleTestLiveStorage() {
	_ = func(t *testing.T) { // TestRowsLive
		server, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows := fence.NewCompareAndSwap(server, "billing")
		props.TestLiveStorage(t, func(env props.LiveEnv) fence.KV { return rows }, props.LiveStorageOptions{
			Lease:     func(env props.LiveEnv) lease.Store { return server },
			Resource:  "billing",
			NoRestart: "the server is in memory",
		})
	}
	// Output:
}
