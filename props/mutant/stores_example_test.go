package mutant_test

import (
	"fmt"

	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/storetest"
)

// One wrong store, and what the check that it names says of it.
func ExampleWrongStores() {
	for _, w := range mutant.WrongStores() {
		if w.Name != "renewal-shortens" {
			continue
		}
		fmt.Println(w.Breaks)
		for _, c := range storetest.Checks(w.Open, w.Options, kit.Effort{Seed: 1}) {
			if c.Name != w.Convicted {
				continue
			}
			// Its Text tells the story, line by line.
			fmt.Println(c.Name, "convicts it of breaking", c.Run().Failure.Rule)
		}
	}
	// Output:
	// A renewal sets the expiry also where that is earlier: one with a shorter TTL shortens the running lease.
	// rules/renew-with-a-shorter-ttl-never-shortens convicts it of breaking never-shortens
}

// The store that the wrong ones are made of keeps every rule.
func ExampleRightStore() {
	failed := 0
	for _, c := range storetest.Rules(mutant.RightStore(0), kit.Options{}) {
		if c.Run().Failure != nil {
			failed++
		}
	}
	fmt.Println(failed, "rules broken")
	// Output: 0 rules broken
}

// A store that keeps instants needs a clock that goes on.
func ExampleSteadyStore() {
	for _, o := range []kit.Options{{SteadyClock: true}, {}} {
		failed := 0
		for _, c := range storetest.Rules(mutant.SteadyStore(0), o) {
			if c.Run().Failure != nil {
				failed++
			}
		}
		fmt.Printf("steady clock %t: all rules kept %t\n", o.SteadyClock, failed == 0)
	}
	// Output:
	// steady clock true: all rules kept true
	// steady clock false: all rules kept false
}
