package explore

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"fencepost/model"
	"fencepost/props/sim"
)

// million is the rate of a true clock, in parts per million.
const million = 1_000_000

// The properties that must be reached sometimes: an exploration that never
// meets them has shown nothing.
const (
	someLead = iota
	someTakeover
	someLapse
	someLost
	someExtend
	someStale
	someLanded
	someCount
)

var sometimesNames = [someCount]string{
	someLead:     "a client leads",
	someTakeover: "a client takes over while another still has an older token",
	someLapse:    "a term ends by the client's own clock",
	someLost:     "a renewal or its answer is lost",
	someExtend:   "a term is renewed",
	someStale:    "the storage refuses a stale token",
	someLanded:   "a write lands",
}

// system is the worlds as [model.Explore] walks them.
type system struct {
	o         *Options
	start     sim.World
	fair      sim.Action
	waits     bool         // every state is given fair time
	onlyWaits bool         // and nothing but availability is judged in it
	target    []byte       // the state that is looked for, where one is
	rates     []int32      // of a clock in one tick; zero for the true one
	advance   []sim.Action // by all combinations of rates
	walkers   []*walker

	stop   func() // ends a search that compares worlds; nil: it does not
	mu     sync.Mutex
	parted *PartedError
}

func newSystem(o *Options) (*system, error) {
	judged := o.judged()
	w, err := sim.NewWorld(o.Config(), o.Subject, sim.Options{Monitor: true, Only: judged, Lockstep: judged.Has(model.Lockstep)})
	if err != nil {
		return nil, err
	}
	s := &system{o: o, start: w}
	s.fair, s.waits = o.calm()
	s.waits = s.waits && judged.Has(model.Availability)
	s.rates = []int32{0}
	if o.Faults&Drifting != 0 {
		s.rates = append(s.rates, million-million/int32(o.Drift), million+million/int32(o.Drift))
	}
	s.advance = []sim.Action{{Kind: sim.Advance, D: o.Tick()}}
	for i := range o.Clients {
		var next []sim.Action
		for _, a := range s.advance {
			for _, r := range s.rates {
				a.Rates[sim.ClientNode(i)] = r
				next = append(next, a)
			}
		}
		s.advance = next
	}
	return s, nil
}

func (o *Options) judged() model.Set {
	if o.Judged == 0 {
		return Judgeable &^ model.SetOf(model.Lockstep)
	}
	return o.Judged & Judgeable
}

func (s *system) space() *sim.Space { return sim.NewSpace(&s.start, s.spaceOptions()) }

func (s *system) spaceOptions() sim.SpaceOptions {
	return sim.SpaceOptions{Reductions: cmp.Or(s.o.Reductions, sim.AllReductions), Grain: Grain, Keys: s.o.Keys,
		StoreCrashes: s.o.Faults&StoreCrash != 0, Presume: s.o.Presume}
}

// Walker makes the view of one goroutine.
func (s *system) Walker() model.Walker {
	k := &walker{s: s, space: s.space()}
	s.walkers = append(s.walkers, k)
	return k
}

// moves yields every action that might do something in w, in an order that
// only depends on w. id is that of the action. If w was just decoded by of, those
// are left out that lead where another does: what happens to the equal of
// another message, and other rates of a clock that does not matter.
// Time passes last.
func (s *system) moves(w *sim.World, id int32, of *sim.Space, yield func(*sim.Action) bool) {
	f := s.o.Faults
	var a sim.Action
	do := func(k sim.Kind, who model.Node) bool {
		a = sim.Action{ID: id, Kind: k, Who: who}
		return yield(&a)
	}
	for i := range w.InFlight() {
		if of != nil && of.Same(i) {
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
	for i := range s.o.Clients {
		n := sim.ClientNode(i)
		idle := of != nil && of.Idle(i)
		if f&Writes != 0 && !idle {
			for k := range uint8(s.o.Keys) {
				// Whether a read gives what landed last shows with two values, if
				// each write may be of either (Wolper 1986).
				for v := range int64(2) {
					a = sim.Action{ID: id, Kind: sim.Put, Who: n, Key: k, Value: v}
					if !yield(&a) {
						return
					}
				}
			}
		}
		if f&Resignation != 0 && !idle && !do(sim.Resign, n) {
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
			for _, d := range [...]time.Duration{-s.o.Tick(), s.o.Tick()} {
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
		if of != nil && of.Same(i) {
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
	for i := range s.advance {
		if of != nil && s.moot(i, of) {
			continue
		}
		a = s.advance[i]
		a.ID = id
		if !yield(&a) {
			return
		}
	}
}

// moot reports whether a passing of time differs from another by nothing but the
// rate of a clock that does not matter in the World last decoded.
func (s *system) moot(i int, of *sim.Space) bool {
	for c := range s.o.Clients {
		if s.advance[i].Rates[sim.ClientNode(c)] != 0 && of.Timeless(c) {
			return true
		}
	}
	return false
}

// walker walks from state to state.
type walker struct {
	s     *system
	space *sim.Space
	base  sim.World // the state being expanded
	w     sim.World // moves from there
	calm  sim.World // and is given fair time
	key   []byte
	parts [3]sim.Parts

	twins    *twins
	compared uint64 // worlds of strolls
	standing [standings]uint64
	before   [someCount]int64 // what the World had counted before the last step
	waited   Wait
	longest  []byte // the least state that waited longest
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
	if k.s.target != nil && bytes.Equal(state, k.s.target) {
		out.Fail(0, 0) // found
	}
	k.space.Decode(state, &k.base)
	for i := range k.s.o.Clients {
		k.standing[standingOf(&k.base, i)]++
	}
	if k.s.waits {
		k.wait(state, out)
	}
	k.probe(out)
	k.w.CopyFrom(&k.base)
	k.before = k.counted()
	k.s.moves(&k.base, id, k.space, func(a *sim.Action) bool {
		if a.Kind == sim.Advance && k.drift(out) {
			return false // which is all that is left
		}
		if !k.w.Apply(a) {
			return true
		}
		if k.w.Violated() != 0 {
			k.fail(out, a.Kind, 0)
		} else {
			k.key = k.space.AppendKey(k.key[:0], &k.w)
			out.Add(uint8(a.Kind), k.key)
		}
		k.reach(a, out)
		k.w.CopyFrom(&k.base)
		return true
	})
	k.stroll(state)
}

// drift does every passing of time at once, where that is possible: from the
// worlds in which all clocks run at one rate it joins those in which each runs
// at its own. It is impossible where what befalls one client in that time
// changes the part of another in the key, and not worth it for a single clock.
func (k *walker) drift(out *model.Steps) bool {
	clocks, clients := 0, k.s.o.Clients // that matter
	for i := range clients {
		if !k.space.Timeless(i) {
			clocks++
		}
	}
	if clocks < 2 || len(k.s.rates) < 2 {
		return false
	}
	var over [3][sim.MaxClients]bool // terms that end meanwhile
	for r, rate := range k.s.rates {
		a := sim.Action{ID: id, Kind: sim.Advance, D: k.s.advance[0].D}
		for i := range clients {
			a.Rates[sim.ClientNode(i)] = rate
		}
		k.w.Apply(&a)
		joins := k.w.Violated() == 0
		if joins {
			k.space.Part(&k.parts[r], &k.w)
			joins = r == 0 || k.space.Joins(&k.parts[0], &k.parts[r])
		}
		for i := range clients {
			_, before := k.base.Client(i)
			_, after := k.w.Client(i)
			over[r][i] = before && !after
		}
		k.w.CopyFrom(&k.base)
		if !joins {
			k.before = k.counted()
			return false
		}
	}
	var from [sim.MaxClients]*sim.Parts
	for i := range k.s.advance {
		if k.s.moot(i, k.space) {
			continue
		}
		lapse := false
		for c := range clients {
			r := slices.Index(k.s.rates, k.s.advance[i].Rates[sim.ClientNode(c)])
			from[c] = &k.parts[r]
			lapse = lapse || over[r][c]
		}
		k.key = k.space.Join(k.key[:0], from[:clients])
		out.Add(uint8(sim.Advance), k.key)
		if lapse {
			out.Sometimes(someLapse)
		}
	}
	return true
}

// fail notes a step that breaks something, unless a state is looked for.
func (k *walker) fail(out *model.Steps, kind sim.Kind, more int) {
	if k.s.target == nil {
		out.Fail(uint8(kind), more)
	}
}

// counted is how often the World in which k moves did what must happen
// sometimes, but for takeovers, which it does not count.
func (k *walker) counted() [someCount]int64 {
	c := k.w.Counts()
	return [someCount]int64{someLead: c.Terms, someLapse: c.StepDown[model.ReasonLapsed], someLost: c.RenewalsLost,
		someExtend: c.Extended, someStale: c.StaleRefused, someLanded: c.Landed}
}

// reach notes what of that a step did.
func (k *walker) reach(a *sim.Action, out *model.Steps) {
	now := k.counted()
	for i := range now {
		if now[i] > k.before[i] {
			out.Sometimes(i)
		}
	}
	k.before = now
	if a.Kind == sim.Deliver {
		if r, held := k.w.Record(); held && k.w.Bear(r.Token)&^(1<<sim.NodeNamed(r.Holder.Node)) != 0 {
			if _, before := k.base.Record(); !before {
				out.Sometimes(someTakeover)
			}
		}
	}
}

// wait gives the state fair time until a client leads.
func (k *walker) wait(state []byte, out *model.Steps) {
	k.calm.CopyFrom(&k.base)
	began := k.calm.Now()
	k.calm.Apply(&k.s.fair)
	if v := k.calm.Violated(); v != 0 && (!k.s.onlyWaits || v.Has(model.Availability)) {
		k.fail(out, sim.Calm, 0)
	}
	took := k.calm.Now() - began
	k.waited.Bound = max(k.waited.Bound, k.calm.Promised())
	switch {
	case took > k.waited.Longest:
		k.waited.Longest, k.waited.States = took, 1
	case took < k.waited.Longest:
		return
	default:
		if k.waited.States++; bytes.Compare(state, k.longest) > 0 {
			return
		}
	}
	k.longest = append(k.longest[:0], state...)
}

// probe reads what is stored, if that may not be what landed.
func (k *walker) probe(out *model.Steps) {
	for key := range uint8(k.s.o.Keys) {
		if k.base.Value(key) != k.base.Landed(key) {
			k.w.CopyFrom(&k.base)
			k.w.Apply(&sim.Action{ID: id, Kind: sim.Read, Who: sim.RawNode(0), Key: key})
			k.w.Apply(&sim.Action{ID: id + 1, Kind: sim.Deliver, Msg: model.Msg{Action: id}})
			if k.w.Violated() != 0 {
				k.fail(out, sim.Read, 1)
			}
		}
	}
}
