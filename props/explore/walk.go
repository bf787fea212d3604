package explore

import (
	"bytes"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

// million is the rate of a true clock, in parts per million.
const million = 1_000_000

// The properties that must be reached sometimes: an exploration that never
// meets them has shown nothing.
const (
	someLead = iota
	someSuccession
	someLapse
	someLost
	someExtend
	someStale
	someLanded
	someCount
)

var sometimesNames = [someCount]string{
	someLead:       "a client leads",
	someSuccession: "a lease is granted while an older token is still about",
	someLapse:      "a term ends by the client's own clock",
	someLost:       "a renewal or its answer is lost",
	someExtend:     "a term is renewed",
	someStale:      "the storage refuses a stale token",
	someLanded:     "a write lands",
}

// system is the worlds as [model.Explore] walks them.
type system struct {
	o       *Options
	start   sim.World
	fair    sim.Action
	judge   bool // availability
	advance []sim.Action
	walkers []*walker
}

func newSystem(o *Options) (*system, error) {
	judged := o.judged()
	w, err := sim.NewWorld(o.Config(), o.Subject, sim.Options{Monitor: true, Only: judged, Lockstep: judged.Has(model.Lockstep)})
	if err != nil {
		return nil, err
	}
	s := &system{o: o, start: w}
	s.fair, s.judge = o.calm()
	s.judge = s.judge && judged.Has(model.Availability)
	s.advance = []sim.Action{{Kind: sim.Advance, D: o.tick()}}
	if o.Faults&Drifting != 0 {
		rates := []int32{0, million - million/int32(o.Drift), million + million/int32(o.Drift)}
		for i := range o.Clients {
			var next []sim.Action
			for _, a := range s.advance {
				for _, r := range rates {
					a.Rates[sim.ClientNode(i)] = r
					next = append(next, a)
				}
			}
			s.advance = next
		}
	}
	return s, nil
}

func (o *Options) judged() model.Set {
	if o.Judged == 0 {
		return Judgeable &^ model.SetOf(model.Lockstep)
	}
	return o.Judged & Judgeable
}

func (s *system) space() *sim.Space {
	r := s.o.Reductions
	if r == 0 {
		r = sim.AllReductions
	}
	return sim.NewSpace(&s.start, sim.SpaceOptions{Reductions: r, Grain: Grain, Keys: s.o.Keys, StoreCrashes: s.o.Faults&StoreCrash != 0})
}

// Walker makes the view of one goroutine.
func (s *system) Walker() model.Walker {
	k := &walker{s: s, space: s.space()}
	s.walkers = append(s.walkers, k)
	return k
}

// moves yields every action that might do something in w, in an order that
// only depends on w. id is that of the action. Those on messages for which skip
// is true are left out.
func (s *system) moves(w *sim.World, id int32, skip func(int) bool, yield func(*sim.Action) bool) {
	f := s.o.Faults
	var a sim.Action
	do := func(k sim.Kind, who model.Node) bool {
		a = sim.Action{ID: id, Kind: k, Who: who}
		return yield(&a)
	}
	for i := range w.InFlight() {
		if skip != nil && skip(i) {
			continue
		}
		a = sim.Action{ID: id, Kind: sim.Deliver, Msg: w.Message(i)}
		if !yield(&a) {
			return
		}
	}
	for i := range s.o.Clients {
		if !do(sim.Tick, sim.ClientNode(i)) {
			return
		}
	}
	for i := range s.advance {
		a = s.advance[i]
		a.ID = id
		if !yield(&a) {
			return
		}
	}
	for i := range s.o.Clients {
		n := sim.ClientNode(i)
		for k := range uint8(s.o.Keys) {
			if f&Writes != 0 {
				a = sim.Action{ID: id, Kind: sim.Put, Who: n, Key: k, Value: w.Other(k)}
				if !yield(&a) {
					return
				}
			}
		}
		if f&Resignation != 0 && !do(sim.Resign, n) {
			return
		}
		if f&Work != 0 && !(do(sim.WorkBegin, n) && do(sim.WorkEnd, n)) {
			return
		}
		if f&ClientCrash != 0 && !(do(sim.Crash, n) && do(sim.Restart, n)) {
			return
		}
		if f&Suspension != 0 && !(do(sim.Suspend, n) && do(sim.Resume, n)) {
			return
		}
		if f&WallJumps != 0 {
			for _, d := range [...]time.Duration{-s.o.tick(), s.o.tick()} {
				a = sim.Action{ID: id, Kind: sim.Jump, Who: n, D: d}
				if !yield(&a) {
					return
				}
			}
		}
	}
	if f&StoreCrash != 0 && !(do(sim.Crash, sim.StoreNode) && do(sim.Restart, sim.StoreNode)) {
		return
	}
	if f&StorageCrash != 0 && !(do(sim.Crash, sim.StorageNode) && do(sim.Restart, sim.StorageNode)) {
		return
	}
	if f&Deletion != 0 && !do(sim.Delete, 0) {
		return
	}
	for i := range w.InFlight() {
		if skip != nil && skip(i) {
			continue
		}
		for _, k := range [...]sim.Kind{sim.Drop, sim.Duplicate} {
			if k == sim.Drop && f&Loss == 0 || k == sim.Duplicate && f&Duplication == 0 {
				continue
			}
			a = sim.Action{ID: id, Kind: k, Msg: w.Message(i)}
			if !yield(&a) {
				return
			}
		}
	}
}

// standing is how a client can be found.
type standing struct {
	phase   lease.Phase
	acting  bool
	working bool
	stopped bool // or crashed
}

// walker walks from state to state.
type walker struct {
	s     *system
	space *sim.Space
	base  sim.World // the state being expanded
	w     sim.World // moves from there
	calm  sim.World // and is given fair time
	key   []byte

	states   map[standing]uint64
	standing [64]uint64
	longest  time.Duration // a fair run took to a leader
	from     []byte        // that state
}

// id is what the actions applied to a decoded state are called, above every
// message that it has.
const id = 1 << 10

// Begin adds the beginning of a run.
func (k *walker) Begin(out *model.Steps) {
	k.key = k.space.AppendKey(k.key[:0], &k.s.start)
	out.Add(0, k.key)
}

// Expand adds every step out of a state.
func (k *walker) Expand(state []byte, out *model.Steps) {
	k.space.Decode(state, &k.base)
	k.note()
	if k.s.judge {
		k.wait(state, out)
	}
	k.probe(out)
	k.w.CopyFrom(&k.base)
	k.s.moves(&k.base, id, k.space.Same, func(a *sim.Action) bool {
		before := *k.w.Counts()
		_ = before
		if !k.w.Apply(a) {
			return true
		}
		if k.w.Violated() != 0 {
			out.Fail(uint8(a.Kind), 0)
		} else {
			k.key = k.space.AppendKey(k.key[:0], &k.w)
			out.Add(uint8(a.Kind), k.key)
		}
		k.w.CopyFrom(&k.base)
		return true
	})
}

// note counts how the clients stand.
func (k *walker) note() {
	for i := range k.s.o.Clients {
		st, acting := k.base.Client(i)
		x := int(st.Phase)
		if acting {
			x |= 4
		}
		if st.Working {
			x |= 8
		}
		if !k.base.Up(sim.ClientNode(i)) {
			x |= 16
		}
		k.standing[x]++
	}
}

// wait gives the state fair time until a client leads.
func (k *walker) wait(state []byte, out *model.Steps) {
	k.calm.CopyFrom(&k.base)
	began := k.calm.Now()
	k.calm.Apply(&k.s.fair)
	if k.calm.Violated() != 0 {
		out.Fail(uint8(sim.Calm), 0)
	}
	d := k.calm.Now() - began
	if d > k.longest || d == k.longest && (k.from == nil || bytes.Compare(state, k.from) < 0) {
		k.longest, k.from = d, append(k.from[:0], state...)
	}
}

// probe reads what is stored, if that may not be what landed.
func (k *walker) probe(out *model.Steps) {
	for key := range uint8(k.s.o.Keys) {
		if k.base.Value(key) != k.base.Landed(key) {
			k.w.CopyFrom(&k.base)
			k.w.Apply(&sim.Action{ID: id, Kind: sim.Read, Who: sim.RawNode(0), Key: key})
			k.w.Apply(&sim.Action{ID: id + 1, Kind: sim.Deliver, Msg: model.Msg{Action: id}})
			if k.w.Violated() != 0 {
				out.Fail(uint8(sim.Read), 1)
			}
		}
	}
}
