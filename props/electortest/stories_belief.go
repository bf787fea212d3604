package electortest

import (
	"time"

	"fencepost/impl/lease"
)

const (
	saysRefusal     = "A renewal that is refused says that the lease is held no more, and that somebody else may lead already. Belief ends at once: it is no error to try again."
	saysGranted     = "A client leads only under a token that the store has granted to it, as the holder that it is: neither a refusal, nor a lock delay, nor an error is a grant."
	saysRevived     = "A term that has ended stays ended, whatever arrives later: its work was told to stop, and one token has one term, so that all that was written under it came from one."
	saysOneTerm     = "One term has one token. A lease that was lost and won again was somebody else's in between: the term ends, and another begins, as what was known before may no longer be so."
	saysIncarnation = "After each term a client campaigns as a new holder. Else a request of the old term that is still on its way (a release, a renewal) is taken for one of the new term."
)

func beliefStories(o Options) []story {
	list := []story{{
		name: "belief/only-what-was-granted", read: readStore, judges: believes, says: saysGranted,
		scenes: []scene{refusedForLong, lockDelay, failingForLong, unknownAcquire},
	}, {
		name: "belief/counts-from-the-send", read: readConfig, judges: believes,
		says:   "The store starts the TTL when it handles the request, and the client cannot know when that was: the answer may have been slow. So the window counts from the instant at which the request was sent.",
		scenes: []scene{slowAcquire, slowRenewal},
	}, {
		name: "belief/ends-while-a-call-hangs", read: readClient, judges: believes,
		says:   "A call may hang, and not return when its context ends: nothing that it would tell is awaited. The term ends by the clock, in a goroutine that makes no call.",
		scenes: []scene{hangingCalls},
	}, {
		name: "belief/ends-at-a-refusal", read: readClient, judges: set(kindTold), says: saysRefusal,
		scenes: []scene{lostToARival, lapsedEarly, deletedLease},
	}, {
		name: "belief/not-revived-by-a-late-answer", read: readClient, judges: set(kindRevived), says: saysRevived,
		scenes: []scene{lateRenewal},
	}, {
		name: "belief/one-term-one-token", read: readClient, judges: set(kindTwoTokens), says: saysOneTerm,
		scenes: []scene{lostAndRegained, lapsedAndRegained},
	}, {
		name: "belief/ends-with-a-fast-store-clock", read: readConfig, judges: believes,
		says:   "MaxDriftRate bounds how much slower the client's clock may run than the store's. The window is shorter than the TTL by that much, so that belief ends in time by the fastest such store.",
		scenes: []scene{fastFromTheStart, fastAfterAWhile},
	}, {
		name: "belief/late-grant-is-no-lead", read: readConfig, judges: believes, idle: true,
		says:   "An acquire whose answer comes after the window that it opens is of no use: the tenure may be over. The client does not lead on it, not even for a moment.",
		scenes: []scene{lateGrant},
	}, {
		name: "identity/new-incarnation-after-each-term", read: readHolder, judges: set(kindReused), says: saysIncarnation,
		scenes: []scene{threeTerms},
	}, {
		name: "identity/two-processes-differ", read: readHolder, judges: set(kindShared), says: saysProcesses,
		scenes: []scene{twoOfOneName},
	}}
	if !o.FullTTL {
		list = append(list, story{
			name: "belief/grant-with-a-shorter-ttl", read: readStore, judges: believes,
			says:   "A store may grant less than it was asked for, and says so in the grant: the window is that of the TTL granted.",
			scenes: []scene{shorterGrant},
		})
	}
	return list
}

func slowAcquire(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
		if c.opens() {
			return fate{Answer: T * 4 / 10}
		}
		return c.from(1, cut(T))
	}}, func(w *world) { w.run(3 * T) }
}

func slowRenewal(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
		if slow := (fate{Answer: T * 4 / 10}); c.op == lease.OpGet || c.claim == 1 {
			return c.from(1, slow)
		}
		return c.from(2, cut(T))
	}}, func(w *world) { w.run(3 * T) }
}

func hangingCalls(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
		return c.from(1, fate{Lost: lostRequest, Hang: true, Deaf: true})
	}}, func(w *world) { w.run(3 * T) }
}

func lostToARival(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.leadsFor(T / 20)
		w.deleteLease()
		w.rivalAcquires()
		w.run(w.now() + T)
	}
}

func deletedLease(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.leadsFor(T / 20)
		w.deleteLease()
		w.run(w.now() + T)
	}
}

func lapsedEarly(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.leadsFor(T / 20)
		w.jumpStore(T)
		w.run(w.now() + T)
	}
}

func lateRenewal(o Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
		if c.claims() && c.claim == 1 {
			// Answered when the first window is over, and this one is not.
			late := o.Config.SafeWindow() + T/10 - c.sent
			return fate{Answer: max(late, 0), Deaf: true}
		}
		return c.from(1, cut(T))
	}}, func(w *world) { w.run(2 * T) }
}

func lostAndRegained(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.leadsFor(T / 20)
		w.deleteLease()
		w.rivalAcquires()
		w.run(w.now() + T/10)
		w.rivalReleases()
		w.run(w.now() + 2*T)
	}
}

func lapsedAndRegained(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{}, func(w *world) {
		w.leadsFor(T / 20)
		w.jumpStore(T)
		w.run(w.now() + 2*T)
	}
}

func fastFromTheStart(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{store: rateFast, fate: func(c *call) fate { return c.from(1, cut(T)) }}, func(w *world) { w.run(2 * T) }
}

func fastAfterAWhile(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{store: rateFast, fate: func(c *call) fate { return c.from(4, cut(T)) }}, func(w *world) { w.run(6 * T) }
}

func shorterGrant(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
		if c.opens() {
			return fate{Percent: 50}
		}
		return c.from(1, cut(T))
	}}, func(w *world) { w.run(2 * T) }
}

func lateGrant(_ Options, T time.Duration) (setup, func(*world)) {
	return setup{fate: func(c *call) fate {
		if c.opens() {
			return fate{Answer: T * 11 / 10, Deaf: true}
		}
		return c.from(1, cut(T))
	}}, func(w *world) { w.run(3 * T) }
}

func threeTerms(o Options, T time.Duration) (setup, func(*world)) {
	down := false
	fate := func(*call) fate {
		if down {
			return cut(T)
		}
		return fate{}
	}
	return setup{fate: fate}, func(w *world) {
		again := T + o.TakeoverWithin
		next := func() {
			w.run(w.now() + T/2)
			w.enough = w.leads
			w.run(w.now() + again)
			w.enough = nil
		}
		next()
		w.jumpStore(T) // it lapses
		next()
		w.deleteLease() // it is lost
		w.rivalAcquires()
		next()
		down = true // it runs out
		w.run(w.now() + T)
		down = false
		next()
		w.run(w.now() + T)
	}
}

func twoOfOneName(o Options, T time.Duration) (setup, func(*world)) {
	return setup{clients: 2, sameName: true}, func(w *world) {
		w.leadsFor(T)
		for _, p := range w.procs {
			if p.term != nil {
				w.stop(p)
				break
			}
		}
		w.run(w.now() + T + o.TakeoverWithin)
	}
}
