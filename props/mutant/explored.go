package mutant

import (
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// Explored are the worlds in which every interleaving shows the bug: those of
// [explore.Default] unless the bug has to be led to. What is judged there is
// what m is hunted by, with two exceptions:
//
//   - Linearizability looks at whole histories, which exploration does not
//     keep. A bug that breaks nothing else is judged by lockstep instead, which
//     tells of it at its first odd answer.
//   - Availability is judged only if May has nothing else that exploration can
//     judge: a calm is one action with many steps in it, and would hide what the
//     other invariants tell step by step.
func (m Mutant) Explored() explore.Options {
	o := explore.Default()
	o.Subject = m.Subject
	o.Judged = m.Judged() &^ model.SetOf(model.Linearizability)
	others := m.May &^ model.SetOf(model.Linearizability)
	if others == 0 {
		o.Judged |= model.SetOf(model.Lockstep)
	}
	if others != model.SetOf(model.Availability) {
		o.Judged &^= model.SetOf(model.Availability)
	}
	if m.Explore != nil {
		m.Explore(&o)
	}
	return o
}

// with switches faults on.
func with(f explore.Faults) func(*explore.Options) {
	return func(o *explore.Options) { o.Faults |= f }
}

// short does too, and has leases of so few ticks, where the bug lies deep.
func short(ttl int, f explore.Faults) func(*explore.Options) {
	return func(o *explore.Options) { o.TTL, o.Faults = ttl, o.Faults|f }
}

// means is the layout of a Scratch whose first numbers mean ms.
func means(ms ...sim.Meaning) (out [4]sim.Meaning) {
	copy(out[:], ms)
	return out
}
