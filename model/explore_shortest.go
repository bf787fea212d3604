package model

import (
	"context"
	"fmt"
	"slices"
)

// Path is a shortest failing path.
type Path struct {
	States [][]byte // States[i] is the state before Steps[i]
	Steps  []PathStep
}

// PathStep is one step of a Path. The last one of the path failed.
type PathStep struct {
	Label uint8
	Nth   int // which of the steps that Expand gives, from 0; Fail counts too
	More  int // what Fail said; 0 in all but the last
}

// Shortest finds a shortest failing path of sys: the first one, in the order in
// which Begin and Expand give states and steps. It explores anew, on one
// goroutine, and keeps for every state where it came from: 8 bytes more a state
// than Explore needs. The path is the same every time.
//
// It says false if no step fails within opts.MaxStates (4 billion at most),
// opts.MaxMemory and opts.MaxDepth, and before ctx ends. Like [Explore] it panics only on misuse,
// which includes a Walker that gives other steps when asked a second time.
func Shortest(ctx context.Context, sys System, opts ExploreOptions) (Path, bool) {
	opts.Workers = 1
	e := newExplorer(opts, defaultTuning)
	w := e.newWorker(sys.Walker())
	s := shortest{e: e, w: w}
	w.begin()
	s.settle(noState)

	// from is where the state being expanded stands in the order of discovery,
	// which is the order of the frontier too.
	var from uint32
	best := -1 // the length of the path to failed
	var failed origin
	for depth := 0; best < 0 || depth+1 < best; depth++ {
		front := w.out.take()
		if front.states == 0 || opts.MaxDepth > 0 && depth >= opts.MaxDepth {
			break
		}
		p := e.opts.Progress
		p.Depth.Store(int64(depth))
		p.Frontier.Store(int64(front.states))
		p.Expanded.Store(0)
		for _, chunk := range front.chunks {
			for rest := chunk; len(rest) > 0; from++ {
				if e.passed(ctx) || s.full() {
					return s.path(sys, failed, best)
				}
				var state []byte
				state, rest = unpack(rest, opts.Width)
				w.walker.Expand(state, &w.steps)
				for _, f := range w.steps.fails {
					if n := depth + 1 + f.more; best < 0 || n < best {
						best, failed = n, origin{parent: from, nth: uint32(f.nth)}
					}
				}
				s.settle(from)
				p.Expanded.Add(1)
				if best == depth+1 {
					return s.path(sys, failed, best)
				}
			}
			e.pool.put(chunk)
		}
	}
	return s.path(sys, failed, best)
}

type shortest struct {
	e *explorer
	w *exploreWorker
	// origins by order of discovery, in pieces of one length so that growing
	// copies nothing.
	origins [][]origin
	count   uint32
}

// origin is where a state was first reached from: the state's place in the
// order of discovery, and which of its steps led here.
type origin struct{ parent, nth uint32 }

const (
	noState     = ^uint32(0) // the parent of initial states
	originPiece = 1 << 13
)

// full says that states may soon run out of numbers. One expansion adds far
// fewer than it leaves.
func (s *shortest) full() bool { return s.count >= noState-1<<24 }

// settle keeps the new ones of the states in the batch, reached from parent.
func (s *shortest) settle(parent uint32) {
	e, steps := s.e, &s.w.steps
	fails := steps.fails
	found := int64(s.w.out.full.states)
	nth := 0
	for i := range steps.count() {
		for len(fails) > 0 && fails[0].nth == nth {
			fails, nth = fails[1:], nth+1
		}
		if state := steps.at(i); e.set.add(e.prints.of(state)) {
			s.w.out.push(state)
			s.keep(origin{parent: parent, nth: uint32(nth)})
		}
		nth++
	}
	found = int64(s.w.out.full.states) - found
	e.states.Add(uint64(found))
	e.opts.Progress.States.Add(found)
	e.opts.Progress.Transitions.Add(int64(len(steps.labels)))
	steps.reset()
}

func (s *shortest) keep(o origin) {
	if s.count%originPiece == 0 {
		s.origins = append(s.origins, make([]origin, 0, originPiece))
		s.e.memory.add(8 * originPiece)
	}
	last := &s.origins[len(s.origins)-1]
	*last = append(*last, o)
	s.count++
}

// path walks the origins back from the failed step and the steps forward again.
func (s *shortest) path(sys System, failed origin, length int) (Path, bool) {
	if length < 0 {
		return Path{}, false
	}
	back := []origin{failed}
	for at := failed; at.parent != noState; {
		at = s.origins[at.parent/originPiece][at.parent%originPiece]
		back = append(back, at)
	}
	slices.Reverse(back)

	walker, steps := sys.Walker(), newSteps(&s.e.opts)
	walker.Begin(&steps)
	state := stateOf(&steps, int(back[0].nth))
	var p Path
	for _, o := range back[1:] {
		p.States = append(p.States, state)
		steps.reset()
		walker.Expand(state, &steps)
		nth := int(o.nth)
		i := slices.IndexFunc(steps.fails, func(f failure) bool { return f.nth == nth })
		last := len(p.States) == len(back)-1
		if nth >= len(steps.labels) || (i >= 0) != last {
			panic(fmt.Sprintf("model: state %x gave other steps when expanded a second time; is there a map's order or randomness in its Walker?", state))
		}
		step := PathStep{Label: steps.labels[nth], Nth: nth}
		if last {
			step.More = steps.fails[i].more
		} else {
			state = stateOf(&steps, nth)
		}
		p.Steps = append(p.Steps, step)
	}
	return p, true
}

// stateOf copies the state that the nth step leads to.
func stateOf(s *Steps, nth int) []byte {
	i := nth
	for _, f := range s.fails {
		if f.nth < nth {
			i--
		}
	}
	return slices.Clone(s.at(i))
}
