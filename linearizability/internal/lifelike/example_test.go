package lifelike_test

import (
	"fmt"

	"fencepost/linearizability"
	"fencepost/linearizability/internal/lifelike"
)

// A million operations need no more memory than a few: they are a stream.
func ExampleConfig_Events() {
	calls := 0
	for e := range (lifelike.Config{Seed: 1, Operations: 1000}).Events() {
		if e.Type == linearizability.Invoke {
			calls++
		}
	}
	fmt.Println(calls)
	// Output: 1000
}

func ExampleBug_In() {
	service := lifelike.Config{Seed: 3, Operations: 200, First: 1}
	fmt.Printf("%q\n", lifelike.Proof(service.History()))

	bug := lifelike.Bugs[0]
	fmt.Println(bug.Doc)
	fmt.Println(lifelike.Proof(bug.In(service).History()) != "")
	// Output:
	// ""
	// the store grants a lease to another within the last third of its TTL
	// true
}
