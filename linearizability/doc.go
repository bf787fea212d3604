// Package linearizability records, reads and judges histories: what clients
// observed of a register, a lock, a lease that lapses by itself, or a storage
// under fencing tokens. A verdict is holds, violated or unknown, and unknown is
// never a pass.
//
// It must not know how a history came about: it trusts no implementation, and
// takes the rules of the timed lease from package model alone. Nor does it print
// or exit: that is the command's.
//
// Start at the sections below for what a line means, [Read] for the formats,
// [Check] for the verdict with its [Finding]s, [Verdict.WriteHTML] for the
// picture, [Reduce] for the few operations that matter, and [Recorder] to record
// live code.
//
// # Histories
//
// A history is JSON lines, one event a line, so that a crash loses nothing. The
// first line, meta, says how it was recorded and what the service promises; it
// may be missing. An operation is a line when it is called and a line when it
// returns:
//
//	{"meta":{"version":1,"drift":0.0002,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
//	{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"shard-1","owner":"a#1","ttl":2000000000}
//	{"index":1,"time":900,"process":0,"type":"ok","f":"acquire","key":"shard-1","owner":"a#1","token":10}
//
// The fields of a line, and their units and bounds. What the call has said its
// return need not repeat; and fields that this package does not know are kept.
//
//	index      orders the events: rising, unique; on every line, or on none: then the order is the file's
//	time       nanoseconds, 0 to 2^61, on one monotonic clock; must not step back, but see journal
//	process    the caller, an integer from 0: sequential, and after an info it calls no more
//	type       invoke: called; or how it returned: ok, fail (it certainly had no effect), info (nobody
//	           knows: it may take effect at any instant from its call on, or never)
//	f          the operation
//	error      of a fail: why; of an info: anything
//	key        names the lease, lock, register or storage. A name is a string or an integer, and 7 is "7"
//	owner      names who asks: two that share a name are one; of a get's return, who holds ("": nobody)
//	token      fencing token, 0 to 2^64-1: that a grant got, or that a request carries
//	ttl        nanoseconds; on the call as asked. On the return as granted, if the store may grant less
//	holder     of error held: who holds the lease
//	highest    of error stale: the highest token that the storage has seen
//	k, v       of a storage: the item inside it, and its value
//	expect     of a write that compares: the value that it replaces (null: none)
//	from       of a write that compares: the version that it replaces (0: never written); of a renewal
//	           that draws a new token: the token that it replaces
//	version    of a compare-and-swap storage: the version that a write made or a read found
//	fence      of a lock: the token that an acquire tells, under the name that Hazelcast gives it
//	value      of registers, locks and key-value stores: all that they have to say, as in Jepsen
//	slow       of a lead: true if the leader's clock broke its bound
//	slot       of a lease with slots: which one, from 0
//	holders    of a get of a lease with slots: a list of {slot, owner, token}
//	already    of an acquire's return: whether it found an earlier grant of its owner
//	id         of a write: its name among the records of landed
//	records    of landed: a list of {key, owner, token, id, slot}
//
// A call without a return is an info. A fault is an info line without a process,
// named by f, such as {"type":"info","f":"partition"}; a line whose process is a
// name, such as Jepsen's nemesis, is one, too. Faults explain nothing, and are
// drawn.
//
// The fields of meta:
//
//	version          1
//	drift            bounds the rate error of the store's clock against the recorder's: 0 to below 1, nine decimals
//	early            nanoseconds: a lease may lapse so long before its TTL has run out; null: at any time. Default 0
//	late             nanoseconds: a lease may be held so long after it; null: for ever. Default null
//	eps              nanoseconds: the error of a time stamp; see below. Default 0
//	tokens           next: each change of ownership gets exactly the next integer; rising: a greater one;
//	                 none: there are none. Default next
//	anchor           grant: a TTL runs from its grant; call: from any instant since the call, as where a
//	                 blocking acquire opens a session and then waits for the lock. Default grant
//	lockDelay        nanoseconds: so long after a lapse, but not after a release, nobody is granted. Default 0
//	renewAfterLapse  true: an owner may renew a lapsed lease that nobody took since
//	first            the first token; null: any. Default null
//	barrier          true: leaders fence their storages before they lead
//	slots            how many may hold one lease at once, each in a slot; 0: one, and no slots. Slots share one
//	                 counter of tokens, so tokens must be rising or none
//	journal          true: times may step back, as Jepsen's do; the order is then that of the file
//	reuse            true: a process may go on after an info; it is given a new number there
//
// With eps 0 the order of the lines is real. With eps above 0, as where the
// recordings of several hosts were merged, two events of different processes
// that are closer than 2 eps are unordered, and every instant is worth plus or
// minus eps: what can be explained so is, and a service that is wrong by less than
// that is not found out. An overlap within 2 eps is told and is no violation. To
// merge recordings, put their times on one clock, give every process a number of
// its own, leave the index out, and sort the lines by time (stably: events of one
// process keep their order); meta comes first, with the bound on the error of the
// clocks as eps.
//
// # Operations of leases and storages
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
//	landed      (key)                      records: all that landed, in order
//	lead        key, owner, token: belief begins; ok: belief ends
//
// A history begins when nobody holds the lease. One that was recorded from the
// middle of a tenure on has to say so by an acquire, at its beginning, of whoever
// held it.
//
// Lapsed and lost are one piece of evidence: this owner does not hold the lease
// under this token. A delay is the lock delay. Not-carried says that the storage
// asked the lease itself, which shows nothing of the tokens it has seen. Every f
// may also fail as not-sent, or as invalid (refused whatever the state), which are
// no evidence. Whatever else went wrong, such as a timeout, is an info.
//
// A lead is what the client believes, whatever the store knows: it is on record
// from when the client begins to act as leader until it stops. Without these lines
// the belief is taken to last as long as the client had the right to it.
//
// Of a lease with slots each answer names its slot. Its renewal may draw a new
// token; its TTL then replaces the running one.
//
// # Formats
//
// [Reader] tells by the content which [Format] a file has: these lines, Jepsen's
// EDN in its three forms, a JSON array, porcupine's logs, or one operation a line.
// [Writer] writes all of them, and says what one cannot say.
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
// A history holds if some order of its operations, each at an instant between its
// call and its return, explains every answer, and no check finds anything. It is
// violated if there is none, or one does. It is unknown if neither was shown:
// where time or memory ran out, where less happened than [Options].AtLeast asks
// for, or where the recording contradicts itself.
//
// Whether an order explains the answers is searched for in depth by porcupine:
// Wing & Gong, "Testing and Verifying Concurrent Objects" (1993), with the cache
// of Lowe, "Testing for linearizability" (2017). What that does not explain soon
// is walked through forward, with all orders at once that what came so far can
// have had (Lowe's just-in-time linearization), which also copes with unknown
// outcomes. A history falls into partitions that are judged each by itself: one
// for each lease, storage, key. For a violated partition the verdict names the
// first return that no order explains.
//
// # Checks
//
// What no order shows, or does not name, is found by [Checks]: two who lead at
// once, a leader who overstays, a token that falls, a write that lands too late.
// They are made where the model is lease or fencepost. Each [Finding] has the name
// of its check, which is stable, the lines that prove it, and whom to blame: the
// store granted what it must not, the client acted without the right to, the
// storage let land what it must refuse or lost what it must keep, or the recording
// contradicts itself. Each check reports nothing that some legal history also
// shows.
//
// [Kleppmann, "How to do distributed locking", 2016]: https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
package linearizability
