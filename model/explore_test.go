package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// graph is a System written out: nodes are numbers, and each encoding packs them
// in another way.
type graph struct {
	starts []int
	edges  [][]edge // by node
	encode func(node int) []byte
	decode func(state []byte) int
}

type edge struct {
	label     uint8
	to        int
	fails     bool
	more      int
	sometimes int // -1: none
}

func (g *graph) Walker() Walker { return g }

func (g *graph) Begin(out *Steps) {
	for _, n := range g.starts {
		out.Add(0, g.encode(n))
	}
}

func (g *graph) Expand(state []byte, out *Steps) {
	for _, e := range g.edges[g.decode(state)] {
		if e.fails {
			out.Fail(e.label, e.more)
		} else {
			out.Add(e.label, g.encode(e.to))
		}
		if e.sometimes >= 0 {
			out.Sometimes(e.sometimes)
		}
	}
}

// encodings are the ways of packing that take different paths: exact
// fingerprints, hashes of one width, and states of any length, the first of
// which has none and some of which are longer than a chunk.
var encodings = []struct {
	name   string
	width  int
	encode func(node int) []byte
	decode func(state []byte) int
}{
	{"exact 8", 8, func(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) },
		func(s []byte) int { return int(binary.LittleEndian.Uint64(s)) }},
	{"exact 3", 3, func(n int) []byte { return []byte{byte(n >> 8), byte(n), 0} },
		func(s []byte) int { return int(s[0])<<8 | int(s[1]) }},
	{"hashed 13", 13, func(n int) []byte { return fmt.Appendf(nil, "%013d", n) }, decimal},
	{"any length", 0, func(n int) []byte {
		if n == 0 {
			return nil
		}
		return fmt.Appendf(nil, "%0*d", 4+n%70, n)
	}, decimal},
}

func decimal(s []byte) int {
	n := 0
	for _, digit := range s {
		n = 10*n + int(digit-'0')
	}
	return n
}

const graphSometimes = 3

func randomGraph(r *rand.Rand) *graph {
	n := 1 + r.IntN(400)
	g := &graph{edges: make([][]edge, n)}
	for range 1 + r.IntN(3) {
		g.starts = append(g.starts, r.IntN(min(n, 5)))
	}
	reach := 1 + r.IntN(20) // short edges make deep graphs
	mayFail := r.IntN(2) == 0
	for i := range g.edges {
		for range r.IntN(5) {
			e := edge{label: uint8(r.IntN(6) * 51), to: (i + r.IntN(reach)) % n, sometimes: -1}
			if mayFail && r.IntN(n) < 4 {
				e.fails, e.more = true, r.IntN(4)
			}
			if r.IntN(50) == 0 {
				e.sometimes = r.IntN(graphSometimes)
			}
			g.edges[i] = append(g.edges[i], e)
		}
	}
	return g
}

// queue explores g as a textbook would: a map of distances and a queue. What it
// says of Memory, Exact and Collision is nothing.
func (g *graph) queue() (x Exploration, perLevel []Level) {
	distance := map[int]int{}
	var queue []int
	for _, n := range g.starts {
		if _, ok := distance[n]; !ok {
			distance[n] = 0
			queue = append(queue, n)
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, e := range g.edges[queue[i]] {
			if _, ok := distance[e.to]; !ok && !e.fails {
				distance[e.to] = distance[queue[i]] + 1
				queue = append(queue, e.to)
			}
		}
	}
	deepest := distance[queue[len(queue)-1]]

	// The last level that is expanded: the first after which no deeper one can
	// hold a shorter failing path.
	lastExpanded := deepest
	x.Complete = true
	for level := deepest; level >= 0; level-- {
		best := math.MaxInt
		for n, d := range distance {
			for _, e := range g.edges[n] {
				if e.fails && d <= level {
					best = min(best, d+1+e.more)
				}
			}
		}
		if level == deepest && best < math.MaxInt {
			x.Complete, x.Failed, x.FailDepth = false, true, best
		}
		if best <= level+2 {
			lastExpanded = level
		}
	}
	x.Depth = min(deepest, lastExpanded+1)
	x.Levels = make([]Level, x.Depth+1)
	x.Sometimes = make([]Sometime, graphSometimes)
	for n, d := range distance {
		if d > x.Depth {
			continue
		}
		x.States++
		l := &x.Levels[d]
		l.States++
		if d > lastExpanded {
			continue
		}
		for _, e := range g.edges[n] {
			x.Transitions++
			l.Transitions++
			for len(l.Steps) <= int(e.label) {
				l.Steps = append(l.Steps, 0)
			}
			l.Steps[e.label]++
			if e.sometimes >= 0 {
				s := &x.Sometimes[e.sometimes]
				if s.Steps == 0 || d+1 < s.Depth {
					s.Depth = d + 1
				}
				s.Steps++
			}
		}
	}
	return x, x.Levels
}

// tunings cross the borders of batches, chunks, shards and growth at different
// places.
var tunings = []tuning{
	defaultTuning,
	{shards: 1, chunk: 16, batch: 1, keep: math.MaxUint64},
	{shards: 2, chunk: 64, batch: 7, keep: math.MaxUint64},
}

func TestExploreAgreesWithAQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	failed, deep := 0, 0
	for range 150 {
		g := randomGraph(r)
		want, _ := g.queue()
		if want.Failed {
			failed++
		}
		if want.Depth > 20 {
			deep++
		}
		for _, enc := range encodings {
			g.encode, g.decode = enc.encode, enc.decode
			for _, tune := range tunings {
				for _, workers := range []int{1, 2, 8} {
					got := explore(t.Context(), g, ExploreOptions{Workers: workers, Width: enc.width, Sometimes: graphSometimes}, tune)
					got.Memory, got.Exact, got.Collision = 0, false, 0
					for i := range got.Levels {
						if len(got.Levels[i].Steps) == 0 {
							got.Levels[i].Steps = nil
						}
					}
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("%s, %+v, %d workers:\n got %+v\nwant %+v", enc.name, tune, workers, got, want)
					}
				}
			}
			g.checkShortest(t, ExploreOptions{Width: enc.width, Sometimes: graphSometimes}, want)
		}
	}
	if failed < 20 || deep < 20 {
		t.Fatalf("only %d graphs failed and %d were deep: the comparison shows little", failed, deep)
	}
}

// checkShortest walks the path that Shortest gives along the edges of g.
func (g *graph) checkShortest(t *testing.T, opts ExploreOptions, want Exploration) {
	t.Helper()
	p, ok := Shortest(t.Context(), g, opts)
	if ok != want.Failed {
		t.Fatalf("Shortest found a path: %v; a step fails: %v", ok, want.Failed)
	}
	if !ok {
		return
	}
	if again, _ := Shortest(t.Context(), g, opts); !reflect.DeepEqual(again, p) {
		t.Fatalf("Shortest gave two paths:\n%+v\n%+v", p, again)
	}
	if len(p.States) != len(p.Steps) || !slices.Contains(g.starts, g.decode(p.States[0])) {
		t.Fatalf("path %+v has no state before every step, or begins elsewhere than in %v", p, g.starts)
	}
	for i, s := range p.Steps {
		e := g.edges[g.decode(p.States[i])][s.Nth]
		last := i == len(p.Steps)-1
		if e.label != s.Label || e.fails != last || e.more != s.More {
			t.Fatalf("step %d is %+v, but the edge is %+v", i, s, e)
		}
		if !last && !bytes.Equal(g.encode(e.to), p.States[i+1]) {
			t.Fatalf("step %d leads to node %d, but the next state is %x", i, e.to, p.States[i+1])
		}
	}
	if n := len(p.Steps) + p.Steps[len(p.Steps)-1].More; n != want.FailDepth {
		t.Fatalf("the path has length %d, the shortest is %d", n, want.FailDepth)
	}
}

// Of a failure at depth 2 that needs two more actions and one at depth 3 that
// needs none, the second is shorter, although it is found later.
func TestAFailureThatNeedsMoreLosesToADeeperOne(t *testing.T) {
	g := &graph{starts: []int{0}, edges: [][]edge{
		0: {{to: 1, sometimes: -1}},
		1: {{label: 1, fails: true, more: 2, sometimes: -1}, {to: 2, sometimes: -1}},
		2: {{label: 2, fails: true, sometimes: -1}, {to: 3, sometimes: -1}},
		3: {{label: 3, fails: true, sometimes: -1}},
	}, encode: encodings[0].encode, decode: encodings[0].decode}
	x := Explore(t.Context(), g, ExploreOptions{Width: 8})
	if !x.Failed || x.FailDepth != 3 || x.Complete {
		t.Errorf("failed %v at depth %d, complete %v; want true, 3, false", x.Failed, x.FailDepth, x.Complete)
	}
	p, ok := Shortest(t.Context(), g, ExploreOptions{Width: 8})
	if want := []PathStep{{Label: 0, Nth: 0}, {Label: 0, Nth: 1}, {Label: 2, Nth: 0}}; !ok || !slices.Equal(p.Steps, want) {
		t.Errorf("Shortest gave %+v, %v; want %+v", p.Steps, ok, want)
	}
}

// Of equally short paths the first counts, in the order of Begin and Expand.
func TestShortestGivesTheFirstOfEquals(t *testing.T) {
	g := &graph{starts: []int{0}, edges: [][]edge{
		0: {{to: 1, sometimes: -1}, {to: 2, sometimes: -1}},
		1: {{to: 0, sometimes: -1}, {label: 1, fails: true, more: 1, sometimes: -1}, {label: 2, fails: true, more: 1, sometimes: -1}},
		2: {{label: 3, fails: true, more: 1, sometimes: -1}},
	}, encode: encodings[0].encode, decode: encodings[0].decode}
	p, ok := Shortest(t.Context(), g, ExploreOptions{Width: 8})
	if want := []PathStep{{Label: 0, Nth: 0}, {Label: 1, Nth: 1, More: 1}}; !ok || !slices.Equal(p.Steps, want) {
		t.Errorf("Shortest gave %+v, %v; want %+v", p.Steps, ok, want)
	}
}

// Were the counts compared nowhere, a set that loses states would go unnoticed.
func TestALossyVisitedSetMissesStates(t *testing.T) {
	const n = 5000
	g := &graph{starts: []int{0}, encode: encodings[0].encode, decode: encodings[0].decode}
	for i := range n {
		g.edges = append(g.edges, []edge{{to: (i + 1) % n, sometimes: -1}, {to: (i * 7) % n, sometimes: -1}, {to: (i*5 + 3) % n, sometimes: -1}})
	}
	exact := explore(t.Context(), g, ExploreOptions{Width: 8}, defaultTuning)
	if exact.States != n || !exact.Exact || exact.Collision != 0 {
		t.Errorf("exact: %d states of %d, exact %v, collision %g", exact.States, n, exact.Exact, exact.Collision)
	}
	lossy := defaultTuning
	lossy.keep = 0xffff << 48
	if x := explore(t.Context(), g, ExploreOptions{Width: 8}, lossy); x.States >= n || x.Exact || x.Collision == 0 {
		t.Errorf("16 bits: %d states of %d, exact %v, collision %g", x.States, n, x.Exact, x.Collision)
	}
}

func TestCollisionIsTheBirthdayBound(t *testing.T) {
	x := Explore(t.Context(), grid{}, ExploreOptions{MaxDepth: 127}) // 128*129/2 states
	if want := 8256.0 * 8256 / (1 << 62) / 8; x.Exact || x.Collision != want {
		t.Errorf("exact %v, collision %g; want false, %g", x.Exact, x.Collision, want)
	}
}

// grid has no end: from (x, y) to (x+1, y) and (x, y+1). d steps from the origin
// there are d+1 states.
type grid struct{ expanded func() }

func (g grid) Walker() Walker { return g }

func (g grid) Begin(out *Steps) { out.Add(0, make([]byte, 8)) }

func (g grid) Expand(state []byte, out *Steps) {
	if g.expanded != nil {
		g.expanded()
	}
	x, y := binary.BigEndian.Uint32(state), binary.BigEndian.Uint32(state[4:])
	var next [8]byte
	binary.BigEndian.PutUint32(next[:], x+1)
	binary.BigEndian.PutUint32(next[4:], y)
	out.Add(0, next[:])
	binary.BigEndian.PutUint32(next[:], x)
	binary.BigEndian.PutUint32(next[4:], y+1)
	out.Add(1, next[:])
}

// checkCovered checks what a bounded exploration of the grid claims.
func checkCovered(t *testing.T, x Exploration, bounded string) {
	t.Helper()
	if x.Bounded != bounded || x.Complete || x.Failed {
		t.Fatalf("bounded %q, complete %v, failed %v; want %q, false, false", x.Bounded, x.Complete, x.Failed, bounded)
	}
	if n := len(x.Levels); n != x.Depth+1 && n != x.Depth+2 {
		t.Fatalf("%d levels at depth %d", n, x.Depth)
	}
	var states, transitions uint64
	for d, l := range x.Levels {
		states += l.States
		transitions += l.Transitions
		all := uint64(d + 1)
		if d <= x.Depth && l.States != all {
			t.Errorf("level %d is claimed to be known and has %d states of %d", d, l.States, all)
		}
		if d < x.Depth && l.Transitions != 2*all {
			t.Errorf("level %d is claimed to be expanded and has %d steps of %d", d, l.Transitions, 2*all)
		}
		if d == x.Depth && l.Transitions == 2*all {
			t.Errorf("level %d was expanded, but paths of %d steps are not claimed to be covered", d, d+1)
		}
	}
	if states != x.States || transitions != x.Transitions {
		t.Errorf("levels have %d states and %d steps; in all there are %d and %d", states, transitions, x.States, x.Transitions)
	}
}

func TestMaxStatesEndsSoonAfterIt(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		const bound = 100_000
		x := Explore(t.Context(), grid{}, ExploreOptions{Workers: workers, MaxStates: bound, Width: 8})
		checkCovered(t, x, "states")
		if most := uint64(bound + workers*(defaultTuning.batch+2)); x.States <= bound || x.States > most {
			t.Errorf("%d workers: %d states, not in (%d, %d]", workers, x.States, bound, most)
		}
	}
}

func TestMaxDepthIsExact(t *testing.T) {
	x := Explore(t.Context(), grid{}, ExploreOptions{MaxDepth: 50, Width: 8})
	checkCovered(t, x, "depth")
	if x.Depth != 50 || x.States != 51*52/2 || x.Transitions != 50*51 || len(x.Levels) != 51 {
		t.Errorf("depth %d, %d states, %d transitions, %d levels; want 50, 1326, 2550, 51", x.Depth, x.States, x.Transitions, len(x.Levels))
	}
}

func TestMaxMemoryEndsSoonAfterIt(t *testing.T) {
	for _, width := range []int{0, 8} {
		const bound = 4 << 20
		x := Explore(t.Context(), grid{}, ExploreOptions{Workers: 2, MaxMemory: bound, Width: width})
		checkCovered(t, x, "memory")
		if x.Memory <= bound || x.Memory > bound+bound/8 {
			t.Errorf("width %d: %d bytes at the peak, the bound was %d", width, x.Memory, bound)
		}
	}
}

func TestTheContextEndsAnExploration(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	x := Explore(ctx, grid{expanded: func() {
		if n++; n == 10_000 {
			cancel()
		}
	}}, ExploreOptions{Workers: 1, Width: 8})
	checkCovered(t, x, "time")
	if n > 10_000+defaultTuning.batch {
		t.Errorf("%d states were expanded after the context had ended at the 10,000th", n)
	}
	x = Explore(ctx, grid{}, ExploreOptions{Width: 8})
	checkCovered(t, x, "time")
	if x.States != 1 {
		t.Errorf("%d states although the context had ended before", x.States)
	}
	if _, ok := Shortest(ctx, grid{}, ExploreOptions{Width: 8}); ok {
		t.Error("Shortest found a failing step where there is none")
	}
}

// chain is n states in a row, the last of which has no step, or fails.
func chain(n int, fails bool) *graph {
	g := &graph{starts: []int{0}, encode: encodings[0].encode, decode: encodings[0].decode}
	for i := range n - 1 {
		g.edges = append(g.edges, []edge{{to: i + 1, sometimes: -1}})
	}
	g.edges = append(g.edges, nil)
	if fails {
		g.edges[n-1] = []edge{{fails: true, sometimes: -1}}
	}
	return g
}

// A bound that is reached and not passed is none; and a level that was not
// expanded is not covered, even if it would have turned out to be the last.
func TestABoundThatIsNotPassedLeavesItComplete(t *testing.T) {
	for _, c := range []struct {
		opts    ExploreOptions
		bounded string
	}{
		{ExploreOptions{MaxStates: 10}, ""},
		{ExploreOptions{MaxStates: 9}, "states"},
		{ExploreOptions{MaxDepth: 10}, ""},
		{ExploreOptions{MaxDepth: 9}, "depth"},
	} {
		c.opts.Width = 8
		x := Explore(t.Context(), chain(10, false), c.opts)
		if x.Bounded != c.bounded || x.Complete != (c.bounded == "") || x.Depth != 9 || x.States != 10 {
			t.Errorf("%+v: bounded %q, complete %v, depth %d, %d states", c.opts, x.Bounded, x.Complete, x.Depth, x.States)
		}
	}
}

func TestShortestRespectsBounds(t *testing.T) {
	g := chain(10_000, true)
	for _, c := range []struct {
		name string
		opts ExploreOptions
		want bool
	}{
		{"none", ExploreOptions{}, true},
		{"states", ExploreOptions{MaxStates: 5000}, false},
		{"enough states", ExploreOptions{MaxStates: 10_000}, true},
		{"depth", ExploreOptions{MaxDepth: 9999}, false},
		{"enough depth", ExploreOptions{MaxDepth: 10_000}, true},
		{"memory", ExploreOptions{MaxMemory: 200_000}, false},
	} {
		c.opts.Width = 8
		p, ok := Shortest(t.Context(), g, c.opts)
		if ok != c.want || ok && len(p.Steps) != 10_000 {
			t.Errorf("%s: found %v, %d steps", c.name, ok, len(p.Steps))
		}
	}
}

func TestProgressEndsAtTheResult(t *testing.T) {
	g := chain(1000, false)
	var p ExploreProgress
	for range 2 { // the second run starts anew
		x := Explore(t.Context(), g, ExploreOptions{Width: 8, Progress: &p})
		if uint64(p.States.Load()) != x.States || uint64(p.Transitions.Load()) != x.Transitions || p.Depth.Load() != int64(x.Depth) ||
			p.Frontier.Load() != 1 || p.Expanded.Load() != 1 || uint64(p.Memory.Load()) > x.Memory || p.Memory.Load() == 0 {
			t.Errorf("progress %d states, %d transitions, depth %d, %d of %d expanded, %d bytes; the result is %d, %d, %d and %d bytes",
				p.States.Load(), p.Transitions.Load(), p.Depth.Load(), p.Expanded.Load(), p.Frontier.Load(), p.Memory.Load(),
				x.States, x.Transitions, x.Depth, x.Memory)
		}
	}
}

func TestTotalAddsUpLevels(t *testing.T) {
	x := Exploration{Levels: []Level{{Steps: []uint64{1, 2}}, {}, {Steps: []uint64{1, 0, 5}}}}
	if got, want := x.Total(), []uint64{2, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// system is a System of two functions.
type system struct {
	begin  func(out *Steps)
	expand func(state []byte, out *Steps)
}

func (s system) Walker() Walker                  { return s }
func (s system) Begin(out *Steps)                { s.begin(out) }
func (s system) Expand(state []byte, out *Steps) { s.expand(state, out) }

func TestMisusePanicsAndSaysWhy(t *testing.T) {
	one := func(out *Steps) { out.Add(0, []byte{1}) }
	calls := 0
	for _, c := range []struct {
		name, want string
		sys        system
		opts       ExploreOptions
		shortest   bool
	}{
		{"width", "a state of 1 bytes", system{begin: one}, ExploreOptions{Width: 2}, false},
		{"failing start", "Begin called Fail", system{begin: func(out *Steps) { out.Fail(0, 0) }}, ExploreOptions{}, false},
		{"failing start", "Begin called Fail", system{begin: func(out *Steps) { out.Fail(0, 0) }}, ExploreOptions{}, true},
		{"property", "property 2 was reached", system{begin: one, expand: func(_ []byte, out *Steps) { out.Sometimes(2) }}, ExploreOptions{Sometimes: 2}, false},
		{"more", "-1 more actions", system{begin: one, expand: func(_ []byte, out *Steps) { out.Fail(0, -1) }}, ExploreOptions{}, false},
		{"option", "MaxDepth is -1", system{begin: one}, ExploreOptions{MaxDepth: -1}, false},
		{"moody walker", "gave other steps when expanded a second time", system{begin: one, expand: func(_ []byte, out *Steps) {
			if calls++; calls == 1 {
				out.Fail(0, 0)
			}
		}}, ExploreOptions{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, c.want) {
					t.Errorf("panicked with %q, want %q in it", said, c.want)
				}
			}()
			// One worker, so that it panics on this goroutine.
			c.opts.Workers = 1
			if c.shortest {
				Shortest(t.Context(), c.sys, c.opts)
			} else {
				Explore(t.Context(), c.sys, c.opts)
			}
		})
	}
}
