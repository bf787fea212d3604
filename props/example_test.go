package props_test

import (
	"fmt"
	"testing"

	"fencepost/impl/lease"
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

// mine is somebody's own storage: it admits what is not lower than the last
// token, as the rule says, in code of its own.
type mine struct{ sim.Storage }

func (mine) Handle(s *sim.StorageState, _ *lease.Record, req sim.StorageRequest) (model.Code, int64) {
	admitted := req.Op != model.OpRead && req.Token > 0 && req.Token >= s.Highest
	if admitted {
		s.Highest = req.Token
	}
	return s.Apply(req, admitted)
}

// Somebody else's storage, in place of the built-in one.
func ExampleCheck_yourOwn() {
	subject := sim.Builtin()
	subject.Name, subject.Storage = "mine", mine{}
	_ = func(t *testing.T) { // TestPropStorageSafety
		props.Check(t, props.For(model.StorageSafety, subject, sim.Raw()))
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
	// Output: barrier builtin raw terms fenced first
}
