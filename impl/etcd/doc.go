// Package etcd keeps leases with fencing tokens in an etcd cluster: a
// [lease.Store] whose tokens are create revisions, and a [fence.KV] whose writes
// are transactions that compare with them.
//
// It must not know who leads nor what for, and it keeps no time: the cluster's
// leader does, and what a candidate may believe is for package lease.
//
// Start at [New], and at [Guard] for data that lives in the same etcd.
//
// # What is in etcd
//
// Two keys for each resource. The leader key, PREFIXleader/RESOURCE, is there
// while somebody holds it: its value is the holder, it is attached to an etcd
// lease, and its create revision is the fencing token. The record key,
// PREFIXrecord/RESOURCE, is written in the same transactions and stays: it says
// who had the last token and whether it was released, which is how a lapse is
// told from a loss. No safety hangs on it.
//
// To take a lease away from its holder, delete the leader key:
//
//	etcdctl del fencepost/leader/RESOURCE
//
// # Tokens
//
// Tokens rise, but not by one (rule rising): a revision counts all writes to the
// cluster. They rise over release, lapse, deletion of both keys and restarts,
// because revisions do. There is one exception, the operator's: a cluster that
// is restored from a snapshot goes back to the snapshot's revision, and would
// issue again the tokens that came after it. Restore with
//
//	etcdutl snapshot restore --bump-revision N --mark-compacted ...
//
// where N is more than all writes since the snapshot. Likewise make-mirror, or
// copying the keys to another cluster, gives them other revisions: let storage
// that remembers the highest token forget it only once no old leader is left.
//
// # Time
//
// The TTLs of etcd are whole seconds, and at least one and a half election
// timeouts of its server: two seconds by default, one where the election
// timeout is at most 666 ms. Others are rounded up, never down. The leader
// of the cluster looks for what has run out every half second, and ends at most
// a thousand leases a second, so that a tenure is held for up to about a second
// longer than its TTL. After each change of the cluster's leader, a restart
// included, all leases start anew, with an election timeout on top: failover
// takes that much longer, and nobody's tenure is cut short.
//
// # Deposed leaders of the cluster
//
// Renewals do not go through etcd's log: the leader only notes them. One that is
// cut off from the others answers keep-alives until it notices, in 3.7 too: as
// long as its own ticks come in time it asks nobody (once they were late, it
// does). Its successor never hears of such a renewal, and the election timeout
// by which it lengthens all leases is meant to cover that. Here nothing hangs on
// it: after each keep-alive [Store.Renew] reads the leader key by way of a
// quorum, and grants only if both answers name the same raft term. Then the one
// that noted the renewal was leader still when it was over, and any successor
// starts the lease anew.
//
// What is left is etcd's own: a deposed leader whose proposal to revoke a lease
// reaches its successor ends a tenure early (etcd-io/etcd issues 12528 and
// 15247; 3.7 narrows this and does not exclude it). The holder believes until
// its next renewal. Nothing that it writes under [Guard] lands.
package etcd
