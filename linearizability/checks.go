package linearizability

import (
	"slices"

	"fencepost/model"
)

// CheckInfo says what one check beside linearizability looks for. Its name is
// that of the anomaly, and stable.
type CheckInfo struct {
	Name      string          `json:"name"`
	Invariant model.Invariant `json:"invariant"`
	Blame     []Party         `json:"blame"`
	Meaning   string          `json:"meaning"`
	Source    string          `json:"source"` // of the rule, or where its breach was seen
}

// Checks returns all checks beside linearizability.
func Checks() []CheckInfo {
	out := slices.Clone(checks[:])
	for i := range out {
		out[i].Blame = slices.Clone(out[i].Blame)
	}
	return out
}

// The names of the checks.
const (
	checkOverlap     = "overlap"
	checkOverstayed  = "overstayed"
	checkUngranted   = "led-ungranted"
	checkContinuity  = "continuity"
	checkTakenEarly  = "taken-early"
	checkLapsedEarly = "lapsed-early"
	checkOrphan      = "orphan-lease"
	checkTwoOwners   = "two-owners"
	checkNotRising   = "token-not-rising"
	checkGap         = "token-gap"
	checkGrantedBack = "token-granted-twice"
	checkAlready     = "already-from-nowhere"
	checkSlot        = "slot-out-of-range"
	checkStale       = "stale-write-landed"
	checkBarrier     = "write-before-barrier"
	checkWrite       = "write-ungranted"
	checkPhantom     = "phantom"
	checkLost        = "lost-write"
	checkRenamed     = "owner-misrecorded"
	checkRetoken     = "token-misrecorded"
)

// checks is the vocabulary of findings, in the order in which they are reported.
var checks = [...]CheckInfo{
	{checkOverlap, model.BeliefSafety, []Party{BlameStore, BlameClient},
		"two led one lease, or one slot of it, at one instant: the earlier leader stayed too long, or the store granted to the later one too early",
		"Gray & Cheriton, Leases (1989); Kleppmann, How to do distributed locking (2016); Redis Redlock, etcd locks (Jepsen, etcd 3.4.3)"},
	{checkOverstayed, model.BeliefOwnership, []Party{BlameClient},
		"somebody led beyond the TTL counted from the call of the last acquire or renewal that succeeded",
		"Gray & Cheriton (1989), the term of a lease is counted by its holder from before it asked; a pause between check and act, Kleppmann (2016)"},
	{checkUngranted, model.BeliefOwnership, []Party{BlameClient},
		"somebody led under a token that no acquire can have granted to it",
		"a waiter whose own lease lapsed while it queued, told success all the same: etcd's lock (Jepsen, etcd 3.4.3)"},
	{checkContinuity, model.Continuity, []Party{BlameClient},
		"a token was led under twice: a belief ended and came back",
		"the ABA problem: lost and silently regained; a restart that resumes its old lease"},
	{checkTakenEarly, model.BeliefOwnership, []Party{BlameStore},
		"the store granted the lease, or a slot of it, to another before the TTL of the last grant or renewal can have run out",
		"Gray & Cheriton (1989); a store that forgets TTLs at restart or change of its leader (Jepsen, etcd and Hazelcast locks)"},
	{checkLapsedEarly, model.BeliefOwnership, []Party{BlameStore},
		"an owner was refused as no longer holding the lease before the TTL of its last grant or renewal can have run out, though nobody released or deleted it",
		"Gray & Cheriton (1989); a lease revoked by a new leader of the store; etcd's lock in Knossos's corpus, with the TTL taken for longer than it was"},
	{checkOrphan, model.Availability, []Party{BlameStore},
		"a lease was still held when the TTL of all that is on record had run out, with the lateness that meta promises",
		"a deposed or restarted store that never expires leases; ephemeral nodes of ZooKeeper that outlive their session"},
	{checkTwoOwners, model.TokenMonotonicity, []Party{BlameStore, BlameClient},
		"one token had two owners: two grants of it, or a grant and a write that landed in another's name",
		"Kleppmann (2016): a token identifies one tenure; two processes with one identity; Queen's lease workload"},
	{checkNotRising, model.TokenMonotonicity, []Party{BlameStore},
		"a later grant got a lower token, or the same one as a new grant",
		"Kleppmann (2016); a counter kept in the lease object that was deleted; Hazelcast's FencedLock, Jepsen 2019"},
	{checkGap, model.TokenMonotonicity, []Party{BlameStore},
		"under the rule next more tokens are missing than acquires with unknown outcome can have taken",
		"the rule next: each change of ownership gets exactly the next integer"},
	{checkGrantedBack, model.TokenMonotonicity, []Party{BlameStore},
		"a token was granted again after its release",
		"Kleppmann (2016); a client that is identified by its node and not by its tenure"},
	{checkAlready, model.TokenMonotonicity, []Party{BlameStore},
		"an acquire found an earlier grant of its owner that no acquire can have made",
		"Queen's lease workload"},
	{checkSlot, model.BeliefSafety, []Party{BlameStore},
		"a slot was granted, or wrote, that the lease does not have",
		"Queen's lease workload; semaphores that give out more permits than they have (Jepsen, Hazelcast and etcd)"},
	{checkStale, model.StorageSafety, []Party{BlameStorage},
		"a write landed after the storage had processed a higher token",
		"Kleppmann (2016): the storage checks the fencing token; HBase's region servers after a long pause"},
	{checkBarrier, model.Barrier, []Party{BlameClient},
		"a write landed under a token below that of a leader of its lease who had begun to lead, though meta says that leaders fence first",
		"the delayed request of a deposed leader, before the new one has written: Chubby's lock-delay (Burrows 2006)"},
	{checkWrite, model.Attribution, []Party{BlameClient},
		"a write landed under a token that was not granted to its sender",
		"a stale holder that reads the lease again and writes with its successor's token"},
	{checkPhantom, model.Durability, []Party{BlameStorage},
		"a record landed that nobody wrote, or whose write was refused or never sent",
		"aborted reads, Adya (1999); Queen's lease workload"},
	{checkLost, model.Durability, []Party{BlameStorage},
		"a read, or a list of what landed, shows older than a write that was acknowledged before",
		"lost updates after a failover (Jepsen, MongoDB and Redis)"},
	{checkRenamed, model.NoInvariant, []Party{BlameRecorder},
		"an operation returned in the name of another owner than called it",
		"one process for two clients in the recording program"},
	{checkRetoken, model.NoInvariant, []Party{BlameRecorder},
		"an operation returned with another token than it carried, or a renewal succeeded under a token that was granted to nobody while its owner had another",
		"a token kept in a variable that the next grant overwrites"},
}

// checkNamed is the check with a name, which is one of the table's.
func checkNamed(name string) CheckInfo {
	return checks[slices.IndexFunc(checks[:], func(c CheckInfo) bool { return c.Name == name })]
}
