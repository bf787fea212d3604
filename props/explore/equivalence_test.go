package explore

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
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
// outcome: what one world has to notice first, the other may have noticed.
func (x *twins) outcomes(dst []uint64, w *sim.World) []uint64 {
	add := func(k sim.Kind, violated model.Set, key []byte) {
		b := binary.LittleEndian.AppendUint32([]byte{byte(k)}, uint32(violated))
		h := maphash.Bytes(outcomeSeed, append(b, key...))
		if dst = append(dst, h); x.names != nil {
			x.names[h] = fmt.Sprintf("%v %v %x", k, violated, key)
		}
	}
	x.next.CopyFrom(w)
	own := string(x.space.AppendKey(nil, w))
	x.s.moves(w, 1<<20, nil, func(a *sim.Action) bool {
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
	x.next.Apply(&x.s.fair)
	add(sim.Calm, x.next.Violated(), nil)
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
	x.a, x.b = x.outcomes(x.a[:0], w), x.outcomes(x.b[:0], &x.made)
	if !slices.Equal(x.a, x.b) {
		x.names = map[uint64]string{}
		x.a, x.b = x.outcomes(x.a[:0], w), x.outcomes(x.b[:0], &x.made)
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

// walk draws a run of exploration's own actions and shows every world it comes
// to.
func (s *system) walk(t *rapid.T, steps int, see func(*sim.World) error) {
	w, next := s.start, new(sim.World)
	for n := range steps {
		if err := see(&w); err != nil {
			t.Fatalf("after %d actions: %v", n, err)
		}
		var can []sim.Action
		var kinds []sim.Kind
		next.CopyFrom(&w)
		s.moves(&w, int32(n+1), nil, func(a *sim.Action) bool {
			if next.Apply(a) {
				if next.Violated() == 0 {
					can = append(can, *a)
					if !slices.Contains(kinds, a.Kind) {
						kinds = append(kinds, a.Kind)
					}
				}
				next.CopyFrom(&w)
			}
			return true
		})
		if len(can) == 0 {
			return
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		can = slices.DeleteFunc(can, func(a sim.Action) bool { return a.Kind != kind })
		a := rapid.SampledFrom(can).Draw(t, "action")
		w.Apply(&a)
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
				for n < share {
					rapid.Check(t, func(t *rapid.T) {
						if n >= share {
							return
						}
						s.walk(t, 100, func(w *sim.World) error { n++; return x.differ(w) })
					})
				}
				compared.Add(n)
			})
		}
	}
	t.Logf("%d pairs of worlds", compared.Load())
}
