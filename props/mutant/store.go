package mutant

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

func ownershipBugs() []Mutant {
	tokens := model.SetOf(model.TokenMonotonicity)
	early := model.SetOf(model.BeliefSafety, model.BeliefOwnership)
	stolen := model.SetOf(model.TokenMonotonicity, model.BeliefOwnership)
	return []Mutant{{
		Name:    "token-reused-after-release",
		Breaks:  "A release gives its token back, and the next holder gets the same.",
		Seen:    "counters kept in the lease object, which a clean release deletes",
		May:     tokens,
		Actions: 9,
		Subject: sim.Subject{Store: tokenReusedAfterRelease{}, Layout: sim.Layout{Unsound: sim.TokenRanks}},
	}, {
		Name:    "token-reset-at-restart",
		Breaks:  "The lease is durable but the counter is not: the first new ownership after a restart of the store gets token 1.",
		Seen:    "a Redis INCR as token generator without persistence",
		May:     tokens,
		Actions: 10,
		Subject: sim.Subject{Store: tokenResetAtRestart{}},
		Explore: short(2, explore.StoreCrash),
		Steer: func(c *sim.Config, _ *sim.Profile) {
			c.FirstToken = 1 // else a restart before the first grant would be enough
		},
	}, {
		Name:    "token-not-raised-for-same-node",
		Breaks:  "A node that takes its own lapsed or released lease again keeps the token.",
		Seen:    "client-go leaderelection raises LeaderTransitions, which some take for a fencing token, only if the holder's name changes",
		May:     tokens,
		Actions: 6,
		Subject: sim.Subject{Store: tokenNotRaisedForSameNode{}},
	}, {
		Name:    "non-atomic-issuer",
		Breaks:  "Free or held, and the next token, are read in one step and written in another: two requests at one instant both get the lease, under equal tokens.",
		Seen:    "home-made Redis locks that GET and then SET instead of SET NX",
		May:     stolen,
		Actions: 6,
		Subject: sim.Subject{Store: nonAtomicIssuer{}, Layout: sim.Layout{StoreN: means(sim.MeansInstant)}},
	}, {
		Name:    "token-drawn-early",
		Breaks:  "A waiter draws its token when it first asks, and is granted under it later: tokens do not come in the order of ownership.",
		Seen:    "locks that number their waiters and use the number as token",
		May:     tokens,
		Actions: 11,
		Subject: sim.Subject{Store: tokenDrawnEarly{}, Layout: sim.Layout{StoreN: means(sim.MeansToken, sim.MeansToken), Unsound: sim.TokenRanks}},
		Explore: short(2, 0),
	}, {
		Name:    "token-per-renewal",
		Breaks:  "Each renewal raises the token: the tenure that the leader believes in is another's, its own.",
		Seen:    "a record's revision used as token, such as the resourceVersion of a Kubernetes Lease, which each renewal changes",
		May:     model.SetOf(model.BeliefOwnership),
		Actions: 7,
		Subject: sim.Subject{Store: tokenPerRenewal{}},
	}, {
		Name:    "delete-resets-tokens",
		Breaks:  "The counter is part of the lease object: whoever deletes the one starts the other at 1 again.",
		Seen:    "etcd's key version, which a deletion sets to zero; Kubernetes' LeaderTransitions, which go with the Lease object",
		May:     tokens,
		Actions: 7,
		Subject: sim.Subject{Store: deleteResetsTokens{}, Layout: sim.Layout{Unsound: sim.TokenRanks}},
		Explore: with(explore.Deletion),
		Steer:   func(_ *sim.Config, p *sim.Profile) { at(p, 20, sim.Delete) },
	}, {
		Name:    "renew-without-owner-check",
		Breaks:  "A renewal is granted to whoever sends it, while anybody holds the lease.",
		Seen:    "Redisson issue 597: the watchdog did not check that the lock still belonged to its owner",
		May:     stolen,
		Actions: 10,
		Subject: sim.Subject{Store: renewWithoutOwnerCheck{}},
		Explore: short(2, 0),
	}, {
		Name:    "release-without-owner-check",
		Breaks:  "A release frees the lease, whoever holds it.",
		Seen:    "Redis locks released by DEL: its documentation of distributed locks warns of them",
		May:     early,
		Actions: 6,
		Subject: sim.Subject{Store: releaseWithoutOwnerCheck{}},
		Explore: short(2, 0),
	}, {
		Name:    "reentrant-by-node",
		Breaks:  "The lease belongs to the node's name: another process of the node that asks is taken for the holder's retry.",
		Seen:    "Kubernetes issue 61151: hosts of one name, and so one identity, fought over the same work",
		May:     stolen,
		Actions: 9,
		Subject: sim.Subject{Store: reentrantByNode{}},
		Explore: with(explore.ClientCrash),
	}}
}

// changesOwner reports whether the correct rules would answer req with a new
// ownership.
func changesOwner(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) bool {
	_, rep := s.Record.Handle(now.Boot, lockDelay, req)
	return rep.Code == lease.CodeGranted && rep.Token > s.Token
}

// volatile is a store whose scratch memory a restart loses.
type volatile struct{ sim.Store }

// Restart loses what only the bug has in memory.
func (v volatile) Restart(s *sim.StoreState, now sim.Clocks) {
	s.Scratch = sim.Scratch{}
	v.Store.Restart(s, now)
}

type tokenReusedAfterRelease struct{ sim.Store }

// Handle takes the counter back at a release.
func (r tokenReusedAfterRelease) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Code == lease.CodeReleased {
		s.Token--
	}
	return rep
}

// tokenResetAtRestart has 1 in N[0] since a restart, until the next ownership.
type tokenResetAtRestart struct{ sim.Store }

// Restart finds the lease on disk, but not what comes after its token.
func (r tokenResetAtRestart) Restart(s *sim.StoreState, now sim.Clocks) {
	s.Scratch.N[0] = 1
	r.Store.Restart(s, now)
}

// Handle begins to count anew.
func (r tokenResetAtRestart) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if s.Scratch.N[0] == 1 && changesOwner(s, now, lockDelay, req) {
		s.Scratch.N[0] = 0
		s.Token = 0
	}
	return r.Store.Handle(s, now, lockDelay, req)
}

type tokenNotRaisedForSameNode struct{ sim.Store }

// Handle raises the counter only for another node.
func (r tokenNotRaisedForSameNode) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if s.Holder.Node == req.Holder.Node && changesOwner(s, now, lockDelay, req) {
		s.Token--
	}
	return r.Store.Handle(s, now, lockDelay, req)
}

// nonAtomicIssuer has the instant of the latest new ownership in N[0], plus
// one so that zero is none.
type nonAtomicIssuer struct{ volatile }

// Handle decides on an acquire by what it read before the grant of the same
// instant was written.
func (r nonAtomicIssuer) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if req.Op == lease.OpAcquire && s.Status == lease.Running && s.Holder != req.Holder && s.Scratch.N[0] == int64(now.Boot)+1 {
		s.Token--
		s.Status = lease.Free
	}
	if changesOwner(s, now, lockDelay, req) {
		s.Scratch.N[0] = int64(now.Boot) + 1
	}
	return r.Store.Handle(s, now, lockDelay, req)
}

// tokenDrawnEarly has the highest token drawn in N[0], and that of the waiter
// Who in N[1].
type tokenDrawnEarly struct{ volatile }

// Handle lets the first refused candidate draw a token, and grants under it
// whenever that one's turn comes.
func (r tokenDrawnEarly) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	memo := &s.Scratch
	memo.N[0] = max(memo.N[0], int64(s.Token))
	if changesOwner(s, now, lockDelay, req) {
		if memo.Who == req.Holder {
			s.Token = lease.Token(memo.N[1] - 1)
			memo.Who, memo.N[1] = lease.Holder{}, 0
		} else {
			s.Token = lease.Token(memo.N[0])
			memo.N[0]++
		}
	}
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Op == lease.OpAcquire && rep.Code == lease.CodeHeld && memo.Who.IsZero() {
		memo.N[0]++
		memo.Who, memo.N[1] = req.Holder, memo.N[0]
	}
	return rep
}

type tokenPerRenewal struct{ sim.Store }

// Handle raises the counter at each renewal.
func (r tokenPerRenewal) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Op == lease.OpRenew && rep.Code == lease.CodeGranted {
		s.Token++
		rep.Token = s.Token
	}
	return rep
}

type deleteResetsTokens struct{ sim.Store }

// Delete takes the counter away with the lease.
func (r deleteResetsTokens) Delete(s *sim.StoreState) bool {
	deleted := r.Store.Delete(s)
	if deleted {
		s.Record = lease.Record{}
	}
	return deleted
}

type renewWithoutOwnerCheck struct{ sim.Store }

// Handle renews in the holder's name, whoever asks.
func (r renewWithoutOwnerCheck) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	asked := req
	if req.Op == lease.OpRenew && s.Held(now.Boot) {
		req.Holder, req.Token = s.Holder, s.Token
	}
	rep := r.Store.Handle(s, now, lockDelay, req)
	rep.Holder, rep.Asked = asked.Holder, asked.Token
	return rep
}

type releaseWithoutOwnerCheck struct{ sim.Store }

// Handle releases in the holder's name, whoever asks.
func (r releaseWithoutOwnerCheck) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	asked := req
	if req.Op == lease.OpRelease && s.Held(now.Boot) {
		req.Holder, req.Token = s.Holder, s.Token
	}
	rep := r.Store.Handle(s, now, lockDelay, req)
	rep.Holder, rep.Asked = asked.Holder, asked.Token
	return rep
}

type reentrantByNode struct{ sim.Store }

// Handle takes a process of the holder's node for the holder.
func (r reentrantByNode) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if req.Op == lease.OpAcquire && req.TTL > 0 && req.Holder.Node == s.Holder.Node && s.Held(now.Boot) {
		s.Holder = req.Holder
	}
	return r.Store.Handle(s, now, lockDelay, req)
}
