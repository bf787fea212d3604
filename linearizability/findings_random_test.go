package linearizability

import (
	"os"
	"testing"
)

// TestNoFindingBlamesAStoreThatAnOrderExcuses: where some order of the answers
// is legal, no check beside it may say that the store or the storage broke a rule.
func TestNoFindingBlamesAStoreThatAnOrderExcuses(t *testing.T) {
	n := uint64(3_000)
	if os.Getenv("FENCEPOST_LONG") != "" {
		n = 100_000
	}
	found := make(map[string]int)
	for _, o := range []oracle{leaseOracle(), storageOracle()} {
		legal := 0
		for seed := range n {
			h := o.history(seed)
			v, err := Check(t.Context(), h, Options{Model: Model{Name: o.model}})
			if err != nil {
				t.Fatal(err)
			}
			holds := v.Linearizable() == Holds
			if holds {
				legal++
			}
			for _, f := range v.Findings {
				switch {
				case f.Violates && f.Blame != BlameClient && holds:
					h.WriteJSON(t.Output())
					t.Errorf("%s seed %d: %s", o.model, seed, f)
				case f.Violates:
					found[f.Check]++
				}
			}
		}
		if legal < int(n)/4 {
			t.Errorf("%s: %d of %d histories are legal: too few to show anything", o.model, legal, n)
		}
	}
	t.Log(found)
	if len(found) < 5 {
		t.Errorf("only %v was found in what is illegal", found)
	}
}
