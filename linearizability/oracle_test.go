package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost/model"

	"github.com/anishathalye/porcupine"
)

// The oracle tries every subset of the unknown operations in every order that
// the events allow. It knows no cache, no lane and no shortcut, and runs the
// plain rules below instead of the package's machines.

// oracleOp is an operation as a rule sees it.
type oracleOp struct {
	op      Op
	process int64
	f       string
	unknown bool
	call    *Event
	ret     *Event // nil if unknown
}

// rule runs op in a state; false if it cannot have happened there.
type rule func(state map[string]string, op oracleOp) (map[string]string, bool)

func with(state map[string]string, key, value string) map[string]string {
	next := make(map[string]string, len(state)+1)
	for k, v := range state {
		next[k] = v
	}
	next[key] = value
	return next
}

func registerRule(state map[string]string, op oracleOp) (map[string]string, bool) {
	switch v := op.call.Field("value"); op.f {
	case "read":
		if op.ret == nil {
			return state, true
		}
		got := op.ret.Field("value").String()
		return state, got == state["value"] || got == "nil" && state["number"] != ""
	case "write":
		return with(state, "value", v.String()), true
	default:
		old, new := v.Elems()[0], v.Elems()[1]
		return with(state, "value", new.String()), state["value"] == old.String()
	}
}

func mutexRule(owned bool) rule {
	return func(state map[string]string, op oracleOp) (map[string]string, bool) {
		who := "held"
		if owned {
			who = fmt.Sprint(op.process)
		}
		if op.f == "acquire" {
			return with(state, "holder", who), state["holder"] == ""
		}
		return with(state, "holder", ""), state["holder"] == who
	}
}

func kvRule(state map[string]string, op oracleOp) (map[string]string, bool) {
	v, _ := op.call.Field("value").Word()
	switch op.f {
	case "get":
		if op.ret == nil {
			return state, true
		}
		got, _ := op.ret.Field("value").Word()
		return state, got == state["value"]
	case "put":
		return with(state, "value", v), true
	}
	return with(state, "value", state["value"]+v), true
}

func storageRule(state map[string]string, op oracleOp) (map[string]string, bool) {
	k := "k" + op.call.Field("k").String()
	if op.f == "read" {
		if op.ret == nil {
			return state, true
		}
		return state, op.ret.Field("v").String() == state[k]
	}
	token, _ := op.call.Field("token").Int()
	var highest int64
	fmt.Sscan(state["highest"], &highest)
	if op.ret != nil && op.ret.Type == Fail {
		named, ok := op.ret.Field("highest").Int()
		return state, token < highest && (!ok || named == highest)
	}
	if token < highest {
		return state, false
	}
	state = with(state, "highest", fmt.Sprint(token))
	if op.f == "write" {
		state = with(state, k, op.call.Field("v").String())
	}
	return state, true
}

// precedes reports whether a must come before b.
func precedes(h *History, a, b oracleOp) bool {
	if a.process == b.process {
		return a.op.Call < b.op.Call
	}
	if a.unknown {
		return false
	}
	if h.Meta.Eps == 0 {
		return a.op.Return < b.op.Call
	}
	return h.Events[a.op.Return].Time+h.Meta.Eps <= h.Events[b.op.Call].Time-h.Meta.Eps
}

// legal reports whether some order explains the operations.
func legal[S any](h *History, ops []oracleOp, start S, step func(S, oracleOp) (S, bool)) bool {
	done := make([]bool, len(ops))
	var from func(state S) bool
	from = func(state S) bool {
		left := false
		for i, op := range ops {
			if done[i] {
				continue
			}
			left = left || !op.unknown
			if slices.ContainsFunc(ops, func(o oracleOp) bool {
				return !done[slices.IndexFunc(ops, func(p oracleOp) bool { return p.op == o.op })] && o.op != op.op && precedes(h, o, op)
			}) {
				continue
			}
			next, ok := step(state, op)
			if !ok {
				continue
			}
			done[i] = true
			if from(next) {
				return true
			}
			done[i] = false
		}
		return !left
	}
	return from(start)
}

// oracleOps are the operations that are evidence of something.
func oracleOps(h *History, evident func(Op) bool) []oracleOp {
	var ops []oracleOp
	for _, op := range h.Ops() {
		call := &h.Events[op.Call]
		o := oracleOp{op: op, process: call.Process, f: call.F, unknown: op.Type == Info, call: call}
		if !o.unknown {
			o.ret = &h.Events[op.Return]
		}
		if op.Type != Fail || evident(op) {
			ops = append(ops, o)
		}
	}
	return ops
}

// randomHistory interleaves sequential processes that do what draw says.
func randomHistory(rng *rand.Rand, n int, draw func() (f string, call []Field, end Type, ret []Field)) History {
	h := History{Name: "random", Meta: DefaultMeta()}
	type open struct {
		f   string
		end Type
		ret []Field
	}
	running := make(map[int64]open)
	dead := make(map[int64]bool)
	var at int64
	emit := func(p int64, t Type, f string, fields []Field) {
		at += rng.Int64N(4)
		h.Events = append(h.Events, Event{Index: int64(len(h.Events)), Time: at, Process: p, Type: t, F: f, Fields: fields})
	}
	for n > 0 || len(running) > 0 {
		p := rng.Int64N(4)
		o, busy := running[p]
		switch {
		case busy:
			delete(running, p)
			if o.end == Info && rng.IntN(2) == 0 {
				dead[p] = true // and nobody records it
				break
			}
			emit(p, o.end, o.f, o.ret)
			dead[p] = o.end == Info
		case n > 0 && !dead[p]:
			n--
			f, call, end, ret := draw()
			emit(p, Invoke, f, call)
			running[p] = open{f, end, ret}
		case n > 0 && len(dead) == 4:
			n = 0
		}
	}
	return h
}

func randomEnd(rng *rand.Rand) Type {
	return []Type{OK, OK, OK, OK, Info, Fail}[rng.IntN(6)]
}

// agree checks one history by Check and by every way of searching.
func agree(t *testing.T, h *History, m Model, want bool) {
	t.Helper()
	v, err := Check(t.Context(), *h, Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Linearizable(); got != map[bool]Result{true: Holds, false: Violated}[want] {
		h.WriteJSON(t.Output())
		t.Fatalf("%s, but the oracle says %v", v, want)
	}
	d, err := digestOf(h, Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	parts := d.parts
	forward := true
	for i := range parts {
		f := newFrontier(t.Context(), &h.Meta, &parts[i].p, DefaultMemory, 1<<30)
		forward = forward && f.run() == porcupine.Ok
	}
	if forward != want {
		h.WriteJSON(t.Output())
		t.Fatalf("a walk forward says %v, the oracle %v", forward, want)
	}
	for _, mode := range []string{"plain", "eager", "patient", "cut", "cut eager"} {
		all := true
		for i := range parts {
			s := newSearch(t.Context(), &h.Meta, &parts[i].p, DefaultMemory)
			s.eager = mode == "eager" || mode == "patient" || mode == "cut eager"
			s.patient = mode == "patient"
			if mode == "cut" || mode == "cut eager" {
				s.cut(1)
			}
			all = all && s.run() == porcupine.Ok
		}
		if all != want && (mode != "patient" || all) {
			h.WriteJSON(t.Output())
			t.Fatalf("a search that is %s says %v, the oracle %v", mode, all, want)
		}
	}
}

func TestSearchAgreesWithOracle(t *testing.T) {
	small := func(rng *rand.Rand) Value { return Int(rng.Int64N(3)) }
	value := func(v Value) []Field { return []Field{{"value", v}} }
	for _, c := range []struct {
		model string
		start map[string]string
		rule  rule
		draw  func(rng *rand.Rand) (string, []Field, Type, []Field)
	}{
		{"cas-register(0)", map[string]string{"value": "0", "number": "yes"}, registerRule, func(rng *rand.Rand) (string, []Field, Type, []Field) {
			switch end := randomEnd(rng); rng.IntN(3) {
			case 0:
				return "read", value(Value{}), end, value(small(rng))
			case 1:
				return "write", value(small(rng)), end, nil
			default:
				return "cas", value(Vector(small(rng), small(rng))), end, nil
			}
		}},
		{"register(nil)", map[string]string{"value": "nil"}, registerRule, func(rng *rand.Rand) (string, []Field, Type, []Field) {
			if rng.IntN(2) == 0 {
				return "read", value(Value{}), randomEnd(rng), value([]Value{{}, Int(0), Int(1)}[rng.IntN(3)])
			}
			return "write", value(Int(rng.Int64N(2))), randomEnd(rng), nil
		}},
		{"mutex", map[string]string{}, mutexRule(false), func(rng *rand.Rand) (string, []Field, Type, []Field) {
			return []string{"acquire", "release"}[rng.IntN(2)], nil, randomEnd(rng), nil
		}},
		{"owner-mutex", map[string]string{}, mutexRule(true), func(rng *rand.Rand) (string, []Field, Type, []Field) {
			return []string{"acquire", "release"}[rng.IntN(2)], nil, randomEnd(rng), nil
		}},
		{"kv", map[string]string{}, kvRule, func(rng *rand.Rand) (string, []Field, Type, []Field) {
			switch end := randomEnd(rng); rng.IntN(3) {
			case 0:
				return "get", value(Value{}), end, value(String([]string{"", "a", "b", "ab", "ba"}[rng.IntN(5)]))
			case 1:
				return "put", value(String([]string{"a", "b"}[rng.IntN(2)])), end, nil
			default:
				return "append", value(String([]string{"a", "b"}[rng.IntN(2)])), end, nil
			}
		}},
		{"storage", map[string]string{"k0": "nil", "k1": "nil"}, storageRule, func(rng *rand.Rand) (string, []Field, Type, []Field) {
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
		}},
	} {
		t.Run(c.model, func(t *testing.T) {
			m, err := ParseModel(c.model)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[bool]int{}
			for seed := range uint64(600) {
				rng := rand.New(rand.NewPCG(seed, 3))
				h := randomHistory(rng, 2+int(seed%5), func() (string, []Field, Type, []Field) { return c.draw(rng) })
				if seed%3 == 2 {
					h.Meta.Eps = 1 + rng.Int64N(3)
				}
				ops := oracleOps(&h, func(op Op) bool { return c.model == "storage" })
				want := legal(&h, ops, c.start, c.rule)
				seen[want]++
				agree(t, &h, m, want)
			}
			if seen[true] < 60 || seen[false] < 60 {
				t.Errorf("legal and illegal: %v, want at least 60 of each", seen)
			}
		})
	}
}

func TestLeaseSearchAgreesWithOracle(t *testing.T) {
	m := Model{Name: ModelLease}
	seen := map[bool]int{}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		h := randomHistory(rng, 2+int(seed%5), func() (string, []Field, Type, []Field) { return drawLease(rng) })
		h.Meta.Late = []int64{0, 2, Unbounded}[rng.IntN(3)]
		h.Meta.Early = rng.Int64N(2)
		h.Meta.Drift = []int64{0, 100_000_000}[rng.IntN(2)]
		h.Meta.LockDelay = []int64{0, 0, 4}[rng.IntN(3)]
		h.Meta.First = []uint64{0, 1}[rng.IntN(2)]
		h.Meta.Tokens = []TokenRule{TokensNext, TokensNext, TokensRising, TokensNone}[rng.IntN(4)]
		h.Meta.RenewAfterLapse = rng.IntN(4) == 0
		h.Meta.Anchor = []Anchor{AnchorGrant, AnchorGrant, AnchorCall}[rng.IntN(3)]
		if h.Meta.Tokens == TokensNone {
			h.Meta.First = 0
		}
		if seed%4 == 3 {
			h.Meta.Eps = 1 + rng.Int64N(2)
		}
		c := leaseCompiler{meta: &h.Meta, params: h.Meta.timed()}
		var ops []oracleOp
		timed := make(map[int]model.TimedOp)
		for _, s := range h.spans() {
			n := len(c.ops)
			if err := c.add(h.operation(s)); err != nil {
				t.Fatal(err)
			}
			if len(c.ops) == n {
				continue // no evidence
			}
			timed[s.Call] = c.ops[n].op
			ops = append(ops, oracleOp{op: s.Op, process: h.Events[s.Call].Process, unknown: s.Type == Info})
		}
		want := legal(&h, ops, c.params.Init(), func(set []model.TimedState, op oracleOp) ([]model.TimedState, bool) {
			var next []model.TimedState
			for _, s := range set {
				next = append(next, c.params.Step(s, timed[op.op.Call])...)
			}
			return next, len(next) > 0
		})
		seen[want]++
		agree(t, &h, m, want)
	}
	if seen[true] < 250 || seen[false] < 250 {
		t.Errorf("legal and illegal: %v, want at least 250 of each", seen)
	}
}

func drawLease(rng *rand.Rand) (string, []Field, Type, []Field) {
	owner := Field{"owner", String([]string{"a", "b"}[rng.IntN(2)])}
	token, ttl := Field{"token", Int(1 + rng.Int64N(3))}, Field{"ttl", Int(2 + rng.Int64N(6))}
	failed := func(words ...string) []Field { return []Field{{"error", Keyword(words[rng.IntN(len(words))])}} }
	end := randomEnd(rng)
	switch rng.IntN(7) {
	case 0, 1, 2:
		ret := []Field{token}
		if end == Fail {
			if ret = failed("held", "held", "delay"); rng.IntN(2) == 0 {
				ret = append(ret, Field{"holder", String([]string{"a", "b"}[rng.IntN(2)])})
			}
		}
		return "acquire", []Field{owner, ttl}, end, ret
	case 3:
		return "renew", []Field{owner, token, ttl}, end, failed("lapsed", "lost")
	case 4:
		return "release", []Field{owner, token}, end, failed("lapsed", "lost")
	case 5:
		if end == Fail {
			end = Info
		}
		if rng.IntN(3) == 0 {
			return "get", nil, end, []Field{{"owner", String("")}}
		}
		return "get", nil, end, []Field{owner, token}
	default:
		if end == Fail {
			end = OK
		}
		return []string{"restart", "delete"}[rng.IntN(2)], nil, end, nil
	}
}
