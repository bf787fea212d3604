package scenario_test

import (
	"time"

	"fencepost/model"
)

// stories are worked out by hand from the rules. Unless a scenario says
// otherwise the TTL is 5 s and the window 4.5 s, renewals are due after a third
// of it, and the first token is 33.
var stories = []story{
	{
		name: "frozen-client",
		facts: []string{
			"0s C1 leads under 33",
			"0s x=10 of C1 lands under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"6s C2 reads x=10",
			"6s x=2 of C2 lands under 34",
			"11s x=1 of C1 is refused: 33 < 34",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "frozen-client-mutant", first: model.StorageSafety, at: 11 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"0s x=10 of C1 lands under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"6s C2 reads x=10",
			"6s x=2 of C2 lands under 34",
			"11s x=1 of C1 lands under 33",
		},
		x: 1, leaders: "C2",
	},
	{
		name: "slow-success-then-cut",
		facts: []string{
			"0s C1 leads under 33",
			"6s C1 steps down",
			"6.5s the lease of C1#1 lapses",
			"6.5s C2 leads under 34",
		},
		leaders: "C2",
	},
	{
		name: "slow-success-then-cut-mutant", first: model.BeliefOwnership, at: 6500 * time.Millisecond,
		facts: []string{
			"0s C1 leads under 33",
			"6.5s the lease of C1#1 lapses",
			"6.5s C2 leads under 34",
		},
		leaders: "C1 C2",
	},
	{
		name: "hung-call",
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"6s the renewal of C1 is refused: lost",
		},
		leaders: "C2",
	},
	{
		name: "hung-call-mutant", first: model.BeliefOwnership, at: 5 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"6s the renewal of C1 is refused: lost",
			"6s C1 steps down",
		},
		leaders: "C2",
	},
	{
		name: "resign-and-reacquire",
		facts: []string{
			"0s C1 leads under 33",
			"1s C1 steps down",
			"1.5s C1 is refused: C1#1 holds for 3.5s",
			"1.6s C1 releases 33",
			"1.6s C2 leads under 34",
		},
		leaders: "C2",
	},
	{
		name: "resign-and-reacquire-mutant", first: model.Continuity, at: 1500 * time.Millisecond,
		facts: []string{
			"0s C1 leads under 33",
			"1s C1 steps down",
			"1.5s C1 leads under 33",
			"1.6s C1 releases 33",
			"1.6s C2 leads under 34",
		},
		leaders: "C1 C2",
	},
	{
		name: "shorter-renewal",
		facts: []string{
			"0s C1 leads under 33",
			"2s C2 is refused: C1#1 holds for 3s",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
		},
		leaders: "C2",
	},
	{
		name: "shorter-renewal-mutant", first: model.BeliefOwnership, at: 2 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"2s the lease of C1#1 lapses",
			"2s C2 leads under 34",
			"4.5s C1 steps down",
		},
		leaders: "C2",
	},
	{
		name: "lease-deleted",
		facts: []string{
			"0s C1 leads under 33",
			"0s x=1 of C1 lands under 33",
			"1s the lease is deleted",
			"1s C2 leads under 34",
			"1s x=2 of C2 lands under 34",
			"1s x=3 of C1 is refused: 33 < 34",
			"1.5s the renewal of C1 is refused: lost",
			"1.5s C1 steps down",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "lease-deleted-mutant", first: model.TokenMonotonicity, at: time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"0s x=1 of C1 lands under 33",
			"1s the lease is deleted",
			"1s C2 leads under 1",
			"1s x=2 of C2 is refused: 1 < 33",
			"1s x=3 of C1 lands under 33",
			"1.5s the renewal of C1 is refused: lost",
			"1.5s C1 steps down",
		},
		x: 3, leaders: "C2",
	},
	{
		name: "store-restart",
		facts: []string{
			"0s C1 leads under 33",
			"2s C2 is refused: C1#1 holds for 5s",
		},
		leaders: "C1",
	},
	{
		name: "store-restart-mutant", first: model.BeliefOwnership, at: 2 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"2s C2 leads under 34",
			"2s the renewal of C1 is refused: lost",
			"2s C1 steps down",
		},
		leaders: "C2",
	},
	{
		// Tried every 500 ms from 62 s on, so at 67 s, where the lease lapses.
		name: "store-restart-new-clock",
		facts: []string{
			"1m0s C1 leads under 33",
			"1m7s the lease of C1#1 lapses",
			"1m7.1s C1 leads under 34",
		},
		leaders: "C1",
	},
	{
		// Due at 67.85 s: two delays of 50 ms for a last refusal, the TTL, a
		// retry and a tick, and two delays for the grant, counted from when the
		// first delay is over. The first event after that is the retry of 68 s.
		name: "store-restart-new-clock-mutant", first: model.Availability, at: 68 * time.Second,
		facts: []string{
			"1m0s C1 leads under 33",
		},
	},
	{
		name: "storage-restart",
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"6s x=1 of C1 is refused: 33 < 34",
			"6s C2 reads x=2",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "storage-restart-mutant", first: model.StorageSafety, at: 6 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"6s x=1 of C1 lands under 33",
			"6s C2 reads x=1",
		},
		x: 1, leaders: "C2",
	},
	{
		name: "suspend",
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"6.5s C1 is refused: C2#1 holds for 3.5s",
		},
		leaders: "C2",
	},
	{
		name: "suspend-mutant", first: model.BeliefOwnership, at: 5 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"6.5s the renewal of C1 is refused: lost",
			"6.5s C1 steps down",
		},
		leaders: "C2",
	},
	{
		name: "freeze",
		facts: []string{
			"0s C1 leads under 33",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"6s x=1 of C1 is refused: 33 < 34",
		},
		x: 2, leaders: "C1 C2",
	},
	{
		name: "freeze-mutant", first: model.StorageSafety, at: 6 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"6s x=1 of C1 lands under 33",
		},
		x: 1, leaders: "C1 C2",
	},
	{
		name: "shared-identity",
		facts: []string{
			"0s C1 leads under 33",
			"0s C2 is refused: C1#1 holds for 5s",
		},
		leaders: "C1",
	},
	{
		name: "shared-identity-mutant", first: model.Continuity,
		facts: []string{
			"0s C1 leads under 33",
			"0s C2 leads under 33",
		},
		leaders: "C1 C2",
	},
	{
		name: "boundary",
		facts: []string{
			"0s C1 leads under 33",
			"4.999999999s R1 hears that C1#1 holds for 1ns",
			"5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
		},
		leaders: "C2",
	},
	{
		name: "boundary-mutant", first: model.BeliefOwnership, at: 5 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"4.999999999s R1 hears that C1#1 holds for 1ns",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
		},
		leaders: "C1 C2",
	},
	{
		name: "work-before-release",
		facts: []string{
			"0s C1 leads under 33",
			"1s C2 is refused: C1#1 holds for 4s",
			"1.5s C1 steps down",
			"1.5s C1 releases 33",
			"1.5s C2 leads under 34",
		},
		leaders: "C2",
		idle:    []int32{7}, // no release is on its way yet
	},
	{
		name: "work-before-release-mutant", first: model.BeliefOwnership, at: time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"1s C1 releases 33",
			"1s C2 leads under 34",
			"1.5s C1 steps down",
			"1.5s the release of C1 is refused: lost",
		},
		leaders: "C2",
		idle:    []int32{14, 15, 16}, // C2 leads already
	},
	{
		name: "beyond-the-bound",
		facts: []string{
			"0s C1 leads under 33",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"5s x=1 of C1 is refused: 33 < 34",
			"5.625s C1 steps down",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "beyond-the-bound-mutant", first: model.StorageSafety, at: 5 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"5s x=1 of C1 lands under 33",
			"5.625s C1 steps down",
		},
		x: 1, leaders: "C2",
	},
	{
		name: "barrier",
		facts: []string{
			"0s C1 fences 33",
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 fences 34",
			"5s C2 leads under 34",
			"5s C2 reads x=0",
			"5s x=1 of C1 is refused: 33 < 34",
			"5s x=2 of C2 lands under 34",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "barrier-off",
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s C2 reads x=0",
			"5s x=1 of C1 lands under 33",
			"5s x=2 of C2 lands under 34",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "barrier-compare-and-swap",
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s C2 reads x=0",
			"5s x=1 of C1 is refused: 33 < 34",
			"5s x=2 of C2 lands under 34",
		},
		x: 2, leaders: "C2",
	},
	{
		name: "barrier-slow",
		facts: []string{
			"0s C1 fences 33",
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s x=1 of C1 lands under 33",
			"5s C2 fences 34",
			"5s C2 leads under 34",
			"5s C2 reads x=1",
		},
		x: 1, leaders: "C2",
	},
	{
		name: "barrier-slow-mutant", first: model.Barrier, at: 5 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"0s C1 fences 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=1 of C1 lands under 33",
			"5s C2 fences 34",
			"5s C2 reads x=1",
		},
		x: 1, leaders: "C2",
	},
	{
		name: "aba",
		facts: []string{
			"500ms C1 leads under 33",
			"500ms x=1 of C1 lands under 33",
			"1s the lease is deleted",
			"1s C2 leads under 34",
			"1s x=2 of C2 lands under 34",
			"1.5s C2 steps down",
			"1.5s C2 releases 34",
			"1.5s C1 steps down",
		},
		x:    2,
		idle: []int32{20, 21}, // whoever does not lead writes nothing
	},
	{
		name: "aba-mutant", first: model.Continuity, at: 1500 * time.Millisecond,
		facts: []string{
			"500ms C1 leads under 33",
			"500ms x=1 of C1 lands under 33",
			"1s the lease is deleted",
			"1s C2 leads under 34",
			"1s x=2 of C2 lands under 34",
			"1.5s C2 steps down",
			"1.5s C2 releases 34",
			"1.5s C1 leads under 35",
			"1.5s x=3 of C1 lands under 35",
		},
		x: 3, leaders: "C1",
	},
	{
		name: "token-laundering",
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"6s C1 hears that C2#1 holds for 4s",
		},
		x: 2, leaders: "C2",
		idle: []int32{17, 18}, // whoever does not lead writes nothing
	},
	{
		name: "token-laundering-mutant", first: model.Attribution, at: 6 * time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
			"5s x=2 of C2 lands under 34",
			"6s C1 hears that C2#1 holds for 4s",
			"6s x=1 of C1 lands under 34",
		},
		x: 1, leaders: "C2",
	},
	{
		name: "offset",
		facts: []string{
			"0s C1 leads under 33",
			"1s C2 is refused: C1#1 holds for 4s",
			"4.5s C1 steps down",
			"5s the lease of C1#1 lapses",
			"5s C2 leads under 34",
		},
		leaders: "C2",
	},
	{
		name: "offset-mutant", first: model.BeliefOwnership, at: time.Second,
		facts: []string{
			"0s C1 leads under 33",
			"1s C2 leads under 34",
			"4.5s C1 steps down",
			"5s the renewal of C2 is refused: lapsed",
			"5s C2 steps down",
		},
	},
}
