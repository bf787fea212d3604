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
	// Rare is something that a few hundred random schedules may well not meet.
	Rare bool
}

// enoughForRare is after how many schedules something rare must have happened:
// the rarest is met about once in 40.
const enoughForRare = 1000

// Exercised says what put an invariant to the test. Where one of them never
// happened, that the invariant held says nothing.
func Exercised(v model.Invariant, c *sim.Counts) []Exercise {
	refused := c.Answers[model.OpRenew][model.CodeLapsed] + c.Answers[model.OpRenew][model.CodeLost]
	released := c.Answers[model.OpRelease][model.CodeReleased]
	reads := c.Answers[model.OpRead][model.CodeValue]
	switch v {
	case model.TokenMonotonicity:
		return []Exercise{{What: "takeovers", N: c.Takeovers}, {What: "releases", N: released}, {What: "store restarts", N: c.StoreRestarts}, {What: "copies handled", N: c.Copies}}
	case model.StorageSafety:
		return []Exercise{{What: "stale requests refused", N: c.StaleRefused}, {What: "writes landed", N: c.Landed}, {What: "storage restarts", N: c.Storage}}
	case model.BeliefSafety:
		return []Exercise{{What: "terms", N: c.Terms}, {What: "ended by deadline", N: c.StepDown[model.ReasonLapsed]}, {What: "takeovers", N: c.Takeovers}}
	case model.BeliefOwnership:
		return []Exercise{{What: "terms", N: c.Terms}, {What: "renewals lost", N: c.RenewalsLost}, {What: "terms that survived one", N: c.Survived, Rare: true}}
	case model.Continuity:
		return []Exercise{{What: "terms", N: c.Terms}, {What: "renewals refused", N: refused}, {What: "client restarts", N: c.ClientRestarts}}
	case model.Linearizability:
		return []Exercise{{What: "takeovers", N: c.Takeovers}, {What: "writes landed", N: c.Landed}, {What: "reads", N: reads}, {What: "copies handled", N: c.Copies}}
	case model.Durability:
		return []Exercise{{What: "writes landed", N: c.Landed}, {What: "reads", N: reads}, {What: "storage restarts", N: c.Storage}}
	case model.Availability:
		return []Exercise{{What: "calms", N: c.Calms}, {What: "terms", N: c.Terms}, {What: "store restarts", N: c.StoreRestarts}}
	case model.Barrier:
		return []Exercise{{What: "terms fenced first", N: c.Fencing}, {What: "failed there", N: c.BarrierFailed}, {What: "stale requests refused", N: c.StaleRefused}}
	case model.Attribution:
		return []Exercise{{What: "writes landed", N: c.Landed}, {What: "takeovers", N: c.Takeovers}}
	case model.Lockstep:
		n := int64(0)
		for op := range c.Answers {
			for code := range c.Answers[op] {
				n += c.Answers[op][code]
			}
		}
		return []Exercise{{What: "answers compared", N: n}, {What: "store restarts", N: c.StoreRestarts}, {What: "renewals refused", N: refused}, {What: "stale requests refused", N: c.StaleRefused}}
	}
	return nil
}

// Untested is what an invariant needs to be put to the test and never met in
// c; empty if it met all.
func Untested(v model.Invariant, c *sim.Counts) string {
	for _, x := range Exercised(v, c) {
		if x.N == 0 && (!x.Rare || c.Runs >= enoughForRare) {
			return x.What
		}
	}
	return ""
}
