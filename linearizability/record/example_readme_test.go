package record_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
)

// A candidate records what its store and its storage answer, and when it leads.
func Example() {
	dir, _ := os.MkdirTemp("", "record")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "node-1.jsonl")
	clk := clock.Boot()
	leases, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	data := new(fence.Storage)
	cfg := lease.Config{TTL: 10 * time.Second, MaxDriftRate: 0.01, SafetyMargin: 500 * time.Millisecond}
	ctx, stop := context.WithCancel(context.Background())

	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	meta := linearizability.DefaultMeta()
	meta.Drift, meta.Late = 200_000, 0 // parts per billion, nanoseconds: what the store promises
	r, err := linearizability.NewRecorder(file, meta, clk.Now)
	if err != nil {
		panic(err)
	}
	store := record.Store(leases, r)           // your lease.Store
	disk := record.NewStorage(data, "disk", r) // your fence.KV
	work := func(ctx context.Context, term lease.Term) error {
		defer stop() // here: one job and out
		return disk.As(term.Holder).Write(ctx, term.Token, "last job", "nightly")
	}
	elector, err := lease.NewElector(store, lease.ElectorConfig{Resource: "scheduler", Node: "node-1", Timing: cfg, Clock: clk})
	if err != nil {
		panic(err)
	}
	_ = elector.Run(ctx, record.Lead(r, work))
	if err := r.Flush(); err != nil { // before the program ends
		panic(err)
	}
	file.Close()

	v, _ := linearizability.CheckFile(context.Background(), path, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}})
	fmt.Println(v.Result, v.Activity.Writes)
	// Output: holds 1
}

// theirs is somebody's client of a lock service.
type theirs struct{}

var errHeld = errors.New("somebody else has it")

func (theirs) Lock(context.Context, string) (revision uint64, err error) { return 1207, nil }

// A lease that is no lease.Store is recorded by hand: before the request, what is
// asked; after it, what was answered, or that nobody knows.
func Example_byHand() {
	var file bytes.Buffer
	clk := clock.NewManual(0)
	meta := linearizability.DefaultMeta()
	meta.Tokens, meta.Anchor = linearizability.TokensRising, linearizability.AnchorCall
	r, _ := linearizability.NewRecorder(&file, meta, clk.Now)
	ctx := context.Background()
	lock := theirs{}

	text := func(name, s string) linearizability.Field {
		return linearizability.Field{Name: name, Value: linearizability.String(s)}
	}
	ttl := linearizability.Field{Name: "ttl", Value: linearizability.Int(int64(10 * time.Second))}
	call := r.Invoke("acquire", text("key", "scheduler"), text("owner", "node-1/7"), ttl)
	revision, err := lock.Lock(ctx, "scheduler")
	switch {
	case err == nil:
		call.OK(linearizability.Field{Name: "token", Value: linearizability.Uint(revision)})
	case errors.Is(err, errHeld):
		call.Fail("held") // certainly not granted
	default:
		call.Info(text("error", err.Error())) // a timeout: it may yet be granted
	}

	r.Flush()
	fmt.Print(file.String())
	// Output:
	// {"meta":{"version":1,"drift":0,"early":0,"late":null,"eps":0,"tokens":"rising","anchor":"call"}}
	// {"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"scheduler","owner":"node-1/7","ttl":10000000000}
	// {"index":1,"time":0,"process":0,"type":"ok","f":"acquire","token":1207}
}

// durable is a store whose every call is on record before its request leaves.
type durable struct {
	lease.Store
	r *linearizability.Recorder
}

func (d durable) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if err := d.r.Flush(); err != nil {
		return lease.Grant{}, err
	}
	return d.Store.Acquire(ctx, resource, holder, ttl)
}

// Where several processes record, and may be killed, the call is flushed before
// the request leaves. Renew, Release and Get likewise.
func ExampleStore_durable() {
	var file bytes.Buffer
	clk := clock.NewManual(0)
	r, _ := linearizability.NewRecorder(&file, linearizability.DefaultMeta(), clk.Now)
	memory, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	store := record.Store(durable{memory, r}, r)

	g, err := store.Acquire(context.Background(), "scheduler", lease.Holder{Node: "node-1", Seq: 1, Nonce: 1}, time.Second)
	fmt.Println(g.Token, err, r.Flush())
	// Output: 1 <nil> <nil>
}
