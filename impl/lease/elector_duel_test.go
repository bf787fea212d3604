package lease

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// duel lets two electors, on clocks of their own, compete for one lease at a
// store that loses requests and answers, is late with both, and cuts them off at
// times, until there were enough terms. settle lets them react to each advance. It gives
// the number of terms, and of instants at which both believed.
type duel struct {
	base         *clock.Manual
	maxDrift     float64
	alice, bob   clock.Rate // against base; the store's is 102%
	settle       func()
	ownershipToo bool // also check that who believes holds the lease; needs quiescence
}

func (d duel) fight(t *testing.T, seed uint64, enough int) (terms, overlaps int) {
	cfg := Config{TTL: 10 * sec, MaxDriftRate: d.maxDrift, RetryInterval: sec} // no margin: the bound alone
	storeClock := clock.NewDrifting(d.base, 1_020_000, 42*sec)
	memory := newMemory(t, storeClock, MemoryOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		rivals  []*Elector
		highest Token
	)
	for i, rate := range []clock.Rate{d.alice, d.bob} {
		rnd := &dice{rnd: rand.New(rand.NewPCG(seed, uint64(i)))}
		store := proxy{memory, func(ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
			if (d.base.Now()+time.Duration(i)*20*sec)%(40*sec) < 12*sec {
				return Grant{}, errLost // cut off, each in turn, for longer than a TTL
			}
			return d.unreliable(ctx, rnd, call)
		}}
		e, err := NewElector(store, ElectorConfig{Resource: "db", Node: []string{"alice", "bob"}[i], Timing: cfg, Clock: clock.NewDrifting(d.base, rate, time.Duration(i)*7*sec), Nonce: 1})
		if err != nil {
			t.Fatal(err)
		}
		rivals = append(rivals, e)
		wg.Go(func() {
			e.Run(ctx, func(ctx context.Context, term Term) error {
				mu.Lock()
				// A term may be over before its work is scheduled; then it must know.
				if terms++; term.Token <= highest && term.Valid() {
					t.Errorf("token %d is led under after %d", term.Token, highest)
				}
				highest = max(highest, term.Token)
				mu.Unlock()
				if rnd.roll(3) == 0 {
					<-ctx.Done()
					d.sleep(context.Background(), time.Duration(rnd.roll(2000))*ms) // takes its time
				} else {
					d.sleep(ctx, time.Duration(rnd.roll(30_000))*ms)
				}
				return nil
			})
		})
	}
	steps := rand.New(rand.NewPCG(seed, 2))
	for n, over := 0, 0; n < 1_000_000 && over < enough; n++ {
		d.base.Advance(time.Duration(steps.IntN(300)) * ms)
		d.settle()
		// A term that is over stays over: if both are found valid, the first one
		// last, then both were so when the second was looked at.
		ta, tb := rivals[0].Term(), rivals[1].Term()
		if tb.Valid() && ta.Valid() {
			overlaps++
		}
		for _, term := range []Term{ta, tb} {
			if d.ownershipToo && term.Valid() {
				if o, _ := memory.Get(t.Context(), "db"); o.Holder != term.Holder || o.Token != term.Token {
					t.Errorf("%v believes under %d, but the store says %+v", term.Holder, term.Token, o)
				}
			}
		}
		mu.Lock()
		over = terms
		mu.Unlock()
	}
	cancel()
	// What still waits for time to pass gets it.
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			return terms, overlaps
		default:
			d.base.Advance(sec)
			d.settle()
		}
	}
}

// unreliable makes the call, or loses it before or after, or is late.
func (d duel) unreliable(ctx context.Context, rnd *dice, call func() (Grant, error)) (Grant, error) {
	late := time.Duration(rnd.roll(4000)) * ms
	deaf := ctx
	if rnd.roll(2) == 0 {
		deaf = context.WithoutCancel(ctx)
	}
	switch rnd.roll(6) {
	case 0:
		return Grant{}, errLost
	case 1:
		call()
		return Grant{}, errLost
	case 2:
		d.sleep(deaf, late)
	case 3:
		defer d.sleep(deaf, late)
	}
	return call()
}

func (d duel) sleep(ctx context.Context, long time.Duration) {
	timer := d.base.Timer(d.base.Now() + long)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// dice may be thrown by several goroutines.
type dice struct {
	sync.Mutex
	rnd *rand.Rand
}

func (d *dice) roll(n int) int {
	d.Lock()
	defer d.Unlock()
	return d.rnd.IntN(n)
}

// Slow by 2.9% against a store that is fast by 2%: 0.971/1.02 is just within the
// bound of 5%.
const slowest = 971_000

func TestTwoElectorsNeverBelieveAtOnceWithinTheBound(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			d := duel{base: clock.NewManual(0), maxDrift: 0.05, alice: slowest, bob: 1_000_000, settle: synctest.Wait, ownershipToo: true}
			terms, overlaps := d.fight(t, seed, 30)
			if terms < 30 || overlaps > 0 {
				t.Errorf("seed %d: %d terms, both believed at %d instants", seed, terms, overlaps)
			}
		})
	}
}

// The same duel without the allowance for drift, to show that it can be lost, and
// that the allowance does the work.
func TestTwoElectorsDoBelieveAtOnceWithoutTheAllowance(t *testing.T) {
	overlaps := 0
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			d := duel{base: clock.NewManual(0), maxDrift: 0, alice: slowest, bob: slowest, settle: synctest.Wait}
			_, n := d.fight(t, seed, 60)
			overlaps += n
		})
	}
	if overlaps == 0 {
		t.Error("no overlap without the allowance: the duel detects nothing")
	}
}

// Without a bubble: real goroutines, as the scheduler likes, for the race detector.
func TestTwoElectorsNeverBelieveAtOnceHoweverTheyAreScheduled(t *testing.T) {
	d := duel{base: clock.NewManual(0), maxDrift: 0.05, alice: slowest, bob: 1_000_000, settle: func() {
		for range 20 {
			runtime.Gosched()
		}
	}}
	terms, overlaps := d.fight(t, 1, 20)
	if terms < 20 || overlaps > 0 {
		t.Errorf("%d terms, both believed at %d instants", terms, overlaps)
	}
}
