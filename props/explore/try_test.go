package explore

import (
	"fencepost/props/sim"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	o := Default()
	if s := os.Getenv("C"); s != "" {
		o.Clients, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("M"); s != "" {
		o.Messages, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("B"); s != "" {
		o.Barrier = true
	}
	if s := os.Getenv("F"); s != "" {
		n, _ := strconv.Atoi(s)
		o.Faults |= Faults(n)
	}
	o.MaxStates = 300_000_000
	begin := time.Now()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	x := r.Found
	el := time.Since(begin)
	fmt.Println(x.States, x.Transitions, x.Depth, x.Complete, x.Bounded, x.Failed, x.FailDepth, el, "mem/state", float64(x.Memory)/float64(x.States), float64(x.Transitions)/el.Seconds()/1e6)
	for _, l := range x.Levels {
		fmt.Print(l.States, " ")
	}
	fmt.Println()
	for k, n := range x.Total() {
		if n > 0 {
			fmt.Print(sim.Kind(k), " ", n, "; ")
		}
	}
	fmt.Println()
	fmt.Println(r.Verdict, r.First.Describe(sim.Names()))
	for _, c := range r.Clients {
		fmt.Println(c, c.States)
	}
	for _, c := range r.Sometimes {
		fmt.Println(c)
	}
	fmt.Println(r.Fair)
	if r.Counterexample != nil {
		for _, a := range r.Counterexample.Actions {
			fmt.Println(a)
		}
	}
	if os.Getenv("LEAD") != "" {
		l, err := o.Lead(t.Context(), r.Fair.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range l.Actions {
			fmt.Println(a)
		}
	}
}
