package script

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"fencepost/props/kit"
)

// ExploreOptions say how far to explore. The zero value is five steps.
type ExploreOptions struct {
	// Depth is how many steps a sequence may have; 0: [ExploreDepth].
	Depth int
	// MaxCalls bounds how many steps are played in all; 0: no bound.
	MaxCalls int
	// Progress shows the calls so far, to whoever looks; nil: nobody does.
	Progress *atomic.Int64
}

// ExploreDepth is the depth of the zero [ExploreOptions].
const ExploreDepth = 5

// Exploration is what [Explore] found.
type Exploration struct {
	// Depth is how long sequences are of which every one was played.
	Depth int
	// Bounded is which bound ended it: "depth", "calls", "time" (the context
	// ended), or "" for none, where a rule was broken before.
	Bounded string

	// Sequences is how many different ones were played, for a store that is
	// no [kit.Snapshotter], and States how many they lead to, for one that is.
	Sequences, States int
	// Transitions by kind of step.
	Transitions [kinds]int
	// Calls is the steps played, those that led back to where another
	// sequence begins included.
	Calls int

	// Failure is a shortest run that breaks a rule; nil: there is none.
	Failure *Result
	// Unfaithful is steps that break a rule only where the store is put back
	// into a snapshot, and not when they are played from the beginning:
	// Snapshot and Restore do not keep all of its state, and nothing is known.
	Unfaithful []Step
}

// Total is all transitions.
func (x Exploration) Total() int {
	sum := 0
	for _, n := range x.Transitions {
		sum += n
	}
	return sum
}

// String says what was covered.
func (x Exploration) String() string {
	var by []string
	for k, n := range x.Transitions {
		if n > 0 {
			by = append(by, fmt.Sprintf("%v %d", Kind(k), n))
		}
	}
	what := fmt.Sprintf("%d sequences", x.Sequences)
	if x.States > 0 {
		what = fmt.Sprintf("%d states", x.States)
	}
	how := "complete to depth " + fmt.Sprint(x.Depth)
	switch {
	case x.Failure != nil:
		how = fmt.Sprintf("failed at depth %d", x.Depth+1)
	case x.Unfaithful != nil:
		how = "nothing is known, since its snapshots do not keep all of its state"
	case x.Bounded != "" && x.Bounded != "depth":
		how = fmt.Sprintf("bounded at %d calls (%s), complete to depth %d", x.Calls, x.Bounded, x.Depth)
	}
	return fmt.Sprintf("%s, %d transitions (%s): %s", what, x.Total(), strings.Join(by, ", "), how)
}

// Explore plays every sequence of steps up to a depth, short ones first, of
// an alphabet of requests, passages of time and crashes that o makes sense of,
// up to the first answer that breaks a rule: no shorter sequence breaks any.
// Unless the store is a [kit.Snapshotter], each sequence is played from the
// beginning, on leases of its own, and many of them on one store. One that
// breaks a rule is played again on a fresh store. Where it breaks none there,
// all are played again, each on a fresh store, and only if none of them breaks
// a rule is the failure the one that needs other leases: see [Result].Others.
// The same store gives the same exploration.
//
// Like [Run] it panics with a *[kit.SetupError] where open gives up.
func Explore(ctx context.Context, open Open, o kit.Options, opts ExploreOptions) Exploration {
	e := newExplorer(ctx, open, o, opts)
	p := e.series.join(1)
	if snap, ok := p.lab.Thing().(kit.Snapshotter); ok {
		defer e.series.Close()
		e.states(p, snap)
		return e.x
	}
	e.series.played = 0 // that one only looked
	e.sequences()
	if suspect := e.suspect; suspect != nil {
		depth := e.x.Depth
		e.x, e.series.most = Exploration{}, 1
		if e.sequences(); e.x.Failure == nil {
			e.x.Failure, e.x.Depth, e.x.Bounded = suspect, depth, ""
		}
	}
	return e.x
}

type explorer struct {
	ctx  context.Context
	open Open
	o    kit.Options
	opts ExploreOptions
	x    Exploration

	series *Series
	// suspect is a run that breaks a rule on a store with other leases, and
	// none on a fresh one.
	suspect *Result
}

func newExplorer(ctx context.Context, open Open, o kit.Options, opts ExploreOptions) *explorer {
	if opts.Depth <= 0 {
		opts.Depth = ExploreDepth
	}
	if opts.Progress == nil {
		opts.Progress = new(atomic.Int64)
	}
	return &explorer{ctx: ctx, open: open, o: o, opts: opts, series: NewSeries(open, o)}
}

// spend counts a step to be played, if there is anything left.
func (e *explorer) spend() bool {
	if e.opts.MaxCalls > 0 && e.x.Calls >= e.opts.MaxCalls {
		e.x.Bounded = "calls"
		return false
	}
	if e.x.Calls&0xff == 0 && e.ctx.Err() != nil {
		e.x.Bounded = "time"
		return false
	}
	e.x.Calls++
	e.opts.Progress.Add(1)
	return true
}

// run is a store that has played some steps, and what it looks like.
type run struct {
	*player
	aims aims
}

func (r *run) step(s Step) bool {
	ok := r.play(s)
	r.aims.learn(&r.lines[len(r.lines)-1])
	return ok
}
