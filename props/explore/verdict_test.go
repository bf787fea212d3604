package explore

import (
	"testing"

	"fencepost/props/sim"
)

// The built-in implementation holds with and without each reduction: to the end
// where the worlds are still finite, and as deep as they go in reasonable time
// where they are not.
func TestTheVerdictIsTheSameWithoutEachReduction(t *testing.T) {
	small := Default()
	small.Messages, small.TTL = 1, 2
	with, err := Run(t.Context(), small)
	if err != nil || with.Verdict != Holds {
		t.Fatal(with.Verdict, err)
	}
	// Without time shift, saturation or ranks there is no end of worlds.
	finite := sim.Symmetry | sim.MessageOrder | sim.Irrelevance
	for _, r := range sim.AllReductions.All() {
		t.Run(r.String(), func(t *testing.T) {
			o := small
			if o.Reductions = sim.AllReductions &^ r; r&finite == 0 {
				o.MaxDepth = 9
			}
			got, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Found.Failed || r&finite != 0 && got.Verdict != Holds {
				t.Errorf("%v: %v", got.Verdict, got.Counterexample)
			}
			if r&finite != 0 && got.Found.States < with.Found.States {
				t.Errorf("%d states with it, %d without", with.Found.States, got.Found.States)
			}
			t.Logf("%d states, depth %d, %s", got.Found.States, got.Found.Depth, got.Found.Bounded)
		})
	}
}
