// Package kubernetes keeps leases with fencing tokens in Lease objects of
// coordination.k8s.io/v1: a [lease.Store] whose tokens are resource versions,
// and what can be fenced of the objects that a leader writes ([Admit],
// [ConfigMap]).
//
// It must not know who leads nor what for, and it compares no time that another
// machine has written: what a candidate may believe is for package lease.
//
// Start at [New], and at [Admit] for the objects under the lease.
//
// # Time
//
// The API server keeps no time for a Lease. It stores what clients write, and
// renewTime is the wall clock of whoever renewed last: judged on another machine
// it ends a tenure early by the offset between the two. So no rule here reads
// it. A candidate judges by its own clock: it must have seen the same
// resource version, which each renewal changes, for the whole
// leaseDurationSeconds and [Options].MaxDriftRate on top, counted from when the
// answer that showed it had come. Only then does it update the object, and on
// the condition that this is still its resource version. The rule is [lease.Sight].
// It is sound, because what it has seen cannot have been written later than it saw it:
//
//	holder       sends the renewal ... believes for at most TTL by its own clock
//	server              stores it
//	candidate                  sees it ... waits for TTL/(1-MaxDriftRate) by its own clock
//
// It also makes failover slow for whoever looks seldom: a candidate that has
// never seen the lease finds it held for the whole duration, however long its
// holder has been dead. One that polls takes over at most a duration and a
// poll after the lapse; one that watches ([Store.Watch]) sees each renewal
// when it happens, and takes over on time. Any number of candidates in one
// process do best to share a [Store], which remembers what it saw.
//
// Two processes may differ on whether a lease has lapsed, since each judges by
// what it saw. So whoever finds that it has, writes that down: by taking it over,
// or, in [Store.Get], by releasing it in its holder's place. Until then the last
// holder may go on renewing it, and nobody is the worse for that.
//
// # What is in a Lease
//
// holderIdentity is the holder's text form, and empty after a release;
// leaseDurationSeconds, acquireTime, renewTime and leaseTransitions are kept as
// client-go's leader election keeps them, for people and other tools.
// The fencing token is the resource version of the update, or creation, that
// began the tenure. Each renewal changes the resource version, so the first one
// writes the token into the annotation [TokenAnnotation], together with the
// transition that it belongs to; where there is none yet, the token is the
// resource version itself. A retry of an acquire whose answer was lost finds its
// token in either case. leaseTransitions would not do: they start again with
// the object.
//
// To take a lease from its holder, delete the object:
//
//	kubectl delete lease NAME
//
// An update of what was deleted creates it again, unless it names the UID:
// those of this package do.
//
// # Tokens
//
// Tokens rise, but not by one (rule rising): the resource version is etcd's
// revision, which counts all writes. They rise over release, lapse, deletion of
// the object and restarts. That resource versions of one resource are integers
// that may be compared is promised since Kubernetes 1.35 (KEP-5504), and was so
// before on every API server that keeps its objects in etcd. One exception is
// the operator's: an etcd that is restored from a snapshot goes back to the
// snapshot's revision. Restore with
//
//	etcdutl snapshot restore --bump-revision N --mark-compacted ...
//
// where N is more than all writes since the snapshot, as etcd recommends for
// Kubernetes anyway. Likewise a new cluster starts anew.
//
// # Other candidates of the same Lease
//
// A candidate of client-go's leaderelection package has no token, so what it
// writes is not fenced: the two do not mix. A Lease whose holder is none of
// fencepost's is refused with a *[ForeignError], unless [Options].Foreign is
// set, for the time of a rolling update from one to the other: then each waits
// for the other as it does for its own. Tokens rise over that, too.
//
// # Client-side throttling
//
// A rest.Config allows 5 requests a second unless told otherwise, and makes
// those above wait, renewals included. Set its QPS to what the leases of the
// process need, a renewal being one request, or to -1.
//
// # What cannot be fenced
//
// The API server knows no token. It checks the resource version of the object
// that is written, and of no other, so that there is no write to one object on
// the condition that a lease, which is another, still has its holder. What there is:
//
//   - Objects that only the leader writes: [Admit] puts the token into each, and
//     an update with the resource version that was read lets no lower one land.
//     A new leader does so to all of them before it writes: its barrier.
//     [ConfigMap] is a storage made that way.
//   - Objects that others write too can be admitted likewise, as long as whoever
//     else updates them keeps the annotation, which an update or patch of other
//     fields does.
//   - Creations, deletions, server-side apply and patches without a resource
//     version are not fenced. A deletion can carry the resource version as its
//     precondition. For the rest there is a validating admission webhook or
//     policy that compares the annotation of the new object with the old one's.
//   - What is outside the API, such as the database behind a controller, is
//     fenced there.
package kubernetes
