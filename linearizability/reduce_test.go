package linearizability

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"fencepost/model"
)

// reduceCase is a model with a brute force, and what to draw for it.
type reduceCase struct {
	model string
	legal func(t *testing.T, h *History) bool
	draw  func(rng *rand.Rand) History
}

// ruled is the brute force over a plain rule.
func ruled(evident bool, start map[string]string, r rule) func(*testing.T, *History) bool {
	return func(_ *testing.T, h *History) bool {
		return legal(h, oracleOps(h, func(op Op) bool { return evident && h.evidence(op) }), start, r)
	}
}

// ownedRule is a mutex that only the owner whom an operation names releases.
func ownedRule(state map[string]string, op oracleOp) (map[string]string, bool) {
	who, named := op.call.Field("owner").Word()
	if !named {
		who = fmt.Sprintf("process %d", op.process)
	}
	if op.f == "acquire" {
		return with(state, "holder", who), state["holder"] == ""
	}
	return with(state, "holder", ""), state["holder"] == who
}

// legalLease is the brute force over the timed specification.
func legalLease(t *testing.T, h *History) bool {
	c := leaseCompiler{h: h, params: h.Meta.timed()}
	var ops []oracleOp
	timed := make(map[int]model.TimedOp)
	for _, s := range h.spans() {
		n := len(c.timed)
		if err := c.add(s); err != nil {
			t.Fatal(err)
		}
		if len(c.timed) > n {
			timed[s.Call] = c.timed[n]
			ops = append(ops, oracleOp{op: s.Op, process: h.Events[s.Call].Process, unknown: s.Type == Info})
		}
	}
	return legal(h, ops, c.params.Init(), func(set []model.TimedState, op oracleOp) ([]model.TimedState, bool) {
		var next []model.TimedState
		for _, s := range set {
			next = append(next, c.params.Step(s, timed[op.op.Call])...)
		}
		return next, len(next) > 0
	})
}

func reduceCases() []reduceCase {
	value := func(v Value) []Field { return []Field{{"value", v}} }
	small := func(rng *rand.Rand) Value { return Int(rng.Int64N(3)) }
	drawn := func(draw func(rng *rand.Rand) (string, []Field, Type, []Field)) func(*rand.Rand) History {
		return func(rng *rand.Rand) History {
			h := randomHistory(rng, 3+rng.IntN(5), func() (string, []Field, Type, []Field) { return draw(rng) })
			if rng.IntN(3) == 0 {
				h.Meta.Eps = 1 + rng.Int64N(3)
			}
			return h
		}
	}
	lock := drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) {
		return []string{"acquire", "release"}[rng.IntN(2)], nil, randomEnd(rng), nil
	})
	return []reduceCase{
		{"cas-register(0)", ruled(false, map[string]string{"value": "0", "number": "yes"}, registerRule), drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) {
			switch end := randomEnd(rng); rng.IntN(3) {
			case 0:
				return "read", value(Value{}), end, value(small(rng))
			case 1:
				return "write", value(small(rng)), end, nil
			default:
				return "cas", value(Vector(small(rng), small(rng))), end, nil
			}
		})},
		{"register(nil)", ruled(false, map[string]string{"value": "nil"}, registerRule), drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) {
			if rng.IntN(2) == 0 {
				return "read", value(Value{}), randomEnd(rng), value([]Value{{}, Int(0), Int(1)}[rng.IntN(3)])
			}
			return "write", value(Int(rng.Int64N(2))), randomEnd(rng), nil
		})},
		{"mutex", ruled(false, map[string]string{}, mutexRule(false)), lock},
		{"owner-mutex", ruled(false, map[string]string{}, ownedRule), lock},
		{"owner-mutex", ruled(false, map[string]string{}, ownedRule), drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) {
			owner := []Field{{"owner", String([]string{"a", "b"}[rng.IntN(2)])}}
			return []string{"acquire", "release"}[rng.IntN(2)], owner, randomEnd(rng), nil
		})},
		{"kv", ruled(false, map[string]string{}, kvRule), drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) {
			switch end := randomEnd(rng); rng.IntN(3) {
			case 0:
				return "get", value(Value{}), end, value(String([]string{"", "a", "b", "ab", "ba"}[rng.IntN(5)]))
			case 1:
				return "put", value(String([]string{"a", "b"}[rng.IntN(2)])), end, nil
			default:
				return "append", value(String([]string{"a", "b"}[rng.IntN(2)])), end, nil
			}
		})},
		{"storage", ruled(true, map[string]string{"k0": "nil", "k1": "nil"}, storageRule), drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) {
			end, k, token := randomEnd(rng), Field{"k", Int(rng.Int64N(2))}, Field{"token", Int(1 + rng.Int64N(3))}
			var ret []Field
			if end == Fail {
				ret = []Field{{"error", Keyword("stale")}}
				if rng.IntN(2) == 0 {
					ret = append(ret, Field{"highest", Int(1 + rng.Int64N(3))})
				}
			}
			switch rng.IntN(3) {
			case 0:
				if end == Fail {
					end = Info
				}
				return "read", []Field{k}, end, []Field{{"v", []Value{{}, Int(0), Int(1)}[rng.IntN(3)]}}
			case 1:
				return "fence", []Field{token}, end, ret
			default:
				return "write", []Field{token, k, {"v", Int(rng.Int64N(2))}}, end, ret
			}
		})},
		{"lease", legalLease, func(rng *rand.Rand) History {
			h := drawn(func(rng *rand.Rand) (string, []Field, Type, []Field) { return drawLease(rng) })(rng)
			drawLeaseMeta(rng, &h.Meta)
			return h
		}},
		{"lease", legalLease, func(rng *rand.Rand) History {
			s := simLease{rng: rng, clients: 2 + rng.IntN(2), ops: 6 + rng.IntN(4), leases: true, unknown: 0.3, never: 0.3}
			return s.history()
		}},
	}
}

func drawLeaseMeta(rng *rand.Rand, m *Meta) {
	m.Late = []int64{0, 2, Unbounded}[rng.IntN(3)]
	m.Early = rng.Int64N(2)
	m.Drift = []int64{0, 100_000_000}[rng.IntN(2)]
	m.LockDelay = []int64{0, 0, 4}[rng.IntN(3)]
	m.Tokens = []TokenRule{TokensNext, TokensNext, TokensRising, TokensNone}[rng.IntN(4)]
	m.RenewAfterLapse = rng.IntN(4) == 0
	m.Anchor = []Anchor{AnchorGrant, AnchorGrant, AnchorCall}[rng.IntN(3)]
	if m.Tokens != TokensNone {
		m.First = []uint64{0, 1}[rng.IntN(2)]
	}
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
			legals, smaller, anchored := 0, 0, 0
			for seed := uint64(0); legals < histories; seed++ {
				rng := rand.New(rand.NewPCG(seed, 17))
				h := c.draw(rng)
				if !c.legal(t, &h) {
					continue
				}
				legals++
				r := newReducer(h, Options{Model: m}, Partition{Model: c.model, Key: h.name(Op{Call: 0, Return: -1}, "key")}, none)
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
						if !c.legal(t, &got) {
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
			if smaller < histories || anchored < histories/4 {
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
			if n == len(reduceCases())-1 {
				t.Skip("this store is correct")
			}
			refused, ops, left := 0, 0, 0
			for seed := uint64(0); refused < 60; seed++ {
				h := c.draw(rand.New(rand.NewPCG(seed, 18)))
				if c.legal(t, &h) {
					continue
				}
				refused++
				got, err := Reduce(t.Context(), h, Options{Model: m})
				if err != nil {
					t.Fatal(err)
				}
				if c.legal(t, &got) {
					got.WriteJSON(t.Output())
					t.Fatalf("seed %d: something explains the reduced history", seed)
				}
				stillViolated(t, got, Options{Model: m})
				ops += len(h.Ops())
				left += len(got.Ops())
			}
			if left*3 > ops*2 {
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
		{"token skipped", "lease", lease(true, 0, func(rng *rand.Rand, h *History) {
			e := late(rng, h, granted)
			token, _ := e.Field("token").Uint()
			set(e, "token", Uint(token+1))
		})},
		{"held by somebody long gone", "fencepost", lease(false, 0, func(rng *rand.Rand, h *History) {
			set(late(rng, h, func(e *Event) bool { return e.Type == Fail && e.F == "acquire" }), "holder", String("c0#1"))
		})},
		{"zombie write", "fencepost", lease(false, 0, func(rng *rand.Rand, h *History) {
			e := late(rng, h, func(e *Event) bool { return e.Type == OK && e.F == "write" })
			for i := range slices.Backward(h.Events[:e.Index]) {
				if c := &h.Events[i]; c.Process == e.Process {
					set(c, "token", Uint(1))
					break
				}
			}
		})},
		{"mutex held twice", "mutex", func(rng *rand.Rand, ops int) History { return simMutex(rng, ops) }},
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
