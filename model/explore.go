package model

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
)

// System is a transition system whose states are packed into bytes. Two states
// are the same if and only if their bytes are.
type System interface {
	// Walker makes the view of one goroutine; walkers share nothing that
	// changes. Explore asks for one per worker.
	Walker() Walker
}

// Walker gives the states and steps of a System to one goroutine.
type Walker interface {
	// Begin gives the initial states: out.Add(0, state) each. It must not call
	// Fail.
	Begin(out *Steps)
	// Expand gives every step out of state, in a fixed order: the same state
	// gives the same steps, whatever was expanded before. state is only valid
	// during the call, and must not be changed.
	Expand(state []byte, out *Steps)
}

// ExploreOptions says how far to explore. The zero value explores everything.
//
// MaxStates, MaxMemory and the context are looked at about every thousand steps
// of each worker: an exploration ends soon after the bound is passed, not
// exactly there.
type ExploreOptions struct {
	Workers   int    // goroutines; 0: GOMAXPROCS
	MaxStates uint64 // 0: no bound
	MaxMemory uint64 // bytes of visited set and frontiers; 0: no bound
	MaxDepth  int    // steps from an initial state; 0: no bound

	// Width > 0 says that every state has exactly this many bytes. Up to 8 the
	// visited set is exact: the fingerprint of a state is a bijection of it.
	// Otherwise states are told apart by 64-bit hashes.
	Width int

	Sometimes int              // how many properties there are that must be reached sometimes
	Progress  *ExploreProgress // nil: nobody looks
}

// ExploreProgress is what an exploration in progress shows. It is written while
// the exploration runs and may be read at any time.
type ExploreProgress struct {
	States, Transitions atomic.Int64 // so far
	Frontier            atomic.Int64 // states of the level being expanded
	Expanded            atomic.Int64 // of these, done
	Depth               atomic.Int64 // of the level being expanded
	Memory              atomic.Int64 // bytes of visited set and frontiers now
}

// Exploration is what Explore found. Unless a bound ended it, States,
// Transitions, Depth, Levels, FailDepth and Sometimes do not depend on the
// number of workers.
type Exploration struct {
	States      uint64 // different ones, all levels together
	Transitions uint64 // steps taken, all levels together

	// Every path of up to Depth steps from an initial state was covered, the
	// checks of its steps included. In a complete exploration it is the number
	// of levels after the initial states, and longer paths lead through states
	// that are covered too.
	Depth int

	// Levels by the number of steps from an initial state. All levels before
	// Depth were expanded in full. Level Depth is known in full; if a bound
	// ended the exploration it was expanded in part or not at all, and what
	// was found by that is one more level, known in part.
	Levels []Level

	Complete bool   // every reachable state was expanded and nothing failed
	Bounded  string // which bound ended it: "" (none), "states", "memory", "depth", "time" (the context ended)

	Failed bool
	// FailDepth is the length of the shortest failing path: the depth of the
	// state, the failing step itself, and how many more Fail asked for. If
	// Bounded is not empty there may be a shorter one.
	FailDepth int

	Sometimes []Sometime // by property

	Exact bool // no two states were taken for one
	// Collision is an upper bound on the probability that some state was taken
	// for another and so missed: 0 if Exact, else the birthday bound
	// n*n / 2^65 for n states under 64-bit hashes.
	Collision float64

	Memory uint64 // bytes of visited set and frontiers, at their peak
}

// Level is the states at one distance from the initial states.
type Level struct {
	States      uint64   // first reached by this many steps
	Transitions uint64   // steps out of them
	Steps       []uint64 // these steps by label, up to the largest label there is
}

// Sometime says how a property that must be reached sometimes was.
type Sometime struct {
	Steps uint64 // that reached it; 0: never
	Depth int    // the fewest steps from an initial state to there
}

// Explore walks all reachable states of sys breadth-first, on opts.Workers
// goroutines that have all ended when it returns.
//
// A step that fails does not end the exploration at once: its level is finished
// first, and so are deeper ones as long as they can hold a shorter failing
// path. So the result is the same on any number of cores. [Shortest] finds the
// path.
//
// The bounds of opts, and ctx, can end it earlier: Bounded then says so, and
// "bounded at States states: every path of up to Depth steps was covered" is
// what may be claimed.
//
// Explore panics only on misuse: a negative option, a state that is not
// opts.Width long, a property outside opts.Sometimes, a Begin that fails. A
// panic of a Walker is not recovered; on the goroutine of a worker it ends the
// process.
func Explore(ctx context.Context, sys System, opts ExploreOptions) Exploration {
	return explore(ctx, sys, opts, defaultTuning)
}

func (o *ExploreOptions) check() {
	for _, f := range []struct {
		name  string
		value int
	}{{"Workers", o.Workers}, {"MaxDepth", o.MaxDepth}, {"Width", o.Width}, {"Sometimes", o.Sometimes}} {
		if f.value < 0 {
			panic(fmt.Sprintf("model: ExploreOptions.%s is %d; it cannot be negative", f.name, f.value))
		}
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = new(ExploreProgress)
	}
}

// Total is the number of steps by label over all levels, up to the largest
// label there is.
func (x *Exploration) Total() []uint64 {
	var sum []uint64
	for _, l := range x.Levels {
		if n := len(l.Steps) - len(sum); n > 0 {
			sum = append(sum, make([]uint64, n)...)
		}
		for label, n := range l.Steps {
			sum[label] += n
		}
	}
	return sum
}
