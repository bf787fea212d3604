// Package redis keeps leases, and data that checks their fencing tokens, on one
// Redis (or Valkey) server: the rules are Lua scripts, each call of which is one
// atomic step on the server's clock.
//
// It must not know who uses a lease or what for, nor any clock of the caller:
// only the server's TIME counts. And it makes no lock out of several servers,
// since a majority of clocks issues no fencing token: package redlock shows that.
//
// Start at [New] for the lease store, at [NewStorage] for guarded data, at
// [Guard] to guard what scripts of your own write, and at [Check] for the settings
// that the server needs.
//
// # What the server must be set to
//
// A fencing token is only worth something if it is never issued twice. So the
// counter of each resource has no expiry, and the server must not forget it:
//
//   - appendonly yes and appendfsync always: then nothing is answered before it
//     is on disk, and a crash takes back nothing that was answered. With
//     everysec a crash of the machine takes back a second or more of it, and
//     with snapshots any crash takes back all since the last one: tokens that
//     somebody holds are issued again, to somebody else. (A crash of the process
//     alone spares what it had written with everysec: the kernel has it.)
//   - no-appendfsync-on-rewrite no: with yes, always is not always.
//   - maxmemory-policy noeviction, or one of the volatile ones, which spare keys
//     without an expiry. The allkeys ones may evict the counter.
//   - No failover to a replica. Replication is asynchronous: the tokens that the
//     replica had not received are issued again by it, and while the old primary
//     is still reachable by some there are two holders under one token, between
//     whom no storage can tell. WAIT does not change that: it says how many
//     replicas have a write, after it was made and seen; it neither takes it
//     back nor decides which replica is promoted. min-replicas-to-write bounds
//     how much is lost, and does not prevent it. After a failover give the
//     stores another [Options].Prefix, and a FirstToken above every token that
//     was issued; storages keep theirs.
//
// [New] checks these by [Check].
//
// # The clock
//
// The server's TIME is a wall clock, the only one that scripts can read. A step
// forward by d ends tenures d early: their holders believe on, so that two may
// act at once, and the fencing token is what protects the data. A step back by d
// keeps the lease from everybody for d longer. Let the clock be slewed, not
// stepped (chronyd without makestep after the start; ntpd -x), and count the
// slewing as drift. A lapse that was answered to anybody is written down: no
// step back revives it. The clock goes on while the server restarts, so a tenure
// goes on too.
//
// # What an error says
//
// Refusals are the typed errors of package lease. An error that matches
// [ErrNotDone] says that nothing happened: the connection could not be made, or
// the server refused the command for a reason of its own (READONLY, LOADING,
// OOM, ...). After any other the outcome is unknown.
package redis
