package mutant

import (
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

func termBugs() []Mutant {
	overstays := model.SetOf(model.BeliefSafety, model.BeliefOwnership)
	return []Mutant{{
		Name:    "aba",
		Breaks:  "A grant under a new token is taken for a renewal: the lease was lost and regained inside one belief.",
		Seen:    "client-go leaderelection compares the holder's name, which is the same before and after, and not the number of transitions",
		May:     model.SetOf(model.Continuity),
		Actions: 9,
		Subject: sim.Subject{Client: aba{}},
		Explore: short(2, explore.Deletion),
		Steer:   func(_ *sim.Config, p *sim.Profile) { at(p, 20, sim.Delete) },
	}, {
		Name:    "release-before-work-stopped",
		Breaks:  "A resignation releases the lease at once, although the work under it has not stopped.",
		Seen:    "client-go ReleaseOnCancel: its documentation warns of two processes on the critical path (issue 728)",
		May:     model.SetOf(model.BeliefOwnership),
		Actions: 7,
		Subject: sim.Subject{Client: releaseBeforeWorkStopped{}},
		Explore: with(explore.Work),
	}, {
		Name:    "renewal-outlives-leader",
		Breaks:  "A leader that resigns stops leading, but whatever renews its lease does not: the lease is held and nobody leads.",
		Seen:    "Redisson issue 2714 (the watchdog renews on after an interrupt), etcd issue 17470 (a session kept alive after its user is gone)",
		May:     model.SetOf(model.Availability),
		Actions: 5,
		Subject: sim.Subject{Client: renewalOutlivesLeader{}, Layout: sim.Layout{Client: means(sim.MeansGrant)}},
	}, {
		Name:    "resign-same-incarnation",
		Breaks:  "After a resignation it campaigns under the same identity: it gets the token that it gave up, and its delayed release frees what it believes to hold.",
		Seen:    "home-made Redis locks whose value is the host's name: an unlock on its way frees the next lock of the same host",
		May:     overstays | model.SetOf(model.Continuity, model.Availability),
		Actions: 13,
		Subject: sim.Subject{Client: resignSameIncarnation{}},
	}, {
		Name:    "no-barrier",
		Breaks:  "The barrier is sent but not waited for: it leads before the storage knows its token.",
		Seen:    "fencing where the storage learns a token from the leader's first write: until then the zombie of Kleppmann (2016) still writes",
		May:     model.SetOf(model.Barrier),
		Actions: 17,
		Subject: sim.Subject{Client: noBarrier{}},
		Explore: func(o *explore.Options) { o.TTL, o.Barrier, o.Faults = 1, true, explore.Writes|explore.Loss },
	}, {
		Name:    "barrier-not-retried",
		Breaks:  "A barrier that gets lost is not sent again: it renews for ever and never leads.",
		Seen:    "one-shot initialisation calls after winning an election",
		May:     model.SetOf(model.Availability),
		Actions: 7,
		Subject: sim.Subject{Client: barrierNotRetried{}},
		Explore: func(o *explore.Options) { o.Barrier = true },
	}, {
		Name:    "token-laundering",
		Breaks:  "A writer reads the token from the lease just before it writes, and so a stale one writes with its successor's.",
		Seen:    "fencing helpers that fetch the current token for each write instead of keeping that of the term",
		May:     model.SetOf(model.Attribution),
		Actions: 10,
		// Whose the token of a lease is that nobody holds matters to its writes.
		Subject: sim.Subject{Client: tokenLaundering{}, Layout: sim.Layout{Unsound: sim.Irrelevance}},
		Explore: short(1, 0),
	}, {
		Name:    "restart-resumes-lease",
		Breaks:  "A new process resumes the term that its predecessor had stored.",
		Seen:    "Kubernetes before pull request 58302: with the host's name as identity a restarted process kept the lease of the one before",
		May:     model.SetOf(model.BeliefSafety, model.BeliefOwnership, model.Continuity),
		Actions: 10,
		Subject: sim.Subject{Client: restartResumesLease{}},
		Explore: with(explore.ClientCrash),
	}, {
		Name:    "shared-identity",
		Breaks:  "All processes campaign under one identity: to the store the second is a retry of the first.",
		Seen:    "MetalLB pull request 140: all speakers had one identity and all became leader; Kubernetes issue 61151",
		May:     model.SetOf(model.BeliefSafety, model.BeliefOwnership, model.Continuity),
		Actions: 12,
		Subject: sim.Subject{Client: sharedIdentity{}, Layout: sim.Layout{Unsound: sim.IncarnationRanks}},
	}}
}

type aba struct{ sim.Client }

// Receive adopts the new token without ending the term under the old one.
func (r aba) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	setState(c, func(s *lease.ClientState) {
		if rep.Code == lease.CodeGranted && rep.Holder == s.Holder && s.Phase != lease.Campaigning && rep.Token > s.Token && now.Boot < s.Deadline {
			s.Token = rep.Token
		}
	})
	return r.Client.Receive(c, now, rep)
}

type releaseBeforeWorkStopped struct{ sim.Client }

// Resign sends the release that should wait for the work to stop.
func (r releaseBeforeWorkStopped) Resign(c *sim.ClientState, now sim.Clocks) lease.Requests {
	was := c.State().Phase
	out := r.Client.Resign(c, now)
	if s := c.State(); s.Phase == lease.Stopping && was != lease.Stopping {
		out.Store = lease.Request{Op: lease.OpRelease, Holder: s.Holder, Token: s.Token, Sent: now.Boot}
	}
	return out
}

// renewalOutlivesLeader has the tenure that it renews on in Who and N[0].
type renewalOutlivesLeader struct{ sim.Client }

func (renewalOutlivesLeader) instead(c *sim.ClientState, out lease.Requests) lease.Requests {
	if out.Store.Op == lease.OpRelease {
		c.Scratch.Who, c.Scratch.N[0] = out.Store.Holder, int64(out.Store.Token)
		out.Store = lease.Request{}
	}
	return out
}

// Resign ends belief and leaves the lease to whatever renews it.
func (r renewalOutlivesLeader) Resign(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.instead(c, r.Client.Resign(c, now))
}

// EndWork does what Resign left.
func (r renewalOutlivesLeader) EndWork(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.instead(c, r.Client.EndWork(c, now))
}

// Tick renews the old tenure where it should campaign for a new one.
func (r renewalOutlivesLeader) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	out := r.Client.Tick(c, now)
	if out.Store.Op == lease.OpAcquire && c.Scratch.Who.Node != "" {
		out.Store.Op, out.Store.Holder, out.Store.Token = lease.OpRenew, c.Scratch.Who, lease.Token(c.Scratch.N[0])
	}
	return out
}

// Receive lets a refusal stop the renewals.
func (r renewalOutlivesLeader) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	if rep.Holder == c.Scratch.Who && rep.Op == lease.OpRenew && rep.Code != lease.CodeGranted {
		c.Scratch = sim.Scratch{}
	}
	return r.Client.Receive(c, now, rep)
}

type resignSameIncarnation struct{ sim.Client }

func (resignSameIncarnation) again(c *sim.ClientState, out lease.Requests) lease.Requests {
	if out.Store.Op == lease.OpRelease {
		setState(c, func(s *lease.ClientState) { s.Holder = out.Store.Holder })
	}
	return out
}

// Resign keeps the identity under which it releases.
func (r resignSameIncarnation) Resign(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.again(c, r.Client.Resign(c, now))
}

// EndWork keeps it too.
func (r resignSameIncarnation) EndWork(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.again(c, r.Client.EndWork(c, now))
}

type noBarrier struct{ sim.Client }

// Receive leads as soon as the fence request is on its way.
func (r noBarrier) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	out := r.Client.Receive(c, now, rep)
	setState(c, func(s *lease.ClientState) {
		if s.Phase == lease.Fencing {
			s.Phase = lease.Leading
		}
	})
	return out
}

type barrierNotRetried struct{ sim.Client }

// Receive never makes the fence request due again.
func (r barrierNotRetried) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	out := r.Client.Receive(c, now, rep)
	setState(c, func(s *lease.ClientState) {
		if s.Phase == lease.Fencing {
			s.NextFence = sim.Forever
		}
	})
	return out
}

type tokenLaundering struct{ sim.Client }

// Write takes whatever token the lease carries, and looks at no deadline: the
// token is fresh, after all.
func (tokenLaundering) Write(c *sim.ClientState, _ sim.Clocks, current *lease.Record) (lease.Token, bool) {
	return current.Token, c.State().Phase == lease.Leading
}

type restartResumesLease struct{ sim.Client }

// Start goes on where the old process led, with a new countdown.
func (r restartResumesLease) Start(cfg lease.Config, holder lease.Holder, now sim.Clocks, old *sim.ClientState) sim.ClientState {
	c := r.Client.Start(cfg, holder, now, old)
	if old != nil && old.State().Phase == lease.Leading {
		s := old.State()
		s.Working = false
		s.Deadline, s.NextSend = now.Boot+cfg.SafeWindow(), now.Boot
		c.SetState(s)
	}
	return c
}

type sharedIdentity struct{ sim.Client }

// Start gives every process the first identity of the first client.
func (r sharedIdentity) Start(cfg lease.Config, _ lease.Holder, now sim.Clocks, old *sim.ClientState) sim.ClientState {
	return r.Client.Start(cfg, lease.Holder{Node: sim.Names().Of(sim.ClientNode(0)), Seq: 1}, now, old)
}
