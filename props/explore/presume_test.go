package explore_test

import (
	"testing"

	"fencepost/props/explore"
	"fencepost/props/mutant"
)

// A fault in the built-in rules would be explored with all that Irrelevance
// takes for granted about them. None of the planted bugs is believed to hold
// when it is: the violation is found all the same, or two worlds that were taken
// for one are seen to part.
func TestAFaultInTheBuiltInRulesIsNotExploredAway(t *testing.T) {
	parted := 0
	for i, m := range mutant.All() {
		if (race || testing.Short()) && i%8 != 0 {
			continue
		}
		o := m.Explored()
		o.Presume, o.MaxStates, o.Workers = true, 100_000, 1
		r, err := explore.Run(t.Context(), o)
		if err != nil {
			t.Logf("%s: %v", m.Name, err)
			continue
		}
		if r.Parted != nil {
			parted++
		}
		if r.Verdict == explore.Holds || r.Verdict == explore.Unknown && r.Parted == nil {
			t.Errorf("%s: %v after %d states, and no worlds parted among %d", m.Name, r.Verdict, r.Found.States, r.Compared)
		}
		t.Logf("%s: %v, parted %v, %d states, %d compared", m.Name, r.Verdict, r.Parted != nil, r.Found.States, r.Compared)
	}
	t.Logf("%d parted", parted)
}
