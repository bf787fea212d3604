package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/kit"
	"fencepost/props/script"
	"fencepost/props/sim"
	"fencepost/props/timeline"
)

const (
	randomPart     = 25  // of a hundred calls
	randomMinSteps = 60  // of a schedule, before its calm
	randomMaxSteps = 120 // deep faults need a few tenures that follow one another
	randomShorten  = 8   // times the calls of a batch may be made to shorten a failure
	storyMoments   = 10
)

// harm is an invariant that a store can break, and what it means to whoever
// relies on the lease.
type harm struct {
	invariant  model.Invariant
	says, read string
	hint       string
}

// harms are in the order of their checks. Lockstep stands for a store that
// answers nothing, since it panicked.
var harms = [...]harm{
	{model.TokenMonotonicity, "Each change of ownership gets a token above all before it, and the next integer unless tokens are said to rise otherwise: a token that two holders have fences neither from the other.",
		"go doc fencepost/impl/lease Token", hintRising + hintRenewed + hintForgets},
	{model.BeliefSafety, "At most one candidate leads at any instant, while no clock drifts by more than was allowed for.",
		"go doc fencepost/impl/lease Config", hintForgets},
	{model.BeliefOwnership, "Whoever leads holds the lease in the store: until a TTL has run out on the store's clock, counted from the grant, nobody else is granted the lease, and neither a renewal nor a restart makes that sooner.",
		"go doc fencepost/impl/lease Store", hintForgets},
	{model.Continuity, "One term has one token, and no token is led under twice.",
		"go doc fencepost/impl/lease Token", ""},
	{model.Availability, "Once faults have stopped, somebody leads as soon as what was granted before has run out, and at once after a release.",
		"go doc fencepost/impl/lease Store", hintLate},
	{model.StorageSafety, "Once a storage has seen a token, no write under a lower one lands: a later holder's token must be the higher one.",
		"go doc fencepost/impl/fence", ""},
	{model.Attribution, "The token of a write that lands was granted to its writer, and to nobody else.",
		"go doc fencepost/impl/fence", ""},
	{model.Durability, "A read gives what the last write that landed has written.",
		"go doc fencepost/impl/fence", ""},
	{model.Linearizability, "All answers are those that one order of the requests explains, each given at an instant between call and return, by a lease that is held from its grant until its TTL has run out, and no longer (Wing and Gong 1993; Gray and Cheriton 1989).",
		"go doc fencepost/model TimedParams", hintLate + hintRenewed + hintForgets},
	{model.Lockstep, "Whatever is asked, the answer is an answer or an error.",
		"go doc fencepost/impl/lease Store", ""},
}

var harmful = func() (s model.Set) {
	for _, h := range harms {
		s |= model.SetOf(h.invariant)
	}
	return s
}()

// name is the rule as a failure tells it.
func (h harm) name() string {
	if h.invariant == model.Lockstep {
		return "no-panic"
	}
	return h.invariant.String()
}

func (h harm) check() string { return "random/" + h.name() }

// harmOf is the harm of an invariant that broke.
func harmOf(v model.Invariant) harm {
	for _, h := range harms {
		if h.invariant == v {
			return h
		}
	}
	return harm{invariant: v}
}

// Random are schedules in simulated time, in which candidates that are known to
// be right campaign for the lease of the store, lead and write, while messages
// are late, lost or copied, clocks drift, processes pause and crash, and others
// send requests out of place. Each check is one thing that may not come of it,
// "random/belief-safety" for example. All are judged over the same schedules,
// which are run once, by whichever check is asked first, and end with the first
// that goes wrong: that one is made as short as possible, and told by the check
// of what broke first.
//
// The schedules are those of e.Seed, and as many as the options' Calls allow.
// The options must be valid: [kit.Options.Validate].
func Random(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	batch := once(func() randomBatch { return runRandom(open, o, e) })
	var checks []kit.Check
	for _, h := range harms {
		checks = append(checks, kit.Check{Name: h.check(), Run: func() kit.Outcome { return batch().outcome(h) }})
	}
	return checks
}

// replaySchedule runs a schedule that a check of [Random] left as a file, and
// judges it again.
func replaySchedule(open script.Open, o kit.Options, name string, data []byte) kit.Outcome {
	s, err := sim.ReadSchedule(bytes.NewReader(data), name)
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}
	}
	crashes := func(a sim.Action) bool { return a.Kind == sim.Crash && a.Who == sim.StoreNode }
	if o.Volatile && slices.ContainsFunc(s.Actions, crashes) {
		return kit.Outcome{Skipped: "the store crashes in it, and Options.Volatile says that it then forgets everything: delete the file"}
	}
	if s.Config.Lease.LockDelay != o.LockDelay {
		return kit.Outcome{Unknown: fmt.Sprintf("%s: is about a lock delay of %v, and the options say %v: delete the file, or mend the options", name, s.Config.Lease.LockDelay, o.LockDelay)}
	}
	return kit.Try(func() (out kit.Outcome) {
		w := newSimulated(open, o)
		defer w.close()
		w.most = 1
		r := judge.Run(s, w.subject, harmful)
		switch {
		case r.Violated != 0:
			out.Failure = w.failure(s, r.First)
			if out.Failure != nil {
				out.Failure.File = &kit.File{Name: name, Data: data}
			}
		case r.Undecided:
			out.Unknown = "the check for linearizability ran out of memory"
		default:
			out.Covered = fmt.Sprintf("%d actions", len(s.Actions))
		}
		if err := w.setup(); err != nil {
			return kit.Outcome{Unknown: err.Error()}
		}
		return out
	})
}

// simulated is the store under test as Worlds run it, and what it has cost.
type simulated struct {
	subject sim.Subject
	store   *sim.OpaqueStore
	o       kit.Options
	deletes bool
	calls   int

	open script.Open
	lab  *kit.Lab[lease.Store] // of the latest run
	runs int                   // on it
	idle bool                  // the latest run on it has ended, without a panic
	most int                   // runs that one store has
}

// randomRuns is how many schedules are run on one store, each on a lease of its
// own.
const randomRuns = 64

// frugal is a right candidate, of which every other renews for half as long as it
// acquires for, and so believes in no more: a renewal may not shorten.
type frugal struct{ sim.Client }

// Tick asks for less.
func (r frugal) Tick(c *sim.ClientState, now sim.Clocks) lease.Requests {
	out := r.Client.Tick(c, now)
	if n := sim.NodeNamed(c.State().Holder.Node); out.Store.Op == lease.OpRenew && (n-sim.ClientNode(0))%2 == 1 {
		out.Store.TTL /= 2
	}
	return out
}

// newSimulated looks at a store to see what it can do.
func newSimulated(open script.Open, o kit.Options) *simulated {
	w := &simulated{open: open, most: randomRuns, lab: newLab(open, o), idle: true}
	w.o = o.For(w.lab.Thing())
	_, w.deletes = w.lab.Thing().(kit.Deleter)
	w.store = sim.NewOpaqueStore(func() sim.Live {
		if w.lab == nil || !w.idle || w.runs >= w.most {
			w.end()
			w.lab, w.runs = newLab(open, o), 0
		}
		w.runs, w.idle = w.runs+1, false
		return newProcess(w, fmt.Sprintf("leader-%d", w.runs))
	}, w.o.Promise())
	w.subject = sim.Subject{Name: sim.SubjectExternal, Store: w.store, Client: frugal{}, Storage: sim.Storage{}}
	return w
}

func newLab(open script.Open, o kit.Options) *kit.Lab[lease.Store] {
	lab := kit.NewLab(open, nil)
	lab.SteadyClock(o.SteadyClock)
	return lab
}

// close ends the latest run and its store.
func (w *simulated) close() {
	w.store.Close()
	w.end()
}

// end ends the store, unless it broke down: it may be waited for without end.
func (w *simulated) end() {
	if lab := w.lab; lab != nil && w.idle {
		w.lab, w.idle = nil, false
		lab.Close()
	}
}

// setup is why the store of the latest run could not be set up; nil if it was.
func (w *simulated) setup() error {
	if err, ok := errors.AsType[*kit.SetupError](w.store.Fault()); ok {
		return err
	}
	return nil
}

// profiles are what may happen to such a store. It crashes under every third
// pair of them: to open it again may take as long as a hundred calls.
func (w *simulated) profiles() []sim.Profile {
	profiles := []sim.Profile{sim.Chaos(), sim.Raw(), sim.Chaos(), sim.Raw(), sim.Chaos(), sim.Raw()}
	for i := range profiles {
		p := &profiles[i]
		p.StoreStays = w.o.Volatile || i >= 2
		if w.o.NoGet {
			p.Weights[sim.Get] = 0
		}
		if !w.deletes {
			p.Weights[sim.Delete] = 0
		}
	}
	return profiles
}

// longest is the longest TTL whose schedules fit into the hour that a calm may
// last, with their lock delay.
const longest = 3 * time.Minute

// shortest is the least TTL of a candidate that lets the store keep to what it
// promises, and others see it: half of it is no shorter than what the store makes
// of TTLs, and no calm has very many renewals.
func (w *simulated) shortest() time.Duration {
	return max(2*w.o.MinTTL, 2*w.o.Granularity, w.o.Late, w.o.LockDelay/4)
}

// suit makes a drawn set-up one for this store.
func (w *simulated) suit(c *sim.Config) {
	l := &c.Lease
	k := max((w.shortest()+l.TTL-1)/l.TTL, 1)
	l.TTL, l.SafetyMargin, l.RetryInterval = k*l.TTL, k*l.SafetyMargin, k*l.RetryInterval
	l.LockDelay = w.o.LockDelay
	c.FirstToken = 1 // of the World: which tokens the store issues is its own affair
}

// randomBatch is what one batch of schedules came to.
type randomBatch struct {
	skipped, unknown string
	broken           model.Invariant // first
	failure          *kit.Failure
	volatile         bool
	counts           sim.Counts
	calls            int
	histories        int64
	undecided        int64
}

func runRandom(open script.Open, o kit.Options, e kit.Effort) (b randomBatch) {
	err := kit.Attempt(func() {
		w := newSimulated(open, o)
		defer w.close()
		b = w.batch(e)
	})
	if err != nil {
		return randomBatch{unknown: err.Error()}
	}
	return b
}

// batch runs as many schedules as have room in the budget.
func (w *simulated) batch(e kit.Effort) (b randomBatch) {
	if ttl := w.shortest(); ttl > longest {
		return randomBatch{skipped: fmt.Sprintf("what the options promise takes TTLs of %v, and the longest that is simulated is %v", ttl, longest)}
	}
	budget := w.o.Budget(e, randomPart)
	t := w.trial()
	f, err := w.draw(&t, e, budget)
	among := f != nil && w.runs > 1
	if among {
		f, among, err = w.alone(f, e, budget)
	}
	if err != nil {
		return randomBatch{unknown: err.Error()}
	}
	switch {
	case among:
		b.broken, b.failure = f.Result.First.Invariant, w.amongOthers(f, e)
	case f != nil:
		w.most = 1
		b.broken, b.failure = f.Result.First.Invariant, w.shorten(f, w.calls+randomShorten*budget)
	}
	b.volatile, b.counts, b.calls = w.o.Volatile, t.Counts, w.calls
	b.histories, b.undecided = t.Histories, t.Undecided
	return b
}

func (w *simulated) trial() judge.Trial {
	return judge.Trial{Subject: w.subject, Want: harmful, Config: w.suit}
}

// draw runs schedules up to the first that goes wrong, or as many as budget calls
// are enough for.
func (w *simulated) draw(t *judge.Trial, e kit.Effort, budget int) (*judge.Failure, error) {
	most, limit := 0, w.calls+budget
	for i := 0; i == 0 || w.calls+most <= limit; i++ {
		before := w.calls
		f, err := w.run(t, e, i)
		if f != nil || err != nil {
			return f, err
		}
		most = max(most, w.calls-before)
	}
	return nil, nil
}

// run runs schedule number i.
func (w *simulated) run(t *judge.Trial, e kit.Effort, i int) (*judge.Failure, error) {
	profiles := w.profiles()
	f, err := t.Run(judge.Source(e.Seed, i), &profiles[i%len(profiles)], randomMinSteps, randomMaxSteps)
	if err == nil {
		err = w.setup()
	}
	if f != nil {
		f.Number = i
	}
	return f, err
}

// alone is how f goes wrong on a fresh store, or if it does not, another schedule
// that does; or else f as it is, which takes other leases.
func (w *simulated) alone(f *judge.Failure, e kit.Effort, budget int) (out *judge.Failure, among bool, err error) {
	w.most = 1
	if r := judge.Run(f.Schedule, w.subject, harmful); r.Violated != 0 {
		f.Result = r.Result
		return f, false, w.setup()
	}
	t := w.trial()
	if other, err := w.draw(&t, e, budget); other != nil || err != nil {
		return other, false, err
	}
	return f, true, nil
}

// amongOthers tells of f, which goes wrong on a store that had the runs before
// it.
func (w *simulated) amongOthers(f *judge.Failure, e kit.Effort) *kit.Failure {
	again := newSimulated(w.open, w.o)
	defer again.close()
	t := again.trial()
	for i := range f.Number {
		again.run(&t, e, i)
	}
	out := again.failure(f.Schedule, f.Result.First)
	out.What += amongOthers
	out.Story = append([]string{fmt.Sprintf("(on a store that had %d other leases before)", again.runs-1)}, out.Story...)
	out.File = nil // it is no schedule by itself
	return out
}

// shorten makes f as short as limit calls allow, and tells it.
func (w *simulated) shorten(f *judge.Failure, limit int) *kit.Failure {
	s := f.MinimizeWithin(w.subject, harmful, func(s *sim.Schedule) bool {
		// What the store promises stays, or its right answers would be held
		// against it.
		return w.calls < limit && s.Config.Lease.LockDelay == w.o.LockDelay && s.Config.Lease.TTL >= w.shortest()
	})
	if r := judge.Run(s, w.subject, harmful); r.Violated.Has(f.Result.First.Invariant) {
		return w.failure(s, r.First)
	}
	h := harmOf(f.Result.First.Invariant)
	return &kit.Failure{Rule: h.name(), Says: h.says, Read: h.read, Log: w.lab.Log(),
		What: f.Result.First.Describe(sim.Names()) + "; but not again when the same schedule was repeated: the store goes by something else than its Env"}
}

// failure tells of v, which s leads to.
func (w *simulated) failure(s *sim.Schedule, v model.Violation) *kit.Failure {
	trace := judge.Trace(s, w.subject, harmful)
	h := harmOf(v.Invariant)
	f := &kit.Failure{Rule: h.name(), Says: h.says, What: v.Describe(sim.Names()), Read: h.read, Hint: strings.TrimSpace(h.hint), Log: w.lab.Log()}
	more := &strings.Builder{}
	switch v.Invariant {
	case model.Lockstep:
		f.What = w.store.Fault().Error()
		if p, ok := errors.AsType[*sim.PanicError](w.store.Fault()); ok {
			more.WriteString(p.Stack + "\n")
		}
	case model.Linearizability:
		f.What = "no order of the requests explains the answer marked ◄"
		if why := judge.Explain(trace.Events, &s.Config, w.store.Promise()); why != "" {
			more.WriteString(why + "\n\n")
		}
	}
	o := timeline.Options{Violation: v, MaxRows: storyMoments}
	var err error
	if f.Story, err = timeline.Lines(trace.Events, sim.Names(), o); err != nil {
		panic(err) // the World emits no such events
	}
	timeline.Render(more, trace.Events, sim.Names(), timeline.Options{Violation: v})
	if issued := w.store.Issued(); len(issued) > 0 {
		fmt.Fprintf(more, "\nTokens are numbered from 1 in the order of their grants; the store's own:")
		for i, t := range issued {
			fmt.Fprintf(more, " %d=%d", i+1, t)
		}
		more.WriteByte('\n')
	}
	f.More = more.String()
	filed := *s
	filed.Name = "random-" + h.name()
	if data, err := filed.MarshalJSON(); err == nil {
		f.File = &kit.File{Name: filed.FileName(), Data: data}
	}
	return f
}

// outcome is what the batch says of one harm.
func (b randomBatch) outcome(h harm) kit.Outcome {
	switch {
	case b.skipped != "":
		return kit.Outcome{Skipped: b.skipped}
	case b.unknown != "":
		return kit.Outcome{Unknown: b.unknown}
	case b.failure != nil && b.broken == h.invariant:
		return kit.Outcome{Failure: b.failure}
	case b.failure != nil:
		return kit.Outcome{Skipped: "not reached: " + harmOf(b.broken).name() + " broke first, see " + harmOf(b.broken).check()}
	}
	for _, x := range b.reached(h.invariant) {
		if x.n == 0 {
			return kit.Outcome{Unknown: fmt.Sprintf("%d schedules of %d calls never came to %s: raise Options.Calls", b.counts.Runs, b.calls, x.what)}
		}
	}
	if h.invariant == model.Linearizability && b.undecided > 0 {
		return kit.Outcome{Unknown: fmt.Sprintf("%d of %d histories could not be decided", b.undecided, b.histories)}
	}
	covered := []string{fmt.Sprintf("%d schedules", b.counts.Runs), fmt.Sprintf("%d calls", b.calls)}
	for _, x := range b.reached(h.invariant) {
		covered = append(covered, fmt.Sprintf("%d %s", x.n, x.what))
	}
	return kit.Outcome{Covered: strings.Join(covered, ", ")}
}

// reach is something that has to happen, else that nothing broke says little.
type reach struct {
	what string
	n    int64
}

func (b randomBatch) reached(v model.Invariant) []reach {
	c := &b.counts
	out := []reach{{"terms", c.Terms}, {"takeovers", c.Takeovers}}
	switch v {
	case model.TokenMonotonicity, model.BeliefOwnership, model.Linearizability:
		out = append(out, reach{"releases", c.Answers[model.OpRelease][model.CodeReleased]},
			reach{"terms that ran out", c.StepDown[model.ReasonLapsed]}, reach{"renewals", c.Extended})
		if !b.volatile {
			out = append(out, reach{"restarts of the store", c.StoreRestarts})
		}
	case model.StorageSafety:
		out = append(out, reach{"stale writes refused", c.StaleRefused}, reach{"writes", c.Landed})
	case model.Attribution, model.Durability:
		out = append(out, reach{"writes", c.Landed})
	case model.Availability:
		out = append(out, reach{"ends of all faults", c.Calms})
	}
	return out
}
