package lease_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// A singleton worker: at most one process at a time is the leader.
func ExampleElector() {
	clk := clock.NewManual(0) // clock.Boot() in production
	store, err := lease.NewMemory(clk, lease.MemoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	elector, err := lease.NewElector(store, lease.ElectorConfig{Resource: "nightly-report", Node: "alice", Timing: lease.Config{TTL: 15 * time.Second, MaxDriftRate: 0.01, SafetyMargin: time.Second}, Clock: clk})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, shutdown := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		fmt.Printf("leading under token %d: %v\n", term.Token, term.Valid())
		shutdown()
		<-ctx.Done() // do the work until then; write with term.Token
		return nil
	})
	fmt.Println("stopped:", err)
	// Output:
	// leading under token 1: true
	// stopped: context canceled
}

// With a barrier no write of a predecessor lands after a term has begun.
func ExampleElectorConfig_barrier() {
	clk := clock.NewManual(0)
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{FirstToken: 34})
	elector, err := lease.NewElector(store, lease.ElectorConfig{Resource: "shard-1", Node: "alice", Timing: lease.Config{TTL: 15 * time.Second}, Clock: clk, Fencers: []lease.Fencer{disk{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := errors.New("all done")
	err = elector.Run(context.Background(), func(_ context.Context, term lease.Term) error {
		fmt.Println("leads under", term.Token)
		return done
	})
	fmt.Println(err)
	// Output:
	// the disk rejects tokens below 34
	// leads under 34
	// all done
}

// disk is a storage; package fence has real ones.
type disk struct{}

func (disk) Fence(_ context.Context, token lease.Token) error {
	fmt.Println("the disk rejects tokens below", token)
	return nil
}

// The work is told why its term ended.
func ExampleElector_Run() {
	clk := clock.NewManual(0)
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	elector, _ := lease.NewElector(store, lease.ElectorConfig{Resource: "shard-1", Node: "alice", Timing: lease.Config{TTL: 9 * time.Second}, Clock: clk})
	done := errors.New("all done")
	err := elector.Run(context.Background(), func(ctx context.Context, term lease.Term) error {
		if term.Token > 1 {
			fmt.Println("leading again under", term.Token)
			return done
		}
		store.Delete(context.Background(), "shard-1") // an operator takes it away
		clk.Advance(3 * time.Second)                  // the next renewal finds out
		<-ctx.Done()
		fmt.Println(errors.Is(context.Cause(ctx), lease.ErrRefused), term.Valid())
		return ctx.Err()
	})
	fmt.Println(err)
	// Output:
	// true false
	// leading again under 2
	// all done
}

// Elsewhere than in the work, such as in a health check, Term says what this
// candidate may do, without a call.
func ExampleElector_Term() {
	clk := clock.NewManual(0)
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{FirstToken: 33})
	elector, _ := lease.NewElector(store, lease.ElectorConfig{Resource: "shard-1", Node: "alice", Timing: lease.Config{TTL: 9 * time.Second}, Clock: clk})
	done := errors.New("all done")
	elector.Run(context.Background(), func(context.Context, lease.Term) error {
		fmt.Println(elector.Term().Token, elector.IsLeader())
		return done
	})
	fmt.Println(elector.Term().Token, elector.IsLeader())
	// Output:
	// 33 true
	// 0 false
}

// Work that takes a while looks first whether the term is long enough.
func ExampleTerm_Deadline() {
	clk := clock.NewManual(0)
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	elector, _ := lease.NewElector(store, lease.ElectorConfig{Resource: "shard-1", Node: "alice", Timing: lease.Config{TTL: 9 * time.Second}, Clock: clk})
	done := errors.New("all done")
	elector.Run(context.Background(), func(_ context.Context, term lease.Term) error {
		clk.Advance(2 * time.Second)
		fmt.Println("left:", term.Deadline()-clk.Now())
		return done
	})
	// Output: left: 7s
}

func ExampleMemory() {
	ctx := context.Background()
	clk := clock.NewManual(0)
	store, err := lease.NewMemory(clk, lease.MemoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	grant, _ := store.Acquire(ctx, "shard-1", alice, 10*time.Second)
	fmt.Println("alice has token", grant.Token)

	_, err = store.Acquire(ctx, "shard-1", bob, 10*time.Second)
	fmt.Println(err)

	clk.Advance(10 * time.Second)
	grant, _ = store.Acquire(ctx, "shard-1", bob, 10*time.Second)
	fmt.Println("bob has token", grant.Token)

	_, err = store.Renew(ctx, "shard-1", alice, 1, 10*time.Second)
	fmt.Println(errors.Is(err, lease.ErrNotHeld))
	// Output:
	// alice has token 1
	// lease "shard-1" is held by alice#1.a11ce under token 1 for another 10s; try again later
	// bob has token 2
	// true
}

// A restarted store has a new clock, and does not know how much of a tenure is
// left. So it is held for its whole TTL again; tokens go on from where they were.
func ExampleMemory_Durable() {
	ctx := context.Background()
	before, _ := lease.NewMemory(clock.NewManual(0), lease.MemoryOptions{FirstToken: 33})
	before.Acquire(ctx, "shard-1", alice, 10*time.Second)

	clk := clock.NewManual(0)
	after, _ := lease.NewMemory(clk, lease.MemoryOptions{State: before.Durable()})
	_, err := after.Acquire(ctx, "shard-1", bob, 10*time.Second)
	fmt.Println(err)
	clk.Advance(10 * time.Second)
	grant, _ := after.Acquire(ctx, "shard-1", bob, 10*time.Second)
	fmt.Println(grant.Token)
	// Output:
	// lease "shard-1" is held by alice#1.a11ce under token 33 for another 10s; try again later
	// 34
}

// printJournal shows what a journal is told; a real one writes and syncs it.
type printJournal struct{}

func (printJournal) Save(resource string, d lease.Durable) error {
	b, err := json.Marshal(d)
	fmt.Println(resource, string(b))
	return err
}

func ExampleJournal() {
	ctx := context.Background()
	store, _ := lease.NewMemory(clock.NewManual(0), lease.MemoryOptions{Journal: printJournal{}})
	store.Acquire(ctx, "shard-1", alice, time.Second)
	store.Renew(ctx, "shard-1", alice, 1, time.Second) // changes nothing that a restart needs
	store.Release(ctx, "shard-1", alice, 1)
	// Output:
	// shard-1 {"Token":1,"Holder":"alice#1.a11ce","TTL":1000000000,"Status":1}
	// shard-1 {"Token":1,"Holder":"alice#1.a11ce","TTL":1000000000,"Status":0}
}

func ExampleMemory_Get() {
	ctx := context.Background()
	clk := clock.NewManual(0)
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	store.Acquire(ctx, "shard-1", alice, 10*time.Second)
	for range 2 {
		seen, _ := store.Get(ctx, "shard-1")
		fmt.Printf("holder %q, token %d, for another %v\n", seen.Holder, seen.Token, seen.Remaining)
		clk.Advance(10 * time.Second)
	}
	// Output:
	// holder "alice#1.a11ce", token 1, for another 10s
	// holder "", token 1, for another 0s
}

// Data in the process of the store: nothing happens to the lease between the
// look at its token and the write.
func ExampleMemory_View() {
	ctx := context.Background()
	clk := clock.NewManual(0)
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	balance := 100
	spend := func(token lease.Token, amount int) {
		store.View(ctx, "account", func(d lease.Durable) {
			if d.Token == token && d.Status == lease.Running {
				balance -= amount
			}
		})
	}
	store.Acquire(ctx, "account", alice, 10*time.Second)
	spend(1, 20)
	clk.Advance(10 * time.Second)
	store.Acquire(ctx, "account", bob, 10*time.Second)
	spend(1, 70) // alice, late
	spend(2, 5)
	fmt.Println(balance)
	// Output: 75
}

func ExampleMemory_Delete() {
	ctx := context.Background()
	store, _ := lease.NewMemory(clock.NewManual(0), lease.MemoryOptions{})
	store.Acquire(ctx, "shard-1", alice, time.Hour)
	store.Delete(ctx, "shard-1")
	grant, err := store.Acquire(ctx, "shard-1", bob, time.Hour)
	fmt.Println(grant.Token, err)
	// Output: 2 <nil>
}

// A store as a pure value: the same rules, whatever keeps the record.
func ExampleRecord() {
	var r lease.Record
	r, reply := r.Acquire(0, 0, lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: 10 * time.Second})
	fmt.Println(reply.Code, reply.Token)
	r, reply = r.Handle(4*time.Second, 0, lease.Request{Op: lease.OpAcquire, Holder: bob, TTL: 10 * time.Second})
	fmt.Println(reply.Code, reply.Remaining)
	r, reply = r.Release(5*time.Second, lease.Request{Op: lease.OpRelease, Holder: alice, Token: 1})
	fmt.Println(reply.Code)
	_, reply = r.Acquire(5*time.Second, 0, lease.Request{Op: lease.OpAcquire, Holder: bob, TTL: 10 * time.Second})
	fmt.Println(reply.Code, reply.Token)
	// Output:
	// granted 1
	// held 6s
	// released
	// granted 2
}

func ExampleRestore() {
	d := lease.Durable{Token: 33, Holder: alice, TTL: 10 * time.Second, Status: lease.Running}
	r := lease.Restore(d, 5*time.Second) // on a new clock
	fmt.Println(r.Held(14*time.Second), r.Held(15*time.Second))
	// Output: true false
}

// A candidate without I/O: it is told the time and what arrived, and returns
// what to send.
func ExampleClient() {
	cfg := lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.05, SafetyMargin: 500 * time.Millisecond}
	c, err := lease.NewClient(cfg, alice, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := c.Tick(0).Store
	fmt.Println(request.Op, request.TTL)

	var record lease.Record // the store, which handles it 2 s later
	_, reply := record.Handle(2*time.Second, 0, request)
	c.Receive(4*time.Second, reply)

	// The window of 9 s counts from the send.
	fmt.Println(c.IsLeader(9*time.Second-1), c.IsLeader(9*time.Second))
	// Output:
	// acquire 10s
	// true false
}

// Work is noted where it begins and ends, so that the release waits for it: a
// successor would else start beside it.
func ExampleClient_Resign() {
	c, _ := lease.NewClient(lease.Config{TTL: 9 * time.Second}, alice, 0)
	_, reply := lease.Record{}.Handle(0, 0, c.Tick(0).Store)
	c.Receive(0, reply)
	fmt.Println("work may begin:", c.BeginWork(time.Second))

	fmt.Println(c.Resign(2*time.Second).Store.Op, c.IsLeader(2*time.Second), c.Acting(2*time.Second))
	fmt.Println(c.EndWork(3*time.Second).Store.Op, c.IsLeader(3*time.Second), c.Acting(3*time.Second))
	// Output:
	// work may begin: true
	// none false true
	// release false false
}

// A shell sleeps until Wake, or until a reply arrives, and calls Tick.
func ExampleClient_Wake() {
	cfg := lease.Config{TTL: 9 * time.Second, RetryInterval: 2 * time.Second}
	c, _ := lease.NewClient(cfg, alice, 0)
	request := c.Tick(0).Store
	fmt.Println("retries at", c.Wake())

	_, reply := lease.Record{}.Handle(0, 0, request)
	c.Receive(time.Second, reply)
	for c.IsLeader(c.Wake()) {
		now := c.Wake()
		fmt.Println(c.Tick(now).Store.Op, "at", now) // and no answer
	}
	fmt.Println("steps down at", c.Wake())
	// Output:
	// retries at 2s
	// renew at 3s
	// renew at 5s
	// renew at 7s
	// steps down at 9s
}

func ExampleConfig_SafeWindow() {
	cfg := lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.05, SafetyMargin: 500 * time.Millisecond}
	fmt.Println(cfg.SafeWindow(), cfg.RenewAfter(), cfg.Retry())
	// Output: 9s 3s 900ms
}

// A store may grant less than was asked for, down to what leaves no time.
func ExampleConfig_Window() {
	cfg := lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.05, SafetyMargin: 500 * time.Millisecond}
	fmt.Println(cfg.Window(4*time.Second), cfg.Window(500*time.Millisecond))
	// Output: 3.3s -25ms
}

func ExampleConfig_Failover() {
	cfg := lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.25, LockDelay: time.Second, RetryInterval: time.Second}
	fmt.Println(cfg.Failover()) // (10s + 1s + 1s) / (1 - 0.25)
	// Output: 16s
}

func ExampleConfig_Validate() {
	fmt.Println(lease.Config{TTL: time.Second, MaxDriftRate: 0.05, SafetyMargin: time.Second}.Validate())
	// Output: lease config: TTL: leaves no time to act: window = ttl - ttl*maxDriftRate - safetyMargin = 1s - 1s*0.05 - 1s = -50ms; raise TTL or lower SafetyMargin
}

func ExampleConfig_UnmarshalJSON() {
	var cfg lease.Config
	err := json.Unmarshal([]byte(`{"ttl": "15s", "maxDriftRate": 0.01, "safetyMargin": "1s"}`), &cfg)
	fmt.Println(cfg.SafeWindow(), err)
	// Output: 13.85s <nil>
}

func ExampleParseHolder() {
	h, err := lease.ParseHolder("alice#2.a11ce")
	fmt.Println(h.Node, h.Seq, h.Next(), err)
	_, err = lease.ParseHolder("alice")
	fmt.Println(err)
	// Output:
	// alice 2 alice#3.a11ce <nil>
	// holder is not of the form node#seq.nonce: "alice"
}

// A storage in the terms of a [lease.Client] answers the requests to fence.
func ExampleRequest_To() {
	request := lease.Request{Op: lease.OpFence, Holder: alice, Token: 33, Sent: 5 * time.Second}
	reply := request.To(lease.CodeStale)
	reply.Token = 34 // the highest seen
	fmt.Println(reply.Op, reply.Asked, reply.Code, reply.Token, reply.Sent)
	// Output: fence 33 stale 34 5s
}

// What a store's answer means, whatever wraps it.
func ExampleRefusal() {
	lost := fmt.Errorf("database: %w", &lease.LostError{Resource: "shard-1"})
	fmt.Println(lease.Refusal(lost), lease.Refusal(context.DeadlineExceeded))
	// Output: lost none
}

func ExampleReply_Err() {
	_, reply := lease.Record{}.Renew(0, lease.Request{Op: lease.OpRenew, Holder: alice, Token: 7, TTL: time.Second})
	err := reply.Err("shard-1")
	lost, ok := errors.AsType[*lease.LostError](err)
	fmt.Println(ok && lost.Token == 7, errors.Is(err, lease.ErrNotHeld))
	// Output: true true
}
