package mutant

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// grammar is the schedules that exploration goes through for one bug: among
// them a stored one is the shortest, and so only they can be compared with it.
type grammar struct {
	o      explore.Options
	config sim.Config
	expect model.Invariant
	calm   sim.Action // the one there is, where availability is what breaks
	kinds  []sim.Kind // beside calm and reads, each as often as it is drawn
	rates  []int32
	start  sim.World
	w      sim.World

	shortest int // length there is
	calls    int // of fails
}

func newGrammar(t testing.TB, m Mutant) *grammar {
	t.Helper()
	s := stored(t, m)
	g := &grammar{o: m.Explored(), config: s.Config, expect: s.Expect, rates: []int32{0}, shortest: len(s.Actions)}
	if last := s.Actions[len(s.Actions)-1]; last.Kind == sim.Calm {
		g.calm = last
	}
	if g.o.Faults&explore.Drifting != 0 {
		const million = 1_000_000
		part := million / int32(g.o.Drift)
		g.rates = []int32{0, million - part, million + part}
	}
	often := func(n int, ks ...sim.Kind) {
		for _, k := range ks {
			g.kinds = append(g.kinds, slices.Repeat([]sim.Kind{k}, n)...)
		}
	}
	often(8, sim.Deliver)
	often(4, sim.Tick)
	often(3, sim.Advance)
	for _, f := range []struct {
		fault explore.Faults
		often int
		kinds []sim.Kind
	}{
		{explore.Writes, 2, []sim.Kind{sim.Put}},
		{explore.Loss, 1, []sim.Kind{sim.Drop}},
		{explore.Duplication, 1, []sim.Kind{sim.Duplicate}},
		{explore.Resignation, 1, []sim.Kind{sim.Resign}},
		{explore.Work, 1, []sim.Kind{sim.WorkBegin, sim.WorkEnd}},
		{explore.ClientCrash | explore.StoreCrash | explore.StorageCrash, 1, []sim.Kind{sim.Crash, sim.Restart}},
		{explore.Suspension, 1, []sim.Kind{sim.Suspend, sim.Resume}},
		{explore.Deletion, 1, []sim.Kind{sim.Delete}},
		{explore.WallJumps, 1, []sim.Kind{sim.Jump}},
	} {
		if g.o.Faults&f.fault != 0 {
			often(f.often, f.kinds...)
		}
	}
	var err error
	if g.start, err = sim.NewWorld(g.config, m.Subject, sim.Options{Monitor: true, Only: g.o.Judged, Lockstep: g.o.Judged.Has(model.Lockstep)}); err != nil {
		t.Fatal(err)
	}
	return g
}

// draw is any action of the grammar, whether it makes sense or not. Some
// messages take long, as zombie writes do.
func (g *grammar) draw(rnd *rand.Rand, w *sim.World) sim.Action {
	a := sim.Action{Kind: g.kinds[rnd.IntN(len(g.kinds))]}
	client := func() model.Node { return sim.ClientNode(rnd.IntN(g.o.Clients)) }
	switch a.Kind {
	case sim.Advance:
		a.D = g.o.Tick()
		for i := range g.o.Clients {
			a.Rates[sim.ClientNode(i)] = g.rates[rnd.IntN(len(g.rates))]
		}
	case sim.Deliver, sim.Drop, sim.Duplicate:
		if n := w.InFlight(); n > 0 {
			if m := w.Message(rnd.IntN(n)); m.Action%4 != 0 || rnd.IntN(16) == 0 {
				a.Msg = m
			}
		}
	case sim.Put:
		a.Who, a.Key = client(), uint8(rnd.IntN(g.o.Keys))
		a.Value = int64(rnd.IntN(2))
	case sim.Crash, sim.Restart:
		var nodes []model.Node
		if g.o.Faults&explore.ClientCrash != 0 {
			nodes = append(nodes, client())
		}
		if g.o.Faults&explore.StoreCrash != 0 {
			nodes = append(nodes, sim.StoreNode)
		}
		if g.o.Faults&explore.StorageCrash != 0 {
			nodes = append(nodes, sim.StorageNode)
		}
		a.Who = nodes[rnd.IntN(len(nodes))]
	case sim.Jump:
		a.Who, a.D = client(), g.o.Tick()
		if rnd.IntN(2) == 0 {
			a.D = -a.D
		}
	case sim.Delete:
	default:
		a.Who = client()
	}
	return a
}

// walk is a random schedule of the grammar that ends in the violation, or nil
// if something else broke first, or nothing.
func (g *grammar) walk(rnd *rand.Rand) *sim.Schedule {
	s := &sim.Schedule{Config: g.config}
	w := &g.w
	w.CopyFrom(&g.start)
	do := func(a sim.Action) {
		a.ID = int32(len(s.Actions) + 1)
		w.Apply(&a)
		s.Actions = append(s.Actions, a)
	}
	for range 400 {
		do(g.draw(rnd, w))
		for k := range uint8(g.o.Keys) {
			if w.Violated() == 0 && w.Value(k) != w.Landed(k) {
				do(sim.Action{Kind: sim.Read, Who: sim.RawNode(0), Key: k})
				do(sim.Action{Kind: sim.Deliver, Msg: model.Msg{Action: int32(len(s.Actions))}})
			}
		}
		if g.calm.Kind == sim.Calm && w.Violated() == 0 && rnd.IntN(16) == 0 {
			do(g.calm)
			if w.Violated() == 0 {
				return nil
			}
		}
		if w.Violated() != 0 {
			break
		}
	}
	if !w.Violated().Has(g.expect) {
		return nil
	}
	return s
}

// fails keeps the violation, and keeps to the grammar.
func (g *grammar) fails(s *sim.Schedule) (int, bool) {
	if s.Config != g.config {
		return 0, false
	}
	for i := range s.Actions {
		switch a := &s.Actions[i]; a.Kind {
		case sim.Advance:
			if a.D != g.o.Tick() {
				return 0, false
			}
			for _, r := range a.Rates {
				if !slices.Contains(g.rates, r) {
					return 0, false
				}
			}
		case sim.Jump:
			if a.D != g.o.Tick() && a.D != -g.o.Tick() {
				return 0, false
			}
		case sim.Put:
			if g.o.Faults&explore.Writes == 0 || a.Value != 0 && a.Value != 1 {
				return 0, false
			}
		case sim.Read:
		case sim.Calm:
			if a.D != g.calm.D || a.Delay != g.calm.Delay || a.Every != g.calm.Every {
				return 0, false
			}
		default:
			if !slices.Contains(g.kinds, a.Kind) {
				return 0, false
			}
		}
	}
	g.w.CopyFrom(&g.start)
	g.calls++
	for i := range s.Actions {
		if g.w.Apply(&s.Actions[i]); g.w.Violated() != 0 {
			return i + 1, g.w.Violated().Has(g.expect)
		}
	}
	return len(s.Actions), false
}

// minimised is what became of the random failures of one bug.
type minimised struct {
	shortest int
	over     []int // by how many actions each came out longer
	calls    []int // how often each ran a schedule
	walks    int   // until there were enough failures
}

// TestMinimizeReachesTheShortest lets exploration judge the minimiser: from
// random failures of every bug it must come to the shortest length in 95% of
// the cases, and to two actions more at the most.
func TestMinimizeReachesTheShortest(t *testing.T) {
	failures, bugs := 20, All()
	if race || testing.Short() {
		failures = 1
	}
	all, grammars := make([]minimised, len(bugs)), make([]*grammar, len(bugs))
	for i, m := range bugs {
		grammars[i] = newGrammar(t, m)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(bugs); i = next.Add(1) - 1 {
				all[i] = grammars[i].minimise(failures)
			}
		})
	}
	wg.Wait()

	var over, calls []int
	reached := 0
	for i, m := range bugs {
		x := &all[i]
		if len(x.over) < failures {
			t.Errorf("%s: only %d of %d walks failed", m.Name, len(x.over), x.walks)
		}
		for _, n := range x.over {
			if n == 0 {
				reached++
			}
			if n < 0 || n > 2 {
				t.Errorf("%s: came to %d actions; the shortest are %d", m.Name, x.shortest+n, x.shortest)
			}
		}
		t.Logf("%-30s %2d actions, over by %v", m.Name, x.shortest, x.over)
		over, calls = append(over, x.over...), append(calls, x.calls...)
	}
	slices.Sort(calls)
	t.Logf("%d of %d reached the shortest length (%.1f%%), the longest is %d over; schedules run: median %d, at most %d",
		reached, len(over), 100*float64(reached)/float64(len(over)), slices.Max(over), calls[len(calls)/2], calls[len(calls)-1])
	if 100*reached < 95*len(over) {
		t.Errorf("only %d of %d reached the shortest length", reached, len(over))
	}
	if median := calls[len(calls)/2]; median > 3000 {
		t.Errorf("half of them ran the schedule more than %d times", median)
	}
}

// minimise minimises so many random failures.
func (g *grammar) minimise(failures int) minimised {
	x := minimised{shortest: g.shortest}
	for ; len(x.over) < failures && x.walks < 100_000; x.walks++ {
		s := g.walk(rand.New(rand.NewPCG(seed, uint64(x.walks))))
		if s == nil {
			continue
		}
		g.calls = 0
		short := sim.Minimize(s, g.fails)
		x.over, x.calls = append(x.over, len(short.Actions)-x.shortest), append(x.calls, g.calls)
	}
	return x
}
