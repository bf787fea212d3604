package judge

import (
	"fencepost/model"
	"fencepost/props/sim"
)

// Exercise is something that puts an invariant to the test, and how often it
// happened.
type Exercise struct {
	What string
	N    int64
}

// Exercised says what put an invariant to the test. Where one of them never
// happened, that the invariant held says nothing.
func Exercised(v model.Invariant, c *sim.Counts) []Exercise {
	refused := c.Answers[model.OpRenew][model.CodeLapsed] + c.Answers[model.OpRenew][model.CodeLost]
	released := c.Answers[model.OpRelease][model.CodeReleased]
	reads := c.Answers[model.OpRead][model.CodeValue]
	switch v {
	case model.TokenMonotonicity:
		return []Exercise{{"takeovers", c.Takeovers}, {"releases", released}, {"store restarts", c.StoreRestarts}, {"copies handled", c.Copies}}
	case model.StorageSafety:
		return []Exercise{{"stale requests refused", c.StaleRefused}, {"writes landed", c.Landed}, {"storage restarts", c.Storage}}
	case model.BeliefSafety:
		return []Exercise{{"terms", c.Terms}, {"ended by deadline", c.StepDown[model.ReasonLapsed]}, {"takeovers", c.Takeovers}}
	case model.BeliefOwnership:
		return []Exercise{{"terms", c.Terms}, {"renewals lost", c.RenewalsLost}, {"terms that survived one", c.Survived}}
	case model.Continuity:
		return []Exercise{{"terms", c.Terms}, {"renewals refused", refused}, {"client restarts", c.ClientRestarts}}
	case model.Linearizability:
		return []Exercise{{"takeovers", c.Takeovers}, {"writes landed", c.Landed}, {"reads", reads}, {"copies handled", c.Copies}}
	case model.Durability:
		return []Exercise{{"writes landed", c.Landed}, {"reads", reads}, {"storage restarts", c.Storage}}
	case model.Availability:
		return []Exercise{{"calms", c.Calms}, {"terms", c.Terms}, {"store restarts", c.StoreRestarts}}
	case model.Barrier:
		return []Exercise{{"terms fenced first", c.Fencing}, {"failed there", c.BarrierFailed}, {"stale requests refused", c.StaleRefused}}
	case model.Attribution:
		return []Exercise{{"writes landed", c.Landed}, {"takeovers", c.Takeovers}}
	case model.Lockstep:
		n := int64(0)
		for op := range c.Answers {
			for code := range c.Answers[op] {
				n += c.Answers[op][code]
			}
		}
		return []Exercise{{"answers compared", n}, {"store restarts", c.StoreRestarts}, {"renewals refused", refused}, {"stale requests refused", c.StaleRefused}}
	}
	return nil
}

// Untested is what an invariant needs to be put to the test and never met in
// c; empty if it met all.
func Untested(v model.Invariant, c *sim.Counts) string {
	for _, x := range Exercised(v, c) {
		if x.N == 0 {
			return x.What
		}
	}
	return ""
}
