package storetest_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/storetest"
)

func memory(e kit.Env) *lease.Memory {
	m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return m
}

// Without a journal, lease.Memory forgets everything with its process.
var options = kit.Options{Volatile: true}

// generous releases whatever it is asked to, as "DELETE FROM leases WHERE name
// = ?" does.
type generous struct{ *lease.Memory }

func (s generous) Release(ctx context.Context, resource string, _ lease.Holder, _ lease.Token) error {
	now, err := s.Get(ctx, resource)
	if err != nil || now.Holder.IsZero() {
		return err
	}
	return s.Memory.Release(ctx, resource, now.Holder, now.Token)
}

// folded keeps its leases under their names in lower case, as a column with a
// collation that does not care does.
type folded struct{ lease.Store }

func (s folded) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, strings.ToLower(resource), h, ttl)
	g.Resource = resource
	return g, err
}

func ExampleRules() {
	open := func(e kit.Env) lease.Store { return generous{memory(e)} }
	first(storetest.Rules(open, options))
	// Output:
	// rules/release-by-another-is-refused
	// 0s  a acquires for 10s              granted: token 1 for 10s
	// 0s  b releases under token 1 (a's)  released  ◄
	//     expected: refused as lost: a holds it under token 1 for another 10s, and this is b's request under token 1
}

// first tells the first failure.
func first(checks []kit.Check) {
	for _, check := range checks {
		if f := check.Run().Failure; f != nil {
			fmt.Println(check.Name)
			fmt.Println(strings.Join(f.Story, "\n"))
			return
		}
	}
	fmt.Println("all hold")
}

func ExampleMalformed() {
	open := func(e kit.Env) lease.Store { return folded{memory(e)} }
	first(storetest.Malformed(open, options))
	// Output:
	// malformed/resource-in-another-case
	// 0s  b acquires "shard" for 10s        granted: token 1 for 10s
	// 0s  b releases "shard" under token 1  released
	// 0s  a acquires "Shard" for 10s        granted: token 2 for 10s
	// 0s  b acquires "shard" for 10s        refused: a holds it under token 2 for another 10s  ◄
	//     expected: granted: a holds "Shard", which is another lease
}

func ExampleWatch() {
	open := func(e kit.Env) lease.Store { return memory(e) }
	first(storetest.Watch(open, options))
	// Output: all hold
}

func ExampleLockstep() {
	open := func(e kit.Env) lease.Store { return generous{memory(e)} }
	first(storetest.Lockstep(open, options, kit.Effort{Seed: 1}))
	// Output:
	// lockstep/requests
	// 0s  a acquires for 10s              granted: token 1 for 10s
	// 0s  b releases under token 1 (a's)  released  ◄
	//     expected: refused as lost: a holds it under token 1 for another 10s, and this is b's request under token 1
}

// A counterexample that was kept replays against the store once it is mended.
func ExampleReplay() {
	script := `{
  "version": 1,
  "kind": "store-script",
  "name": "release-only-by-the-holder",
  "options": {"volatile": true},
  "steps": ["acquire a 10s", "release b of a"]
}`
	for _, open := range []func(kit.Env) lease.Store{
		func(e kit.Env) lease.Store { return generous{memory(e)} },
		func(e kit.Env) lease.Store { return memory(e) },
	} {
		out := storetest.Replay(open, options, "release-only-by-the-holder.json", []byte(script))
		if out.Failure != nil {
			fmt.Println("fails:", out.Failure.Rule)
		} else {
			fmt.Println("holds")
		}
	}
	// Output:
	// fails: release-only-by-the-holder
	// holds
}
