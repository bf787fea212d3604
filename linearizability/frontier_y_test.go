package linearizability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestYLook(t *testing.T) {
	for _, seed := range []uint64{17, 18, 30, 48, 35} {
		s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 5, ops: 500, unknown: 0.05, never: 0.5}
		h := s.history()
		m := Model{Name: ModelLease}
		parts, err := divide(&h, families(m)[0], Options{Model: m}, h.spans())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		f := newFrontier(ctx, &h, &parts[0].p, DefaultMemory, 1<<40)
		f.run()
		cancel()
		fmt.Println(seed, f.stopped, "of", len(f.actions), "ways", len(f.now.list), "next", len(f.next.list), "seen", len(f.seen.list))
		for _, i := range f.unknown {
			fmt.Println("  ", f.actions[i].call, describeOp(&h, f.actions[i].Op))
		}
		states := map[string]int{}
		for _, w := range f.now.list {
			k := ""
			for _, i := range f.known {
				if w.has(f.slot[i]) {
					k += fmt.Sprint(i, " ")
				}
			}
			states[parts[0].p.machine.show(w.state)+" | "+k]++
		}
		n := 0
		for k, c := range states {
			fmt.Println("    ", c, k)
			if n++; n > 12 {
				break
			}
		}
		fmt.Println("   distinct", len(states))
	}
}
