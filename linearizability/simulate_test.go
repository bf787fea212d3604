package linearizability

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost/model"
)

// simLease makes the history of a correct lease store under clients that
// renew, release, stop and ask again. It knows nothing of the checker: it is a
// store with a clock of its own, a token counter, and a fenced value beside it.
type simLease struct {
	rng     *rand.Rand
	clients int
	ops     int
	unknown float64 // chance that an answer is lost
	never   float64 // chance that a request is lost, of those without an answer
	leases  bool    // no writes
	early   int64   // how much too early the store lets a lease lapse: 0 is correct
	bug     simBug  // what else the store does wrong

	events  []Event
	time    int64
	holder  string
	token   uint64
	expires int64
	highest uint64
}

type simClient struct {
	process int64
	owner   string
	inc     int
	token   uint64
}

// simBug is a fault of the store that shows now and then.
type simBug uint8

const (
	_                 simBug = iota
	bugTokenReused           // a new owner gets the token of the last one
	bugRenewIgnored          // a renewal is answered, and has no effect
	bugReleaseIgnored        // so is a release
	bugStaleWrite            // a write under an old token lands
)

const simTTL = 1_000_000

// history runs until enough operations were called.
func (s *simLease) history() History {
	type step struct {
		at  int64
		run func()
	}
	var queue []step
	at := func(t int64, run func()) {
		i, _ := slices.BinarySearchFunc(queue, t+1, func(a step, t int64) int { return cmp.Compare(a.at, t) })
		queue = slices.Insert(queue, i, step{t, run})
	}
	nextProcess := int64(s.clients)
	var act func(c *simClient)
	act = func(c *simClient) {
		if s.ops--; s.ops < 0 {
			return
		}
		f, fields := s.choose(c)
		p := c.process
		s.event(p, Invoke, f, fields...)
		lost := s.rng.Float64() < s.unknown
		effect := s.time + 1 + s.rng.Int64N(simTTL/20)
		if !lost || s.rng.Float64() >= s.never {
			at(effect, func() {
				typ, out, after := s.serve(c, f, fields)
				if lost {
					return
				}
				at(s.time+1+s.rng.Int64N(simTTL/20), func() {
					s.event(p, typ, f, out...)
					after()
					at(s.time+1+s.rng.Int64N(simTTL/4), func() { act(c) })
				})
			})
		}
		if lost {
			at(s.time+simTTL/5, func() {
				if s.rng.IntN(2) == 0 {
					s.event(p, Info, f)
				}
				c.process = nextProcess
				nextProcess++
				act(c)
			})
		}
	}
	for i := range s.clients {
		c := &simClient{process: int64(i), owner: fmt.Sprintf("c%d#1", i), inc: 1}
		at(s.rng.Int64N(simTTL), func() { act(c) })
	}
	for len(queue) > 0 {
		s.time = max(s.time, queue[0].at)
		run := queue[0].run
		queue = queue[1:]
		run()
	}
	m := DefaultMeta()
	m.Late, m.First = 0, 1
	return History{Name: "sim", Meta: m, Events: s.events}
}

func (s *simLease) event(p int64, t Type, f string, fields ...Field) {
	s.events = append(s.events, Event{Index: int64(len(s.events)), Time: s.time, Process: p, Type: t, F: f, Fields: fields})
}

// choose is what a client does next.
func (s *simLease) choose(c *simClient) (string, []Field) {
	key, owner := Field{"key", String("k")}, Field{"owner", String(c.owner)}
	token, ttl := Field{"token", Uint(c.token)}, Field{"ttl", Int(simTTL)}
	switch n := s.rng.IntN(20); {
	case n == 0:
		return "get", []Field{key}
	case c.token == 0:
		return "acquire", []Field{key, owner, ttl}
	case n < 3:
		return "release", []Field{key, owner, token}
	case n < 5:
		// Silence: it stops, and comes back as a new incarnation.
		c.inc++
		c.owner, c.token = fmt.Sprintf("%s#%d", c.owner[:2], c.inc), 0
		return "acquire", []Field{key, {"owner", String(c.owner)}, ttl}
	case n < 12 || s.leases:
		return "renew", []Field{key, owner, token, ttl}
	default:
		return "write", []Field{{"key", String("s")}, owner, token, {"k", String("x")}, {"v", String(fmt.Sprint(len(s.events)))}}
	}
}

// serve is the store.
func (s *simLease) serve(c *simClient, f string, fields []Field) (Type, []Field, func()) {
	arg := func(name string) Value { e := Event{Fields: fields}; return e.Field(name) }
	owner, _ := arg("owner").Word()
	token, _ := arg("token").Uint()
	held := s.holder != "" && s.time < s.expires
	mine := held && s.holder == owner && s.token == token
	none := func() {}
	faulty := func(b simBug) bool { return s.bug == b && s.rng.IntN(4) == 0 }
	gone := func() {
		if c.owner == owner {
			c.inc++
			c.owner, c.token = fmt.Sprintf("%s#%d", c.owner[:2], c.inc), 0
		}
	}
	switch f {
	case "get":
		if !held {
			return OK, []Field{{"owner", String("")}}, none
		}
		return OK, []Field{{"owner", String(s.holder)}, {"token", Uint(s.token)}}, none
	case "acquire":
		if held && s.holder != owner {
			return Fail, []Field{{"error", Keyword("held")}, {"holder", String(s.holder)}}, none
		}
		if !held {
			if !faulty(bugTokenReused) {
				s.token++
			}
			s.holder = owner
		}
		s.expires = max(s.expires, s.time+simTTL-s.early)
		granted := s.token
		return OK, []Field{{"token", Uint(granted)}}, func() {
			if c.owner == owner {
				c.token = granted
			}
		}
	case "renew":
		if !mine {
			return Fail, []Field{{"error", Keyword("lost")}}, gone
		}
		if !faulty(bugRenewIgnored) {
			s.expires = max(s.expires, s.time+simTTL-s.early)
		}
		return OK, nil, none
	case "release":
		if !mine {
			return Fail, []Field{{"error", Keyword("lost")}}, gone
		}
		if !faulty(bugReleaseIgnored) {
			s.holder, s.expires = "", s.time
		}
		return OK, nil, gone
	}
	if token < s.highest && s.bug != bugStaleWrite {
		return Fail, []Field{{"error", Keyword("stale")}, {"highest", Uint(s.highest)}}, none
	}
	s.highest = max(s.highest, token)
	return OK, nil, none
}

func TestCorrectStoreIsExplained(t *testing.T) {
	var total Activity
	for seed := range uint64(150) {
		s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 2 + int(seed%3), ops: 60, unknown: float64(seed%4) * 0.1, never: 0.5}
		h := s.history()
		v, err := Check(t.Context(), h, Options{Model: Model{Name: ModelFencepost}})
		if err != nil || v.Result != Holds || len(v.Findings) > 0 {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: %s %v", seed, v, err)
		}
		total.Takeovers += v.Activity.Takeovers
		total.Stale += v.Activity.Stale
		total.Writes += v.Activity.Writes
	}
	if total.Takeovers < 300 || total.Writes < 500 || total.Stale < 3 {
		t.Errorf("the store did too little to show anything: %+v", total)
	}
}

// TestEarlyStoreIsFound plants a store that lets leases lapse a third early,
// among many unknown outcomes.
func TestEarlyStoreIsFound(t *testing.T) {
	for seed := range uint64(20) {
		s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 2 + int(seed%3), ops: 150, unknown: float64(seed%3) * 0.1, never: 0.5, early: simTTL / 3}
		h := s.history()
		v, err := Check(t.Context(), h, Options{Model: Model{Name: ModelFencepost}})
		if err != nil {
			t.Fatal(err)
		}
		if v.Linearizable() != Violated {
			t.Errorf("seed %d: %s", seed, v)
		}
		if !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Invariant == model.BeliefSafety && f.Blame == BlameStore }) {
			t.Errorf("seed %d: nobody blames the store: %s", seed, v)
		}
	}
}
