package linearizability_test

import (
	"math/rand/v2"
	"testing"
	"time"

	lin "fencepost/linearizability"
	"fencepost/linearizability/internal/lifelike"
)

// anyService is a correct service with any mixture of promises and faults.
func anyService(seed uint64) lifelike.Config {
	rng := rand.New(rand.NewPCG(seed, 2))
	pick := func(d ...time.Duration) time.Duration { return d[rng.IntN(len(d))] }
	chance := func(p float64) float64 { return p * float64(rng.IntN(3)) / 2 }
	ttls := [][]time.Duration{{time.Second}, {time.Second, 300 * time.Millisecond}, {time.Second, 999 * time.Millisecond, 500 * time.Millisecond}}
	return lifelike.Config{
		Seed: seed, Operations: 40 + rng.IntN(120), Leases: 1 + rng.IntN(2), Clients: 2 + rng.IntN(5),
		TTLs:  ttls[rng.IntN(len(ttls))],
		Drift: []int64{0, 1e5, 1e7, 3e8}[rng.IntN(4)],
		Early: pick(0, time.Millisecond, 100*time.Millisecond), Late: pick(0, time.Millisecond, 300*time.Millisecond, lin.Unbounded),
		LockDelay: pick(0, 0, 200*time.Millisecond, 2*time.Second), Eps: pick(0, 0, 0, 3*time.Millisecond),
		Tokens:          []lin.TokenRule{lin.TokensNext, lin.TokensNext, lin.TokensRising, lin.TokensNone}[rng.IntN(4)],
		First:           rng.Uint64N(2),
		Anchor:          []lin.Anchor{lin.AnchorGrant, lin.AnchorGrant, lin.AnchorCall}[rng.IntN(3)],
		RenewAfterLapse: rng.IntN(3) == 0,
		Storage:         rng.IntN(2) == 0, Leads: rng.IntN(2) == 0, Barrier: rng.IntN(4) == 0,
		Unknown: chance(0.1), Duplicates: chance(0.1), Restarts: chance(0.02), Deletes: chance(0.02), Crashes: chance(0.05),
	}
}

// TestNoFalseAlarmInAnyMixture: the promises and faults of a service are judged
// right in company, too.
func TestNoFalseAlarmInAnyMixture(t *testing.T) {
	histories := uint64(40)
	if long() {
		histories = 20_000
	}
	var total tally
	tried := uint64(0)
	more := func() bool { tried += 4; return tried <= histories && total.violated.Load() < 10 }
	batches(more, func(seed uint64) {
		c := anyService(seed)
		v, err := judge(t.Context(), c.History())
		total.add(v)
		if err != nil || v.Result == lin.Violated {
			t.Errorf("%+v: %s %v", c, v, err)
		}
	})
	t.Log(&total)
}
