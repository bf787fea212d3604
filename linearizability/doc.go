// Package linearizability records, reads and judges histories: what clients
// observed of a register, a lock, a lease that lapses by itself, or a storage
// under fencing tokens. A verdict is holds, violated or unknown, and unknown is
// never a pass.
//
// It must not know how a history came about: it trusts no implementation, and
// takes the rules of the timed lease from package model alone. Nor does it print
// or exit: that is the command's.
//
// Start at [History] for what a line means, [Read] for the formats, [Check] for
// the verdict with its [Finding]s, [Verdict.WriteHTML] for the picture, and
// [Recorder] to record live code.
//
// # Histories
//
// A history is JSON lines, one event a line, so that a crash loses nothing.
// Fields that this package does not know are kept:
//
//	{"meta":{"version":1,"drift":0.0002,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
//	{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"shard-1","owner":"a#1","ttl":2000000000}
//	{"index":1,"time":900,"process":0,"type":"ok","f":"acquire","key":"shard-1","owner":"a#1","token":10}
//
// Type is invoke, ok, fail (it certainly had no effect) or info (nobody knows: it
// may take effect at any instant from its call on, or never). A process is
// sequential and calls no more after an info. A call without a return is an info.
// A fault is an info line without a process, named by f.
//
//	f           invoke carries             ok carries                      errors of fail
//	acquire     key, owner, ttl            token                           held (may name holder), delay
//	renew       key, owner, token, ttl                                     lapsed, lost
//	release     key, owner, token                                          lapsed, lost
//	get         key                        owner and token, or owner ""
//	delete      key: an operator deletes the lease
//	restart     the store starts again from its durable state, for all leases
//	write       key, owner, token, k, v                                    stale (may name highest), not-carried
//	fence       key, owner, token                                          stale (may name highest), not-carried
//	read        key, k                     v
//	landed      (key)                      records: all that landed, in order, each with key, owner, token, id, slot
//	lead        key, owner, token: belief begins; ok: belief ends
//
// A lease that several may hold at once has slots in meta, and each answer of it
// names its slot, from 0; a get then lists holders, each with slot, owner, token.
// A renewal of such a lease may draw a new token: it carries from, and ok the new
// token; its TTL then replaces the running one. Its acquire may say, by already,
// whether it found an earlier grant of its owner. A write may have an id, by
// which landed knows it.
//
// Lapsed and lost are one piece of evidence: this owner does not hold the lease
// under this token. Every f may also fail as not-sent, or as invalid (refused
// whatever the state), which are no evidence. Key names the lease or the storage.
// A lead with slow true was under a clock that broke its bound. Registers, locks
// and key-value stores have Jepsen's fields: value, and key.
//
// # Models
//
// [ParseModel] reads their names, and [Choose] finds the one of a history. In all
// of them key names what is checked by itself; a failed operation did not happen;
// and an info happened at some instant from its call on, or never.
//
//	model                      operations             fields: of the call → of the return
//	register(INIT)             read, write            value → value read
//	cas-register(INIT)         read, write, cas       value, of cas [old new] → value read
//	multi-register(INIT)       txn, read, write       value [[:r k nil] [:w k v] …], or of read and write {k v …} → the same with what was read
//	mutex                      acquire, release
//	owner-mutex                acquire, release       owner
//	reentrant-mutex(N)         acquire, release       owner
//	fenced-mutex               acquire, release       owner → of acquire fence
//	reentrant-fenced-mutex(N)  acquire, release       owner → of acquire fence
//	permits(N)                 acquire, release       owner
//	kv                         get, put, append       value, a string → value got
//	storage                    write, read, fence     token, k, v → v
//	cas-storage                write, read            k, v, expect, from → v, version; error mismatch
//	lease                      acquire, renew, release, get, delete, restart: as above
//	fencepost                  lease and storage together
//
// The registers are those of Knossos, with nil or an integer as INIT; where they
// start from an integer, a read of nil did not tell. In a multi-register each
// transaction takes effect at one instant, as in Jepsen's model of that name.
//
// The locks are those of the public Jepsen test of Hazelcast. A mutex is acquired
// if and only if it is free, and released if it is held; but for the plain one,
// only by its owner. A reentrant one is held up to N times by one owner, without
// a bound if N is left out, and each release undoes one acquire. Of a fenced one
// the fence that an acquire tells is above all before, or 0: not known; nested
// acquires tell that of the first, or 0. Of permits, at most N are held at once,
// and a release needs one that its owner holds. The owner is the field owner, or
// client in a map that is the value, or whom the process names elsewhere; where
// nobody names any, the process (of permits: nobody, and who releases may be
// anybody). A fence is the field fence or token, or in the value. That an acquire
// or release failed is no evidence, whatever its error: clients that give up
// waiting say the same as locks that refuse.
//
// Of a storage, tokens decide ([Kleppmann, "How to do distributed locking", 2016]):
// what carries one below the highest seen is refused as stale. A cas-storage has
// none, and compares: a write with expect (null: no value) lands only where k has
// that value, one with from (0: never written) only where it has that version, and
// else fails with mismatch, which may tell v and version. The return of a write
// may tell the version that it made, that of a read the one it found; each is
// above the last. Each k is checked by itself.
//
// A lease lapses by itself (Gray & Cheriton, "Leases", 1989): see
// [fencepost/model.TimedParams] for its guards.
//
// # Verdicts
//
// Whether an order explains the answers is searched for in depth by porcupine:
// Wing & Gong, "Testing and Verifying Concurrent Objects" (1993), with the cache
// of Lowe, "Testing for linearizability" (2017). What that does not explain soon
// is walked through forward, with all orders at once that what came so far can
// have had (Lowe's just-in-time linearization), which also copes with unknown
// outcomes. A history falls into partitions that are judged each
// by itself: one for each lease, storage, key. For a violated partition the
// verdict names the first return that no order explains. What no order shows, or
// does not name, is found by [Checks], each with the lines that prove it and whom
// to blame.
//
// [Kleppmann, "How to do distributed locking", 2016]: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
package linearizability
