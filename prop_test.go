// The properties of fencepost, each over well-behaved clients under chaos and
// over raw ill-behaved requests: go test -run Prop.
package fencepost_test

import (
	"testing"

	"fencepost/model"
	"fencepost/props"
	"fencepost/props/mutant"
	"fencepost/props/scenario"
	"fencepost/props/sim"
	"fencepost/testdata"
)

// TestPropSchedules replays every schedule in testdata: one that expects none,
// and fails, is red.
func TestPropSchedules(t *testing.T) {
	all, err := scenario.Load(testdata.Schedules)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			subject, err := mutant.Subject(s.Subject)
			if err == nil {
				err = scenario.Check(s, subject)
			}
			if err != nil {
				t.Errorf("%v; see: go run ./cmd/fencepost scenarios run %s", err, s.Name)
			}
		})
	}
}

// property checks one invariant of the built-in implementation.
func property(t *testing.T, v model.Invariant) {
	for _, profile := range []sim.Profile{sim.Chaos(), sim.Raw()} {
		t.Run(profile.Name, func(t *testing.T) {
			props.Check(t, props.For(v, sim.Builtin(), profile))
		})
	}
}

func TestPropTokenMonotonicity(t *testing.T) { property(t, model.TokenMonotonicity) }
func TestPropStorageSafety(t *testing.T)     { property(t, model.StorageSafety) }
func TestPropBeliefSafety(t *testing.T)      { property(t, model.BeliefSafety) }
func TestPropBeliefOwnership(t *testing.T)   { property(t, model.BeliefOwnership) }
func TestPropContinuity(t *testing.T)        { property(t, model.Continuity) }
func TestPropLinearizability(t *testing.T)   { property(t, model.Linearizability) }
func TestPropDurability(t *testing.T)        { property(t, model.Durability) }
func TestPropAvailability(t *testing.T)      { property(t, model.Availability) }
func TestPropBarrier(t *testing.T)           { property(t, model.Barrier) }
func TestPropAttribution(t *testing.T)       { property(t, model.Attribution) }

// TestPropModel compares every answer and every visible state with the
// sequential specifications, in lockstep.
func TestPropModel(t *testing.T) { property(t, model.Lockstep) }

// FuzzProp lets the native fuzzer choose the schedules; the first byte chooses
// the invariant.
func FuzzProp(f *testing.F) {
	for v := range model.Invariants() {
		seed := []byte{byte(v)}
		for i := range 8 * 40 {
			seed = append(seed, byte(i*int(v)))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		v := model.Invariant(1 + int(data[0])%int(model.Lockstep))
		props.CheckBytes(t, props.For(v, sim.Builtin(), sim.Raw()), data[1:])
	})
}
