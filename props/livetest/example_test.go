package livetest_test

import (
	"fmt"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// The checks without package testing: a command can run them too.
func ExampleStoreChecks() {
	store, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	if err != nil {
		panic(err)
	}
	o := livetest.Options{
		Options:   kit.Options{MinTTL: 100 * time.Millisecond},
		NoRestart: "it is in memory",
	}
	for _, c := range livetest.StoreChecks(func(livetest.Env) lease.Store { return store }, o) {
		if c.Name == "restart/keeps-the-counter" {
			fmt.Println(c.Run().Skipped)
		}
	}
	// Output:
	// restarts are not tested: it is in memory
}

func ExampleStorageChecks() {
	var unfenced fence.Unfenced
	checks := livetest.StorageChecks(func(livetest.Env) fence.KV { return &unfenced }, livetest.StorageOptions{})
	for _, c := range checks {
		if c.Name == "rules/stale-is-refused" {
			fmt.Println(c.Run().Failure.Rule)
		}
	}
	// Output:
	// lower-token-is-refused
}
