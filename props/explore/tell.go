package explore

import (
	"fmt"
	"strings"

	"fencepost/model"
	"fencepost/props/sim"
)

// AllFaults are all the faults that there are.
const AllFaults = faultsEnd - 1

func (f Faults) String() string {
	if f == 0 {
		return "none"
	}
	return strings.Join(f.Names(), ", ")
}

// String says in one phrase which worlds these are, without the subject and
// the faults.
func (o Options) String() string {
	parts := []string{
		counted(o.Clients, "client"),
		"up to " + counted(o.Messages, "message") + " in flight",
		fmt.Sprintf("a TTL of %s of %v", counted(o.TTL, "tick"), o.Tick()),
	}
	if o.Drift >= 2 {
		parts = append(parts, fmt.Sprintf("a drift bound of 1/%d", o.Drift))
	} else {
		parts = append(parts, "true clocks")
	}
	if o.LockDelay > 0 {
		parts = append(parts, "a lock delay of "+counted(o.LockDelay, "tick"))
	}
	if o.Barrier {
		parts = append(parts, "the barrier")
	}
	return strings.Join(append(parts, "writes to "+counted(o.Keys, "key")), ", ")
}

// UnmarshalText reads a name back. The error lists the names there are.
func (v *Verdict) UnmarshalText(b []byte) error {
	for _, x := range []Verdict{Unknown, Holds, Violated} {
		if x.String() == string(b) {
			*v = x
			return nil
		}
	}
	return fmt.Errorf("%q is no verdict; there are %v, %v and %v", b, Unknown, Holds, Violated)
}

// Claim is what may be said after the exploration, and no more: complete,
// bounded or what breaks, of how many states, and up to which length.
func (r *Report) Claim() string {
	x := &r.Found
	bounded := fmt.Sprintf("bounded at %s: every schedule of up to %s was covered", counted(x.States, "state"), counted(x.Depth, "action"))
	switch {
	case r.Unshown != nil:
		return fmt.Sprintf("something breaks within %s; how is not known: %v", counted(x.FailDepth, "action"), r.Unshown)
	case x.Failed && x.Bounded != "":
		return fmt.Sprintf("%v breaks within %s, perhaps within fewer: %s", r.First.Invariant, counted(x.FailDepth, "action"), bounded)
	case x.Failed:
		return fmt.Sprintf("%v breaks within %s, and nothing breaks within fewer", r.First.Invariant, counted(x.FailDepth, "action"))
	case x.Complete:
		claim := fmt.Sprintf("complete: %s, which are all that schedules of any length reach in this world", counted(x.States, "state"))
		if n := r.Missed(); n > 0 {
			claim += fmt.Sprintf("; but %d of %d things that must happen sometimes never did", n, len(r.Sometimes))
		}
		return claim
	}
	return bounded + ", and nothing broke; nothing is known of longer ones"
}

// Missed is how many of the properties that must be reached sometimes never
// were: of those the exploration has shown nothing.
func (r *Report) Missed() (n int) {
	for _, s := range r.Sometimes {
		if s.Steps == 0 {
			n++
		}
	}
	return n
}

// Accuracy says how states were told apart.
func (r *Report) Accuracy() string {
	if r.Found.Exact {
		return "states are told apart exactly"
	}
	return fmt.Sprintf("states are told apart by 64-bit hashes: were these random, some state would be taken for another, and missed, with a probability of %.1e at most", r.Found.Collision)
}

// Checked says how the reductions were checked on the way; empty if they were
// not.
func (r *Report) Checked() string {
	s := ""
	if r.Parted != nil {
		s = "a first search was given up, since worlds that it took for one went on differently: what its reductions rest on does not hold for these rules; "
	}
	if r.Compared > 0 {
		s += fmt.Sprintf("reductions checked: %s of real runs compared with those that stand for them, none differed", counted(r.Compared, "world"))
	}
	return s
}

// Assumed is what the worlds have in common, and so what a claim rests on.
func (o *Options) Assumed() []string {
	clocks := "all clocks are true"
	if o.Faults&Drifting != 0 {
		clocks = fmt.Sprintf("in each the clock of each client runs at %d/%d, 1 or %d/%d of the store's", o.Drift-1, o.Drift, o.Drift+1, o.Drift)
	}
	return []string{
		fmt.Sprintf("time passes in ticks of %v, between which everything happens; %s", o.Tick(), clocks),
		"there is one store and one storage, and nobody poses as a client",
		fmt.Sprintf("what is sent while %s in flight is lost", are(o.Messages, "message")),
		fmt.Sprintf("each write is of one of two values, to %s", counted(o.Keys, "key")),
	}
}

func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// Unjudged is an invariant that an exploration says nothing about.
type Unjudged struct {
	Invariant model.Invariant
	Why       string
}

// Settled splits the invariants into those that were judged in every state and
// step, and the others.
func (r *Report) Settled() (judged model.Set, others []Unjudged) {
	for v := range model.Invariants() {
		why := ""
		switch {
		case v == model.Linearizability:
			why = "it takes whole histories; random schedules and recorded histories are judged by it"
		case !r.Judged.Has(v):
			why = "it was not asked for"
			if v == model.Lockstep {
				why = "it takes several times as many states, and must be asked for"
			}
		case v == model.Availability && r.Fair == nil:
			why = "the window is too short to promise it"
		case v == model.Barrier && !r.Config.Lease.Barrier:
			why = "the barrier is off"
		default:
			judged |= model.SetOf(v)
			continue
		}
		others = append(others, Unjudged{v, why})
	}
	return judged, others
}

// Waiting adds to a schedule of [Options.Lead] the fair time in which its last
// state waits for a leader, and says in the file what is to be seen.
func (w *Wait) Waiting(s *sim.Schedule) {
	s.Name = "longest-wait"
	s.Shows = fmt.Sprintf("from here it takes %v of fair time until a client leads; no state takes longer", w.Longest)
	s.Actions = append(s.Actions, sim.Action{ID: int32(len(s.Actions) + 1), Kind: sim.Calm, D: 2 * w.Bound, Delay: w.Delay, Every: w.Every})
}

// counted is "1 state", "2 states" or "1,234 states".
func counted[N int | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Grouped(uint64(n)) + " " + what + "s"
}

// Grouped is n with its digits in groups of three, as in 1,234,567.
func Grouped(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
