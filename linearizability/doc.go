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
// # Verdicts
//
// The order of the answers is decided by porcupine: Wing & Gong, "Testing and
// Verifying Concurrent Objects" (1993), with the cache of Lowe, "Testing for
// linearizability" (2017). A history falls into partitions that are judged each
// by itself: one for each lease, storage, key. For a violated partition the
// verdict names the first return that no order explains. What no order shows, or
// does not name, is found by [Checks], each with the lines that prove it and whom
// to blame.
package linearizability
