package linearizability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func TestXRates(t *testing.T) {
	for _, early := range []int64{0, simTTL / 20, simTTL / 3} {
		res := map[string]int{}
		var total, worst time.Duration
		maxSteps := 0
		for seed := range uint64(100) {
			s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 5, ops: 500, unknown: 0.05, never: 0.5, early: early}
			h := s.history()
			m := Model{Name: ModelFencepost}
			start := time.Now()
			r := "holds"
			for _, fam := range families(m) {
				parts, err := divide(&h, fam, Options{Model: m}, h.spans())
				if err != nil {
					t.Fatal(err)
				}
				for i := range parts {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					f := newFrontier(ctx, &h, &parts[i].p, DefaultMemory, 1<<40)
					x := f.run()
					cancel()
					maxSteps = max(maxSteps, f.steps)
					if x == porcupine.Unknown {
						r = "unknown"
						fmt.Println(seed, fam.name, f.stopped, len(f.queue), len(f.unknown))
					} else if x == porcupine.Illegal && r != "unknown" {
						r = "violated"
					}
				}
			}
			d := time.Since(start)
			total += d
			worst = max(worst, d)
			res[r]++
		}
		fmt.Println(early, res, total/100, worst, maxSteps)
	}
}
