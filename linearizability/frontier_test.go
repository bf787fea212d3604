package linearizability

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// leaseLegal says by brute force whether operations on one lease are legal.
func leaseLegal(h *History, spans []span) bool {
	o := leaseOracle()
	var ops []oracleOp
	for _, s := range spans {
		x := oracleOp{process: s.process, f: h.Events[s.Call].F, unknown: s.Type == Info, call: &h.Events[s.Call], at: s.Call, end: s.Return}
		if !x.unknown {
			x.ret = &h.Events[s.Return]
		}
		if s.Type != Fail || o.evident(&x) {
			ops = append(ops, x)
		}
	}
	return legal(h, ops, o.start(h, ""), o.rule(h, ""), "")
}

// before is what was known of operations at a place.
func before(spans []span, place int64) []span {
	var known []span
	for _, s := range spans {
		if s, called := s.by(place); called {
			known = append(known, s)
		}
	}
	return known
}

// compiled is the first partition of a history.
func compiled(t testing.TB, h *History, model string) *partition {
	t.Helper()
	d, err := digestOf(h, Options{Model: Model{Name: model}})
	if err != nil {
		t.Fatal(err)
	}
	return d.parts[0].load()
}

// walked is what a frontier says of a history of one lease, without any other
// search.
func walked(t *testing.T, h *History) (*frontier, porcupine.CheckResult) {
	t.Helper()
	f := newFrontier(t.Context(), &h.Meta, compiled(t, h, ModelLease), DefaultMemory, 1<<40)
	f.joinEvery = 1
	return f, f.run()
}

// randomLease runs a store in whole instants, a few to a TTL, so that every
// operation with unknown outcome matters to some other. Store and answers may be
// wrong.
func randomLease(rng *rand.Rand, ops int, unknown float64) History {
	h := History{Name: "random", Meta: DefaultMeta()}
	m := &h.Meta
	m.Drift = []int64{0, 0, 0, 250_000_000}[rng.IntN(4)]
	m.Early = []int64{0, 0, 0, 1}[rng.IntN(4)]
	m.Late = []int64{0, 0, 0, 0, 0, 1, 1, Unbounded}[rng.IntN(8)]
	m.LockDelay = []int64{0, 0, 2}[rng.IntN(3)]
	m.Tokens = []TokenRule{TokensNext, TokensNext, TokensRising, TokensNone}[rng.IntN(4)]
	m.First = uint64(rng.IntN(2))
	m.RenewAfterLapse = rng.IntN(6) == 0
	m.Anchor = []Anchor{AnchorGrant, AnchorGrant, AnchorGrant, AnchorCall}[rng.IntN(4)]
	if m.Tokens == TokensNone {
		m.First = 0
	}
	if rng.IntN(6) == 0 {
		m.Eps = 1
	}
	calm := rng.IntN(2) == 0
	if calm {
		late, delay, first := min(m.Late, 1), m.LockDelay, m.First
		*m = DefaultMeta()
		m.Late, m.LockDelay, m.First = late, delay, first
	}
	lapse := []int64{0, 0, -1, -2, 2, 4}[rng.IntN(6)] // too early or too late
	ttls, odd, faults := int64(3+rng.IntN(4)), !calm && rng.IntN(4) == 0, !calm && rng.IntN(2) == 0
	var (
		now, expires int64
		holder       string
		token        uint64
		carried      = map[string]uint64{}
		busy         []int64 // by process, until when
		order        []int64 // by event
	)
	emit := func(at, p int64, typ Type, f string, fields ...Field) {
		i, _ := slices.BinarySearch(order, at+1)
		order = slices.Insert(order, i, at)
		h.Events = slices.Insert(h.Events, i, Event{Time: at, Process: p, Type: typ, F: f, Fields: fields})
	}
	width := 1 + rng.Int64N(4)
	now = 5
	for range ops {
		now += rng.Int64N(3)
		call, ret := now-rng.Int64N(width), now+rng.Int64N(width)
		p := slices.IndexFunc(busy, func(until int64) bool { return until < call })
		if p < 0 {
			p, busy = len(busy), append(busy, 0)
		}
		owner := []string{"a", "b", "c"}[rng.IntN(3)]
		if now < expires && rng.IntN(3) > 0 {
			owner = holder
		}
		ttl := ttls
		if odd {
			ttl += rng.Int64N(3)
		}
		f := []string{"acquire", "acquire", "acquire", "renew", "renew", "renew", "release", "get", "get", "get"}[rng.IntN(10)]
		if faults && rng.IntN(6) == 0 {
			f = []string{"restart", "delete"}[rng.IntN(2)]
		}
		who := Field{"owner", String(owner)}
		under := Field{"token", Uint(max(1, carried[owner]))}
		var fields []Field
		switch f {
		case "acquire":
			fields = []Field{who, {"ttl", Int(ttl)}}
		case "renew":
			fields = []Field{who, under, {"ttl", Int(ttl)}}
		case "release":
			fields = []Field{who, under}
		}
		emit(call, int64(p), Invoke, f, fields...)
		lost := rng.Float64() < unknown
		typ, answer := OK, []Field(nil)
		held := holder != "" && now < expires
		mine := held && holder == owner && carried[owner] == token
		switch effect := !lost || rng.IntN(3) > 0; {
		case f == "get" && held:
			answer = []Field{{"owner", String(holder)}, {"token", Uint(token)}}
		case f == "get":
			answer = []Field{{"owner", String("")}}
		case f == "acquire" && !held && now < expires+m.LockDelay:
			typ, answer = Fail, []Field{{"error", Keyword("delay")}}
		case f == "acquire" && held && holder != owner:
			typ, answer = Fail, []Field{{"error", Keyword("held")}}
			if rng.IntN(2) == 0 {
				answer = append(answer, Field{"holder", String(holder)})
			}
		case f == "renew" && !mine, f == "release" && !mine:
			typ, answer = Fail, []Field{{"error", Keyword("lost")}}
		case !effect:
		case f == "acquire":
			if !held {
				token++
			}
			holder, expires = owner, max(expires, now+ttl+lapse)
			carried[owner] = token
			answer = []Field{{"token", Uint(token)}}
		case f == "renew":
			expires = max(expires, now+ttl+lapse)
		case f == "release", f == "delete":
			holder, expires = "", 0
		case f == "restart" && held:
			expires = max(expires, now+ttl+lapse)
		}
		switch busy[p] = ret; {
		case lost:
			busy[p] = 1 << 40
		case f == "acquire" && typ == OK && rng.IntN(15) == 0:
			emit(ret, int64(p), OK, f, Field{"token", Uint(token + 1)})
		case f == "renew" && rng.IntN(30) == 0:
			emit(ret, int64(p), OK, f)
		default:
			emit(ret, int64(p), typ, f, answer...)
		}
	}
	for i := range h.Events {
		h.Events[i].Index = int64(i)
	}
	return h
}

func TestFrontierAgreesWithOracle(t *testing.T) {
	seen := map[bool]int{}
	undecided, hindsight := 0, 0
	runs := uint64(6_000)
	if long() {
		runs = 200_000
	}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(seed, 5))
		h := randomLease(rng, 5+rng.IntN(6), []float64{0, 0.1, 0.2, 0.4}[rng.IntN(4)])
		want := leaseLegal(&h, h.spans())
		f, got := walked(t, &h)
		hindsight += f.late
		if got == porcupine.Unknown {
			undecided++
			continue
		}
		if (got == porcupine.Ok) != want {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: the frontier says %v, the oracle %v", seed, got, want)
		}
		seen[want]++
		if !want && seed%5 == 0 {
			firstAgrees(t, &h)
		}
	}
	t.Logf("legal and illegal: %v, undecided %d, renewals done in hindsight %d", seen, undecided, hindsight)
	if seen[false] < int(runs)/8 || undecided > 0 || hindsight < int(runs)/50 {
		t.Errorf("legal and illegal: %v, undecided %d, done in hindsight %d: too few or too many", seen, undecided, hindsight)
	}
}

// firstAgrees checks that the return which Check blames is the first one up to
// which brute force explains nothing.
func firstAgrees(t *testing.T, h *History) {
	t.Helper()
	v, err := Check(t.Context(), *h, Options{Model: Model{Name: ModelLease}})
	if err != nil || v.Linearizable() != Violated || v.digest.parts[0].stuck == nil {
		t.Fatalf("%v %v: want violated, and where", v, err)
	}
	spans := h.spans()
	stuck := v.digest.parts[0].stuck
	if leaseLegal(h, before(spans, stuck.ret)) {
		h.WriteJSON(t.Output())
		t.Fatalf("blamed %s, but all up to it can be explained", h.operation(*stuck))
	}
	for _, s := range spans {
		if s.ret < stuck.ret && !leaseLegal(h, before(spans, s.ret)) {
			h.WriteJSON(t.Output())
			t.Fatalf("blamed %s, but already %s cannot be explained", h.operation(*stuck), h.operation(s))
		}
	}
}

// TestFrontierAgreesWithSearch takes histories too long for brute force.
func TestFrontierAgreesWithSearch(t *testing.T) {
	seen := map[porcupine.CheckResult]int{}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 6))
		h := randomLease(rng, 15+rng.IntN(30), []float64{0, 0.05, 0.1, 0.2}[rng.IntN(4)])
		p := compiled(t, &h, ModelLease)
		s := newSearch(t.Context(), &h.Meta, p, DefaultMemory)
		s.eager, s.limit = true, 20_000
		want := s.run()
		if want == porcupine.Unknown {
			seen[want]++
			continue
		}
		_, got := walked(t, &h)
		if got != want {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: the frontier says %v, the search %v", seed, got, want)
		}
		seen[got]++
	}
	t.Log(seen)
	if seen[porcupine.Ok] < 300 || seen[porcupine.Illegal] < 300 {
		t.Errorf("%v, want at least 300 Ok and 300 Illegal", seen)
	}
}

func long() bool { return os.Getenv("FENCEPOST_LONG") != "" }
