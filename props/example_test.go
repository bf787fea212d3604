package props_test

import (
	"fmt"
	"testing"

	"fencepost/model"
	"fencepost/props"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// The whole of a property test.
func ExampleCheck() {
	_ = func(t *testing.T) { // TestPropBeliefSafety
		props.Check(t, props.For(model.BeliefSafety, sim.Builtin(), sim.Chaos()))
	}
	// Output:
}

// The whole of a fuzz target.
func ExampleCheckBytes() {
	_ = func(f *testing.F) { // FuzzBeliefSafety
		f.Fuzz(func(t *testing.T, data []byte) {
			props.CheckBytes(t, props.For(model.BeliefSafety, sim.Builtin(), sim.Raw()), data)
		})
	}
	// Output:
}

// Storage that checks no token, explained.
func ExampleExplain() {
	unfenced, err := mutant.Subject("mutant:unfenced")
	if err != nil {
		fmt.Println(err)
		return
	}
	s := &sim.Schedule{
		Config: sim.Config{Clients: 1},
		Actions: []sim.Action{
			{ID: 1, Kind: sim.Fence, Who: sim.RawNode(0), Token: 2},
			{ID: 2, Kind: sim.Deliver, Msg: model.Msg{Action: 1}},
			{ID: 3, Kind: sim.Write, Who: sim.RawNode(1), Token: 1, Value: 7},
			{ID: 4, Kind: sim.Deliver, Msg: model.Msg{Action: 3}},
		},
	}
	s.Config.Lease.TTL = 1e9
	fmt.Println(props.Explain(s, unfenced, model.SetOf(model.StorageSafety)) != "")
	fmt.Println(props.Explain(s, sim.Builtin(), model.SetOf(model.StorageSafety)) == "")
	// Output:
	// true
	// true
}

func ExampleFor() {
	p := props.For(model.Barrier, sim.Builtin(), sim.Raw())
	fmt.Println(p.Invariant, p.Subject.Name, p.Profile.Name, p.Reached(&sim.Counts{}))
	// Output: barrier builtin raw a term that waited for the barrier
}
