package script

import (
	"context"
	"fmt"
	"slices"
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
// Each sequence is played from the beginning against a fresh store, unless the
// store is a [kit.Snapshotter]. The same store gives the same exploration.
//
// Like [Run] it panics with a *[kit.SetupError] where open gives up.
func Explore(ctx context.Context, open Open, o kit.Options, opts ExploreOptions) Exploration {
	if opts.Depth <= 0 {
		opts.Depth = ExploreDepth
	}
	if opts.Progress == nil {
		opts.Progress = new(atomic.Int64)
	}
	e := explorer{ctx: ctx, open: open, o: o, opts: opts}
	p := newPlayer(open, o)
	snap, ok := p.lab.Thing().(kit.Snapshotter)
	if ok {
		defer p.lab.Close()
		e.states(p, snap)
		return e.x
	}
	p.lab.Close()
	e.alphabets = make([]alphabet, opts.Depth)
	for i := range e.alphabets {
		e.alphabets[i] = newAlphabet(p.opts)
	}
	for depth := 1; depth <= opts.Depth; depth++ {
		e.limit = depth
		if !e.sequences() {
			return e.x
		}
		e.x.Depth = depth
	}
	e.x.Bounded = "depth"
	return e.x
}

type explorer struct {
	ctx  context.Context
	open Open
	o    kit.Options
	opts ExploreOptions
	x    Exploration

	limit     int        // of the sequences being played
	prefix    []Step     // of the one being played
	alphabets []alphabet // by length of the prefix
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

// run is a store that has played the prefix, and what it looks like.
type run struct {
	*player
	aims aims
}

func (r *run) step(s Step) bool {
	ok := r.play(s)
	r.aims.learn(&r.lines[len(r.lines)-1])
	return ok
}

func (r *run) last() Kind {
	if len(r.lines) == 0 {
		return KindNone
	}
	return r.lines[len(r.lines)-1].Step.Do
}

// sequences plays those with exactly e.limit steps, and reports whether none
// breaks a rule.
func (e *explorer) sequences() bool {
	e.prefix = e.prefix[:0]
	r := e.replay()
	return r != nil && e.from(r)
}

// replay plays the prefix against a fresh store; nil if a bound ends it.
func (e *explorer) replay() *run {
	r := &run{player: newPlayer(e.open, e.o)}
	r.lines = make([]Line, 0, e.limit)
	for _, s := range e.prefix {
		if !e.spend() {
			r.lab.Close()
			return nil
		}
		// A store that answers by chance may break a rule here that it kept before.
		if !r.step(s) {
			e.fail(r)
			return nil
		}
	}
	return r
}

func (e *explorer) fail(r *run) {
	res := r.result()
	e.x.Failure = &res
	r.lab.Close()
}

// from plays all that begins with the prefix, which r has played. It goes on
// with r as long as it can, and closes it.
func (e *explorer) from(r *run) bool {
	depth := len(e.prefix)
	steps := slices.Clone(e.alphabets[depth].steps(r.player, &r.aims, r.last()))
	for i, s := range steps {
		if i > 0 {
			if r = e.replay(); r == nil {
				return false
			}
		}
		if !e.spend() {
			r.lab.Close()
			return false
		}
		ok := r.step(s)
		leaf := depth+1 == e.limit
		if leaf {
			e.x.Sequences++
			e.x.Transitions[s.Do]++
		}
		if !ok {
			e.fail(r)
			return false
		}
		if leaf || r.lines[depth].NoOp {
			r.lab.Close()
			continue
		}
		e.prefix = append(e.prefix, s)
		ok = e.from(r)
		e.prefix = e.prefix[:depth]
		if !ok {
			return false
		}
	}
	if len(steps) == 0 {
		r.lab.Close()
	}
	return true
}
