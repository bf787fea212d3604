package props

import (
	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/sim"
)

// For is the property of an invariant on a subject, with what its schedules
// must reach for the check to mean anything.
func For(v model.Invariant, subject sim.Subject, profile sim.Profile) Property {
	p := Property{Invariant: v, Subject: subject, Profile: profile,
		Reached: func(c *sim.Counts) string { return judge.Untested(v, c) }}
	if v == model.Barrier {
		p.Config = func(c *sim.Config) { c.Lease.Barrier = true }
	}
	return p
}
