package explore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/mutant"
	"fencepost/props/sim"
)

// steps is how long a walk is along which worlds are compared.
const steps = 100

// everything is a set-up in which nearly all that can happen does.
func everything() explore.Options {
	o := explore.Default()
	o.Clients, o.Messages, o.Keys, o.Barrier, o.LockDelay = 3, 3, 2, true, 1
	o.Faults = explore.Loss | explore.Duplication | explore.Drifting | explore.Writes | explore.Resignation | explore.Work |
		explore.ClientCrash | explore.StoreCrash | explore.StorageCrash | explore.Suspension | explore.Deletion | explore.WallJumps
	return o
}

// setups are those of the built-in rules in which keys are tested.
func setups() map[string]explore.Options {
	barrier, crash := explore.Default(), explore.Default()
	barrier.Barrier, barrier.Messages = true, 4
	crash.Faults |= explore.ClientCrash | explore.StoreCrash | explore.StorageCrash | explore.Work
	return map[string]explore.Options{"defaults": explore.Default(), "barrier": barrier, "crashes": crash, "everything": everything()}
}

// resets is a set-up of a store that forgets its counter. What that breaks at
// once is not judged, so that its worlds go on; nor is availability, since in
// fair time the clients take turns, in an order that a key may forget.
func resets() explore.Options {
	o := everything()
	o.Clients, o.Messages = 2, 2
	o.Subject.Name, o.Subject.Store, o.Subject.Layout = "resets", resetsTokens{}, sim.Layout{Unsound: sim.TokenRanks}
	o.Judged = explore.Judgeable &^ model.SetOf(model.TokenMonotonicity, model.Continuity, model.Lockstep, model.Availability)
	return o
}

// resetsTokens is a store that forgets its counter, and nothing else, when it
// restarts.
type resetsTokens struct{ sim.Store }

func (r resetsTokens) Restart(s *sim.StoreState, now sim.Clocks) {
	r.Store.Restart(s, now)
	s.Token = 0
}

// budget is how many pairs of worlds each test compares.
type budget struct {
	setup     int // for a set-up, with the reductions that exploration uses
	reduction int // for a set-up, with some of them
	bug       int // for a planted bug
}

// budgetOf splits about n pairs.
func budgetOf(n int) budget { return budget{setup: n / 10, reduction: n / 250, bug: n / 100} }

// full is what a plain run of the tests spends. A flaw of the keys has to show
// within it.
var full = budgetOf(100_000)

// spent is what this run does: of as many pairs as FENCEPOST_PAIRS says, if it is
// set.
func spent(t *testing.T) budget {
	if s := os.Getenv("FENCEPOST_PAIRS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("FENCEPOST_PAIRS: %v", err)
		}
		return budgetOf(n)
	}
	if race || testing.Short() {
		return budgetOf(5_000)
	}
	return full
}

func newTwins(t *testing.T, o explore.Options, space sim.SpaceOptions) *explore.Twins {
	t.Helper()
	x, err := explore.NewTwins(o, space)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// part compares up to most pairs on walks by fixed seeds, until two worlds part.
func part(x *explore.Twins, seed uint64, most int) (pairs int, err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for err == nil && pairs < most {
		var n int
		n, err = x.Walk(steps, rng.IntN)
		pairs += n
	}
	return pairs, err
}

// Worlds that a key takes for one go on alike, whatever happens to them: for
// each reduction by itself, and above all for those that exploration uses.
func TestWorldsOfOneKeyGoOnAlike(t *testing.T) {
	b := spent(t)
	var compared atomic.Int64
	defer func() { t.Logf("%d pairs of worlds", compared.Load()) }()
	check := func(name string, o explore.Options, r sim.Reductions, share int) {
		t.Run(fmt.Sprintf("%s/%v", name, r), func(t *testing.T) {
			x := newTwins(t, o, sim.SpaceOptions{Reductions: r})
			failed := false
			n := 0
			for n < share {
				rapid.Check(t, func(t *rapid.T) {
					if n >= share && !failed { // else a failure could not be shrunk
						return
					}
					k, err := x.Walk(steps, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
					n += k
					if err != nil {
						failed = true
						t.Fatal(err)
					}
				})
			}
			compared.Add(int64(n))
		})
	}
	for name, o := range setups() {
		check(name, o, sim.AllReductions, b.setup)
		for _, r := range sim.AllReductions.All() {
			check(name, o, r, b.reduction)
		}
		// With those that they need.
		check(name, o, sim.Symmetry|sim.IncarnationRanks|sim.MessageOrder, b.reduction)
		check(name, o, sim.Irrelevance|sim.IncarnationRanks|sim.Saturation, b.reduction)
	}
	check("resets", resets(), sim.AllReductions, b.setup)
}

// The worlds of planted bugs do too, and so what the monitor remembers is
// compared as well: it shows where something breaks, which the built-in rules
// never do.
func TestWorldsOfPlantedBugsGoOnAlike(t *testing.T) {
	most := spent(t).bug
	compared := 0
	for _, m := range mutant.All() {
		n, err := part(newTwins(t, m.Explored(), sim.SpaceOptions{Reductions: sim.AllReductions}), 1, most)
		if err != nil {
			t.Errorf("%s, after %d pairs: %v", m.Name, n, err)
		}
		compared += n
	}
	t.Logf("%d pairs of worlds", compared)
}

// planted are the worlds of a planted bug.
func planted(t *testing.T, name string) explore.Options {
	m, err := mutant.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return m.Explored()
}

// A key that forgets what matters is found out by no more pairs than the tests
// above compare.
func TestWrongKeysAreFoundOut(t *testing.T) {
	seeds := uint64(8)
	if race || testing.Short() {
		seeds = 1
	}
	for _, c := range []struct {
		name string
		o    explore.Options
		flaw sim.Flaw
		most int
	}{
		{"the age of a request in flight", explore.Default(), sim.ForgetsAges, full.setup},
		{"what the storage has seen", setups()["barrier"], sim.ForgetsSeen, full.setup},
		{"how far tokens lie apart", resets(), sim.RanksAnything, full.setup},
		{"who led behind the barrier", planted(t, "fence-unrecorded"), sim.ForgetsFenced, full.bug},
		{"what was led under", planted(t, "restart-resumes-lease"), sim.ForgetsLed, full.bug},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTwins(t, c.o, sim.SpaceOptions{Reductions: sim.AllReductions, Flaw: c.flaw})
			for seed := range seeds {
				n, err := part(x, seed, c.most)
				if err == nil {
					t.Errorf("seed %d: not found out by %d pairs", seed, n)
					continue
				}
				t.Logf("seed %d: found out after %d pairs: %.200v", seed, n, err)
			}
		})
	}
}

// A planted bug that keeps quiet about a reduction which does not hold for it is
// found out: none of them declares one in vain.
func TestUndeclaredUnsoundnessIsFoundOut(t *testing.T) {
	for _, m := range mutant.All() {
		for _, r := range m.Subject.Layout.Unsound.All() {
			if r == sim.IncarnationRanks {
				continue // without which there would be no key
			}
			o := m.Explored()
			o.Subject.Layout.Unsound &^= r
			n, err := part(newTwins(t, o, sim.SpaceOptions{Reductions: sim.AllReductions}), 1, 5*full.setup)
			if err == nil {
				t.Errorf("%s: %d pairs do not show that %v is unsound", m.Name, n, r)
				continue
			}
			t.Logf("%s, %v: found out after %d pairs", m.Name, r, n)
		}
	}
}
