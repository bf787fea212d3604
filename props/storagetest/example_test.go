package storagetest_test

import (
	"context"
	"fmt"
	"sync"

	"fencepost/impl/fence"
	"fencepost/props/kit"
	"fencepost/props/storagetest"
)

// ledger is somebody's storage: one guard for each key, which is wrong.
type ledger struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	token uint64
	value string
}

func (l *ledger) write(_ context.Context, token uint64, key, value string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if token == 0 || token < l.rows[key].token {
		return false, nil
	}
	l.rows[key] = row{token, value}
	return true, nil
}

func (l *ledger) read(_ context.Context, key string) (string, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[key]
	return r.value, ok, nil
}

func openLedger(e kit.Env) fence.KV {
	l := kit.Durable(e, "ledger", func() *ledger { return &ledger{rows: map[string]row{}} })
	return storagetest.Funcs{Write: l.write, Read: l.read}.KV()
}

// A version column in each row fences the row, not the table.
func ExampleChecks() {
	for _, c := range storagetest.Checks(openLedger, storagetest.Options{}, kit.Effort{Seed: 1}) {
		if c.Name != "rules/one-guard-for-all-keys" {
			continue
		}
		f := c.Run().Failure
		fmt.Println(f.What)
		for _, line := range f.Story {
			fmt.Println(line)
		}
	}
	// Output:
	// a write under token 1 landed, though token 2 was seen by a write of x
	// successor    writes x=new under token 2  landed
	// predecessor  writes y=old under token 1  landed  ◄ must be refused: token 2 was seen by a write of x
}

// A counterexample that was kept as a file says whether the storage was mended.
func ExampleReplay() {
	file := []byte(`{"kind": "storage-script", "version": 1, "breaks": "one-guard-for-all-keys",
		"steps": ["write 2 x=new", "write 1 y=old"]}`)
	out := storagetest.Replay(openLedger, storagetest.Options{}, "one-guard.json", file)
	fmt.Println(out.Failure)
	out = storagetest.Replay(func(kit.Env) fence.KV { return new(fence.Storage) }, storagetest.Options{}, "one-guard.json", file)
	fmt.Println(out.Failure == nil, out.Covered)
	// Output:
	// one-guard-for-all-keys: a write under token 1 landed, though token 2 was seen by a write of x
	// true 2 steps
}

// Plain functions are enough; nothing of fencepost is imported by the code
// under test.
func ExampleFuncs() {
	l := &ledger{rows: map[string]row{}}
	kv := storagetest.Funcs{Write: l.write, Read: l.read}.KV()
	ctx := context.Background()
	fmt.Println(kv.Write(ctx, 2, "x", "new"))
	fmt.Println(kv.Write(ctx, 1, "x", "old"))
	// Output:
	// <nil>
	// fencing token is stale
}
