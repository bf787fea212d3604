package script

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost/props/kit"
)

// batch plays about n random steps, in scripts of 100.
func batch(open Open, v variant, seed uint64, n int) (Coverage, *Result) {
	var c Coverage
	for i := range uint64(n / 100) {
		r := RunRandom(open, v.o, rand.NewPCG(seed, i), 100)
		c.Add(r)
		if r.Breach != nil {
			return c, &r
		}
	}
	return c, nil
}

func TestRandomScriptsPassRightStores(t *testing.T) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			c, failed := batch(v.open, v, 1, 20_000)
			if failed != nil {
				t.Fatalf("%v:\n%s", failed.Breach.Rule, strings.Join(Story(*failed), "\n"))
			}
			if missed := c.Missed(v.o); missed != nil {
				t.Errorf("it never reached %s", strings.Join(missed, ", "))
			}
			if c.NoOps*100 > c.Steps {
				t.Errorf("%d of %d steps had no effect", c.NoOps, c.Steps)
			}
			t.Log(c.String())
		})
	}
}

func TestRandomScriptsAreTheSameEveryTime(t *testing.T) {
	one, two := RunRandom(memory, variants()[0].o, rand.NewPCG(3, 4), 300), RunRandom(memory, variants()[0].o, rand.NewPCG(3, 4), 300)
	for i := range one.Lines {
		if one.Lines[i] != two.Lines[i] {
			t.Fatalf("line %d: %+v, then %+v", i, one.Lines[i], two.Lines[i])
		}
	}
}

// BenchmarkRandom measures what it costs to be watched, too.
func BenchmarkRandom(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("watched=%v", watched), func(b *testing.B) {
			open := Open(memory)
			if watched {
				open = kit.Watched(kit.NewWatch(kit.Silence), open)
			}
			steps := 0
			for i := uint64(0); b.Loop(); i++ {
				r := RunRandom(open, variants()[0].o, rand.NewPCG(1, i), 100)
				steps += len(r.Lines)
			}
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
