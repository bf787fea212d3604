package props

import (
	"fencepost/model"
	"fencepost/props/sim"
)

// For is the property of an invariant on a subject, with what its schedules
// must reach for the check to mean anything.
func For(v model.Invariant, subject sim.Subject, profile sim.Profile) Property {
	p := Property{Invariant: v, Subject: subject, Profile: profile, Reached: reached[v]}
	if v == model.Barrier {
		p.Config = func(c *sim.Config) { c.Lease.Barrier = true }
	}
	return p
}

type need struct {
	what string
	of   func(*sim.Counts) int64
}

var (
	takeovers = need{"a takeover", func(c *sim.Counts) int64 { return c.Takeovers }}
	stale     = need{"a stale write refused", func(c *sim.Counts) int64 { return c.StaleRefused }}
	landed    = need{"a write landed", func(c *sim.Counts) int64 { return c.Landed }}
	terms     = need{"a term", func(c *sim.Counts) int64 { return c.Terms }}
	lapsed    = need{"a term ended by its deadline", func(c *sim.Counts) int64 { return c.StepDown[model.ReasonLapsed] }}
	copies    = need{"a copied message handled", func(c *sim.Counts) int64 { return c.Copies }}
	stores    = need{"a restart of the store", func(c *sim.Counts) int64 { return c.StoreRestarts }}
	storages  = need{"a restart of the storage", func(c *sim.Counts) int64 { return c.Storage }}
	clients   = need{"a restart of a client", func(c *sim.Counts) int64 { return c.ClientRestarts }}
	fencing   = need{"a term that waited for the barrier", func(c *sim.Counts) int64 { return c.Fencing }}
	calms     = need{"calm", func(c *sim.Counts) int64 { return c.Calms }}
	reads     = need{"a read answered", func(c *sim.Counts) int64 { return c.Answers[model.OpRead][model.CodeValue] }}
	renewals  = need{"a renewal refused", func(c *sim.Counts) int64 {
		return c.Answers[model.OpRenew][model.CodeLapsed] + c.Answers[model.OpRenew][model.CodeLost]
	}}
	releases = need{"a release", func(c *sim.Counts) int64 { return c.Answers[model.OpRelease][model.CodeReleased] }}
)

// reached says for each invariant what its schedules must have seen.
var reached = func() (r [model.Lockstep + 1]func(*sim.Counts) string) {
	for v, needs := range map[model.Invariant][]need{
		model.TokenMonotonicity: {takeovers, releases, stores, copies},
		model.StorageSafety:     {takeovers, stale, landed, storages},
		model.BeliefSafety:      {takeovers, lapsed, terms, copies, stores},
		model.BeliefOwnership:   {takeovers, lapsed, terms, copies, stores},
		model.Continuity:        {takeovers, terms, clients, renewals},
		model.Linearizability:   {takeovers, stale, landed, reads, copies},
		model.Durability:        {landed, reads, storages},
		model.Availability:      {calms, terms, stores},
		model.Barrier:           {fencing, takeovers, stale, landed},
		model.Attribution:       {takeovers, landed},
		model.Lockstep:          {takeovers, stale, stores, storages, renewals, releases, copies},
	} {
		r[v] = func(c *sim.Counts) string {
			for _, n := range needs {
				if n.of(c) == 0 {
					return n.what
				}
			}
			return ""
		}
	}
	return r
}()
