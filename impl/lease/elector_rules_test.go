package lease

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// simulations is how many runs there are: FENCEPOST_LONG has the many, and
// FENCEPOST_SIMULATIONS any number.
func simulations() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("FENCEPOST_SIMULATIONS"), 10, 64); err == nil {
		return n
	}
	if os.Getenv("FENCEPOST_LONG") == "1" {
		return 100_000
	}
	return 1_500
}

// Whatever happens to an elector, and each of these things happens in more than
// one of a hundred runs.
func TestElectorsKeepEveryRuleInEveryRun(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	runs, failed := simulations(), 0
	shards := uint64(runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for shard := range shards {
		wg.Go(func() {
			for seed := 1 + shard; seed <= runs; seed += shards {
				on := (&campaign{seed: seed}).simulate(t)
				mu.Lock()
				for what := range on.seen {
					seen[what]++
				}
				enough := failed >= 3
				if len(on.breached) > 0 && !enough {
					failed++
					for _, rule := range slices.Sorted(maps.Keys(on.breached)) {
						t.Errorf("seed %d: %s: %s\n%s", seed, rule, on.breached[rule], on.story())
					}
				}
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d runs, of which so many saw: %v", runs, seen)
	for _, what := range []string{"lapsed", "refused", "resigned", "stopped", "takeover", "a hung call at the deadline", "a pause past the bound", "barrier failed"} {
		if uint64(seen[what])*100 <= runs {
			t.Errorf("%d of %d runs saw: %s; want more than one of a hundred", seen[what], runs, what)
		}
	}
}

func TestASimulatedRunIsItsSeed(t *testing.T) {
	for seed := range uint64(40) {
		one, two := (&campaign{seed: seed, prompt: true}).simulate(t), (&campaign{seed: seed, prompt: true}).simulate(t)
		slices.Sort(one.trace)
		slices.Sort(two.trace)
		if !slices.Equal(one.trace, two.trace) {
			i := 0
			for i < min(len(one.trace), len(two.trace))-1 && one.trace[i] == two.trace[i] {
				i++
			}
			t.Errorf("seed %d: %d and %d events, from\n%s\nand\n%s", seed, len(one.trace), len(two.trace), one.trace[i], two.trace[i])
		}
	}
}

func TestWhatIsPlantedInARunIsCaught(t *testing.T) {
	for name, c := range map[string]struct {
		planted planted
		want    []string // any of these
	}{
		"a timer that is late": {planted{lateTimer: 20 * ms}, []string{simContext}},
		"a store that lapses early": {planted{ask: func(r Request) Request {
			r.TTL /= 2
			return r
		}}, []string{simOwner, simBelievers}},
		"a clock slower than the bound": {planted{slow: 600_000}, []string{simOwner, simBelievers}},
		"two with one identity":         {planted{twins: true}, []string{simItself}},
		"a counter that stands still": {planted{answers: func(_ Request, g Grant, err error) (Grant, error) {
			g.Token = min(g.Token, 1)
			return g, err
		}}, []string{simTwice}},
		"a lost answer taken for a grant": {planted{answers: func(r Request, g Grant, err error) (Grant, error) {
			if r.Op == OpRenew && err == errLost {
				return Grant{Resource: "db", Holder: r.Holder, Token: r.Token, TTL: r.TTL}, nil
			}
			return g, err
		}}, []string{simOwner, simBelievers}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				on := (&campaign{seed: seed, planted: c.planted, wrong: true}).simulate(t)
				for _, rule := range c.want {
					if said, ok := on.breached[rule]; ok {
						t.Logf("seed %d: %s: %s", seed, rule, said)
						return
					}
				}
			}
			t.Errorf("not caught by any of %q", c.want)
		})
	}
}
