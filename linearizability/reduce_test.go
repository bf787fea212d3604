package linearizability

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// reduceCase is a model with a brute force, and what to draw for it.
type reduceCase struct {
	model string
	legal func(h *History) bool
	draw  func(seed uint64) History
	right bool // the service makes no mistake
}

func reduceCases() []reduceCase {
	var cases []reduceCase
	for _, o := range oracles() {
		name, _, _ := strings.Cut(o.model, " ")
		if name == ModelFencepost {
			continue // a lease and a storage, which are there by themselves
		}
		cases = append(cases, reduceCase{model: name, legal: func(h *History) bool { return o.legal(h, "") }, draw: o.history})
	}
	lease := leaseOracle()
	return append(cases, reduceCase{model: "lease", right: true, legal: func(h *History) bool { return lease.legal(h, "") }, draw: func(seed uint64) History {
		rng := rand.New(rand.NewPCG(seed, 17))
		s := simLease{rng: rng, clients: 2 + rng.IntN(2), ops: 6 + rng.IntN(4), leases: true, unknown: 0.3, never: 0.3}
		return s.history()
	}})
}

// TestWeakeningIsImplied: whatever Reduce may make of a history that some order
// explains, some order explains too, by a brute force that knows nothing of
// anchors and of what is wanted.
func TestWeakeningIsImplied(t *testing.T) {
	histories := 250
	if os.Getenv("FENCEPOST_LONG") != "" {
		histories = 20_000
	}
	for n, c := range reduceCases() {
		t.Run(fmt.Sprintf("%d %s", n, c.model), func(t *testing.T) {
			m, err := ParseModel(c.model)
			if err != nil {
				t.Fatal(err)
			}
			histories := histories
			if rulesOf(c.model).frees {
				histories *= 10 // few of them have a place to cut
			}
			legals, smaller, anchored, cut, later := 0, 0, 0, 0, 0
			for seed := uint64(0); legals < histories; seed++ {
				rng := rand.New(rand.NewPCG(seed, 17))
				h := c.draw(seed)
				if !c.legal(&h) {
					continue
				}
				legals++
				d, err := digestOf(&h, Options{Model: m})
				if err != nil || len(d.parts) == 0 {
					t.Fatalf("seed %d: %d partitions: %v", seed, len(d.parts), err)
				}
				r := newReducer(h, Options{Model: m}, Partition{Model: c.model, Key: d.parts[0].key}, none)
				for _, i := range r.tenures() {
					rest := r.during(i)
					if got := rest.candidate(none, rest.all()).history(); !c.legal(&got) {
						h.WriteJSON(t.Output())
						got.WriteJSON(t.Output())
						t.Fatalf("seed %d: something explains the first history, and nothing what is left from a tenure on", seed)
					}
					if len(rest.ops) < len(r.ops) {
						later++
					}
				}
				if r.rules.frees {
					for _, i := range r.cuts() {
						rest := r.from(i)
						if got := rest.candidate(none, rest.all()).history(); !c.legal(&got) {
							h.WriteJSON(t.Output())
							got.WriteJSON(t.Output())
							t.Fatalf("seed %d: something explains the first history, and nothing what is left after a cut", seed)
						}
						if i > 0 {
							cut++
						}
					}
				}
				for i := -1; i < len(r.ops); i++ {
					if i >= 0 && (r.rules.anchor == nil || !r.ops[i].known || r.ops[i].Type != OK || !r.rules.anchor(r, &r.ops[i])) {
						continue
					}
					for range 3 {
						var keep []int
						for j := range r.ops {
							if rng.IntN(3) > 0 {
								keep = append(keep, j)
							}
						}
						d := r.candidate(i, keep)
						got := d.history()
						if err := got.Validate(); err != nil {
							t.Fatalf("seed %d: not a history: %v", seed, err)
						}
						if !c.legal(&got) {
							h.WriteJSON(t.Output())
							got.WriteJSON(t.Output())
							t.Fatalf("seed %d: something explains the first history, and nothing the second (anchor %d, kept %v)", seed, i, keep)
						}
						if i >= 0 {
							anchored++
						}
						if d.size() < len(r.ops) {
							smaller++
						}
					}
				}
			}
			if slices.Contains([]string{ModelMutex, ModelOwnerMutex, ModelFencedMutex}, c.model) && later < 20 {
				t.Errorf("%d tenures: too few to show anything", later)
			}
			if rulesOf(c.model).frees && cut < 20 {
				t.Errorf("%d cuts: too few to show anything", cut)
			}
			if rulesOf(c.model).anchor != nil && (smaller < histories || anchored < histories/4) {
				t.Errorf("%d weakenings are smaller and %d have an anchor: too few to show anything", smaller, anchored)
			}
		})
	}
}

// TestReducedIsRefusedByTheOracle: what Reduce returns of a refused
// history, the brute force refuses too, and Check still does after it was
// written and read back.
func TestReducedIsRefusedByTheOracle(t *testing.T) {
	for n, c := range reduceCases() {
		t.Run(fmt.Sprintf("%d %s", n, c.model), func(t *testing.T) {
			m, err := ParseModel(c.model)
			if err != nil {
				t.Fatal(err)
			}
			if c.right {
				t.Skip("this store is right")
			}
			refused, ops, left := 0, 0, 0
			for seed := uint64(0); refused < 60; seed++ {
				h := c.draw(seed)
				if c.legal(&h) {
					continue
				}
				refused++
				got, err := Reduce(t.Context(), h, Options{Model: m})
				if err != nil {
					t.Fatal(err)
				}
				if c.legal(&got) {
					got.WriteJSON(t.Output())
					t.Fatalf("seed %d: something explains the reduced history", seed)
				}
				stillViolated(t, got, Options{Model: m})
				ops += len(h.Ops())
				left += len(got.Ops())
			}
			if rulesOf(c.model).anchor != nil && left*3 > ops*2 {
				t.Errorf("%d of %d operations are left", left, ops)
			}
		})
	}
}

// stillViolated checks a reduced history in memory, and in both formats read
// back.
func stillViolated(t *testing.T, h History, o Options) {
	t.Helper()
	for format, write := range map[string]func(*bytes.Buffer) error{
		"":     nil,
		"JSON": func(b *bytes.Buffer) error { return h.WriteJSON(b) },
		"EDN":  func(b *bytes.Buffer) error { return h.WriteEDN(b) },
	} {
		got := h
		if write != nil {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			var err error
			if got, err = Read(&b, h.Name); err != nil {
				t.Fatalf("%s cannot be read back: %v", format, err)
			}
		}
		if v, err := Check(t.Context(), got, o); err != nil || v.Result != Violated {
			h.WriteJSON(t.Output())
			t.Fatalf("reduced, read from %q: %v %v", format, v, err)
		}
	}
}

// planted is a long history with something wrong in it.
type planted struct {
	name  string
	model string
	h     func(rng *rand.Rand, ops int) History
}

func plantedHistories() []planted {
	lease := func(leases bool, unknown float64, spoil func(rng *rand.Rand, h *History)) func(*rand.Rand, int) History {
		return func(rng *rand.Rand, ops int) History {
			s := simLease{rng: rng, clients: 4, ops: ops, leases: leases, unknown: unknown, never: 0.5}
			h := s.history()
			spoil(rng, &h)
			return h
		}
	}
	// late returns an event of the given kind in the last fifth.
	late := func(rng *rand.Rand, h *History, is func(e *Event) bool) *Event {
		from := len(h.Events)*4/5 + rng.IntN(len(h.Events)/20)
		i := from + slices.IndexFunc(h.Events[from:], func(e Event) bool { return is(&e) })
		return &h.Events[i]
	}
	set := func(e *Event, name string, v Value) {
		e.Fields = slices.Clone(e.Fields)
		e.Fields[slices.IndexFunc(e.Fields, func(f Field) bool { return f.Name == name })].Value = v
	}
	granted := func(e *Event) bool { return e.Type == OK && e.F == "acquire" }
	heldByGone := func(rng *rand.Rand, h *History) {
		set(late(rng, h, func(e *Event) bool { return e.F == "acquire" && e.Type == Fail && e.Has("holder") }), "holder", String("c0#1"))
	}
	zombieWrite := func(rng *rand.Rand, h *History) {
		e := late(rng, h, func(e *Event) bool { return e.Type == OK && e.F == "write" })
		for i := range slices.Backward(h.Events[:e.Index]) {
			if c := &h.Events[i]; c.Process == e.Process {
				set(c, "token", Uint(1))
				break
			}
		}
	}
	return []planted{
		{"lapses early", "lease", func(rng *rand.Rand, ops int) History {
			s := simLease{rng: rng, clients: 4, ops: ops * 4 / 5, leases: true}
			s.history()
			correct := len(s.events)
			s.ops, s.early = ops/5, simTTL/3
			h := s.history()
			for i := correct; i < len(h.Events); i++ {
				h.Events[i].Process += 1000 // other clients
			}
			return h
		}},
		{"lapses early after thousands of renewals", "lease", simTenure},
		{"lapses early, among 5% unknown outcomes", "fencepost", func(rng *rand.Rand, ops int) History {
			s := simLease{rng: rng, clients: 4, ops: ops, early: simTTL / 3, unknown: 0.05, never: 0.5}
			return s.history()
		}},
		{"token twice", "fencepost", lease(false, 0, func(rng *rand.Rand, h *History) {
			e := late(rng, h, granted)
			token, _ := e.Field("token").Uint()
			set(e, "token", Uint(token-1))
		})},
		{"token lower", "lease", lease(true, 0, func(rng *rand.Rand, h *History) {
			e := late(rng, h, granted)
			token, _ := e.Field("token").Uint()
			set(e, "token", Uint(token-3))
		})},
		{"token lower, among 5% unknown outcomes", "lease", lease(true, 0.05, func(rng *rand.Rand, h *History) {
			e := late(rng, h, granted)
			token, _ := e.Field("token").Uint()
			set(e, "token", Uint(token-3))
		})},
		{"token skipped", "lease", lease(true, 0, func(rng *rand.Rand, h *History) {
			e := late(rng, h, granted)
			token, _ := e.Field("token").Uint()
			set(e, "token", Uint(token+1))
		})},
		{"held by somebody long gone", "fencepost", lease(false, 0, heldByGone)},
		{"held by somebody long gone, among 5% unknown outcomes", "fencepost", lease(false, 0.05, heldByGone)},
		{"zombie write", "fencepost", lease(false, 0, zombieWrite)},
		{"zombie write, among 5% unknown outcomes", "fencepost", lease(false, 0.05, zombieWrite)},
		{"mutex held twice", "mutex", func(rng *rand.Rand, ops int) History { return simMutex(rng, ops) }},
		{"contended mutex held twice", "mutex", simContended},
		{"contended owner-mutex held twice", "owner-mutex", simContended},
		{"owner-mutex held twice", "owner-mutex", func(rng *rand.Rand, ops int) History { return simMutex(rng, ops) }},
		{"stale read", "register(0)", func(rng *rand.Rand, ops int) History {
			h := longRegister(ops)
			e := late(rng, &h, func(e *Event) bool { return e.Type == OK && e.F == "read" })
			set(e, "value", Int(-1))
			return h
		}},
		{"read of an overwritten value", "cas-register(0)", func(rng *rand.Rand, ops int) History { return simRegister(rng, ops) }},
	}
}

// simMutex is a lock that four processes take in turns, each asking when it is
// free; in the last fifth it is granted to one while another has it.
func simMutex(rng *rand.Rand, ops int) History {
	h := History{Name: "mutex", Meta: DefaultMeta()}
	do := func(p int64, f string) {
		for _, t := range []Type{Invoke, OK} {
			i := int64(len(h.Events))
			h.Events = append(h.Events, Event{Index: i, Time: i, Process: p, Type: t, F: f})
		}
	}
	for n := range ops / 2 {
		p := rng.Int64N(4)
		do(p, "acquire")
		if n == ops*2/5 {
			do((p+1)%4, "acquire") // too soon
		}
		do(p, "release")
	}
	return h
}

// simContended is a lock for which up to eight processes wait, some across many
// tenures of others; in the last fifth it is granted to one while another has it.
func simContended(rng *rand.Rand, ops int) History {
	h := History{Name: "contended", Meta: DefaultMeta()}
	emit := func(p int64, t Type, f string) {
		i := int64(len(h.Events))
		h.Events = append(h.Events, Event{Index: i, Time: i, Process: p, Type: t, F: f})
	}
	idle := []int64{0, 1, 2, 3, 4, 5, 6, 7}
	var waiting []int64
	ask := func() {
		i := rng.IntN(len(idle))
		p := idle[i]
		idle, waiting = slices.Delete(idle, i, i+1), append(waiting, p)
		emit(p, Invoke, "acquire")
	}
	grant := func() int64 {
		i := rng.IntN(len(waiting)) // not in the order of their calls
		p := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		emit(p, OK, "acquire")
		return p
	}
	for n := range ops / 2 {
		for len(idle) > 1 && (len(waiting) == 0 || rng.IntN(3) > 0) {
			ask()
		}
		p := grant()
		if n == ops*2/5 && len(waiting) > 0 {
			grant() // too soon
		}
		emit(p, Invoke, "release")
		emit(p, OK, "release")
		idle = append(idle, p)
	}
	return h
}

// simTenure is one leader who renews, with others who ask in vain, until one of
// them is granted the lease a tenth of its TTL early.
func simTenure(rng *rand.Rand, ops int) History {
	m := DefaultMeta()
	m.Late, m.First = 0, 1
	h := History{Name: "tenure", Meta: m}
	now := int64(0)
	key, ttl, token := Field{"key", String("k")}, Field{"ttl", Int(simTTL)}, Field{"token", Uint(1)}
	do := func(p int64, end Type, f string, call, ret []Field) {
		for _, e := range []Event{{Type: Invoke, Fields: call}, {Type: end, Fields: ret}} {
			now += 1 + rng.Int64N(simTTL/100)
			e.Index, e.Time, e.Process, e.F = int64(len(h.Events)), now, p, f
			h.Events = append(h.Events, e)
		}
	}
	owner := func(p int64) Field { return Field{"owner", String(fmt.Sprintf("n%d", p))} }
	do(0, OK, "acquire", []Field{key, owner(0), ttl}, []Field{token})
	for range ops/2 - 1 {
		now += rng.Int64N(simTTL / 4)
		p := 1 + rng.Int64N(3)
		do(p, Fail, "acquire", []Field{key, owner(p), ttl}, []Field{{"error", Keyword("held")}, {"holder", String("n0")}})
		now += rng.Int64N(simTTL / 4)
		do(0, OK, "renew", []Field{key, owner(0), token, ttl}, nil)
	}
	now += simTTL * 4 / 5
	do(2, OK, "acquire", []Field{key, owner(2), ttl}, []Field{{"token", Uint(2)}})
	return h
}

// simRegister is a register under four processes, a few values and 2% unknown
// outcomes; one read finds what was overwritten for certain.
func simRegister(rng *rand.Rand, ops int) History {
	h := History{Name: "register", Meta: DefaultMeta()}
	emit := func(p int64, t Type, f string, v Value) {
		i := int64(len(h.Events))
		h.Events = append(h.Events, Event{Index: i, Time: i, Process: p, Type: t, F: f, Fields: []Field{{"value", v}}})
	}
	holds := int64(0)
	process := []int64{0, 1, 2, 3}
	next := int64(4)
	for n := range ops / 2 {
		// Two at a time, which take effect in this order.
		a, b := rng.IntN(4), rng.IntN(3)
		if b >= a {
			b++
		}
		v := int64(n%50) + 1
		emit(process[a], Invoke, "write", Int(v))
		emit(process[b], Invoke, "read", Value{})
		found := Int(v)
		if rng.IntN(2) == 0 {
			found = Int(holds)
		}
		if n == ops*2/5 {
			found = Int(v - 2)
		}
		emit(process[b], OK, "read", found)
		if rng.IntN(50) == 0 && found.Equal(Int(v)) {
			emit(process[a], Info, "write", Int(v))
			process[a] = next
			next++
		} else {
			emit(process[a], OK, "write", Int(v))
		}
		holds = v
	}
	return h
}

func TestLongViolatedHistoriesBecomeShort(t *testing.T) {
	for _, p := range plantedHistories() {
		t.Run(p.name, func(t *testing.T) {
			m, err := ParseModel(p.model)
			if err != nil {
				t.Fatal(err)
			}
			seeds := uint64(1)
			if os.Getenv("FENCEPOST_LONG") != "" {
				seeds = 10
			}
			for seed := range seeds {
				h := p.h(rand.New(rand.NewPCG(seed, 9)), 10_000)
				if n := len(h.Ops()); n < 9_500 {
					t.Fatalf("only %d operations", n)
				}
				begin := time.Now()
				got, err := Reduce(t.Context(), h, Options{Model: m})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d operations in %v", len(got.Ops()), time.Since(begin))
				if n := len(got.Ops()); n > 10 {
					got.WriteJSON(t.Output())
					t.Errorf("%d operations are left", n)
				}
				stillViolated(t, got, Options{Model: m})
			}
		})
	}
}
