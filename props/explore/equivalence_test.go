package explore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"fencepost/model"
	"fencepost/props/sim"
)

// walk is a run that rapid draws.
func (s *system) walk(t *rapid.T, steps int, see func(*sim.World) error) {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
	if err := s.run(&s.start, 0, steps, pick, see); err != nil {
		t.Fatal(err)
	}
}

// everything is a set-up in which nearly all that can happen does.
func everything() Options {
	o := Default()
	o.Clients, o.Messages, o.Keys, o.Barrier, o.LockDelay = 3, 3, 2, true, 1
	o.Faults = faultsEnd - 1
	return o
}

// setups are those in which keys are tested.
func setups() map[string]Options {
	barrier, crash := Default(), Default()
	barrier.Barrier, barrier.Messages = true, 3
	crash.Faults |= ClientCrash | StoreCrash | StorageCrash | Work
	return map[string]Options{"defaults": Default(), "barrier": barrier, "crashes": crash, "everything": everything()}
}

// pairs is how many pairs of worlds to compare, FENCEPOST_PAIRS where it is set.
func pairs(t *testing.T, n int64) int64 {
	if s := os.Getenv("FENCEPOST_PAIRS"); s != "" {
		var err error
		if n, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatalf("FENCEPOST_PAIRS: %v", err)
		}
	}
	return n
}

// Worlds that a key takes for one go on alike, whatever happens to them: for
// each reduction by itself, and for all of them.
func TestWorldsOfOneKeyGoOnAlike(t *testing.T) {
	want := pairs(t, 20_000)
	var compared atomic.Int64
	for name, o := range setups() {
		// With those it needs, where it needs others.
		reductions := append(sim.AllReductions.All(), sim.AllReductions, sim.Symmetry|sim.IncarnationRanks|sim.MessageOrder, sim.Irrelevance|sim.IncarnationRanks|sim.Saturation)
		for _, r := range reductions {
			t.Run(fmt.Sprintf("%s/%v", name, r), func(t *testing.T) {
				s, err := newSystem(&o)
				if err != nil {
					t.Fatal(err)
				}
				x := newTwins(s, sim.SpaceOptions{Reductions: r})
				share := want / int64(len(reductions)*len(setups()))
				if r == sim.AllReductions {
					share *= 4
				}
				var n int64
				failed := false
				for n < share {
					rapid.Check(t, func(t *rapid.T) {
						if n >= share && !failed {
							return
						}
						s.walk(t, 100, func(w *sim.World) error {
							n++
							err := x.differ(w)
							failed = failed || err != nil
							return err
						})
					})
				}
				compared.Add(n)
			})
		}
	}
	t.Logf("%d pairs of worlds", compared.Load())
}

// A key that forgets what matters is found out.
func TestWrongKeysAreFoundOut(t *testing.T) {
	resets := everything()
	resets.Clients, resets.Messages = 2, 2
	resets.Subject.Name, resets.Subject.Store = "resets", resetsTokens{}
	resets.Subject.Layout = sim.Layout{Unsound: sim.TokenRanks}
	// What it breaks first is not looked at, since ranks part later, nor what
	// becomes of it in fair time, where the clients take turns in some order.
	resets.Judged = Judgeable &^ model.SetOf(model.TokenMonotonicity, model.Continuity, model.Lockstep, model.Availability)
	for name, c := range map[string]struct {
		o    Options
		flaw sim.Flaw
	}{
		"the age of a request in flight": {Default(), sim.ForgetsAges},
		"what the storage has seen":      {setups()["barrier"], sim.ForgetsSeen},
		"how far tokens lie apart":       {resets, sim.RanksAnything},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := newSystem(&c.o)
			if err != nil {
				t.Fatal(err)
			}
			for flaw, most := range map[sim.Flaw]int{sim.NoFlaw: 5_000, c.flaw: 100_000} {
				x := newTwins(s, sim.SpaceOptions{Reductions: sim.AllReductions, Flaw: flaw})
				var err error
				n := 0
				for seed := uint64(1); err == nil && n < most; seed++ {
					s.run(&s.start, 0, 100, rand.New(rand.NewPCG(seed, 1)).IntN, func(w *sim.World) error {
						n++
						err = x.differ(w)
						return err
					})
				}
				if (err != nil) != (flaw != sim.NoFlaw) {
					t.Errorf("flaw %d: %v after %d pairs", flaw, err, n)
				}
				if err != nil {
					t.Logf("found out after %d pairs: %.300v", n, err)
				}
			}
		})
	}
}

// resetsTokens is a store that forgets its counter, and nothing else, when it
// restarts.
type resetsTokens struct{ sim.Store }

func (r resetsTokens) Restart(s *sim.StoreState, now sim.Clocks) {
	r.Store.Restart(s, now)
	s.Token = 0
}
