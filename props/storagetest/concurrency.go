package storagetest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"fencepost/props/kit"
)

// duelCalls is about how many calls a round makes: its successor comes before
// the stale leader is through.
var duelCalls = 4 + staleWriters*staleWrites*3/4

// againstAFence has a successor fence while its predecessor writes.
func againstAFence(open opener, o Options, e kit.Effort) kit.Outcome {
	return races(open, o, e, 12, duelCalls, func(r *race, rnd *rand.Rand, n int) {
		r.duel(rnd, n, step{do: doFence, token: r.succ})
	})
}

// againstAWrite has a successor write while its predecessor does.
func againstAWrite(open opener, o Options, e kit.Effort) kit.Outcome {
	return races(open, o, e, 12, duelCalls, func(r *race, rnd *rand.Rand, n int) {
		r.duel(rnd, n, step{do: doWrite, token: r.succ, key: "x", value: fmt.Sprintf("new%d", n)})
	})
}

// againstAGrant has the lease granted anew while its last holder writes.
func againstAGrant(open opener, o Options, e kit.Effort) kit.Outcome {
	return races(open, o, e, 24, duelCalls, func(r *race, rnd *rand.Rand, n int) {
		r.duel(rnd, n, step{do: doGrant, token: r.succ})
	})
}

// manyKeys has one leader write several keys at once: all of it must land, and
// stay.
func manyKeys(open opener, o Options, e kit.Effort) kit.Outcome {
	const keys, writes = 4, 3
	return races(open, o, e, 6, keys*(writes+1), func(r *race, _ *rand.Rand, n int) {
		r.alone = true
		defer r.grant(r.succ) // so that the next round's token is the next one
		var wg sync.WaitGroup
		last := make([]done, keys)
		for k := range keys {
			wg.Go(func() {
				for i := range writes {
					last[k] = r.do(step{do: doWrite, token: r.old, key: fmt.Sprintf("k%d", k), value: fmt.Sprintf("v%d.%d", n, i)})
					if last[k].said != saidDone || last[k].setup != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		if !r.sound(last...) {
			return
		}
		for _, d := range last {
			if d.said == saidStale {
				r.convict(equalTokenLands, "the only leader there is was refused", "must land: no higher token was seen", d)
				return
			}
		}
		if o.NoRead || !r.sure(last...) {
			return
		}
		for _, d := range last {
			read := r.do(step{do: doRead, key: d.key})
			if !r.sound(read) || !r.sure(read) {
				return
			}
			if read.answer.value != d.step.value {
				r.convict(readGivesWhatLandedLast, fmt.Sprintf("a write of %s=%s is lost: others wrote other keys at the same time", d.key, d.wrote()), "must be "+d.wrote(), append(last, read)...)
				return
			}
		}
	})
}
