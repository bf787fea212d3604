// Package fence is storage that a deposed leader cannot damage: it judges every
// write by the fencing token the write carries, and so holds whatever clocks,
// pauses and networks do. A lease alone cannot: between the leader's last look
// at its clock and the landing of its write any time may pass.
//
// It must not know the time, nor who holds a lease or believes so. The token
// decides, against the tokens processed before or against the lease's record;
// how leases come and go is package lease.
//
// Start at [Guard], the rule; [Storage] keeps it for a key-value storage, and
// the leader's first act there is [Storage.Fence], the barrier. [CompareAndSwap]
// is the other rule in use, for data that lives beside its lease, and [Unfenced]
// shows what happens without either.
//
// # Which rule lets what through
//
// Client a is granted a lease under token 33; its successor b gets 34. Each row
// is a history and the last write of it, and says whether that write lands:
//
//	last write, and what went before                   highest seen  compare-and-swap  unfenced
//	a, for the second time                             lands         lands             lands
//	b, for the first time                              lands         lands             lands
//	a, lapsed; nobody took over                        lands         lands             lands
//	a, lapsed, somebody was told; nobody took over     lands         lands             lands
//	a, released; nobody took over                      lands         refused           lands
//	a, lease deleted; nobody took over                 lands         refused           lands
//	a, after b wrote                                   refused       refused           lands !
//	a, after b wrote another key                       refused       refused           lands !
//	a, after b fenced                                  refused       refused           lands !
//	a, after b fenced and the storage restarted        refused       refused           lands !
//	a, after b was granted, before b fenced and read   lands         refused           lands
//	a, after b was granted and read, before it fenced  lands !       refused           lands !
//	a, lease deleted, after b was granted and fenced   refused       refused           lands !
//	a, under 33, after a itself got 34 and fenced      refused       refused           lands !
//	a, under 34, which it read from the lease          lands !       lands !           lands !
//	anybody, under 99, which was never granted         lands !       refused           lands !
//	a, after somebody wrote under 99                   refused !     lands             lands
//	a late copy of a's first, after a's second         lands !       lands !           lands !
//	b, under 1: the store lost its counter             refused !     lands             lands
//	a, after b got 33 too: the store lost its counter  lands !       lands !           lands !
//
// An exclamation mark is harm: a write lands under a token that its sender was
// never granted, or after a successor has begun to act (has read, fenced or
// written), or it undoes a later one of its own; or a holder is refused. Where a
// late write does none of these, to land and to be refused are equally safe.
//
// What follows from it:
//
//   - Highest seen needs one integer beside the data, as durable as the data,
//     and nothing of the lease: it is the rule for storage that stands
//     elsewhere. It is one integer for all that the lease protects; one per
//     key, or per row of a table, lets a zombie write every key that its
//     successor has not written yet.
//   - It needs the barrier too. A successor that reads before it has fenced may
//     decide by what a zombie is about to overwrite.
//   - A token from nowhere locks it up for all lower ones, so those who may
//     write must be trusted to use their own.
//   - Compare-and-swap needs the lease and the data in one place, under one
//     lock or transaction, and no barrier.
//   - Neither tells who sends: a client must use only the token of its own
//     grant, never one that it reads from the lease. Neither orders the writes
//     of one term: where the network may repeat or reorder, number them. And
//     neither survives a store that issues a token twice.
//
// The rule of the highest token is in Kleppmann, "How to do distributed locking"
// (2016). Burrows, "The Chubby lock service" (OSDI 2006), has both: a sequencer
// is compared with the lock itself, or with the latest one observed.
package fence
