package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

// Verdict is what an exploration came to.
type Verdict uint8

// The verdicts. Only a complete exploration holds.
const (
	Unknown Verdict = iota // a bound ended it
	Holds
	Violated
)

func (v Verdict) String() string { return [...]string{"unknown", "holds", "violated"}[v] }

// MarshalText gives the name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Report says what was explored and what came of it.
type Report struct {
	Subject    string
	Config     sim.Config
	Faults     Faults
	Judged     model.Set
	Reductions sim.Reductions
	// Found is what [model.Explore] counted: states, steps, levels, and whether
	// it is complete. Labels of steps are kinds of actions.
	Found   model.Exploration
	Verdict Verdict
	// Counterexample is a shortest schedule that breaks something, as a file
	// that can be replayed; nil if nothing broke. First says what it breaks.
	Counterexample *sim.Schedule
	First          model.Violation
	Violated       model.Set
	// Unshown is why there is no counterexample although something breaks: the
	// search for it was ended by a bound or by the context.
	Unshown error
	// Clients says in how many states a client stood how; a state counts once
	// for each of its clients.
	Clients   []ClientStates
	Sometimes []Reached
	// Fair is what became of the states when each was given fair time. It is
	// nil if availability was not judged.
	Fair *Wait
	// Compared is how many real worlds were compared with those that stand for
	// them, on walks from one state in 128.
	Compared uint64
	// Parted is why a first search was given up; mostly nil.
	Parted *PartedError
}

// ClientStates is how a client stands, and in how many states one does.
type ClientStates struct {
	Phase   lease.Phase
	Acting  bool // it may act as leader: else its deadline has passed unnoticed
	Working bool
	Stopped sim.Kind // Crash, Suspend, or KindNone
	States  uint64
}

func (c ClientStates) String() string {
	s := c.Phase.String()
	switch {
	case c.Stopped == sim.Crash:
		return "crashed"
	case c.Phase >= lease.Leading && !c.Acting:
		s += ", past its deadline"
	}
	if c.Working {
		s += ", working"
	}
	if c.Stopped != sim.KindNone {
		s += ", suspended"
	}
	return s
}

// Reached is a property that must be reached sometimes: an exploration that
// never met it has shown nothing about it.
type Reached struct {
	Name  string
	Steps uint64 // that reached it
	Depth int    // the fewest actions until then
}

// Wait is how long it took until a client led, once everything was fair:
// messages take Delay, clients run every Every, nothing fails.
type Wait struct {
	Delay, Every time.Duration
	Longest      time.Duration // that any state waited
	Bound        time.Duration // and the longest that one was allowed to
	States       uint64        // that waited so long
	Key          []byte        // one of them, for [Options.Lead]
}

const standings = 1 << 7

// standingOf packs how client i stands.
func standingOf(w *sim.World, i int) int {
	st, acting := w.Client(i)
	x := int(st.Phase)
	if acting {
		x |= 4
	}
	if st.Working {
		x |= 8
	}
	switch w.Standing(sim.ClientNode(i)) {
	case sim.Crash:
		return 16
	case sim.KindNone:
	default:
		x |= 32
	}
	return x
}

func clientStates(x int) ClientStates {
	c := ClientStates{Phase: lease.Phase(x & 3), Acting: x&4 != 0, Working: x&8 != 0}
	switch {
	case x&16 != 0:
		c.Stopped = sim.Crash
	case x&32 != 0:
		c.Stopped = sim.Suspend
	}
	return c
}

// finerStates bounds the search that is made where one with all reductions has
// to be given up, unless the options have a bound.
const finerStates = 10_000_000

// Run explores. The error matches [ErrOptions]; or it is a [*PartedError], or
// says that a path could not be replayed: two worlds were taken for one and
// differ, which is a fault of the keys or of the subject's declared layout.
//
// What [sim.Irrelevance] leaves out rests on what the rules do, and the rules
// are what is in question. So real worlds are compared with those that stand for
// them on walks from all over the state space. If two part, Run explores anew
// without that reduction, which takes many times as many states; Parted in the
// report says so.
func Run(ctx context.Context, o Options) (*Report, error) {
	r, err := o.search(ctx)
	var parted *PartedError
	if !errors.As(err, &parted) || parted.Reductions&sim.Irrelevance == 0 || ctx.Err() != nil {
		return r, err
	}
	o.Reductions = parted.Reductions &^ sim.Irrelevance
	o.MaxStates = cmp.Or(o.MaxStates, finerStates)
	if r, err = o.search(ctx); r != nil {
		r.Parted = parted
	}
	return r, err
}

// search explores, and again if what broke in fair time cannot be shown.
func (o Options) search(ctx context.Context) (*Report, error) {
	r, err := o.run(ctx, false)
	if errors.Is(err, errCalmOrder) {
		return o.run(ctx, true)
	}
	return r, err
}

// run explores once. onlyWaits judges nothing but availability in fair time.
func (o Options) run(ctx context.Context, onlyWaits bool) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := newSystem(&o)
	if err != nil {
		return nil, err
	}
	r := &Report{Subject: o.Subject.Name, Config: o.Config(), Faults: o.Faults, Judged: o.judged(), Reductions: s.space().Reductions()}
	s.onlyWaits = onlyWaits
	searching, stop := context.WithCancel(ctx)
	defer stop()
	s.stop = stop
	r.Found = model.Explore(searching, s, model.ExploreOptions{Workers: o.Workers, MaxStates: o.MaxStates, MaxMemory: o.MaxMemory, MaxDepth: o.MaxDepth,
		Sometimes: someCount, Progress: o.Progress})
	s.tally(r)
	switch {
	case r.Found.Failed:
		// Found by the real code, from worlds of keys: replaying it will tell.
		r.Verdict = Violated
		return r, s.explain(ctx, r)
	case s.parted != nil:
		return r, s.parted
	case r.Found.Complete:
		r.Verdict = Holds
	}
	return r, nil
}

// tally adds up what the walkers saw.
func (s *system) tally(r *Report) {
	var sum [standings]uint64
	wait := Wait{Delay: s.fair.Delay, Every: s.fair.Every}
	for _, k := range s.walkers {
		r.Compared += k.compared
		for i, n := range k.standing {
			sum[i] += n
		}
		wait.Bound = max(wait.Bound, k.waited.Bound)
		switch {
		case k.waited.Longest > wait.Longest:
			wait.Longest, wait.States, wait.Key = k.waited.Longest, k.waited.States, k.longest
		case k.waited.Longest == wait.Longest:
			wait.States += k.waited.States
			if wait.Key == nil || k.longest != nil && string(k.longest) < string(wait.Key) {
				wait.Key = k.longest
			}
		}
	}
	for x, n := range sum {
		if n > 0 {
			c := clientStates(x)
			c.States = n
			r.Clients = append(r.Clients, c)
		}
	}
	if s.waits {
		r.Fair = &wait
	}
	for i, x := range r.Found.Sometimes {
		r.Sometimes = append(r.Sometimes, Reached{sometimesNames[i], x.Steps, x.Depth})
	}
}

// explain finds the shortest counterexample, with the same bounds again.
func (s *system) explain(ctx context.Context, r *Report) error {
	again, err := newSystem(s.o)
	if err != nil {
		return err
	}
	again.onlyWaits = s.onlyWaits
	path, ok := model.Shortest(ctx, again, model.ExploreOptions{MaxDepth: r.Found.FailDepth, MaxStates: s.o.MaxStates, MaxMemory: s.o.MaxMemory, Sometimes: someCount})
	if !ok {
		r.Unshown = fmt.Errorf("the search that keeps the way to each state was ended by %w", cmp.Or(context.Cause(ctx), errBounds))
		return nil
	}
	label := path.Steps[len(path.Steps)-1].Label
	actions, err := again.schedule(path.States, again.fail(label))
	if err != nil && sim.Kind(label) == sim.Calm {
		actions, err = again.inTurn(path.States)
	}
	if err != nil {
		if sim.Kind(label) == sim.Calm && !s.onlyWaits {
			return errCalmOrder
		}
		return &PartedError{Key: path.States[len(path.States)-1], Reductions: r.Reductions, Why: err}
	}
	c := &sim.Schedule{Subject: r.Subject, Config: r.Config, Actions: actions}
	opts := sim.Options{Monitor: true, Only: r.Judged, Lockstep: r.Judged.Has(model.Lockstep)}
	ran := c.Run(s.o.Subject, opts)
	r.First, r.Violated = ran.First, ran.Violated
	c.Name, c.Shows, c.Waives = ran.First.Invariant.String(), ran.First.Describe(sim.Names()), ran.Waived
	if s.o.Subject.Name != sim.SubjectBuiltin {
		c.Expect = ran.First.Invariant
	}
	r.Counterexample = c
	return nil
}

// errCalmOrder says that what broke in fair time broke by the order in which the
// clients took their turns there, which is that of the representative alone.
var errCalmOrder = errors.New("what breaks in fair time depends on the order of turns")

// errBounds is why a second search may end before it finds what the first did.
var errBounds = errors.New("the bounds of states or memory")

// Lead is a shortest schedule to the state with that key, such as the one that
// waited longest for a leader. It explores anew, on one core, within MaxStates
// and MaxMemory.
func (o Options) Lead(ctx context.Context, key []byte) (*sim.Schedule, error) {
	s, err := newSystem(&o)
	if err != nil {
		return nil, err
	}
	s.waits, s.target = false, key
	path, ok := model.Shortest(ctx, s, model.ExploreOptions{MaxStates: o.MaxStates, MaxMemory: o.MaxMemory, Sometimes: someCount})
	if !ok {
		return nil, fmt.Errorf("no state with key %x was found: %w", key, cmp.Or(context.Cause(ctx), errNoState))
	}
	actions, err := s.schedule(path.States, nil)
	if err != nil {
		return nil, err
	}
	return &sim.Schedule{Subject: o.Subject.Name, Config: o.Config(), Actions: actions}, nil
}

// errNoState is why [Options.Lead] may find none.
var errNoState = errors.New("it cannot be reached with these options, or not within their bounds")
