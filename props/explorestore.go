package props

import (
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
	"fencepost/props/storetest"
)

// ExploreOptions say how far [ExploreStore] goes. The zero value plays every
// sequence of up to five steps.
type ExploreOptions = script.ExploreOptions

// ExploreStore plays every sequence of requests, passages of time and crashes
// up to a length against the lease store that open makes: what it does not find
// is not there, in sequences of that length. A failure is by a shortest one.
//
// The store is opaque, so that each sequence is played from its beginning, on a
// lease of its own, some twelve times as many with each step more. One that is a [kit.Snapshotter] is
// put back instead, and sequences that lead to one state are followed once. See
// [script.Explore] for what makes a sequence different from another.
func ExploreStore(t *testing.T, open func(Env) lease.Store, o Options, x ExploreOptions) {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	explore := kit.Check{Name: "explore", Run: func() kit.Outcome { return storetest.Explore(t.Context(), open, o, x) }}
	c := conformance{checks: plain([]kit.Check{explore}), replay: storeReplay(open, o)}
	c.run(real{t})
}
