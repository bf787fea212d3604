// Package model says what must hold of a lease-based leader election and of
// the storage it protects: the events a run consists of, the invariants over
// them, and sequential and timed specifications of lease and storage.
//
// It must not know any implementation: it imports nothing of ours, since an
// oracle that shares code with what it checks is no oracle. Nor does it know
// whether events come from a simulation or from real processes.
//
// Start at [Event] for the vocabulary, [Monitor] for what must never happen,
// [LeaseSpec] and [StorageSpec] for what each answer must be, and
// [TimedParams] for what a recorded history may look like. [Contract] judges
// one answer of a store after the other, of any store that keeps its [Promise],
// by [Rule]. [Explore] walks all states of any system that packs them into
// bytes.
package model
