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

// Each rule has something wrong that breaks it, and all that is wrong is caught.
func TestEveryRuleOfARunCatchesWhatIsPlanted(t *testing.T) {
	caught := map[string]bool{}
	for _, c := range []struct {
		name    string
		planted planted
		want    []string // all of these, in one run or another
	}{
		{"a timer that is late", planted{lateTimer: 20 * ms}, []string{simContext, simAgree}},
		{"a term read on a clock that is behind", planted{behind: 20 * ms}, []string{simValid}},
		{"a term read on a clock that is ahead", planted{behind: -20 * ms}, []string{simAgree}},
		{"a store that lapses early", planted{ask: func(r Request) Request {
			r.TTL /= 2
			return r
		}}, []string{simOwner, simBelievers}},
		{"a clock slower than the bound", planted{slow: 600_000}, []string{simOwner, simBelievers}},
		{"two with one identity", planted{twins: true}, []string{simItself, simTwice}},
		{"work that goes on after lead has returned", planted{deserter: true}, []string{simItself}},
		{"a counter that stands still", planted{answers: func(_ Request, g Grant, err error) (Grant, error) {
			g.Token = min(g.Token, 1)
			return g, err
		}}, []string{simTwice, simOwner}},
		{"a lost answer taken for a grant", planted{answers: func(r Request, g Grant, err error) (Grant, error) {
			if r.Op == OpRenew && err == errLost {
				return Grant{Resource: "db", Holder: r.Holder, Token: r.Token, TTL: r.TTL}, nil
			}
			return g, err
		}}, []string{simOwner, simBelievers}},
		{"a call that never comes back", planted{deaf: true}, []string{simLeft}},
	} {
		t.Run(c.name, func(t *testing.T) {
			missing := slices.Clone(c.want)
			for seed := uint64(0); seed < 200 && len(missing) > 0; seed++ {
				on := (&campaign{seed: seed, planted: c.planted, wrong: true}).simulate(t)
				missing = slices.DeleteFunc(missing, func(rule string) bool {
					said, ok := on.breached[rule]
					if ok {
						t.Logf("seed %d: %s: %s", seed, rule, said)
						caught[rule] = true
					}
					return ok
				})
			}
			if len(missing) > 0 {
				t.Errorf("not caught by %q", missing)
			}
		})
	}
	for _, rule := range simRules {
		if !caught[rule] {
			t.Errorf("nothing planted broke: %s", rule)
		}
	}
}
