package script_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost/props/mutant"
	"fencepost/props/script"
)

// Of all wrong stores that requests one after the other convict, random ones
// come to the length of the script that a person would write.
func TestMinimizedScriptsOfTheCatalogueAreShort(t *testing.T) {
	convicted := 0
	for _, w := range mutant.WrongStores() {
		seeds := uint64(3)
		for seed := range seeds {
			for i := range uint64(50) {
				r := script.RunRandom(w.Open, w.Options, rand.NewPCG(seed, i), 60)
				if r.Breach == nil {
					continue
				}
				convicted++
				steps := make([]script.Step, len(r.Lines))
				for i, l := range r.Lines {
					steps[i] = l.Step
				}
				small := script.Run(w.Open, w.Options, script.Minimize(w.Open, w.Options, steps, r.Breach.Rule))
				story := script.Story(small)
				t.Logf("%s, seed %d: %d of %d steps\n%s", w.Name, seed, len(small.Lines), len(steps), strings.Join(story, "\n"))
				if small.Breach == nil || len(small.Lines) > 5 || len(story) > 10 {
					t.Errorf("%s, seed %d: %d steps", w.Name, seed, len(small.Lines))
				}
				break
			}
		}
	}
	if convicted < 100 { // some fail only among several callers, or for odd names
		t.Errorf("only %d were convicted", convicted)
	}
}
