package explore

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"fencepost/model"
	"fencepost/props/sim"
)

// twins compares worlds that a key takes for one.
type twins struct {
	s     *system
	space *sim.Space
	made  sim.World
	next  sim.World
	key   []byte
	a, b  []uint64
	names map[uint64]string // of outcomes, where somebody wants to read them
}

func newTwins(s *system, o sim.SpaceOptions) *twins {
	o.Grain, o.Keys, o.StoreCrashes = Grain, s.o.Keys, s.o.Faults&StoreCrash != 0
	return &twins{s: s, space: sim.NewSpace(&s.start, o)}
}

var outcomeSeed = maphash.MakeSeed()

// outcomes are all that can become of w: for each kind of action the keys that
// it leads to or the invariants that it breaks, whether fair time brings a
// leader, and whether a read gives what landed. To stay where one is is no
// outcome: what one world has to notice first, the other may have noticed. of
// is what exploration leaves actions out by, where w was just decoded.
func (x *twins) outcomes(dst []uint64, w *sim.World, of *sim.Space) []uint64 {
	add := func(k sim.Kind, violated model.Set, key []byte) {
		b := binary.LittleEndian.AppendUint32([]byte{byte(k)}, uint32(violated))
		h := maphash.Bytes(outcomeSeed, append(b, key...))
		if dst = append(dst, h); x.names != nil {
			x.names[h] = fmt.Sprintf("%v %v %x", k, violated, key)
		}
	}
	x.next.CopyFrom(w)
	own := string(x.space.AppendKey(nil, w))
	x.s.moves(w, 1<<20, of, func(a *sim.Action) bool {
		if !x.next.Apply(a) {
			return true
		}
		if v := x.next.Violated(); v != 0 {
			add(a.Kind, v, nil)
		} else if x.key = x.space.AppendKey(x.key[:0], &x.next); string(x.key) != own {
			add(a.Kind, 0, x.key)
		}
		x.next.CopyFrom(w)
		return true
	})
	if x.s.waits {
		x.next.Apply(&x.s.fair)
		add(sim.Calm, x.next.Violated(), nil)
	}
	for k := range uint8(x.s.o.Keys) {
		if w.Value(k) != w.Landed(k) {
			add(sim.Read, model.SetOf(model.Durability), []byte{k})
		}
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// differ compares w with the world that is made from its key.
func (x *twins) differ(w *sim.World) error {
	key := x.space.AppendKey(nil, w)
	x.space.Decode(key, &x.made)
	if again := x.space.AppendKey(nil, &x.made); string(again) != string(key) {
		return fmt.Errorf("a world of key %x is made into one of key %x", key, again)
	}
	x.a, x.b = x.outcomes(x.a[:0], w, nil), x.outcomes(x.b[:0], &x.made, x.space)
	if !slices.Equal(x.a, x.b) {
		x.names = map[uint64]string{}
		x.a, x.b = x.outcomes(x.a[:0], w, nil), x.outcomes(x.b[:0], &x.made, x.space)
		var only [2][]string
		for _, h := range x.a {
			if !slices.Contains(x.b, h) {
				only[0] = append(only[0], x.names[h])
			}
		}
		for _, h := range x.b {
			if !slices.Contains(x.a, h) {
				only[1] = append(only[1], x.names[h])
			}
		}
		return fmt.Errorf("two worlds of key %x part:\nonly the one can %s\nonly the other can %s", key, strings.Join(only[0], "\n  "), strings.Join(only[1], "\n  "))
	}
	return nil
}

// weights let a run come to terms, successions and stale writes.
var weights = map[sim.Kind]int{sim.Deliver: 8, sim.Tick: 4, sim.Advance: 4, sim.Put: 4, sim.Restart: 4, sim.Resume: 4}

// run takes steps that pick chooses, first a kind and then an action of it, and
// shows every world that it comes to until see returns an error.
func (s *system) run(steps int, pick func(n int) int, see func(*sim.World) error) error {
	w, next := s.start, new(sim.World)
	for n := range steps {
		if err := see(&w); err != nil {
			return fmt.Errorf("after %d actions: %w", n, err)
		}
		var can []sim.Action
		var kinds []sim.Kind
		next.CopyFrom(&w)
		s.moves(&w, int32(n+1), nil, func(a *sim.Action) bool {
			if next.Apply(a) {
				if next.Violated() == 0 {
					can = append(can, *a)
					if !slices.Contains(kinds, a.Kind) {
						kinds = append(kinds, slices.Repeat([]sim.Kind{a.Kind}, cmp.Or(weights[a.Kind], 1))...)
					}
				}
				next.CopyFrom(&w)
			}
			return true
		})
		if len(can) == 0 {
			return nil
		}
		kind := kinds[pick(len(kinds))]
		can = slices.DeleteFunc(can, func(a sim.Action) bool { return a.Kind != kind })
		w.Apply(&can[pick(len(can))])
	}
	return nil
}

// walk is a run that rapid draws.
func (s *system) walk(t *rapid.T, steps int, see func(*sim.World) error) {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
	if err := s.run(steps, pick, see); err != nil {
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
					s.run(100, rand.New(rand.NewPCG(seed, 1)).IntN, func(w *sim.World) error {
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
