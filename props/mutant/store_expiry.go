package mutant

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

func expiryBugs() []Mutant {
	tokens := model.SetOf(model.TokenMonotonicity)
	early := model.SetOf(model.BeliefSafety, model.BeliefOwnership)
	stolen := model.SetOf(model.TokenMonotonicity, model.BeliefOwnership)
	return []Mutant{{
		Name:    "retry-keeps-old-expiry",
		Breaks:  "A repeated acquire of the holder is granted, but the lease ends when it would have ended without.",
		Seen:    "home-made locks that answer \"already yours\" to a retry whose first answer was lost",
		May:     early,
		Actions: 8,
		Subject: sim.Subject{Store: keepsOldExpiry{op: lease.OpAcquire}},
	}, {
		Name:    "renewal-not-applied",
		Breaks:  "A renewal is granted, but the lease ends when it would have ended without.",
		Seen:    "etcd issue 14758: a keep-alive answered with a new TTL while the lease was being revoked",
		May:     early,
		Actions: 9,
		Subject: sim.Subject{Store: keepsOldExpiry{op: lease.OpRenew}},
	}, {
		Name:    "renewal-shortens",
		Breaks:  "A renewal sets the expiry also where that is earlier: one with a shorter TTL shortens the running lease.",
		Seen:    "node-redlock issue 26: extend overwrites what is left of the TTL, as PEXPIRE does",
		May:     early,
		Actions: 8,
		Subject: sim.Subject{Store: renewalShortens{}, Client: shortRenewals{}},
		Explore: func(o *explore.Options) { o.TTL, o.Drift, o.Faults = 2, 1, explore.Loss|explore.Duplication },
	}, {
		Name:    "late-duplicate-shortens",
		Breaks:  "The expiry is that of the renewal which arrives last, counted from its sending: a late copy of an old one shortens the running lease.",
		Seen:    "lock records with an expiry stamped by the sender, where the last write wins",
		May:     early,
		Actions: 13,
		Subject: sim.Subject{Store: lateDuplicateShortens{}, Layout: sim.Layout{StoreN: means(sim.MeansSending, sim.MeansInstant)}},
		Explore: func(o *explore.Options) {
			o.Clients, o.TTL, o.Drift, o.Faults = 1, 2, 1, explore.Loss|explore.Duplication
		},
	}, {
		Name:    "ttl-whole-seconds",
		Breaks:  "The store keeps TTLs in whole seconds and grants them as asked: half a second is missing.",
		Seen:    "client-go writes LeaseDurationSeconds as int(LeaseDuration / time.Second)",
		May:     early,
		Actions: 5,
		Subject: sim.Subject{Store: ttlWholeSeconds{}},
	}, {
		Name:    "wall-clock-expiry",
		Breaks:  "The expiry is computed on the client's wall clock and judged on the store's.",
		Seen:    "ShedLock, whose documentation asks for synchronized clocks (issue 263), before usingDbTime",
		May:     early | model.SetOf(model.Availability),
		Actions: 9,
		// The store keeps nothing, but it reads when requests were sent; and what
		// that is to it depends on how far its clock is from the sender's.
		Subject: sim.Subject{Store: wallClockExpiry{}, Client: stampsWallClock{}, Layout: sim.Layout{StoreN: means(sim.MeansSending), Unsound: sim.TimeShift}},
		Explore: short(1, 0),
	}, {
		Name:    "renewed-at-expiry",
		Breaks:  "At the instant of expiry the lease is free to all others and still its holder's to renew.",
		Seen:    "any store that checks expiry < now in one place and expiry <= now in another",
		May:     tokens,
		Actions: 11,
		Subject: sim.Subject{Store: renewedAtExpiry{}},
	}, {
		Name:    "renew-revives",
		Breaks:  "A renewal brings a tenure back that has lapsed or was released, under its old token.",
		Seen:    "redlock-rb issue 36: extend succeeds on a lock that has expired; Kubernetes allows it too",
		May:     tokens,
		Actions: 12,
		Subject: sim.Subject{Store: renewRevives{}},
	}, {
		Name:    "phantom-waiter",
		Breaks:  "A waiter's own lease runs from when it queued, and it is told of success with the whole TTL all the same.",
		Seen:    "etcd issue 9921: Lock succeeded although the lease of the waiter had expired in the queue",
		May:     early,
		Actions: 14,
		Subject: sim.Subject{Store: phantomWaiter{}, Layout: sim.Layout{StoreN: means(sim.MeansInstant)}},
		Explore: short(2, 0),
	}, {
		Name:    "release-not-applied",
		Breaks:  "A release is answered but the lease stays held until it lapses.",
		Seen:    "Kubernetes issue 112023: a leader of client-go that stops sometimes leaves its lock behind",
		May:     model.SetOf(model.Availability, model.TokenMonotonicity),
		Actions: 8,
		Subject: sim.Subject{Store: releaseNotApplied{}},
	}, {
		Name:    "lock-delay-skipped",
		Breaks:  "The lock delay is not kept: a lapsed lease is granted at once.",
		Seen:    "Consul's lock-delay of 15s, which a session may set to zero, and other stores do not have",
		May:     model.SetOf(model.Linearizability),
		Actions: 6,
		Subject: sim.Subject{Store: lockDelaySkipped{}},
		Explore: func(o *explore.Options) { o.LockDelay = 1 },
		Steer:   func(c *sim.Config, _ *sim.Profile) { c.Lease.LockDelay = c.Lease.TTL },
	}, {
		Name:    "restart-absolute-expiry",
		Breaks:  "A restarted store compares the expiry it kept with a clock that begins anew: the lease of a dead holder hardly ever ends.",
		Seen:    "etcd issue 9888 is the cousin that comes of avoiding it: each new leader starts all TTLs anew, and a lease may never end",
		May:     model.SetOf(model.Availability),
		Actions: 15,
		// How long the lease lasts depends on how long the old clock had run.
		Subject: sim.Subject{Store: restartAbsoluteExpiry{}, Layout: sim.Layout{Unsound: sim.TimeShift | sim.Saturation}},
		Explore: func(o *explore.Options) { o.TTL, o.Faults = 1, explore.StoreCrash|explore.ClientCrash },
	}, {
		Name:    "restart-forgets-lease",
		Breaks:  "A restarted store remembers the counter but not the holder, and grants a lease that is held.",
		Seen:    "Redis without fsync: the documentation of distributed locks asks to keep a restarted node away for the longest TTL",
		May:     early,
		Actions: 6,
		Subject: sim.Subject{Store: restartForgetsLease{}},
		Explore: with(explore.StoreCrash),
	}, {
		Name:    "lapse-forgotten-at-restart",
		Breaks:  "A lapse that somebody was told of is not durable: after a restart the lapsed holder holds the lease again.",
		Seen:    "stores that write grants to disk and leave lapses to a timer",
		May:     model.SetOf(model.Linearizability),
		Actions: 11,
		Subject: sim.Subject{Store: lapseForgottenAtRestart{}},
		Explore: short(2, explore.StoreCrash),
	}, {
		Name:    "answer-before-durable",
		Breaks:  "An answer leaves the store before its last change is durable: a crash loses a grant that a client relies on.",
		Seen:    "Redis failover with asynchronous replication: its documentation shows how two clients get one lock",
		May:     stolen,
		Actions: 8,
		Subject: sim.Subject{Store: answerBeforeDurable{}, Layout: sim.Layout{StoreN: means(sim.MeansGrant), Unsound: sim.TokenRanks}},
		Explore: with(explore.StoreCrash),
	}, {
		Name:    "stale-read",
		Breaks:  "A read of the holder is answered from a copy that lags by one change of holder.",
		Seen:    "reads from a follower or a deposed leader; Consul's default consistency mode documents stale reads after a change of leader",
		May:     model.SetOf(model.Linearizability),
		Actions: 6,
		Subject: sim.Subject{Store: staleRead{}},
	}}
}

// keepsOldExpiry does so for one kind of request.
type keepsOldExpiry struct {
	sim.Store
	op lease.Op
}

// Handle answers as if the expiry had moved.
func (r keepsOldExpiry) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	running, expires := s.Held(now.Boot), s.Expires
	rep := r.Store.Handle(s, now, lockDelay, req)
	if running && rep.Op == r.op && rep.Code == lease.CodeGranted {
		s.Expires = expires
	}
	return rep
}

type renewalShortens struct{ sim.Store }

// Handle sets the expiry of a renewal whatever it was before.
func (r renewalShortens) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Op == lease.OpRenew && rep.Code == lease.CodeGranted {
		s.Expires, rep.Remaining = now.Boot+req.TTL, req.TTL
	}
	return rep
}

// shortRenewals is a correct client that asks for half the TTL when it renews.
type shortRenewals struct{ sim.Client }

// Tick asks for less, and so will not believe in more.
func (r shortRenewals) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	out := r.Client.Tick(c, now)
	if out.Store.Op == lease.OpRenew {
		out.Store.TTL /= 2
	}
	return out
}

// lateDuplicateShortens has the latest sending by the holder Who in N[0], on
// that one's clock, and in N[1] when it arrived, on the store's; each plus one,
// so that zero is none.
type lateDuplicateShortens struct{ volatile }

// Handle counts the TTL of a request that was overtaken from its sending.
func (r lateDuplicateShortens) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Code != lease.CodeGranted {
		return rep
	}
	memo := &s.Scratch
	switch latest, arrived := time.Duration(memo.N[0]-1), time.Duration(memo.N[1]-1); {
	case memo.Who != req.Holder || req.Sent >= latest:
		memo.Who, memo.N[0], memo.N[1] = req.Holder, int64(req.Sent)+1, int64(now.Boot)+1
	case rep.Op == lease.OpRenew:
		ahead := arrived - latest // the store's clock, as far as it can know
		s.Expires = req.Sent + ahead + req.TTL
	}
	return rep
}

type ttlWholeSeconds struct{ sim.Store }

// Handle rounds the TTL down, and does not say so.
func (r ttlWholeSeconds) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	asked := req.TTL
	req.TTL = asked.Truncate(time.Second)
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Code == lease.CodeGranted && (rep.Op == lease.OpAcquire || rep.Op == lease.OpRenew) {
		rep.TTL = asked
	}
	return rep
}

type wallClockExpiry struct{ sim.Store }

// Handle adds the TTL to the wall clock of the sender, and looks at its own to
// see whether that time has come.
func (r wallClockExpiry) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Code == lease.CodeGranted {
		s.Expires = req.Sent + req.TTL - (now.Wall - now.Boot)
	}
	return rep
}

// stampsWallClock is a correct client whose requests say when they were sent
// by its wall clock, as that stood when the process started: N[0] is by how
// much it was ahead of the boot clock.
type stampsWallClock struct{ sim.Client }

// Start reads the wall clock.
func (r stampsWallClock) Start(cfg lease.Config, holder lease.Holder, now sim.Clocks, old *sim.ClientState) sim.ClientState {
	c := r.Client.Start(cfg, holder, now, old)
	c.Scratch.N[0] = int64(now.Wall - now.Boot)
	return c
}

// Tick stamps.
func (r stampsWallClock) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	out := r.Client.Tick(c, now)
	if out.Store.Op != lease.OpNone {
		out.Store.Sent += time.Duration(c.Scratch.N[0])
	}
	return out
}

// Receive takes the stamp back.
func (r stampsWallClock) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	if rep.Op != lease.OpFence {
		rep.Sent -= time.Duration(c.Scratch.N[0])
	}
	return r.Client.Receive(c, now, rep)
}

type renewedAtExpiry struct{ sim.Store }

// Handle lets the holder renew at the instant at which others may acquire.
func (r renewedAtExpiry) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if req.Op == lease.OpRenew && req.TTL > 0 && req.Holder == s.Holder && req.Token == s.Token && s.Status == lease.Running && now.Boot == s.Expires {
		s.Expires++
	}
	return r.Store.Handle(s, now, lockDelay, req)
}

type renewRevives struct{ sim.Store }

// Handle finds the old tenure good enough to renew, held or not.
func (r renewRevives) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	if req.Op == lease.OpRenew && req.TTL > 0 && req.Holder == s.Holder && req.Token == s.Token && !s.Held(now.Boot) {
		s.Status, s.Expires = lease.Running, now.Boot+1
	}
	return r.Store.Handle(s, now, lockDelay, req)
}

// phantomWaiter has the candidate that waits in Who, and in N[0] when its
// lease ends, which runs since it queued.
type phantomWaiter struct{ volatile }

// Handle grants to the waiter the lease that it queued with.
func (r phantomWaiter) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	memo := &s.Scratch
	won := memo.Who == req.Holder && changesOwner(s, now, lockDelay, req)
	rep := r.Store.Handle(s, now, lockDelay, req)
	switch {
	case won:
		s.Expires = time.Duration(memo.N[0])
		*memo = sim.Scratch{}
	case rep.Op == lease.OpAcquire && rep.Code == lease.CodeHeld && memo.Who != req.Holder:
		memo.Who, memo.N[0] = req.Holder, int64(now.Boot+req.TTL)
	}
	return rep
}

type releaseNotApplied struct{ sim.Store }

// Handle answers a release and forgets about it.
func (r releaseNotApplied) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	before := s.Record
	rep := r.Store.Handle(s, now, lockDelay, req)
	if rep.Code == lease.CodeReleased {
		s.Record = before
	}
	return rep
}

type lockDelaySkipped struct{ sim.Store }

// Handle knows of no lock delay.
func (r lockDelaySkipped) Handle(s *sim.StoreState, now sim.Clocks, _ time.Duration, req lease.Request) lease.Reply {
	return r.Store.Handle(s, now, 0, req)
}

type restartAbsoluteExpiry struct{ sim.Store }

// Restart leaves the expiry as the old clock had it.
func (restartAbsoluteExpiry) Restart(*sim.StoreState, sim.Clocks) {}

type restartForgetsLease struct{ sim.Store }

// Restart keeps the counter alone.
func (restartForgetsLease) Restart(s *sim.StoreState, _ sim.Clocks) { s.Record = s.Delete() }

type lapseForgottenAtRestart struct{ sim.Store }

// Restart takes every tenure that was not released for running.
func (r lapseForgottenAtRestart) Restart(s *sim.StoreState, now sim.Clocks) {
	if s.Status == lease.Lapsed {
		s.Status = lease.Running
	}
	r.Store.Restart(s, now)
}

// answerBeforeDurable has what is on disk in Who and N: token, TTL, status,
// and 1 in N[3] while that lags behind.
type answerBeforeDurable struct{ sim.Store }

// Handle lets the disk lag behind by one change.
func (r answerBeforeDurable) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	d := s.Durable
	rep := r.Store.Handle(s, now, lockDelay, req)
	if s.Durable != d {
		s.Scratch.Who, s.Scratch.N = d.Holder, [4]int64{int64(d.Token), int64(d.TTL), int64(d.Status), 1}
	}
	return rep
}

// Restart finds what is on disk.
func (r answerBeforeDurable) Restart(s *sim.StoreState, now sim.Clocks) {
	if n := s.Scratch.N; n[3] == 1 {
		s.Durable = lease.Durable{Token: lease.Token(n[0]), Holder: s.Scratch.Who, TTL: time.Duration(n[1]), Status: lease.Status(n[2])}
	}
	s.Scratch = sim.Scratch{}
	r.Store.Restart(s, now)
}

// staleRead has what a reader sees in Who and N: code, token and what remains.
type staleRead struct{ volatile }

// Handle answers reads with what they would have been told before the latest
// change.
func (r staleRead) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	_, before := s.Record.Handle(now.Boot, lockDelay, lease.Request{Op: lease.OpGet})
	rep := r.Store.Handle(s, now, lockDelay, req)
	switch {
	case rep.Code == lease.CodeReleased || rep.Code == lease.CodeGranted && rep.Op == lease.OpAcquire:
		s.Scratch.Who, s.Scratch.N = before.Current, [4]int64{int64(before.Code), int64(before.Token), int64(before.Remaining)}
	case rep.Op == lease.OpGet && s.Scratch.N[0] != 0:
		n := s.Scratch.N
		rep.Code, rep.Token, rep.Current, rep.Remaining = lease.Code(n[0]), lease.Token(n[1]), s.Scratch.Who, time.Duration(n[2])
	}
	return rep
}
