package lease_test

import (
	"context"
	"fmt"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// A candidate that is told of a release need not wait for its next poll.
func ExampleWatcher() {
	store, err := lease.NewMemory(clock.NewManual(0), lease.MemoryOptions{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a, b := lease.Holder{Node: "a", Seq: 1, Nonce: 1}, lease.Holder{Node: "b", Seq: 1, Nonce: 1}
	grant, _ := store.Acquire(ctx, "db", a, 10*time.Second)

	hints, _ := store.Watch(ctx, "db")
	store.Release(ctx, "db", a, grant.Token)
	<-hints
	grant, _ = store.Acquire(ctx, "db", b, 10*time.Second)
	fmt.Println("b leads under token", grant.Token)
	// Output: b leads under token 2
}
