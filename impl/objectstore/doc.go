// Package objectstore keeps leases with fencing tokens in S3-compatible object
// storage, by conditional writes: a [lease.Store] with one object a lease, and a
// [fence.KV] in an object ([Storage]).
//
// It must not know who leads nor what for, and it compares no time that another
// machine has written, Last-Modified included: what a candidate may believe is for
// package lease.
//
// Start at [New], and at [NewStorage] for the data under the lease.
//
// # Time
//
// An object store keeps no time for a lease. A candidate judges by its own clock:
// it must have seen the same ETag for the whole TTL, and for
// [Options].MaxDriftRate on top, counted from when the answer that showed it had
// come. Only then does it write, with If-Match of that ETag. The rule is [lease.Sight]:
// what it has seen cannot have been written later than it saw it, and its holder
// counts from before:
//
//	holder     sends the renewal ... believes for at most TTL by its own clock
//	bucket            stores it
//	candidate                 sees it ... waits for TTL/(1-MaxDriftRate) by its own clock
//
// So a candidate that never saw the lease finds it held for a whole TTL, however
// long its holder has been dead, and one that polls takes over at most a TTL and a
// poll after the last renewal. Candidates in one process do best to share a [Store].
// Two processes may differ on whether a lease has lapsed: whoever finds that it
// has, and says so, writes it down first. A lapsed tenure is not renewed by a
// process that saw it lapse.
//
// # Why an ETag proves that nothing happened
//
// Many stores make the ETag of the content alone, where two renewals would look
// the same, and a lease that went to another holder and back as if it had never
// left. So each write carries the number of its predecessor plus one and 128
// random bits: no content comes twice. The nonce also tells a writer its own
// write: a request that took effect and was sent again, by a proxy, say, is
// answered 412, and a look at the object shows whose it is. The SDK's retries
// are off for writes.
//
// # Tokens
//
// Tokens rise by one (rule next): the counter is in the object, and the write
// that grants the lease raises it. The object must therefore never be deleted, nor
// expire by a lifecycle rule, nor be restored from a backup:
//
//	THE COUNTER IS LOST WITH THE OBJECT, and tokens are issued twice.
//
// To take a lease from its holder call [Store.Delete], which keeps it. Deny
// s3:DeleteObject on the prefix, and have versions in the bucket. A process that has seen
// a higher token than it finds refuses with a *[RegressedError]; one that has just
// started cannot know. The way back is [Store.Raise], or [Options].FirstToken,
// with the highest token that any storage has seen.
//
// # What it costs
//
// Stores bill by the request. A renewal is one PUT; a poll by somebody else one
// GET. At a TTL of 15 s, renewed and polled each 5 s, a day has 17,280 PUT a lease and
// 17,280 GET a candidate that waits. At 5 and 0.4 millionths of a dollar a request,
// the list price of S3 Standard in us-east-1, that is $0.086 and $0.007 a day.
// In a bucket with versions each renewal is one: have noncurrent ones expire.
//
// # Which servers
//
// It takes strongly consistent reads, and If-Match and If-None-Match: * on
// PutObject that are judged and written in one step. One that ignores the headers
// gives no lease at all.
//
// # What cannot be fenced
//
// A bucket compares no token. An object of the caller's own could carry the token in
// its metadata, which is not in an ETag made of the content: a successor that
// writes the same bytes leaves the ETag as it was, and an old leader's If-Match
// holds. Put each body under a key of its own, and its key into a [Storage].
package objectstore
