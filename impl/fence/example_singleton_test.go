package fence_test

import (
	"context"
	"fmt"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// A worker of which only one may run, on every node that runs this.
func Example_singleton() {
	clk := clock.Boot()
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{}) // shared by the candidates: any lease.Store
	data := new(fence.Storage)                              // what the worker writes: any storage with fence.Guard's rule
	cfg := lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.01, SafetyMargin: 500 * time.Millisecond, Barrier: true}
	elector, err := lease.NewElector(store, lease.ElectorConfig{Resource: "scheduler", Node: "node-1", Timing: cfg, Clock: clk, Fencers: []lease.Fencer{data}})
	if err != nil {
		panic(err) // the configuration leaves no time to act; err shows the arithmetic
	}
	ctx, stop := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		defer stop()                                              // here: one job and out
		return data.Write(ctx, term.Token, "last job", "nightly") // ctx ends with the term
	})
	job, _, _ := data.Read(context.Background(), "last job")
	fmt.Println(job, "under token", data.Highest(), "-", err)
	// Output: nightly under token 1 - context canceled
}
