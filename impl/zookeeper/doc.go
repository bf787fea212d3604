// Package zookeeper is a lease store on ZooKeeper, and fenced storage beside it:
// a tenure is kept by the sessions that renew it, its token is a czxid, and a
// stale write fails on a version check in its own multi.
//
// It must not know how long anybody may believe, nor keep time: whether a tenure
// has run out is decided by ZooKeeper's leader alone, which ends the session.
//
// Start at [Open]; [Store] is what an elector takes, [Store.Storage] and
// [Store.Check] are for whoever writes.
//
// # How a lease stands in ZooKeeper
//
//	/fencepost/lease-RESOURCE               the record: which tenure is the latest, and whose
//	/fencepost/lease-RESOURCE/tenure-NAME   the latest tenure; its czxid is the token
//	.../tenure-NAME/pulse-MS-NAME           ephemeral: a session of that timeout keeps the tenure
//
// The lease is held while there is a pulse. An acquire is one multi that deletes
// the latest tenure's node, which ZooKeeper refuses while anything is below it,
// and makes the next, with a pulse; so it is decided and written in one step.
// NAME is drawn at random and never used again: a node of that name is that
// tenure, whatever was deleted and made anew meanwhile. A release marks the
// tenure's node, whose version then is no longer 0, and deletes the pulses.
//
// The well-known recipe has sequential nodes instead, and waits in their order.
// They serve a queue, and a candidate of fencepost does not queue: an acquire
// answers at once. Nor is a sequence number a token: it counts in the parent
// node, and starts again at 0 with that. The czxid is the ensemble's own count of
// changes. It rises across release, lapse, deletion of all these nodes, and
// restart, and falls only with the ensemble's data: an ensemble that is set up
// anew, or restored from a copy, needs a new [Options.Root] and new storages.
//
// # How a tenure is kept, and for how long
//
// ZooKeeper's client libraries ping, so that a session lives for as long as its
// process. That is no lease: a holder that hangs while its client's goroutine
// goes on would keep it for ever. Here each tenure has a session of its own,
// which nothing pings; between renewals it has no connection either. A renewal
// attaches to the session again, which starts its clock anew, and makes a multi
// that proves that the pulse and the tenure still stand. So a tenure ends after
// its TTL by the server's clock, give or take what ZooKeeper adds: an expiry is
// put off to the next multiple of tickTime, and must then be agreed upon. It
// never ends early:
//
//   - The session's timeout is the TTL, rounded up to milliseconds; the server
//     may raise it. If it grants less, the TTL is refused as invalid: raise
//     maxSessionTimeout, which is 20 ticks (40 s) unless it is set, or ask for less.
//   - To attach is what counts, not to write. A follower tells the leader, whose
//     clock decides, only twice a tick which sessions it has heard of, and never
//     if it dies first, although what was written through it stands. Attaching is
//     answered by the leader. (A session that a write had renewed for 4 s, just
//     before its follower was killed, ended after 2.4 s: see
//     TestARenewalOutlivesTheServerThatTookIt.)
//   - The proof is a multi, and not a sync and a read, since a leader that was
//     deposed and does not know it answers those.
//   - A renewal with another TTL adds a pulse of a session of its own and leaves
//     the old one to run out, so that it shortens nothing. So does one that comes
//     from another process, as a late copy may.
//   - After a restart, or under a new leader, each session has its whole timeout again.
//
// The end of a session deletes its pulses, and whoever watches the lease is told
// at once, the holder too: see [Store.Watch].
//
// # What it costs
//
// To look is a sync and two reads, and all that a refused acquire costs. A grant
// is a connection and two writes to the ensemble's log besides, one of them a new
// session; a release is one write; a renewal does not look, and is a connection,
// two round trips and a write. A process has one lasting connection, however many
// leases it holds, and each lease is a session more. Leave maxClientCnxns above
// the number of calls that a host makes at once. For thousands of leases in one
// process another store serves better.
package zookeeper
