package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// A shard owner with a goroutine for each shard that it leads.
func ExampleGroup() {
	clk := clock.Monotonic() // clock.Boot() in production
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	var served atomic.Int64
	serve := func(ctx context.Context, term lease.Term) {
		served.Add(1) // write with term.Token
		<-ctx.Done()
	}
	group, err := lease.NewGroup(store, lease.GroupConfig{
		Node: "alice", Timing: lease.Config{TTL: 15 * time.Second, MaxDriftRate: 0.01, SafetyMargin: time.Second}, Clock: clk,
		Lead: func(ctx context.Context, term lease.Term, done func()) {
			go func() {
				defer done()
				serve(ctx, term)
			}()
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 1000 {
		if err := group.Add(fmt.Sprintf("shard-%d", i)); err != nil {
			fmt.Println(err)
			return
		}
	}

	ctx, shutdown := context.WithCancel(context.Background())
	go func() {
		for served.Load() < 1000 {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("held:", group.Held(), "and shard-7 is valid:", group.Term("shard-7").Valid())
		shutdown()
	}()
	fmt.Println("stopped:", group.Run(ctx))
	// Every serve has returned, and every shard was released.
	o, _ := store.Get(context.Background(), "shard-7")
	fmt.Printf("shard-7 is held by %q\n", o.Holder)
	// Output:
	// held: 1000 and shard-7 is valid: true
	// stopped: context canceled
	// shard-7 is held by ""
}

// A rebalancer takes a shard away. Its channel says when the next owner may have
// it.
func ExampleGroup_Remove() {
	clk := clock.Monotonic()
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	leads := make(chan string)
	group, _ := lease.NewGroup(store, lease.GroupConfig{
		Node: "alice", Timing: lease.Config{TTL: 15 * time.Second}, Clock: clk,
		Lead: func(ctx context.Context, term lease.Term, done func()) {
			go func() {
				defer done()
				leads <- term.Resource
				<-ctx.Done()
				fmt.Println("stops", term.Resource, "as it resigned:", errors.Is(context.Cause(ctx), lease.ErrResigned))
			}()
		},
	})
	_ = group.Add("shard-1")
	ctx, shutdown := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()

	fmt.Println("leads", <-leads)
	<-group.Remove("shard-1")
	o, _ := store.Get(ctx, "shard-1")
	fmt.Printf("held by %q, after token %d\n", o.Holder, o.Token)
	shutdown()
	fmt.Println(<-ended)
	// Output:
	// leads shard-1
	// stops shard-1 as it resigned: true
	// held by "", after token 1
	// context canceled
}

// Without a batch of its own, a Memory makes one call after the other.
func ExampleBatcher() {
	store, _ := lease.NewMemory(clock.NewManual(0), lease.MemoryOptions{})
	ctx := context.Background()
	var batcher lease.Batcher = store
	ask := func(op lease.Op, h lease.Holder) lease.Request {
		return lease.Request{Op: op, Holder: h, TTL: time.Second}
	}
	batcher.Batch(ctx, []lease.Call{{Resource: "a", Request: ask(lease.OpAcquire, alice)}})
	for _, answer := range batcher.Batch(ctx, []lease.Call{
		{Resource: "a", Request: ask(lease.OpAcquire, bob)},
		{Resource: "b", Request: ask(lease.OpAcquire, bob)},
	}) {
		fmt.Println(answer.Grant.Token, answer.Err)
	}
	// Output:
	// 0 lease "a" is held by alice#1.a11ce under token 1 for another 1s; try again later
	// 1 <nil>
}
