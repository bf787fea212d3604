package record_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
)

// A store and a storage are wrapped, used, and judged by what they answered.
func ExampleStore() {
	var history bytes.Buffer // a file, in earnest
	clk := clock.NewManual(0)
	r, _ := linearizability.NewRecorder(&history, linearizability.DefaultMeta(), clk.Now)

	memory, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	store := record.Store(memory, r)
	disk := record.NewStorage(&fence.Storage{}, "disk", r)

	ctx := context.Background()
	c1, c2 := lease.Holder{Node: "c1", Seq: 1, Nonce: 1}, lease.Holder{Node: "c2", Seq: 1, Nonce: 2}
	g1, _ := store.Acquire(ctx, "shard-1", c1, 5*time.Second)
	clk.Advance(6 * time.Second) // c1 stands still; its lease lapses
	g2, _ := store.Acquire(ctx, "shard-1", c2, 5*time.Second)
	disk.As(c2).Write(ctx, g2.Token, "X", "2")
	err := disk.As(c1).Write(ctx, g1.Token, "X", "1")
	fmt.Println(err)

	r.Flush()
	h, _ := linearizability.Read(&history, "run.jsonl")
	v, _ := linearizability.Check(ctx, h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}})
	fmt.Println(v)
	// Output:
	// token 1 is stale: the storage has seen 2; stop, and acquire the lease anew
	// run.jsonl: fencepost: holds, 4 operations in 2 partitions (1 takeover, 1 fenced write, 1 stale refused)
	//   note: meta gives no "late": a lease that never lapses would not be noticed
}

// An Elector's work, with the belief that it leads on record.
func ExampleLead() {
	var history bytes.Buffer
	r, _ := linearizability.NewRecorder(&history, linearizability.DefaultMeta(), func() time.Duration { return 0 })
	work := func(context.Context, lease.Term) error { return nil }

	lead := record.Lead(r, work) // for lease.Elector.Run
	lead(context.Background(), lease.Term{Resource: "shard-1", Holder: lease.Holder{Node: "c1", Seq: 4, Nonce: 15}, Token: 33})

	r.Flush()
	h, _ := linearizability.Read(&history, "run.jsonl")
	fmt.Println(h.Events[0].F, h.Events[0].Field("owner"), h.Events[0].Field("token"))
	// Output:
	// lead "c1#4.f" 33
}
