package explore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"

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
	seed  maphash.Seed
	a, b  []uint64
	brief bool              // leave out what becomes of it in fair time
	names map[uint64]string // of outcomes, where somebody wants to read them
}

func newTwins(s *system, o sim.SpaceOptions) *twins {
	o.Grain, o.Keys, o.StoreCrashes = Grain, s.o.Keys, s.o.Faults&StoreCrash != 0
	return &twins{s: s, space: sim.NewSpace(&s.start, o), seed: maphash.MakeSeed()}
}

// outcomes are all that can become of w: for each kind of action the keys that
// it leads to or the invariants that it breaks, whether fair time brings a
// leader, and whether a read gives what landed. To stay where one is is no
// outcome: what one world has to notice first, the other may have noticed. of
// is what exploration leaves actions out by, where w was just decoded.
func (x *twins) outcomes(dst []uint64, w *sim.World, of *sim.Space) []uint64 {
	add := func(k sim.Kind, violated model.Set, key []byte) {
		b := binary.LittleEndian.AppendUint32([]byte{byte(k)}, uint32(violated))
		h := maphash.Bytes(x.seed, append(b, key...))
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
	if x.s.waits && !x.brief {
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

// weights let a walk come to terms, successions and stale writes.
var weights = map[sim.Kind]int{sim.Deliver: 8, sim.Tick: 4, sim.Advance: 4, sim.Put: 4, sim.Restart: 4, sim.Resume: 4}

// enabled appends the actions that do something in w and break nothing. next is
// room for trying them.
func (s *system) enabled(can []sim.Action, w, next *sim.World, id int32) []sim.Action {
	next.CopyFrom(w)
	s.moves(w, id, nil, func(a *sim.Action) bool {
		if next.Apply(a) {
			if next.Violated() == 0 {
				can = append(can, *a)
			}
			next.CopyFrom(w)
		}
		return true
	})
	return can
}

// choose picks first a kind of action, by its weight, and then the actions of
// that kind; none if no kind has any weight.
func choose(can []sim.Action, weight func(sim.Kind) int, pick func(n int) int) []sim.Action {
	var kinds []sim.Kind
	for i := range can {
		if k := can[i].Kind; !slices.Contains(kinds, k) {
			for range weight(k) {
				kinds = append(kinds, k)
			}
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	kind := kinds[pick(len(kinds))]
	return slices.DeleteFunc(can, func(a sim.Action) bool { return a.Kind != kind })
}

func weightOf(k sim.Kind) int { return cmp.Or(weights[k], 1) }

// A walk of the real code starts at one state in strollEvery, and goes on for
// strollSteps actions.
const (
	strollEvery = 128
	strollSteps = 10
)

// stroll goes on from some states without ever making a World of a key, and
// compares each that it comes to with the one that stands for it. What a key
// leaves out because no rule looks at it, a rule with a fault may look at: the
// search would never see it, but a real World does not forget.
func (k *walker) stroll(state []byte) {
	if k.s.stop == nil {
		return
	}
	h := fnv.New64a()
	h.Write(state)
	seed := h.Sum64()
	if seed%strollEvery != 0 {
		return
	}
	if k.twins == nil {
		k.twins = newTwins(k.s, k.s.spaceOptions())
		k.twins.brief = true // fair time takes longer than all the rest, and consists of it
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	w, next := new(sim.World), new(sim.World)
	w.CopyFrom(&k.base)
	var can []sim.Action
	for n := range int32(strollSteps) {
		k.compared++
		if err := k.twins.differ(w); err != nil {
			k.s.part(&PartedError{Key: bytes.Clone(state), Reductions: k.space.Reductions(), Why: fmt.Errorf("after %d actions: %w", n, err)})
			return
		}
		if can = choose(k.s.enabled(can[:0], w, next, id+n+1), weightOf, rnd.IntN); len(can) == 0 {
			return
		}
		w.Apply(&can[rnd.IntN(len(can))])
	}
}

// PartedError says that two worlds with one key went on differently. Either the
// key is wrong, or the rules do not do what the reductions rest on, which is a
// fault worth finding: exploring without [sim.Irrelevance] shows it.
type PartedError struct {
	Key        []byte // of the state from which they were reached
	Reductions sim.Reductions
	Why        error
}

func (e *PartedError) Error() string {
	return fmt.Sprintf("worlds that were taken for one, by %v, go on differently. Of rules of your own: do they keep anything outside of the state they are given? "+
		"Does every number in its Scratch have its Meaning in the Layout? Do they look at the time as such, rounded, or at the distance of tokens? "+
		"Then declare the reduction Unsound. Does the same call always give the same answer? (from state %x: %v)", e.Reductions, e.Key, e.Why)
}

func (e *PartedError) Unwrap() error { return e.Why }

// part keeps the error of the least state, and ends the search.
func (s *system) part(err *PartedError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parted == nil || bytes.Compare(err.Key, s.parted.Key) < 0 {
		s.parted = err
	}
	s.stop()
}
