package mutant

import (
	"slices"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// WrongStore is a lease store with one fault: an example of what the
// conformance checks say to whoever has that fault in a store of their own.
// Unlike a [Mutant] it is no rule inside the simulated world but a store that
// stands by itself.
type WrongStore struct {
	Name   string // kebab-case, its own
	Breaks string // what it does wrong, in one sentence
	Seen   string // the public failure that it stands for
	// Convicted is the name of a check that fails for this fault. Others may
	// fail too.
	Convicted string
	// Open starts a process of the store.
	Open func(kit.Env) lease.Store
	// Options are what the store says of itself.
	Options kit.Options
}

// WrongStores are wrong lease stores, in a fixed order: tokens, ownership,
// expiry, restarts, and what callers see. Each is made of a right one of a map,
// a mutex and a disk by changing one thing. What is said of each,
//
//	go test -v -run TestWrongStores fencepost/props/mutant
//
// shows.
func WrongStores() []WrongStore {
	return slices.Concat(wrongTokens(), wrongOwners(), wrongExpiries(), wrongRestarts(), wrongAnswers())
}

// RightStore is the store that all the wrong ones would be but for their fault.
// It has a lock delay if that is not zero.
func RightStore(lockDelay time.Duration) func(kit.Env) lease.Store {
	return keeping(func(h *habits) { h.lockDelay = lockDelay })
}

// SteadyStore is [RightStore] for a clock that goes on over a restart, as
// [kit.Options].SteadyClock declares: the instants on its disk stay right.
func SteadyStore(lockDelay time.Duration) func(kit.Env) lease.Store {
	return steadily(func(h *habits) { h.lockDelay = lockDelay })
}

func wrongTokens() []WrongStore {
	return []WrongStore{{
		Name:      "release-takes-the-token-along",
		Breaks:    "The token is a field of the lease, and a release deletes the lease: the next owner gets token 1 again.",
		Seen:      "counters kept in the lock object, such as Kubernetes' LeaderTransitions, which go with it",
		Convicted: "rules/next-token-after-release",
		Open: keeping(func(s *habits) {
			s.release = func(row) row { return row{} }
		}),
	}, {
		Name:      "release-keeps-the-token",
		Breaks:    "Only a takeover raises the token: after a clean release the next owner gets the same.",
		Seen:      "counts of takeovers used as tokens: a clean handover is none",
		Convicted: "rules/next-token-after-release",
		Open: keeping(func(s *habits) {
			s.next = func(r row, _ lease.Holder) lease.Token {
				if r.holder.IsZero() && r.token > 0 {
					return r.token
				}
				return r.token + 1
			}
		}),
	}, {
		Name:      "delete-takes-the-token-along",
		Breaks:    "An operator who deletes a lease deletes its counter: tokens start again at 1.",
		Seen:      "etcd's key version, which a deletion sets to zero",
		Convicted: "delete/next-token",
		Open: keeping(func(s *habits) {
			s.remove = func(row) row { return row{} }
		}),
	}, {
		Name:      "counter-forgotten-in-a-month",
		Breaks:    "A lease that nobody has held for 30 days is dropped, its counter too: the next owner gets token 1 again.",
		Seen:      "counters in a Redis key that an EXPIRE takes away, or in a row that a nightly job deletes",
		Convicted: "rules/next-token-long-after-release",
		Open: func(e kit.Env) lease.Store {
			return start(e, func(s *habits) {
				s.release = func(r row) row { return row{token: r.token, until: e.Clock.Now()} }
				s.next = func(r row, _ lease.Holder) lease.Token {
					if e.Clock.Now()-r.until >= forgotten {
						return 1
					}
					return r.token + 1
				}
			})
		},
	}, {
		Name:      "token-kept-for-the-same-node",
		Breaks:    "A node that takes the lease again after its own tenure lapsed keeps the token.",
		Seen:      "client-go leaderelection raises LeaderTransitions only if the holder's name changes",
		Convicted: "rules/next-token-for-the-same-holder-after-lapse",
		Open: keeping(func(s *habits) {
			s.next = func(r row, h lease.Holder) lease.Token {
				if r.holder.Node == h.Node {
					return r.token
				}
				return r.token + 1
			}
		}),
	}, {
		Name:      "tokens-from-zero",
		Breaks:    "The counter starts at 0, which is no token: a storage cannot tell it from a request without one.",
		Seen:      "a sequence with MINVALUE 0, or an index into a list taken for a token",
		Convicted: "rules/next-token-after-release",
		Open: keeping(func(s *habits) {
			s.next = func(r row, _ lease.Holder) lease.Token {
				if r.ttl == 0 { // nobody ever had it
					return 0
				}
				return r.token + 1
			}
			s.release = func(r row) row { return row{token: r.token, ttl: r.ttl} }
			s.remove = s.release
		}),
	}, {
		Name:      "token-drawn-before-the-lease",
		Breaks:    "An acquire draws its token first and looks at the lease then: one that draws early and gets it late has a lower token than the holder before it.",
		Seen:      "locks that number their waiters and use the number as token",
		Convicted: "rules/next-token-whoever-was-refused-meanwhile",
		Open:      openDrawsFirst,
	}, {
		Name:      "token-raised-by-a-renewal",
		Breaks:    "Each renewal raises the token: what the leader writes under is stale by its own doing.",
		Seen:      "a record's revision used as token, such as the resourceVersion of a Kubernetes Lease, which each renewal changes",
		Convicted: "rules/renew-is-granted-to-the-holder",
		Open:      func(e kit.Env) lease.Store { return raises{start(e, nil)} },
	}, {
		Name:      "token-raised-by-a-retry",
		Breaks:    "A holder whose first answer got lost asks again, and is given another token for the same tenure.",
		Seen:      "home-made locks whose acquire is an upsert that adds one to the version",
		Convicted: "rules/retry-of-an-acquire-keeps-the-token",
		Open: keeping(func(s *habits) {
			s.again = func(r row, now, ttl time.Duration) row {
				r.token++
				return longer(r, now, ttl)
			}
		}),
	}}
}

// forgotten is when a store that drops what nobody has touched does so.
const forgotten = 30 * 24 * time.Hour

func wrongOwners() []WrongStore {
	return []WrongStore{{
		Name:      "anybody-renews",
		Breaks:    "A renewal extends the lease, whoever sends it.",
		Seen:      "Redisson issue 597: the watchdog did not check that the lock still belonged to its owner",
		Convicted: "rules/renew-by-another-is-refused",
		Open: keeping(func(s *habits) {
			s.mayRenew = func(row, lease.Holder, lease.Token) bool { return true }
		}),
	}, {
		Name:      "the-node-renews",
		Breaks:    "A renewal looks at the name of the node, so a restarted process renews what the one before it held.",
		Seen:      "Kubernetes before pull request 58302: with the host's name as identity a restarted process kept the lease of the one before",
		Convicted: "rules/renew-by-the-next-incarnation-of-the-node-is-refused",
		Open: keeping(func(s *habits) {
			s.mayRenew = func(r row, h lease.Holder, t lease.Token) bool { return r.holder.Node == h.Node && r.token == t }
		}),
	}, {
		Name:      "any-token-renews",
		Breaks:    "A renewal looks at the holder and not at the token: one sent in an earlier tenure extends the present one.",
		Seen:      "locks that compare only the owner's id, so that a delayed keep-alive counts for whichever lock it finds",
		Convicted: "rules/renew-under-an-old-token-is-refused",
		Open: keeping(func(s *habits) {
			s.mayRenew = func(r row, h lease.Holder, _ lease.Token) bool { return r.holder == h }
		}),
	}, {
		Name:      "anybody-releases",
		Breaks:    "A release frees the lease, whoever holds it.",
		Seen:      "Redis locks released by DEL: its documentation of distributed locks warns of them",
		Convicted: "rules/release-by-another-is-refused",
		Open: keeping(func(s *habits) {
			s.mayRelease = func(row, lease.Holder, lease.Token) bool { return true }
		}),
	}, {
		Name:      "any-token-releases",
		Breaks:    "A release looks at the holder and not at the token: one delayed from an earlier tenure frees the present one.",
		Seen:      "home-made Redis locks whose value is the host's name: an unlock on its way frees the next lock of the same host",
		Convicted: "rules/release-under-an-old-token-is-refused",
		Open: keeping(func(s *habits) {
			s.mayRelease = func(r row, h lease.Holder, _ lease.Token) bool { return r.holder == h }
		}),
	}, {
		Name:      "late-release-frees-the-successor",
		Breaks:    "A release is taken from whoever was granted a token once: that of a lapsed tenure frees the successor's.",
		Seen:      "Redis' documentation of distributed locks: a client that is blocked for longer than its lock lasts removes the lock that another has by then",
		Convicted: "rules/late-release-of-an-earlier-tenure-frees-nothing",
		Open: keeping(func(s *habits) {
			s.mayRelease = func(r row, h lease.Holder, t lease.Token) bool { return owns(r, h, t) || t < r.token }
		}),
	}, {
		Name:      "reentrant-by-node",
		Breaks:    "An acquire by another process of the holder's node is taken for the holder's retry: two processes hold one token.",
		Seen:      "Kubernetes issue 61151: hosts of one name, and so one identity, fought over the same work",
		Convicted: "rules/acquire-by-the-next-incarnation-of-the-node-is-refused",
		Open: keeping(func(s *habits) {
			s.retry = func(r row, h lease.Holder) bool { return r.holder.Node == h.Node }
		}),
	}, {
		Name:      "retry-refused",
		Breaks:    "A holder whose first answer got lost asks again, and is told that the lease is held: it waits for itself.",
		Seen:      "SET NX without a look at whose value is there",
		Convicted: "rules/retry-of-an-acquire-keeps-the-token",
		Open: keeping(func(s *habits) {
			s.retry = func(row, lease.Holder) bool { return false }
		}),
	}, {
		Name:      "acquire-in-steps",
		Breaks:    "It reads whether the lease is free, then writes that it is taken: of two that read at once both get it, under one token.",
		Seen:      "home-made Redis locks that GET and then SET instead of SET NX",
		Convicted: "concurrency/one-of-many-acquires-wins",
		Open:      func(e kit.Env) lease.Store { return inSteps{start(e, nil)} },
	}, {
		Name:      "renewal-in-steps",
		Breaks:    "It reads whose lease it is, then writes the whole row with a new expiry: a release in between, or a takeover, is undone.",
		Seen:      "a renewal as SELECT and then UPDATE without a WHERE on the owner",
		Convicted: "concurrency/release-is-final",
		Open:      func(e kit.Env) lease.Store { return renewsInSteps{start(e, nil)} },
	}}
}

// behind is how far the callers' clocks are behind the store's, where a store
// goes by those of its callers.
const behind = 3 * time.Second

func wrongExpiries() []WrongStore {
	const delay = 5 * time.Second
	// until is what extends by a rule of its own, never shortening.
	until := func(end func(now, ttl time.Duration) time.Duration) func(*habits) {
		return func(s *habits) {
			s.extend = func(r row, now, ttl time.Duration) row {
				r.ttl, r.until = max(r.ttl, ttl), max(r.until, end(now, ttl))
				return r
			}
			s.again = s.extend
		}
	}
	sets := func(r row, now, ttl time.Duration) row {
		r.ttl, r.until = max(r.ttl, ttl), sum(now, ttl)
		return r
	}
	return []WrongStore{{
		Name:      "whole-seconds",
		Breaks:    "TTLs are kept in whole seconds and granted as asked: of 1.5s half a second is missing.",
		Seen:      "client-go writes LeaseDurationSeconds as int(LeaseDuration / time.Second)",
		Convicted: "rules/held-until-the-last-nanosecond-of-a-tenth",
		Open: keeping(until(func(now, ttl time.Duration) time.Duration {
			return sum(now, ttl.Truncate(time.Second))
		})),
	}, {
		Name:      "whole-milliseconds",
		Breaks:    "TTLs are kept in whole milliseconds and granted as asked: the lease ends up to a millisecond early.",
		Seen:      "Redis' PX option, which counts milliseconds, given a Go duration",
		Convicted: "rules/held-until-the-last-nanosecond-of-a-fraction-of-a-millisecond",
		Open: keeping(until(func(now, ttl time.Duration) time.Duration {
			return sum(now, ttl.Truncate(time.Millisecond))
		})),
	}, {
		Name:      "ttl-capped",
		Breaks:    "TTLs are cut to 24h and granted as asked: a leader who asked for more overstays.",
		Seen:      "memcached, which takes an expiry above 30 days for an instant of 1970",
		Convicted: "rules/held-until-the-last-nanosecond-of-hours",
		Open: keeping(until(func(now, ttl time.Duration) time.Duration {
			return sum(now, min(ttl, 24*time.Hour))
		})),
	}, {
		Name:      "expiry-of-an-earlier-tenure",
		Breaks:    "A new tenure ends no sooner than the one before it would have, though that was released: whoever waits for a short TTL waits for the long one.",
		Seen:      "an upsert that sets the expiry to GREATEST(expires_at, now() + ttl), whoever is granted the lease",
		Convicted: "rules/the-ttl-of-a-released-tenure-does-not-count",
		Open:      func(e kit.Env) lease.Store { return outlasts{start(e, keepsExpiry)} },
	}, {
		Name:      "expiry-by-the-callers-clock",
		Breaks:    "The library computes the expiry on its caller's clock and the store judges it on its own: here the lease ends 3s early.",
		Seen:      "ShedLock, whose documentation asks for synchronized clocks (issue 263), before usingDbTime",
		Convicted: "rules/held-until-the-last-nanosecond",
		Open: keeping(until(func(now, ttl time.Duration) time.Duration {
			return sum(now-behind, ttl)
		})),
	}, {
		Name:      "expiry-from-the-start-of-the-process",
		Breaks:    "The clock is read once, when the process starts: what is granted later has run out already.",
		Seen:      "a base time kept to turn monotonic readings into stored ones, and never moved on",
		Convicted: "rules/granted-at-any-instant-held-until-the-last-nanosecond",
		Open: func(e kit.Env) lease.Store {
			started := e.Clock.Now()
			return start(e, until(func(_, ttl time.Duration) time.Duration { return sum(started, ttl) }))
		},
	}, {
		Name:      "renewal-shortens",
		Breaks:    "A renewal sets the expiry also where that is earlier: one with a shorter TTL shortens the running lease.",
		Seen:      "node-redlock issue 26: extend overwrites what is left of the TTL, as PEXPIRE does",
		Convicted: "rules/renew-with-a-shorter-ttl-never-shortens",
		Open:      keeping(func(s *habits) { s.extend = sets }),
	}, {
		Name:      "retry-shortens",
		Breaks:    "A repeated acquire sets the expiry also where that is earlier: a retry with a shorter TTL shortens the running lease.",
		Seen:      "SET with PX from a holder that already has the key",
		Convicted: "rules/retry-never-shortens",
		Open:      keeping(func(s *habits) { s.again = sets }),
	}, {
		Name:      "retry-does-not-extend",
		Breaks:    "A repeated acquire is granted, but the lease ends when it would have ended without.",
		Seen:      "home-made locks that answer \"already yours\" to a retry whose first answer was lost",
		Convicted: "rules/retry-extends",
		Open: keeping(func(s *habits) {
			s.again = func(r row, _, _ time.Duration) row { return r }
		}),
	}, {
		Name:      "renewal-revives",
		Breaks:    "A renewal brings back a tenure that has lapsed, though others were told that nobody holds the lease.",
		Seen:      "redlock-rb issue 36: extend succeeds on a lock that has expired",
		Convicted: "rules/renew-after-lapse-is-refused",
		Open:      func(e kit.Env) lease.Store { return revives{start(e, nil)} },
	}, {
		Name:      "held-at-the-expiry",
		Breaks:    "The lease is held at the instant at which it ends, where every other party takes it for free.",
		Seen:      "any store that checks now > expiry in one place and now >= expiry in another",
		Convicted: "rules/lapses-at-the-instant",
		Open: keeping(func(s *habits) {
			s.held = func(r row, now time.Duration) bool { return !r.holder.IsZero() && !r.lapsed && now <= r.until }
		}),
	}, {
		Name:      "lapses-only-when-read",
		Breaks:    "Whether a lease has run out is looked at only where its holder is read: acquires find it held for ever.",
		Seen:      "locks whose expiry is a column for dashboards, cleared by a job that does not run",
		Convicted: "rules/lapses-at-the-instant",
		Open:      func(e kit.Env) lease.Store { return lazy{start(e, forEver)} },
	}, {
		Name:      "delay-after-release",
		Breaks:    "The lock delay follows a release as well: every clean handover costs as much as a crash.",
		Seen:      "fixed cool-down periods after any change of leader",
		Convicted: "rules/no-lock-delay-after-a-release",
		Options:   kit.Options{LockDelay: delay},
		Open: func(e kit.Env) lease.Store {
			return start(e, func(s *habits) {
				s.lockDelay = delay
				s.release = func(r row) row {
					r.lapsed, r.until = true, e.Clock.Now()
					return r
				}
			})
		},
	}, {
		Name:      "delay-skipped",
		Breaks:    "A lock delay is promised and not kept: a lapsed lease is granted at once.",
		Seen:      "Consul's lock-delay of 15s, which a session may set to zero",
		Convicted: "rules/lock-delay-after-a-lapse",
		Options:   kit.Options{LockDelay: delay},
		Open:      keeping(nil),
	}}
}

func wrongRestarts() []WrongStore {
	return []WrongStore{{
		Name:      "restart-forgets-the-counter",
		Breaks:    "Leases are on disk and the counter is not: the first ownership after a restart gets token 1.",
		Seen:      "a Redis INCR as token generator without persistence",
		Convicted: "restarts/the-counter-stays-after-a-release",
		Open: keeping(func(s *habits) {
			s.restore = func(r row, now time.Duration) row {
				if r.holder.IsZero() {
					return row{}
				}
				return anew(r, now)
			}
		}),
	}, {
		Name:      "restart-frees",
		Breaks:    "The counter is on disk and the holders are not: a restart frees what is held.",
		Seen:      "Redis without fsync: the documentation of distributed locks asks to keep a restarted node away for the longest TTL",
		Convicted: "restarts/a-tenure-is-held-on",
		Open: keeping(func(s *habits) {
			s.restore = func(r row, _ time.Duration) row { return row{token: r.token} }
		}),
	}, {
		Name:      "restart-keeps-the-instant",
		Breaks:    "The expiry is on disk as an instant of the old process's clock, and compared with the new one's.",
		Seen:      "etcd issue 9888 is the cousin that comes of avoiding it: each new leader starts all TTLs anew, and a lease may never end",
		Convicted: "restarts/a-tenure-ends-after-its-ttl",
		Open: keeping(func(s *habits) {
			s.restore = func(r row, _ time.Duration) row { return r }
		}),
	}, {
		Name:      "restart-holds-for-the-last-ttl",
		Breaks:    "After a restart a tenure is held for the TTL of its last renewal, though an earlier, longer one still runs.",
		Seen:      "stores that keep one TTL per lease and overwrite it",
		Convicted: "restarts/the-largest-ttl-of-the-tenure-counts",
		Open: keeping(func(s *habits) {
			s.extend = func(r row, now, ttl time.Duration) row {
				r.ttl, r.until = ttl, max(r.until, sum(now, ttl))
				return r
			}
			s.again = s.extend
		}),
	}, {
		Name:      "restart-forgets-the-lapse",
		Breaks:    "That a lease has lapsed is never written down: after a restart it is held again by whom everybody was told had lost it.",
		Seen:      "stores that write grants to disk and leave lapses to a timer",
		Convicted: "restarts/a-lapse-that-was-told-stays",
		Open: keeping(func(s *habits) {
			s.save = func(r row) row {
				r.lapsed = false
				return r
			}
		}),
	}, {
		Name:      "restart-undoes-a-release",
		Breaks:    "A release changes memory only: after a restart the lease is held by whom had given it back.",
		Seen:      "stores that write grants through and let removals wait for the next compaction",
		Convicted: "restarts/a-release-stays",
		Open:      func(e kit.Env) lease.Store { return undoes{start(e, nil)} },
	}, {
		Name:      "restart-loses-the-expiry",
		Breaks:    "Who holds a lease is on disk and until when is in memory: after a restart what is held has run out.",
		Seen:      "stores that keep holders in a table and leave expiries to timers of their process",
		Convicted: "restarts/a-tenure-is-held-for-the-rest-of-its-ttl",
		Options:   kit.Options{SteadyClock: true},
		Open: steadily(func(s *habits) {
			s.save = func(r row) row {
				r.until = 0
				return r
			}
		}),
	}, {
		Name:      "restart-starts-the-ttl-anew",
		Breaks:    "Its clock goes on over a restart, and it starts all TTLs again all the same: restarted often enough, no lease of a dead holder ends.",
		Seen:      "etcd issue 9888: each new leader starts all TTLs anew",
		Convicted: "restarts/a-tenure-ends-as-if-there-had-been-none",
		Options:   kit.Options{SteadyClock: true},
		Open:      keeping(nil),
	}}
}

func wrongAnswers() []WrongStore {
	return []WrongStore{{
		Name:      "get-names-the-last-holder",
		Breaks:    "Asked who holds a lease that has lapsed, it names the last holder.",
		Seen:      "dashboards that read holderIdentity of a Kubernetes Lease and not renewTime",
		Convicted: "rules/get-after-lapse-names-nobody",
		Open:      func(e kit.Env) lease.Store { return remembers{start(e, nil)} },
	}, {
		Name:      "one-lease-for-all",
		Breaks:    "The name of the resource is not looked at: whoever holds one lease holds them all.",
		Seen:      "a table with a single row, written for the first leader and used for the second",
		Convicted: "rules/leases-lapse-apart",
		Open: keeping(func(s *habits) {
			s.name = func(string) string { return "lock" }
		}),
	}, {
		Name:      "names-without-case",
		Breaks:    "\"A\" and \"a\" are one lease.",
		Seen:      "MySQL's default collations, which compare without case",
		Convicted: "malformed/resource-in-another-case",
		Open:      keeping(func(s *habits) { s.name = strings.ToLower }),
	}, {
		Name:      "names-trimmed",
		Breaks:    "\"x\" and \"x \" are one lease.",
		Seen:      "PAD SPACE collations, by which trailing spaces do not count",
		Convicted: "malformed/resource-with-a-space-at-the-end",
		Open: keeping(func(s *habits) {
			s.name = func(resource string) string { return strings.TrimRight(resource, " ") }
		}),
	}, {
		Name:      "refusal-like-any-error",
		Breaks:    "A refusal is an error of no type, so a caller cannot tell it from a store that is down.",
		Seen:      "client libraries that return errors.New(\"lock is in use\")",
		Convicted: "rules/every-request-is-answered",
		Open:      func(e kit.Env) lease.Store { return untyped{start(e, nil)} },
	}, {
		Name:      "ttl-of-any-sign",
		Breaks:    "A TTL of zero or less is granted: the lease is over before its holder hears of it.",
		Seen:      "an unset field of a configuration that reaches the store as a TTL of 0",
		Convicted: "malformed/acquire-with-ttl-zero",
		Open:      func(e kit.Env) lease.Store { return careless{start(e, nil)} },
	}, {
		Name:      "ttl-overflows",
		Breaks:    "A TTL that means for ever makes an expiry before now, and the lease is free at once.",
		Seen:      "time.Duration(math.MaxInt64) added to the present",
		Convicted: "malformed/acquire-for-the-largest-ttl",
		Open: keeping(func(s *habits) {
			s.extend = func(r row, now, ttl time.Duration) row {
				r.ttl, r.until = max(r.ttl, ttl), max(r.until, now+ttl)
				return r
			}
			s.again = s.extend
		}),
	}}
}
