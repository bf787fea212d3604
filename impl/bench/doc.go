// Package bench measures fencepost beside what else there is: how long a
// resource has no leader after a resignation and after a kill -9, and what
// holding ten thousand leases costs a process.
//
// It must not be imported, and holds nothing but tests: the measured are the
// Elector, the Group and the stores as anybody uses them.
//
// Start at BenchmarkFailover; the libraries are in libraries_test.go.
//
// # Failover
//
//	go test -run '^$' -bench Failover -benchtime 200x -timeout 30m
//
// One etcd, in the process of a Kubernetes API server that keeps its Leases in
// it (impl/kubernetes/apiserver; the first build takes minutes). Each candidate
// is a process of its own, which tells by CLOCK_BOOTTIME when it leads and when
// it does no more. Two are candidates for each resource, with the same TTL of 3 s
// whatever the library:
//
//   - fencepost: Elector on impl/etcd, all defaults, a drift of 1% and a margin of
//     100 ms;
//   - client-go: leaderelection with a LeaseLock and ReleaseOnCancel, its
//     defaults (15 s, 10 s, 2 s) scaled to the TTL: 3 s, 2 s, 400 ms;
//   - etcd: concurrency.Election in a session with that TTL.
//
// After a resignation: from when the leader is told to resign, as it sees it,
// until the other leads. One library after the other takes its turn, on an
// otherwise idle server. After a kill: from just before the SIGKILL until the
// other leads. For these eight resources of each library are killed at once and
// at random moments of their period of renewals.
//
// What to expect. Once the release is written, who waits in etcd's Election leads
// after a read: its place in the queue was written beforehand, and leads whether or
// not anybody is there to know. The Elector's acquire is decided when it is made,
// so its successor has one write to etcd's log to wait for. After a kill that does
// not show beside the TTL; but the session of concurrency renews less often than
// the Elector, so that less of the TTL is left when it dies.
//
// Two believers are two intervals of lead of one resource that overlap; that of
// a killed process ends when the kill has returned.
//
// # Ten thousand leases
//
//	go test -run '^$' -bench TenThousand -benchtime 120x -timeout 30m
//
// One Group holds 10,000 leases with a TTL of 15 s for as many seconds as
// -benchtime says: on SQLite on disk, in this process as it is everywhere, and
// on etcd in another process.
package bench
