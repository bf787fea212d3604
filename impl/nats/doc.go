// Package nats keeps leases with fencing tokens in a JetStream key-value bucket:
// a [lease.Store] whose tokens are revisions, and a [fence.KV] that is updated by
// revision.
//
// It must not know who leads nor what for, and it reads no clock: the server's
// keeps time, and what a candidate may believe is for package lease.
//
// Start at [CreateBucket] and [New], and at [NewStorage] for data under a lease.
//
// # What is in the bucket
//
// One key for each resource ([Key]) with one JSON value: the holder, its token,
// the TTL, and whether the tenure was ended. Each change is one update on the
// condition that the revision is still the one that was read. A renewal by the
// store that wrote last is that one message; any other request reads first.
//
// To take a lease from its holder, delete the key:
//
//	nats kv del BUCKET RESOURCE
//
// # Time
//
// A tenure ends a TTL after the time that the server stamped on the last
// renewal. Whoever finds it so reads the message and then the state of the
// stream, whose answer carries the clock of the server that leads the stream,
// the same that stamped the message. No client's clock counts, and TTLs are exact
// to the nanosecond. A lapse is written down before anybody is told of it; until
// then the last holder may still renew, and nobody is the worse for that.
//
// The per-message TTLs of server 2.11 and later would do without those reads,
// and are not sound for this (read in the source of 2.15.2). With limit markers
// the server first finds a message to be over and then, in another step, puts
// the marker with a rollup of the subject and without an expected revision: a
// renewal that was stored and acknowledged between the two is removed by it.
// Without markers each replica removes on its own, by its own clock. And
// fractions of a second are cut off, which ends a lease before its holder believes.
//
// The clock is the wall clock: one that is set forward ends tenures early, and
// one that is set back makes them longer. Over a restart it goes on. In a
// cluster a new leader of the stream judges what the last one stamped, so that
// their offset counts: see [Options].ClockOffset. Keep servers in step by NTP,
// slewed. What lands under [Storage] is fenced whatever the clocks do.
//
// # Tokens
//
// Tokens rise, but not by one (rule rising): the token is the revision of the
// update that began the tenure, and the stream counts all writes to the
// bucket. A renewal makes a new revision; so the value of each later write has
// the token in it, and that of the first has none, "the token is the revision".
// A retry of an acquire whose answer was lost finds it in either case.
//
// Revisions rise over release, lapse, deletion and purge of keys, and restarts.
// They do not over what an operator does to the stream: a bucket that is deleted
// and made again starts at 1, and one restored from a backup goes back to the
// revision of the backup. Storage that remembers the highest token then refuses
// the new leaders until the count has passed it: write to the bucket as often,
// or make it with a first sequence (FirstSeq) above all that was.
//
// # Durability
//
// By default a server syncs its files every two minutes (sync_interval): what it
// has acknowledged survives its own death, but up to two minutes of it not a
// power cut. Then a lease is forgotten, and its token issued again. Set
//
//	jetstream { sync_interval: always }
//
// or have three replicas that do not lose power together.
//
// # Clusters
//
// A write is acknowledged once a majority has it. Reads go to the leader of
// the stream, never to any replica: a bucket that lets those answer
// (AllowDirect, as CreateKeyValue of the client makes them) is refused. A
// leader that is cut off goes on answering reads until it notices. What it says
// may be old, so that a candidate may be refused, or a holder told that it has lost
// what it just got; nothing is granted on the strength of it, since no write
// without a majority is. A lapse is a write, too.
package nats
