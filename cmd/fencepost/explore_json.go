package main

import (
	"encoding/json"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// exploreJSON is what explore prints with --json. Times are nanoseconds,
// memory is bytes, and every count is exact.
type exploreJSON struct {
	Verdict explore.Verdict `json:"verdict"` // holds, violated or unknown
	Claim   string          `json:"claim"`   // what may be said, in words

	Subject   string   `json:"subject"`
	Clients   int      `json:"clients"`
	TTL       int      `json:"ttl"`  // ticks
	Tick      int64    `json:"tick"` // ns
	Drift     int      `json:"drift"`
	Messages  int      `json:"messages"`
	Keys      int      `json:"keys"`
	LockDelay int      `json:"lockDelay"` // ticks
	Barrier   bool     `json:"barrier"`
	Faults    []string `json:"faults"`
	Assumed   []string `json:"assumed"` // what the claim rests on, in words
	Off       []string `json:"off"`     // the other faults

	Complete    bool    `json:"complete"`
	Bounded     string  `json:"bounded,omitempty"` // by states, memory, depth or time (an interrupt)
	States      uint64  `json:"states"`
	Transitions uint64  `json:"transitions"`
	Depth       int     `json:"depth"` // every schedule of so many actions was covered
	Seconds     float64 `json:"seconds"`
	Memory      uint64  `json:"memory"`           // at the peak
	Exact       bool    `json:"exact"`            // no state was taken for another
	Collision   float64 `json:"collision"`        // the probability that one was, at most, were hashes random
	Compared    uint64  `json:"compared"`         // worlds of real runs that went on as those that stand for them
	Parted      string  `json:"parted,omitempty"` // why a first search, with more reductions, was given up

	Steps     map[string]uint64    `json:"steps"` // by kind of action
	Levels    []levelJSON          `json:"levels"`
	Standing  []standingJSON       `json:"standing"`
	Sometimes []sometimesJSON      `json:"sometimes"`
	Fair      *fairJSON            `json:"fair,omitempty"` // where availability was judged
	Judged    []string             `json:"judged"`
	NotJudged map[string]string    `json:"notJudged"` // why, by invariant
	Failure   *exploredFailureJSON `json:"failure,omitempty"`
}

// levelJSON is the states at one distance from the initial one.
type levelJSON struct {
	States uint64            `json:"states"` // first reached by so many actions
	Steps  map[string]uint64 `json:"steps"`  // out of them, by kind of action
}

// standingJSON says in how many states a client stood so.
type standingJSON struct {
	Client string `json:"client"`
	States uint64 `json:"states"`
}

// sometimesJSON is a property that must be reached sometimes.
type sometimesJSON struct {
	Name  string `json:"name"`
	Steps uint64 `json:"steps"` // 0: never, and nothing is known about it
	Depth int    `json:"depth"` // the fewest actions until then
}

// fairJSON is how long states waited for a leader.
type fairJSON struct {
	Delay   int64  `json:"delay"`   // ns that a message takes
	Every   int64  `json:"every"`   // ns between the ticks of a client
	Longest int64  `json:"longest"` // ns
	Bound   int64  `json:"bound"`   // ns, the most that any state was allowed
	States  uint64 `json:"states"`  // that waited longest
	File    string `json:"file,omitempty"`
}

// exploredFailureJSON is a shortest counterexample.
type exploredFailureJSON struct {
	Invariant model.Invariant `json:"invariant"`
	Violated  []string        `json:"violated"` // with it, by the same action
	Reason    string          `json:"reason"`
	Shortest  bool            `json:"shortest"`
	File      string          `json:"file"`
	Actions   []string        `json:"actions"`
}

func (x *exploration) json(e *env) error {
	o, r, f := &x.options, x.report, &x.report.Found
	judged, others := r.Settled()
	out := exploreJSON{
		Verdict: r.Verdict, Claim: r.Claim(),
		Subject: r.Subject, Clients: o.Clients, TTL: o.TTL, Tick: int64(o.Tick()), Drift: max(o.Drift, 1), Messages: o.Messages, Keys: o.Keys,
		LockDelay: o.LockDelay, Barrier: o.Barrier, Faults: names(o.Faults), Off: names(explore.AllFaults &^ o.Faults), Assumed: o.Assumed(),
		Complete: f.Complete, Bounded: f.Bounded, States: f.States, Transitions: f.Transitions, Depth: f.Depth, Seconds: x.took.Seconds(),
		Memory: f.Memory, Exact: f.Exact, Collision: f.Collision, Compared: r.Compared,
		Steps: stepsByKind(f.Total()), Judged: setNames(judged), NotJudged: map[string]string{},
		Standing: []standingJSON{}, Sometimes: []sometimesJSON{},
	}
	if r.Parted != nil {
		out.Parted = r.Parted.Error()
	}
	for _, l := range f.Levels {
		out.Levels = append(out.Levels, levelJSON{l.States, stepsByKind(l.Steps)})
	}
	for _, c := range r.Clients {
		out.Standing = append(out.Standing, standingJSON{c.String(), c.States})
	}
	for _, s := range r.Sometimes {
		out.Sometimes = append(out.Sometimes, sometimesJSON{s.Name, s.Steps, s.Depth})
	}
	for _, u := range others {
		out.NotJudged[u.Invariant.String()] = u.Why
	}
	if w := r.Fair; w != nil && r.Verdict != explore.Violated {
		out.Fair = &fairJSON{int64(w.Delay), int64(w.Every), int64(w.Longest), int64(w.Bound), w.States, x.longest}
	}
	if c := r.Counterexample; c != nil {
		out.Failure = &exploredFailureJSON{Invariant: r.First.Invariant, Violated: setNames(r.Violated), Reason: r.First.Describe(sim.Names()),
			Shortest: f.Bounded == "", File: x.file}
		for i := range c.Actions {
			out.Failure.Actions = append(out.Failure.Actions, c.Actions[i].String())
		}
	}
	return json.NewEncoder(e.out).Encode(out)
}

func names(f explore.Faults) []string {
	if f == 0 {
		return []string{}
	}
	return f.Names()
}
