package electortest

import (
	"time"

	"fencepost/impl/lease"
)

const (
	saysProcesses = "Two processes never use one holder, also if they have one name, as those before and after a restart do: the store takes the second one's acquire for a retry of the first, and both lead. The nonce, drawn when a process starts, tells them apart."
	saysRelease   = "What is released, another client may lead under at once. So the release is sent when the work has ended, and not when it is told to end: work takes time to stop."
	saysOwnToken  = "A release names the holder and the token of the term that it ends, so that it can end no other."
	saysShutdown  = "When its context ends, a client releases what it holds, so that nobody has to wait until it lapses; Run returns, and leaves no goroutine behind, nor a belief."
	saysCarries   = "A renewal names the token that this holder was granted, so that the store can refuse it once somebody else has had the lease."
	saysCampaigns = "A candidate goes on campaigning until it is told to stop, whatever the store answers, or does not: an error is no reason to give up, and none to wait for ever."
	saysWaits     = "A candidate waits a while between two attempts, also after a refusal or an error: a store that is down, or a lease that is held, is not there sooner for being asked without pause."
	saysFence     = "Before it leads, a new leader fences its token at the storage and waits for the answer: until the storage has seen the token, writes of the leader before still land."
)

func storeStories(o Options) []story {
	list := []story{{
		name: "acquire/leads-when-free", read: readElector, judges: set(kindStory),
		says:   "A candidate for a lease that is free leads, and shows it.",
		scenes: []scene{freeLease},
	}, {
		name: "acquire/keeps-campaigning", read: readElector, judges: set(kindStory, kindLeft), says: saysCampaigns,
		scenes: []scene{refusedForLong, failingForLong, firstCallHangs, lockDelay, afterATerm},
	}, {
		name: "acquire/takes-over-after-lapse", read: readElector, judges: set(kindStory),
		says:   "When a leader has died its lease lapses, and a candidate that waits takes over soon after.",
		scenes: []scene{rivalDies},
	}, {
		name: "acquire/takes-over-after-release", read: readElector, judges: set(kindStory),
		says:   "When a leader releases the lease, a candidate that waits takes over soon after.",
		scenes: []scene{rivalLeaves},
	}, {
		name: "acquire/unknown-outcome-then-granted", read: readStore, judges: set(kindStory) | believes,
		says:   "An acquire that failed may have been granted all the same. A retry by the same holder gets the same token, one by another holder is refused until the lease lapses; either way the client leads in the end.",
		scenes: []scene{unknownAcquire},
	}, {
		name: "acquire/waits-between-attempts", read: readConfig, judges: set(kindFlood, kindStory), says: saysWaits, idle: true,
		scenes: []scene{failsAtOnce, refusesAtOnce},
	}, {
		name: "renew/in-time", read: readConfig, judges: set(kindStory, kindLeft),
		says:   "With a store that is well, a leader renews before its window ends, and so leads on for as long as it runs.",
		scenes: []scene{tenTTLs},
	}, {
		name: "renew/survives-a-lost-renewal", read: readConfig, judges: set(kindStory, kindLeft),
		says:   "A renewal that gets lost is no reason to stop: one is sent early enough in the window that a second can still be.",
		scenes: []scene{lostRenewals(lostRequest), lostRenewals(lostAnswer)},
	}, {
		name: "renew/carries-the-granted-token", read: readStore, judges: set(kindWrongRenew), says: saysCarries,
		scenes: []scene{secondTerm},
	}, {
		name: "release/after-the-work-has-ended", read: readElector, judges: set(kindEarlyRelease), says: saysRelease,
		scenes: []scene{slowToStop(10), slowToStop(60)},
	}, {
		name: "release/under-its-own-token", read: readStore, judges: set(kindWrongRelease), says: saysOwnToken,
		scenes: []scene{secondTerm},
	}, {
		name: "release/at-shutdown", read: readElector, judges: set(kindStory, kindStays, kindAfterRun), says: saysShutdown,
		scenes: []scene{stopWhileLeading, stopWhileWaiting, stopDuringACall},
	}}
	if o.Fences {
		list = append(list, story{
			name: "fence/before-leading", read: readFencer, judges: set(kindUnfenced, kindStory), says: saysFence,
			scenes: []scene{slowFence},
		})
	}
	return list
}

// stories are all of them, in the order of a client's life.
func stories(o Options) []story {
	s := storeStories(o)
	return append(append(s[:1:1], beliefStories(o)...), s[1:]...)
}

func freeLease(Options, time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) { w.awaitFirst() }
}

func refusedForLong(o Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.rivalHolds(2 * T)
		w.run(3*T + 1)
		w.awaitLeader(o.TakeoverWithin, "the rival's tenure has lapsed, and before that its requests were but refused")
	}
}

func failingForLong(o Options, T time.Duration) (setup, func(*world)) {
	down := true
	fate := func(*call) fate {
		if down {
			return cut(T)
		}
		return fate{}
	}
	return setup{fate: fate}, func(w *world) {
		w.run(2 * T)
		down = false
		w.tell("store", "is well from now on", "")
		w.awaitLeader(o.TakeoverWithin, "the store is well again after an outage, and the lease is free")
	}
}

func firstCallHangs(o Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
			if c.n == 0 {
				return fate{Lost: lostRequest, Hang: true}
			}
			return fate{}
		}}, func(w *world) {
			w.awaitLeader(T+o.TakeoverWithin, "the lease is free, and only the first call hangs; give each call a context with a timeout")
		}
}

func lockDelay(o Options, T time.Duration) (setup, func(*world)) {
	return setup{delay: T / 2}, func(w *world) {
		w.rivalAcquires()
		w.run(T*3/2 + 1)
		w.awaitLeader(o.TakeoverWithin, "the rival's tenure has lapsed, and the lock delay after it is over")
	}
}

func afterATerm(o Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		if !w.awaitFirst() {
			return
		}
		w.run(w.now() + T/20)
		w.deleteLease()
		w.rivalAcquires()
		w.run(w.now() + T + 1)
		w.awaitLeader(o.TakeoverWithin, "the rival that had the lease after it has let it lapse")
	}
}

func rivalDies(o Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.rivalAcquires()
		w.run(T)
		w.awaitLeader(o.TakeoverWithin, "the rival's tenure has lapsed")
	}
}

func rivalLeaves(o Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.rivalAcquires()
		w.run(T / 2)
		w.rivalReleases()
		w.awaitLeader(o.TakeoverWithin, "the rival has released the lease")
	}
}

func unknownAcquire(o Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
			if c.opens() {
				return fate{Lost: lostAnswer, Answer: T / 100}
			}
			return fate{}
		}}, func(w *world) {
			w.awaitLeader(T+o.TakeoverWithin, "only its first acquire failed")
			w.run(w.now() + 2*T)
		}
}

func failsAtOnce(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(*call) fate { return fate{Lost: lostRequest} }}, notTooOften(T)
}

func refusesAtOnce(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.rivalAcquires()
		notTooOften(T)(w)
	}
}

// notTooOften allows a call each thousandth of a TTL.
func notTooOften(T time.Duration) func(*world) {
	return func(w *world) {
		w.enough = func() bool { return w.calls > 1000 }
		w.run(T)
		w.enough = nil
		if w.calls > 1000 {
			w.misses("the client has called the store %d times within %v, and got nothing", w.calls, w.now())
		}
	}
}

func tenTTLs(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.oneTerm(10*T, "no call failed")
	}
}

func lostRenewals(half lost) scene {
	return func(_ Options, T time.Duration) (setup, func(*world)) {
		return setup{fate: func(c *call) fate {
			if c.claims() && c.claim%3 == 1 {
				return fate{Lost: half, Answer: T / 100}
			}
			return fate{}
		}}, func(w *world) { w.oneTerm(6*T, "no two renewals in a row failed") }
	}
}

// oneTerm asks that one term lasts for d.
func (w *world) oneTerm(d time.Duration, though string) {
	if !w.awaitFirst() {
		return
	}
	first := w.terms[0]
	w.enough = func() bool { return first.over }
	w.run(w.now() + d)
	w.enough = nil
	if first.over {
		w.misses("the client's term ended after %v, though %s", first.to-first.from, though)
	}
}

// secondTerm loses a term to a rival, and ends another by shutting down.
func secondTerm(o Options, T time.Duration) (setup, func(*world)) {
	return setup{first: 41}, func(w *world) {
		w.leadsFor(T / 2)
		w.deleteLease()
		w.rivalAcquires()
		w.run(w.now() + T)
		w.enough = w.leads
		w.run(w.now() + o.TakeoverWithin)
		w.enough = nil
		w.run(w.now() + T)
		w.stop(w.slots[0].now)
		w.run(w.now() + 2*T)
	}
}

// slowToStop tells a leader to stop whose work takes a while to, in percent of
// a TTL.
func slowToStop(percent time.Duration) scene {
	return func(_ Options, T time.Duration) (setup, func(*world)) {
		return setup{linger: T * percent / 100}, func(w *world) {
			w.leadsFor(T * 35 / 100)
			w.stop(w.slots[0].now)
			w.run(w.now() + 2*T)
		}
	}
}

func stopWhileLeading(o Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		if w.awaitFirst() {
			w.run(w.now() + T*35/100)
			w.shutDown()
		}
	}
}

func stopWhileWaiting(o Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.rivalAcquires()
		w.run(T * 35 / 100)
		w.shutDown()
	}
}

func stopDuringACall(o Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(*call) fate { return fate{Lost: lostRequest, Hang: true} }}, func(w *world) {
		w.run(T * 35 / 100)
		w.shutDown()
	}
}

// shutDown tells the client to stop, and asks that it leaves nothing behind.
func (w *world) shutDown() {
	p, T := w.slots[0].now, w.o.Config.TTL
	w.stop(p)
	w.enough = func() bool { return p.gone }
	w.run(w.now() + 2*T)
	w.enough = nil
	switch held := w.tenures[w.rec.Token]; {
	case w.breach != nil:
	case !p.gone:
		w.fail(kindStays, p, "the client has not returned from Run two TTLs after its context ended")
	case !w.o.NoRelease && held != nil && held.proc == p && held.heard && w.rec.Held(w.storeNow()):
		w.misses("the client has returned from Run and left the lease held until %v", w.when(held.expires))
	}
}

func slowFence(o Options, T time.Duration) (setup, func(*world)) {
	failed := false
	return setup{fate: func(c *call) fate {
			switch {
			case c.op != lease.OpFence:
				return fate{}
			case !failed:
				failed = true
				return cut(T)
			}
			return fate{Request: T / 20}
		}}, func(w *world) {
			w.awaitLeader(T+o.TakeoverWithin, "the lease is free, and the storage answers within a twentieth of a TTL")
		}
}
