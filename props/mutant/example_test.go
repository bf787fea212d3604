package mutant_test

import (
	"context"
	"fmt"

	"fencepost/props/explore"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

func ExampleAll() {
	for _, m := range mutant.All() {
		if m.Family == mutant.FamilyStorage {
			fmt.Println(m.Name)
		}
	}
	// Output:
	// unfenced
	// compares-wrong-way
	// refuses-equal-token
	// forgets-highest-at-restart
	// highest-collected
	// highest-per-key
	// fence-unrecorded
	// lost-write-at-restart
	// writes-before-checking
}

func ExampleFind() {
	m, err := mutant.Find("phantom-waiter")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Breaks)
	fmt.Println("Seen:", m.Seen)
	fmt.Println("May break first:", m.May)
	// Output:
	// A waiter's own lease runs from when it queued, and it is told of success with the whole TTL all the same.
	// Seen: etcd issue 9921: Lock succeeded although the lease of the waiter had expired in the queue
	// May break first: belief-safety, belief-implies-ownership
}

func ExampleSubject() {
	subject, err := mutant.Subject("mutant:unfenced")
	fmt.Println(subject.Name, err)
	_, err = mutant.Subject(sim.SubjectExternal)
	fmt.Println(err)
	// Output:
	// mutant:unfenced <nil>
	// subject "external" is somebody else's implementation: only the test that wrote the schedule can run it
}

func ExampleMutant_Hunt() {
	m, err := mutant.Find("restart-forgets-lease")
	if err != nil {
		fmt.Println(err)
		return
	}
	caught, err := m.Hunt(context.Background(), 1, 10_000, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("violated:", caught.Invariant)
	for _, a := range caught.Schedule.Actions {
		fmt.Println(a.Kind)
	}
	same := caught.Schedule.Run(sim.Builtin(), sim.Options{Monitor: true})
	fmt.Println("on the built-in implementation all hold:", same.Violated == 0)
	// Output:
	// violated: belief-implies-ownership
	// tick
	// deliver
	// deliver
	// crash
	// restart
	// on the built-in implementation all hold: true
}

func ExampleMutant_Explored() {
	m, err := mutant.Find("restart-forgets-lease")
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := explore.Run(context.Background(), m.Explored())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Verdict, r.First.Invariant)
	fmt.Println("no schedule shorter than", len(r.Counterexample.Actions), "actions shows it")
	// Output:
	// violated belief-implies-ownership
	// no schedule shorter than 5 actions shows it
}
