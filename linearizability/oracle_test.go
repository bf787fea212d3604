package linearizability

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// The oracle tries every subset of the unknown operations in every order that
// the events allow. It knows no cache, no lane and no shortcut, and runs plain
// rules, with a name for each guard, instead of the package's machines.

// oracleOp is an operation as a rule sees it.
type oracleOp struct {
	process int64
	f       string
	unknown bool
	call    *Event
	ret     *Event // nil if unknown
	at      int    // position of the call
	end     int    // and of the return
	owners  []string
}

// failed reports whether it failed, which is then evidence.
func (o *oracleOp) failed() bool { return o.ret != nil && o.ret.Type == Fail }

// told returns a field of the return, nil if there is none.
func (o *oracleOp) told(name string) Value {
	if o.ret == nil {
		return Value{}
	}
	return o.ret.Field(name)
}

// rule returns the states that op may lead to; none if it cannot have happened
// in that state. States are compared by ==.
type rule func(state any, op *oracleOp) []any

func one(state any, ok bool) []any {
	if !ok {
		return nil
	}
	return []any{state}
}

// oracle is one model as the oracle knows it.
type oracle struct {
	model string
	meta  func(rng *rand.Rand, m *Meta) // of a random history; nil: the default
	start func(h *History, flaw string) []any
	// rule is what the model says. With a flaw, it is that but for one guard.
	rule  func(h *History, flaw string) rule
	flaws []string
	// call and answer draw an operation. Style is one number for all operations
	// of a history.
	call   func(rng *rand.Rand, style int, process int64) (f string, fields []Field)
	answer func(rng *rand.Rand, style int, p int64, f string, call []Field) (Type, []Field)
	// evident are the failures that are evidence of the state.
	evident func(op *oracleOp) bool
	styles  int
	// brisk: most operations take no time, and there are few mistakes, so that
	// much depends on each.
	brisk bool
}

func startIn(state any) func(*History, string) []any {
	return func(*History, string) []any { return []any{state} }
}

// legal judges a history by the rule with a flaw, if any.
func (o *oracle) legal(h *History, flaw string) bool {
	ops := o.ops(h)
	switch flaw {
	case "eps more", "eps less", "order of a tie":
		if h.Meta.Eps == 0 {
			return o.legal(h, "")
		}
		changed := *h
		changed.Meta.Eps += map[string]int64{"eps more": 1, "eps less": -1}[flaw]
		return legal(&changed, ops, o.start(h, ""), o.rule(h, ""), flaw)
	}
	return legal(h, ops, o.start(h, flaw), o.rule(h, flaw), flaw)
}

// orderFlaws are in what comes before what, whatever the model.
var orderFlaws = []string{"eps more", "eps less", "order of a tie", "no order within a process", "unknown happened", "unknown happened not"}

// precedes reports whether a must come before b.
func precedes(h *History, a, b *oracleOp, flaw string) bool {
	switch {
	case a.process == b.process && flaw != "no order within a process":
		return a.at < b.at
	case a.unknown:
		return false
	case h.Meta.Eps == 0:
		return a.end < b.at
	}
	before, after := h.Events[a.end].Time+h.Meta.Eps, h.Events[b.at].Time-h.Meta.Eps
	return before < after || before == after && flaw != "order of a tie"
}

// legal reports whether some order explains the operations.
func legal(h *History, ops []oracleOp, start []any, step rule, flaw string) bool {
	before := make([]uint, len(ops)) // what comes before each, as a set
	var known uint
	for i := range ops {
		if !ops[i].unknown || flaw == "unknown happened" {
			known |= 1 << i
		}
		for j := range ops {
			if i != j && precedes(h, &ops[j], &ops[i], flaw) {
				before[i] |= 1 << j
			}
		}
	}
	var from func(done uint, states []any) bool
	from = func(done uint, states []any) bool {
		if known&^done == 0 {
			return true
		}
		for i := range ops {
			if done&(1<<i) != 0 || before[i]&^done != 0 || ops[i].unknown && flaw == "unknown happened not" {
				continue
			}
			var next []any
			for _, s := range states {
				for _, n := range step(s, &ops[i]) {
					if !slices.Contains(next, n) {
						next = append(next, n)
					}
				}
			}
			if len(next) > 0 && from(done|1<<i, next) {
				return true
			}
		}
		return false
	}
	return from(0, start)
}

// ops are the operations that are evidence of something.
func (o *oracle) ops(h *History) []oracleOp {
	var ops []oracleOp
	for _, op := range h.Ops() {
		call := &h.Events[op.Call]
		x := oracleOp{process: call.Process, f: call.F, unknown: op.Type == Info, call: call, at: op.Call, end: op.Return}
		if !x.unknown {
			x.ret = &h.Events[op.Return]
		}
		if op.Type != Fail || o.evident != nil && o.evident(&x) {
			ops = append(ops, x)
		}
	}
	oracleOwners(h, ops)
	return ops
}

// history makes a random history: what a correct service might have answered,
// three times of four with mistakes, or what one with a flaw might.
func (o *oracle) history(seed uint64) History {
	name := fnv.New64()
	name.Write([]byte(o.model))
	rng := rand.New(rand.NewPCG(seed, name.Sum64()))
	h := History{Name: "random", Meta: DefaultMeta()}
	if o.meta != nil {
		o.meta(rng, &h.Meta)
	}
	style := int(seed) / 4 % max(o.styles, 1)
	n := 2 + int(seed%7)
	if o.brisk {
		n = 4 + int(seed%5)
	}
	wrong := seed%4 != 0
	if rng.IntN(3) == 0 {
		h.Meta.Eps = 1 + rng.Int64N(2)
	}
	flaw := ""
	if wrong && o.brisk && rng.IntN(5) > 1 {
		flaw, wrong = pick(rng, o.flaws...), false
	}
	states, step := o.start(&h, flaw), o.rule(&h, flaw)

	// open is an operation under way, with its answer once it took effect.
	type open struct {
		f      string
		call   []Field
		since  int64
		done   bool
		end    Type
		fields []Field
	}
	running := make(map[int64]*open)
	dead := make(map[int64]bool)
	var at int64
	emit := func(p int64, t Type, f string, fields []Field) {
		h.Events = append(h.Events, Event{Index: int64(len(h.Events)), Time: at, Process: p, Type: t, F: f, Fields: fields})
	}
	effect := func(p int64, x *open) {
		x.done = true
		lost := rng.IntN(5) == 0
		if x.end = Info; lost && rng.IntN(2) == 0 {
			return // it never happened
		}
		call := Event{Time: x.since, Process: p, Type: Invoke, F: x.f, Fields: x.call}
		mistake := wrong && rng.IntN(8) > 0
		if o.brisk {
			mistake = wrong && rng.IntN(3) > 0
		}
		for range 30 {
			end, fields := o.answer(rng, style, p, x.f, x.call)
			ret := Event{Time: at, Process: p, Type: end, F: x.f, Fields: fields}
			op := []oracleOp{{process: p, f: x.f, call: &call, ret: &ret, at: -1, end: -1}}
			oracleOwners(&h, op)
			x.end, x.fields = end, fields
			if end == Fail && (o.evident == nil || !o.evident(&op[0])) {
				break
			}
			var next []any
			for _, s := range states {
				next = append(next, step(s, &op[0])...)
			}
			if len(next) > 0 {
				states = next
				break
			}
			if mistake {
				break
			}
			x.end, x.fields = Fail, nil
		}
		if lost {
			x.end, x.fields = Info, nil
		}
	}
	end := func(p int64, x *open) {
		delete(running, p)
		dead[p] = x.end == Info
		if x.end != Info || rng.IntN(2) == 0 { // or nobody records it
			emit(p, x.end, x.f, x.fields)
		}
	}
	for n > 0 || len(running) > 0 {
		p := rng.Int64N(5)
		x := running[p]
		at += rng.Int64N(4)
		switch {
		case x != nil && !x.done:
			effect(p, x)
			if rng.IntN(3) == 0 {
				end(p, x)
			}
		case x != nil:
			end(p, x)
		case n > 0 && !dead[p]:
			n--
			f, call := o.call(rng, style, p)
			emit(p, Invoke, f, call)
			running[p] = &open{f: f, call: call, since: at}
			if o.brisk && rng.IntN(4) > 0 && (f != "acquire" || rng.IntN(2) == 0) {
				effect(p, running[p])
				end(p, running[p])
			}
		case n > 0 && !slices.Contains([]bool{dead[0], dead[1], dead[2], dead[3], dead[4]}, false):
			n = 0
		}
	}
	if wrong && !o.brisk && rng.IntN(2) == 0 {
		misorder(rng, &h)
	}
	return h
}

// misorder swaps events of different processes.
func misorder(rng *rand.Rand, h *History) {
	for range 2 * len(h.Events) {
		i := rng.IntN(max(len(h.Events)-1, 1))
		if i+1 >= len(h.Events) || h.Events[i].Process == h.Events[i+1].Process {
			continue
		}
		a, b := &h.Events[i], &h.Events[i+1]
		*a, *b = *b, *a
		a.Index, b.Index = b.Index, a.Index
		a.Time, b.Time = b.Time, a.Time
	}
}

// agree checks one history by Check and by every way of searching.
func agree(t *testing.T, h *History, m Model, want bool) {
	t.Helper()
	v, err := Check(t.Context(), *h, Options{Model: m})
	if err != nil {
		h.WriteJSON(t.Output())
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
		f := newFrontier(t.Context(), &h.Meta, parts[i].load(), DefaultMemory, 1<<30)
		forward = forward && f.run() == porcupine.Ok
	}
	if forward != want {
		h.WriteJSON(t.Output())
		t.Fatalf("a walk forward says %v, the oracle %v", forward, want)
	}
	for _, mode := range []string{"plain", "eager", "patient", "cut", "cut eager"} {
		all := true
		for i := range parts {
			s := newSearch(t.Context(), &h.Meta, parts[i].load(), DefaultMemory)
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

// histories is how many random histories to try a model on: in all, more than
// 200,000 in a long run. It takes more to meet every guard of a lease.
func (o *oracle) histories() int {
	switch {
	case os.Getenv("FENCEPOST_LONG") != "":
		return 14_000
	case o.brisk:
		return 2_400
	}
	return 600
}

// TestModelsAgreeWithOracle also shows that the histories are worth their name:
// legal and illegal ones are many, and the oracle with any guard of its rule
// weakened, strengthened or dropped judges one of them otherwise. So a model
// with that flaw would not have agreed.
func TestModelsAgreeWithOracle(t *testing.T) {
	orderLeft := slices.Clone(orderFlaws)
	for _, o := range oracles() {
		t.Run(o.model, func(t *testing.T) {
			name, _, _ := strings.Cut(o.model, " ") // which says it another way
			m, err := ParseModel(name)
			if err != nil {
				t.Fatal(err)
			}
			n := o.histories()
			seen := map[bool]int{}
			left := slices.Clone(o.flaws)
			for seed := range uint64(n) {
				h := o.history(seed)
				want := o.legal(&h, "")
				seen[want]++
				agree(t, &h, m, want)
				found := func(flaw string) bool { return o.legal(&h, flaw) != want }
				left, orderLeft = slices.DeleteFunc(left, found), slices.DeleteFunc(orderLeft, found)
			}
			t.Logf("%d histories: %d legal, %d illegal; %d of %d flaws found", n, seen[true], seen[false], len(o.flaws)-len(left), len(o.flaws))
			if seen[true] < n/5 || seen[false] < n/5 {
				t.Errorf("legal and illegal: %v, want a fifth of each", seen)
			}
			for _, flaw := range left {
				t.Errorf("%s: no history tells the flawed rule from the real one", flaw)
			}
		})
	}
	for _, flaw := range orderLeft {
		t.Errorf("%s: no history tells the flawed order from the real one", flaw)
	}
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func okOrFail(rng *rand.Rand) Type { return pick(rng, OK, OK, OK, Fail) }
