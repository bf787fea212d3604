// Package leasesql is a lease store on a table of the SQL database that a
// service has already, PostgreSQL, SQLite or MariaDB, and the guard that keeps a
// deposed leader's writes out of that database.
//
// It must not know any driver: it takes a [sql.DB] that somebody else opened and
// a [Dialect]. Nor has it a rule of its own: what becomes of a request is
// [lease.Record]'s part, and which write lands [fence.Guard]'s.
//
// Start at [New] for the store, [Fence] for the guard in a transaction of one's
// own, and [Schema] for the tables.
//
// # One step
//
// A request that may change a lease locks its row, reads the clock after that,
// lets the Record judge, and writes what follows, in one transaction: nothing
// comes between the instant that was judged and the row that is written. The
// other way to have this is the rule as the WHERE of one statement, in the
// dialect of each database. It saves round trips, and has every rule of package
// lease stand in SQL again, three times. So it is done where it pays: a holder
// asks for nothing but renewals, and those that are granted are one statement, for
// one lease or ten thousand ([Store.Batch]): on PostgreSQL in one round trip, on
// SQLite within the transaction, because its clock is this process's. What that
// does not grant, the Record judges, as all else.
//
// A request that turns out to change nothing, such as the acquire of a lease
// that somebody holds, is answered from a look without a lock, in one round
// trip: candidates that poll do not stand in the holder's way. Where a lease
// has to change after all, the look counts for nothing and the row is read
// again under the lock.
//
// In round trips on PostgreSQL: 1 for a renewal, a refusal and a Get; 4 for a
// release; 5 for an acquire that is granted, and 7 for the first one of a
// resource.
//
// # Whose clock
//
// PostgreSQL and MariaDB judge by the time of day of the server, to the
// microsecond, read after the row is locked. Processes may have any clock. It
// goes on while the server restarts: props.Options calls that a SteadyClock. But
// it can be set. Forward, by d: tenures end up to d early, and a holder may
// believe while the next one is granted; nothing but fencing protects then.
// Backward, by d: tenures end up to d late. So: have the clock slewed, not
// stepped, and fence what is written. The same holds for a failover to a
// replica, by as much as the two clocks differ; and it has to be a synchronous
// one, or a token may be issued twice.
//
// SQLite is a library and has no clock: it is that of the machine's boot, which
// all its processes share and nobody sets. With each instant the table has which
// boot it is of. After another one, or on another machine, tenures are held for
// their whole TTL again, by [lease.Restore]. A database on a network file system
// is not for this package, nor for SQLite.
//
// # Durability
//
// A token that was handed out and is forgotten is handed out again. SQLite:
// PRAGMA synchronous is to be FULL (the default of SQLite itself and of
// modernc.org/sqlite; in WAL mode NORMAL loses the last commits at a power cut).
// PostgreSQL: synchronous_commit not off. MariaDB:
// innodb_flush_log_at_trx_commit=1, the default.
package leasesql
