package model

import (
	"context"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// tuning is what a test varies; nothing but speed and memory depends on it.
type tuning struct {
	shards int    // of the visited set; a power of two
	chunk  int    // bytes of a frontier chunk: what a worker takes at a time
	batch  int    // steps that a worker collects before it looks them up
	keep   uint64 // fingerprint bits kept: fewer than all lose states
}

var defaultTuning = tuning{shards: visitedShards, chunk: 16 << 10, batch: 1024, keep: math.MaxUint64}

// explorer is one exploration. Workers share it; between levels nobody else
// does.
type explorer struct {
	opts    ExploreOptions
	tune    tuning
	prints  fingerprints
	set     *visited
	pool    chunkPool
	memory  meter
	states  atomic.Uint64
	workers []*exploreWorker

	front   frontier      // the level being expanded
	taken   atomic.Int64  // chunks of it taken by workers
	bounded atomic.Uint32 // index into exploreBounds: which one was passed first
}

var exploreBounds = [...]string{"", "states", "memory", "depth", "time"}

const (
	boundStates = 1 + iota
	boundMemory
	boundDepth
	boundTime
)

func newExplorer(opts ExploreOptions, tune tuning) *explorer {
	opts.check()
	p := opts.Progress
	for _, c := range []*atomic.Int64{&p.States, &p.Transitions, &p.Frontier, &p.Expanded, &p.Depth, &p.Memory} {
		c.Store(0)
	}
	e := &explorer{opts: opts, tune: tune}
	e.memory.show = &p.Memory
	e.prints = fingerprints{width: opts.Width, seed: maphash.MakeSeed(), keep: tune.keep}
	e.set = newVisited(tune.shards, &e.memory)
	e.pool = chunkPool{size: tune.chunk, memory: &e.memory}
	return e
}

func explore(ctx context.Context, sys System, opts ExploreOptions, tune tuning) Exploration {
	e := newExplorer(opts, tune)
	x := Exploration{Sometimes: make([]Sometime, opts.Sometimes)}
	for range e.opts.Workers {
		e.workers = append(e.workers, e.newWorker(sys.Walker()))
	}
	e.workers[0].begin()
	e.workers[0].settle()
	e.collect(&x, 0)

	for depth := 0; e.front.states > 0; depth++ {
		x.Depth = depth
		if e.opts.MaxDepth > 0 && depth >= e.opts.MaxDepth {
			e.bounded.CompareAndSwap(0, boundDepth)
		}
		if e.passed(ctx) {
			x.Bounded = exploreBounds[e.bounded.Load()]
			break
		}
		level := e.front.states
		e.expand(ctx, depth)
		whole := e.collect(&x, depth+1) == level
		if !whole {
			x.Bounded = exploreBounds[e.bounded.Load()]
			break
		}
		// A failing step of the next level makes a path of depth+2 steps.
		if x.Failed && x.FailDepth <= depth+2 {
			if e.front.states > 0 {
				x.Depth = depth + 1
			}
			break
		}
	}
	x.Complete = !x.Failed && x.Bounded == ""
	x.Exact = e.prints.exact()
	if !x.Exact {
		n := float64(x.States)
		x.Collision = min(1, n*n/math.Exp2(65))
	}
	x.Memory = uint64(e.memory.peak.Load())
	return x
}

// passed says whether a bound was passed, and remembers which.
func (e *explorer) passed(ctx context.Context) bool {
	if e.bounded.Load() != 0 {
		return true
	}
	o := &e.opts
	var by uint32
	switch {
	case o.MaxStates > 0 && e.states.Load() > o.MaxStates:
		by = boundStates
	case o.MaxMemory > 0 && uint64(e.memory.now.Load()) > o.MaxMemory:
		by = boundMemory
	case ctx.Err() != nil:
		by = boundTime
	default:
		return false
	}
	e.bounded.CompareAndSwap(0, by)
	return true
}

// expand has the workers expand the frontier.
func (e *explorer) expand(ctx context.Context, depth int) {
	p := e.opts.Progress
	p.Depth.Store(int64(depth))
	p.Expanded.Store(0)
	p.Frontier.Store(int64(e.front.states))
	e.taken.Store(0)
	// One chunk is work for one worker; and for that no goroutine is needed.
	n := min(len(e.workers), len(e.front.chunks))
	var others sync.WaitGroup
	for _, w := range e.workers[1:n] {
		others.Go(func() { w.run(ctx) })
	}
	e.workers[0].run(ctx)
	others.Wait()
}

// collect moves what the workers found while they expanded level depth-1 into
// x and the frontier, and returns how many states they expanded.
func (e *explorer) collect(x *Exploration, depth int) (expanded uint64) {
	e.front = frontier{}
	var from Level
	var labels [256]uint64
	for _, w := range e.workers {
		f := w.out.take()
		e.front.chunks = append(e.front.chunks, f.chunks...)
		e.front.states += f.states
		expanded += w.expanded
		for label, n := range w.labels {
			labels[label] += n
			from.Transitions += n
		}
		for i, n := range w.steps.sometimes {
			if s := &x.Sometimes[i]; n > 0 {
				if s.Steps == 0 {
					s.Depth = depth
				}
				s.Steps += n
			}
		}
		if w.failed && (!x.Failed || depth+w.more < x.FailDepth) {
			x.Failed, x.FailDepth = true, depth+w.more
		}
		w.expanded, w.failed = 0, false
		clear(w.labels[:])
		clear(w.steps.sometimes)
	}
	if depth > 0 {
		l := &x.Levels[depth-1]
		l.Transitions = from.Transitions
		n := len(labels)
		for n > 0 && labels[n-1] == 0 {
			n--
		}
		l.Steps = slices.Clone(labels[:n])
		x.Transitions += from.Transitions
	}
	if e.front.states > 0 {
		x.Levels = append(x.Levels, Level{States: e.front.states})
		x.States += e.front.states
	}
	return expanded
}

// exploreWorker expands chunks of the frontier. It belongs to one goroutine at
// a time.
type exploreWorker struct {
	e      *explorer
	walker Walker
	steps  Steps // the batch
	out    frontierWriter

	// recent holds fingerprints that this worker looked up lately, each at its
	// remainder: neighbours in the frontier often lead to the same state, and
	// this cache is nearer than the visited set.
	recent []uint64
	prints []uint64 // of the states of the batch that recent does not hold
	which  []int    // states of the batch they are
	homes  []uint64 // what was seen in their first slots

	// Since the last collect:
	expanded uint64
	labels   [256]uint64
	failed   bool
	more     int // the least that a failed step asked for

	shown uint64 // of expanded, what Progress knows
}

const recentPrints = 1 << 13

func (e *explorer) newWorker(walker Walker) *exploreWorker {
	w := &exploreWorker{e: e, walker: walker, steps: newSteps(&e.opts), out: frontierWriter{pool: &e.pool, width: e.opts.Width}}
	w.recent = make([]uint64, recentPrints)
	w.recent[0] = 1 // only there could 0 be a fingerprint, and it is not held yet
	return w
}

// begin puts the initial states into the batch.
func (w *exploreWorker) begin() {
	w.walker.Begin(&w.steps)
	if len(w.steps.fails) > 0 {
		panic("model: Begin called Fail; an initial state cannot fail, only a step")
	}
	w.steps.labels = w.steps.labels[:0] // being initial is no transition
}

// run expands chunks until none is left or a bound is passed.
func (w *exploreWorker) run(ctx context.Context) {
	e := w.e
	w.shown = 0
	for !e.passed(ctx) {
		i := e.taken.Add(1) - 1
		if i >= int64(len(e.front.chunks)) {
			break
		}
		chunk := e.front.chunks[i]
		for rest := chunk; len(rest) > 0; {
			var state []byte
			state, rest = unpack(rest, e.opts.Width)
			w.walker.Expand(state, &w.steps)
			w.expanded++
			if len(w.steps.labels) >= e.tune.batch {
				w.settle()
				if e.passed(ctx) {
					return
				}
			}
		}
		e.pool.put(chunk)
	}
	w.settle()
}

// settle looks up the states of the batch, pushes the new ones to the next
// frontier, and empties it.
func (w *exploreWorker) settle() {
	e := w.e
	w.prints = e.prints.all(&w.steps, w.prints[:0])
	prints, which := w.prints[:0], w.which[:0]
	for i, fp := range w.prints {
		if at := &w.recent[fp%recentPrints]; *at != fp {
			*at = fp
			prints, which = append(prints, fp), append(which, i)
		}
	}
	homes := e.set.peek(prints, w.homes[:0])
	found := w.out.full.states
	for i, fp := range prints {
		if (homes[i] != fp || fp == 0) && e.set.add(fp) {
			w.out.push(w.steps.at(which[i]))
		}
	}
	w.prints, w.which, w.homes = prints, which, homes
	found = w.out.full.states - found
	e.states.Add(found)
	for _, label := range w.steps.labels {
		w.labels[label]++
	}
	for _, f := range w.steps.fails {
		if !w.failed || f.more < w.more {
			w.failed, w.more = true, f.more
		}
	}
	p := e.opts.Progress
	p.States.Add(int64(found))
	p.Transitions.Add(int64(len(w.steps.labels)))
	p.Expanded.Add(int64(w.expanded - w.shown))
	w.shown = w.expanded
	w.steps.reset()
}
