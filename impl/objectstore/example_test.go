package objectstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/impl/objectstore"
)

// A singleton, with the lease in a bucket.
func ExampleNew() {
	objects := newMemory() // an *s3.Client
	store, err := objectstore.New(objects, "fencepost", objectstore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	alice := lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa}
	bob := lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb}
	g, err := store.Acquire(ctx, "scheduler", alice, 15*time.Second) // a lease.Elector does all this
	fmt.Println(store.Key("scheduler"), g.Token, err)
	_, err = store.Acquire(ctx, "scheduler", bob, 15*time.Second)
	fmt.Println(lease.Refusal(err))
	fmt.Println(store.Release(ctx, "scheduler", alice, g.Token))
	g, err = store.Acquire(ctx, "scheduler", bob, 15*time.Second)
	fmt.Println(g.Token, err)
	// Output:
	// leases/scheduler.json 1 <nil>
	// held
	// <nil>
	// 2 <nil>
}

// An object that remembers the highest token.
func ExampleNewStorage() {
	data := objectstore.NewStorage(newMemory(), "fencepost", "data.json")
	ctx := context.Background()
	fmt.Println(data.Fence(ctx, 34))
	fmt.Println(data.Write(ctx, 34, "snapshot", "snapshots/34-a"))
	err := data.Write(ctx, 33, "snapshot", "snapshots/33-b")
	fmt.Println(errors.Is(err, lease.ErrStale))
	fmt.Println(data.Read(ctx, "snapshot"))
	// Output:
	// <nil>
	// <nil>
	// true
	// snapshots/34-a true <nil>
}

// The object of a lease was deleted; no storage has seen a token above 40.
func ExampleStore_Raise() {
	store, _ := objectstore.New(newMemory(), "fencepost", objectstore.Options{})
	ctx := context.Background()
	fmt.Println(store.Raise(ctx, "scheduler", 40))
	g, err := store.Acquire(ctx, "scheduler", lease.Holder{Node: "a", Seq: 1, Nonce: 1}, 15*time.Second)
	fmt.Println(g.Token, err)
	// Output:
	// <nil>
	// 41 <nil>
}

// The object of a lease, for an operator who looks for it in the bucket.
func ExampleStore_Key() {
	store, _ := objectstore.New(newMemory(), "fencepost", objectstore.Options{Prefix: "prod/leases/"})
	fmt.Println(store.Key("scheduler"))
	fmt.Println(store.Key("reports/nightly"))
	// Output:
	// prod/leases/scheduler.json
	// prod/leases/reports%2Fnightly.json
}

// An operator takes the lease from a holder that is known to have stopped. Its
// object stays, and so do the tokens.
func ExampleStore_Delete() {
	store, _ := objectstore.New(newMemory(), "fencepost", objectstore.Options{})
	ctx := context.Background()
	alice := lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa}
	bob := lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb}
	_, err := store.Acquire(ctx, "scheduler", alice, time.Hour)
	fmt.Println(err)
	fmt.Println(store.Delete(ctx, "scheduler"))
	g, err := store.Acquire(ctx, "scheduler", bob, time.Hour)
	fmt.Println(g.Token, err)
	// Output:
	// <nil>
	// <nil>
	// 2 <nil>
}
