package mutant

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

func beliefBugs() []Mutant {
	overstays := model.SetOf(model.BeliefSafety, model.BeliefOwnership)
	return []Mutant{{
		Name:    "countdown-from-reply",
		Breaks:  "The countdown runs from the arrival of a reply, not from the send of the request it answers.",
		Seen:    "client-go leaderelection: the RenewDeadline of the next round starts only after the previous renewal has returned",
		May:     overstays,
		Actions: 7,
		Subject: sim.Subject{Client: countdownFromReply{}},
	}, {
		Name:    "countdown-from-latest-send",
		Breaks:  "The countdown runs from the latest request sent, whichever of them the reply answers.",
		Seen:    "home-made renewal loops that keep one time of sending while several requests are on their way",
		May:     overstays,
		Actions: 10,
		Subject: sim.Subject{Client: countdownFromLatestSend{}, Layout: sim.Layout{Client: means(sim.MeansInstant)}},
		Explore: short(2, 0),
	}, {
		Name:    "granted-ttl-ignored",
		Breaks:  "The store grants less than was asked for, and the countdown is that of what was asked for.",
		Seen:    "etcd answers a LeaseGrant with a TTL of the server's choice, which a caller may overlook",
		May:     overstays,
		Actions: 5,
		Subject: sim.Subject{Client: grantedTTLIgnored{}, Store: stingy{}},
	}, {
		Name:    "drift-margin-zero",
		Breaks:  "The window is the whole TTL: nothing is taken off for drift.",
		Seen:    "Redis locks that act for the whole TTL of the key; Gray and Cheriton (1989) already take the clock's error off the term",
		May:     overstays,
		Actions: 6,
		Subject: sim.Subject{Client: driftMarginZero{}},
	}, {
		Name:    "off-by-one",
		Breaks:  "It leads at the deadline, not only before it.",
		Seen:    "any pair of checks where one side says now > expiry and the other now >= expiry",
		May:     overstays,
		Actions: 5,
		Subject: sim.Subject{Client: offByOne{}},
	}, {
		Name:    "hung-call",
		Breaks:  "Losing is noticed only when a call returns: while a renewal is outstanding belief does not end.",
		Seen:    "Kubernetes before pull request 65094: a renewal without a timeout of its own blocked the loop that checks the deadline, and another leader came (also issue 44887)",
		May:     model.SetOf(model.BeliefOwnership),
		Actions: 7,
		Subject: sim.Subject{Client: hungCall{}, Layout: sim.Layout{Client: means(sim.MeansInstant)}},
		Explore: short(2, 0),
	}, {
		Name:    "belief-is-a-flag",
		Breaks:  "Belief is a flag that the loop clears: between two turns of the loop it outlives the deadline.",
		Seen:    "client-go LeaderElector.IsLeader compares the last observed holder and looks at no clock",
		May:     model.SetOf(model.BeliefOwnership),
		Actions: 5,
		Subject: sim.Subject{Client: beliefIsAFlag{}},
	}, {
		Name:    "refusal-is-retryable",
		Breaks:  "A refused renewal is an error to retry, with a whole window to retry in: it leads on, or again, after it was told that it lost.",
		Seen:    "Redisson issue 2037: the watchdog ignored that a renewal had found no lock, and renewed for ever",
		May:     model.SetOf(model.BeliefSafety, model.BeliefOwnership, model.Continuity),
		Actions: 19,
		Subject: sim.Subject{Client: refusalIsRetryable{}},
		Explore: short(2, 0),
	}, {
		Name:    "late-reply-revives-term",
		Breaks:  "A reply is taken before the deadline is looked at: a renewal that comes too late revives a term that has ended.",
		Seen:    "CURATOR-696: a LeaderLatch that reconnects takes its old node for valid and leads again",
		May:     model.SetOf(model.Continuity),
		Actions: 9,
		// A revived term counts from when its renewal was sent, however long ago.
		Subject: sim.Subject{Client: lateReplyRevives{}, Layout: sim.Layout{Unsound: sim.Saturation}},
		Explore: short(2, 0),
	}, {
		Name:    "work-outlives-term",
		Breaks:  "The term ends, but nobody stops the work that was begun under it.",
		Seen:    "Redisson: a watchdog whose renewal fails only logs it, and the thread works on (pull request 7254 adds a listener)",
		May:     model.SetOf(model.BeliefOwnership),
		Actions: 6,
		Subject: sim.Subject{Client: workOutlivesTerm{}},
		Explore: short(2, explore.Work),
	}, {
		Name:    "monotonic-clock",
		Breaks:  "Time is read from a clock that stands still while the machine is suspended.",
		Seen:    "Go issue 24595: time.Now and timers use CLOCK_MONOTONIC, which does not count suspended time",
		May:     overstays,
		Actions: 15,
		Subject: sim.Subject{Client: onClock{}, Layout: sim.Layout{ClientClock: sim.MonotonicClock}},
		Explore: short(2, explore.Suspension),
	}, {
		Name:    "belief-on-wall-clock",
		Breaks:  "Time is read from the wall clock, which jumps.",
		Seen:    "Kleppmann (2016) on Redis: expiry by gettimeofday, so that a step of the clock moves it",
		May:     overstays | model.SetOf(model.Continuity, model.Availability),
		Actions: 9,
		// What is long past comes back when the clock jumps.
		Subject: sim.Subject{Client: onClock{wall: true}, Layout: sim.Layout{ClientClock: sim.WallClock, Unsound: sim.Saturation}},
		Explore: short(2, explore.WallJumps),
	}}
}

// setState changes what a client remembers.
func setState(c *sim.ClientState, change func(*lease.ClientState)) {
	s := c.State()
	change(&s)
	c.SetState(s)
}

type countdownFromReply struct{ sim.Client }

// Receive takes the time of arrival for that of sending.
func (r countdownFromReply) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	rep.Sent = now.Boot
	return r.Client.Receive(c, now, rep)
}

type countdownFromLatestSend struct{ sim.Client }

// Tick keeps the latest time of sending in N[0], plus one so that zero is none.
func (r countdownFromLatestSend) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	out := r.Client.Tick(c, now)
	if out.Store.Op != lease.OpNone {
		c.Scratch.N[0] = int64(now.Boot) + 1
	}
	return out
}

// Receive counts from there, whatever rep answers.
func (r countdownFromLatestSend) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	if rep.Holder == c.State().Holder && rep.Op != lease.OpFence {
		rep.Sent = time.Duration(c.Scratch.N[0] - 1)
	}
	return r.Client.Receive(c, now, rep)
}

type grantedTTLIgnored struct{ sim.Client }

// Receive takes every grant for one of all that was asked for.
func (r grantedTTLIgnored) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	rep.TTL = sim.Forever
	return r.Client.Receive(c, now, rep)
}

type driftMarginZero struct{ sim.Client }

// Start takes the clocks for true and the margin for needless.
func (r driftMarginZero) Start(cfg lease.Config, holder lease.Holder, now sim.Clocks, old *sim.ClientState) sim.ClientState {
	cfg.MaxDriftRate, cfg.SafetyMargin = 0, 0
	return r.Client.Start(cfg, holder, now, old)
}

type offByOne struct{ sim.Client }

// Receive sets the deadline one nanosecond late: to lead before that is to
// lead at the deadline.
func (r offByOne) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	before := c.State().Deadline
	out := r.Client.Receive(c, now, rep)
	setState(c, func(s *lease.ClientState) {
		if s.Phase != lease.Campaigning && s.Deadline != before {
			s.Deadline++
		}
	})
	return out
}

// hungCall waits for each renewal that it sends as leader. The incarnation
// that waits is in Who, the time of sending in N[0].
type hungCall struct{ sim.Client }

func (hungCall) hangs(c *sim.ClientState) bool {
	s := c.State()
	return s.Phase >= lease.Leading && c.Scratch.Who == s.Holder
}

// Tick does nothing while the call is outstanding: the loop stands in it.
func (r hungCall) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	if r.hangs(c) {
		return lease.Requests{}
	}
	out := r.Client.Tick(c, now)
	if out.Store.Op == lease.OpRenew && c.State().Phase == lease.Leading {
		c.Scratch.Who, c.Scratch.N[0] = out.Store.Holder, int64(now.Boot)
	}
	return out
}

// Receive lets the call return, and only then is the deadline looked at.
func (r hungCall) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	if r.hangs(c) {
		if rep.Op != lease.OpRenew || rep.Holder != c.Scratch.Who || int64(rep.Sent) != c.Scratch.N[0] {
			return lease.Requests{}
		}
		c.Scratch = sim.Scratch{}
	}
	return r.Client.Receive(c, now, rep)
}

// Acting goes on as long as the call does.
func (r hungCall) Acting(c *sim.ClientState, now sim.Clocks) bool {
	return r.hangs(c) || r.Client.Acting(c, now)
}

// Ends is never while the call is outstanding.
func (r hungCall) Ends(c *sim.ClientState, now sim.Clocks, suspended bool) time.Duration {
	if r.hangs(c) {
		return sim.Forever
	}
	return r.Client.Ends(c, now, suspended)
}

// Write believes as long as the call is outstanding.
func (r hungCall) Write(c *sim.ClientState, now sim.Clocks, current *lease.Record) (lease.Token, bool) {
	if r.hangs(c) {
		return c.State().Token, c.State().Phase == lease.Leading
	}
	return r.Client.Write(c, now, current)
}

type beliefIsAFlag struct{ sim.Client }

// Acting looks at the phase, which a tick changes, and not at the deadline.
func (beliefIsAFlag) Acting(c *sim.ClientState, _ sim.Clocks) bool {
	return c.State().Phase >= lease.Leading
}

// Ends is never by itself.
func (beliefIsAFlag) Ends(*sim.ClientState, sim.Clocks, bool) time.Duration { return sim.Forever }

// Write looks at the flag.
func (beliefIsAFlag) Write(c *sim.ClientState, _ sim.Clocks, _ *lease.Record) (lease.Token, bool) {
	return c.State().Token, c.State().Phase == lease.Leading
}

// refusalIsRetryable has its window in N[0].
type refusalIsRetryable struct{ sim.Client }

// Start keeps the window, which is how long a retry may take.
func (r refusalIsRetryable) Start(cfg lease.Config, holder lease.Holder, now sim.Clocks, old *sim.ClientState) sim.ClientState {
	c := r.Client.Start(cfg, holder, now, old)
	c.Scratch.N[0] = int64(cfg.SafeWindow())
	return c
}

// Receive lets the term go on for a window while a refused renewal is retried.
func (r refusalIsRetryable) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	s := c.State()
	if rep.Op == lease.OpRenew && rep.Code != lease.CodeGranted && rep.Holder == s.Holder && rep.Asked == s.Token && s.Phase == lease.Leading {
		s.Deadline = now.Boot + time.Duration(c.Scratch.N[0])
		c.SetState(s)
		return lease.Requests{}
	}
	return r.Client.Receive(c, now, rep)
}

type lateReplyRevives struct{ sim.Client }

// Receive takes the reply as if it had come before the deadline.
func (r lateReplyRevives) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	if s := c.State(); s.Phase != lease.Campaigning {
		now.Boot = min(now.Boot, s.Deadline-1)
	}
	return r.Client.Receive(c, now, rep)
}

// workOutlivesTerm runs nothing else once its term is over, until its work has
// stopped.
type workOutlivesTerm struct{ sim.Client }

func (workOutlivesTerm) overdue(c *sim.ClientState, now sim.Clocks) bool {
	s := c.State()
	return s.Working && s.Phase >= lease.Leading && now.Boot >= s.Deadline
}

// Tick does not get to run.
func (r workOutlivesTerm) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	if r.overdue(c, now) {
		return lease.Requests{}
	}
	return r.Client.Tick(c, now)
}

// Receive does not get to run.
func (r workOutlivesTerm) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	if r.overdue(c, now) {
		return lease.Requests{}
	}
	return r.Client.Receive(c, now, rep)
}

// Resign does not get to run.
func (r workOutlivesTerm) Resign(c *sim.ClientState, now sim.Clocks) lease.Requests {
	if r.overdue(c, now) {
		return lease.Requests{}
	}
	return r.Client.Resign(c, now)
}

// Acting goes on as long as the work does.
func (r workOutlivesTerm) Acting(c *sim.ClientState, now sim.Clocks) bool {
	return r.overdue(c, now) || r.Client.Acting(c, now)
}

// Ends is never while there is work.
func (r workOutlivesTerm) Ends(c *sim.ClientState, now sim.Clocks, suspended bool) time.Duration {
	if c.State().Working {
		return sim.Forever
	}
	return r.Client.Ends(c, now, suspended)
}

// onClock reads the monotonic clock, or the wall clock, for every instant.
type onClock struct {
	sim.Client
	wall bool
}

func (r onClock) read(now sim.Clocks) sim.Clocks {
	if r.wall {
		now.Boot = now.Wall
	} else {
		now.Boot = now.Mono
	}
	return now
}

// Start and the rules below are those of the client, on the wrong clock.
func (r onClock) Start(cfg lease.Config, holder lease.Holder, now sim.Clocks, old *sim.ClientState) sim.ClientState {
	return r.Client.Start(cfg, holder, r.read(now), old)
}

func (r onClock) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.Client.Tick(c, r.read(now))
}

func (r onClock) Receive(c *sim.ClientState, now sim.Clocks, rep lease.Reply) lease.Requests {
	return r.Client.Receive(c, r.read(now), rep)
}

func (r onClock) Resign(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.Client.Resign(c, r.read(now))
}

func (r onClock) BeginWork(c *sim.ClientState, now sim.Clocks) bool {
	return r.Client.BeginWork(c, r.read(now))
}

func (r onClock) EndWork(c *sim.ClientState, now sim.Clocks) lease.Requests {
	return r.Client.EndWork(c, r.read(now))
}

func (r onClock) Acting(c *sim.ClientState, now sim.Clocks) bool {
	return r.Client.Acting(c, r.read(now))
}

// Ends is never while the monotonic clock stands still.
func (r onClock) Ends(c *sim.ClientState, now sim.Clocks, suspended bool) time.Duration {
	if suspended && !r.wall {
		return sim.Forever
	}
	return r.Client.Ends(c, r.read(now), suspended)
}

func (r onClock) Write(c *sim.ClientState, now sim.Clocks, current *lease.Record) (lease.Token, bool) {
	return r.Client.Write(c, r.read(now), current)
}

// stingy is a correct store that grants half of what is asked for.
type stingy struct{ sim.Store }

// Handle says what it grants.
func (r stingy) Handle(s *sim.StoreState, now sim.Clocks, lockDelay time.Duration, req lease.Request) lease.Reply {
	req.TTL /= 2
	return r.Store.Handle(s, now, lockDelay, req)
}
