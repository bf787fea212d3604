package linearizability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
)

func mustRead(t testing.TB, text string) History {
	t.Helper()
	h, err := Read(strings.NewReader(text), "h")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustCheck(t testing.TB, h History, o Options) Verdict {
	t.Helper()
	v, err := Check(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestModelNames(t *testing.T) {
	for text, want := range map[string]string{
		"register": "register(nil)", "register(3)": "register(3)", " cas-register(nil) ": "cas-register(nil)", "cas-register(-7)": "cas-register(-7)",
		"mutex": "mutex", "owner-mutex": "owner-mutex", "kv": "kv", "lease": "lease", "storage": "storage", "fencepost": "fencepost",
		"multi-register": "multi-register(nil)", "multi-register(0)": "multi-register(0)", "reentrant-mutex": "reentrant-mutex", "reentrant-mutex(2)": "reentrant-mutex(2)",
		"fenced-mutex": "fenced-mutex", "reentrant-fenced-mutex(3)": "reentrant-fenced-mutex(3)", "permits(4)": "permits(4)", "cas-storage": "cas-storage",
	} {
		m, err := ParseModel(text)
		if err != nil || m.String() != want {
			t.Errorf("ParseModel(%q) = %s, %v, want %s", text, m, err, want)
		}
		if again, err := ParseModel(m.String()); err != nil || again.String() != want {
			t.Errorf("ParseModel(%q) = %s, %v, want the same again", m, again, err)
		}
	}
	for _, text := range []string{"", "queue", "mutex(0)", "register(", "register(1", "register(x)", "register(1.5)", "cas-register(1 2)", "lease()",
		"permits", "permits(0)", "permits(-1)", "permits(x)", "permits(3", "permits(1000001)", "reentrant-mutex(0)", "fenced-mutex(1)"} {
		if m, err := ParseModel(text); err == nil {
			t.Errorf("ParseModel(%q) = %s, want an error", text, m)
		}
	}
}

// TestAHistoryOfNothingIsUnknown: a recorder that was never wired up must not
// be green for ever.
func TestAHistoryOfNothingIsUnknown(t *testing.T) {
	v := mustCheck(t, mustRead(t, `{"meta":{"version":1}}`), Options{Model: Model{Name: ModelFencepost}})
	if v.Result != Unknown || !strings.Contains(v.String(), "nothing was recorded") {
		t.Errorf("got %v", v)
	}
}

// TestWhatWeakensAVerdictIsNoted: a misspelt promise is not made.
func TestWhatWeakensAVerdictIsNoted(t *testing.T) {
	h := mustRead(t, `{"meta":{"version":1,"lat":0}}
{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"k","owner":"a","ttl":5}
{"index":1,"time":1,"process":0,"type":"ok","f":"acquire","token":1}`)
	text := mustCheck(t, h, Options{Model: Model{Name: ModelLease}}).String()
	for _, part := range []string{`meta has no field "lat"`, `meta gives no "late"`} {
		if !strings.Contains(text, part) {
			t.Errorf("does not note %s:\n%s", part, text)
		}
	}
}

func TestUnknownOperationIsAnErrorUnlessIgnored(t *testing.T) {
	h := mustRead(t, `{"process":0,"type":"invoke","f":"frob"}`+"\n"+`{"process":1,"type":"invoke","f":"read","value":null}`+"\n"+`{"process":1,"type":"ok","f":"read","value":0}`)
	for _, name := range []string{"register(0)", "mutex", "kv", "lease", "storage"} {
		m, _ := ParseModel(name)
		_, err := Check(t.Context(), h, Options{Model: m})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != 1 || syntax.Field != "f" {
			t.Errorf("%s: got %v, want an error about f in line 1", name, err)
		}
	}
	m, _ := ParseModel("register(0)")
	if v := mustCheck(t, h, Options{Model: m, Ignore: []string{"frob"}}); v.Result != Holds || v.Activity.Operations != 1 {
		t.Errorf("without frob: %s, want that one operation holds", v)
	}
}

func TestModelsSayWhatTheyMiss(t *testing.T) {
	for _, c := range []struct{ model, invoke, end, field string }{
		{"register(0)", `"f":"write"`, `"type":"ok"`, "value"},
		{"cas-register(0)", `"f":"cas","value":[1]`, `"type":"ok"`, "value"},
		{"cas-register(0)", `"f":"cas","value":3`, `"type":"ok"`, "value"},
		{"multi-register", `"f":"txn","value":3`, `"type":"ok"`, "value"},
		{"multi-register", `"f":"txn","value":[["x",1,2]]`, `"type":"ok"`, "value"},
		{"multi-register", `"f":"write","value":[["r",1,2]]`, `"type":"ok"`, "value"},
		{"multi-register", `"f":"txn","value":[]`, `"type":"ok","value":[1]`, "value"},
		{"fenced-mutex", `"f":"acquire"`, `"type":"ok","fence":-1`, "fence"},
		{"fenced-mutex", `"f":"acquire"`, `"type":"ok","fence":"high"`, "fence"},
		{"cas-storage", `"f":"write","v":1`, `"type":"ok"`, "k"},
		{"cas-storage", `"f":"write","k":[1],"v":1`, `"type":"ok"`, "k"},
		{"cas-storage", `"f":"write","k":"a","v":1,"from":-1`, `"type":"ok"`, "from"},
		{"cas-storage", `"f":"write","k":"a","v":1,"from":1`, `"type":"ok","version":"x"`, "version"},
		{"cas-storage", `"f":"write","k":"a","v":1,"from":1`, `"type":"fail","error":"busy"`, "error"},
		{"cas-storage", `"f":"write","k":"a","v":1`, `"type":"fail","error":"mismatch"`, "error"},
		{"kv", `"f":"put","key":"a","value":3`, `"type":"ok"`, "value"},
		{"storage", `"f":"write","k":"a"`, `"type":"ok"`, "token"},
		{"storage", `"f":"write","token":1`, `"type":"ok"`, "k"},
		{"storage", `"f":"read"`, `"type":"ok"`, "k"},
		{"storage", `"f":"fence","token":1`, `"type":"fail","error":"busy"`, "error"},
		{"lease", `"f":"acquire","ttl":3,"key":"a","owner":""`, `"type":"ok"`, "owner"},
		{"lease", `"f":"acquire","key":"a","owner":"x"`, `"type":"ok","token":1`, "ttl"},
		{"lease", `"f":"acquire","owner":"x","ttl":0`, `"type":"ok","token":1`, "ttl"},
		{"lease", `"f":"acquire","owner":"x","ttl":2`, `"type":"ok"`, "token"},
		{"lease", `"f":"renew","owner":"x","ttl":2`, `"type":"ok"`, "token"},
		{"lease", `"f":"get","token":1`, `"type":"ok"`, "owner"},
		{"lease", `"f":"acquire","owner":"x","ttl":2`, `"type":"fail","error":"busy"`, "error"},
		{"lease", `"f":"renew","owner":"x","ttl":2,"token":1`, `"type":"fail","error":"held"`, "error"},
		{"lease", `"f":"get","token":1`, `"type":"fail","error":"lost"`, "error"},
	} {
		f := strings.Split(c.invoke, ",")[0]
		h := mustRead(t, fmt.Sprintf(`{"time":1,"process":0,"type":"invoke",%s}`+"\n"+`{"time":2,"process":0,%s,%s}`, c.invoke, f, c.end))
		m, _ := ParseModel(c.model)
		_, err := Check(t.Context(), h, Options{Model: m})
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Field != c.field || syntax.Line < 1 {
			t.Errorf("%s of %s: got %v, want an error about %s", c.model, c.invoke, err, c.field)
		}
	}
	h := mustRead(t, `{"process":0,"type":"invoke","f":"acquire","owner":"x","ttl":2}`)
	if _, err := Check(t.Context(), h, Options{Model: Model{Name: ModelLease}}); err == nil || !strings.Contains(err.Error(), `field "time"`) {
		t.Errorf("a lease without times: got %v", err)
	}
	if _, err := Check(t.Context(), h, Options{Model: Model{Name: "queue"}}); err == nil {
		t.Error("a model that does not exist is no error")
	}
}

func TestMalformedHistoryInMemoryIsRefused(t *testing.T) {
	h := History{Name: "h", Events: []Event{{Type: OK, F: "read"}}}
	_, err := Check(t.Context(), h, Options{Model: Model{Name: ModelRegister}})
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Field != "process" || syntax.Line != 1 {
		t.Errorf("got %v, want that a return has no call, in the first event", err)
	}
}

const takeover = `{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"k","owner":"a"}
{"index":1,"time":1,"process":0,"type":"ok","f":"acquire","token":1}
{"index":2,"time":30,"process":1,"type":"invoke","f":"acquire","key":"k","owner":"b"}
{"index":3,"time":31,"process":1,"type":"ok","f":"acquire","token":2}
{"index":4,"time":32,"process":1,"type":"invoke","f":"write","key":"s","owner":"b","token":2,"k":"x","v":1}
{"index":5,"time":33,"process":1,"type":"ok","f":"write"}
{"index":6,"time":34,"process":0,"type":"invoke","f":"write","key":"s","owner":"a","token":1,"k":"x","v":2}
{"index":7,"time":35,"process":0,"type":"fail","f":"write","error":"stale"}
`

func TestTooLittleActivityIsUnknown(t *testing.T) {
	o := Options{Model: Model{Name: ModelFencepost}, TTL: 20}
	o.AtLeast = Activity{Operations: 4, Takeovers: 1, Writes: 1, Stale: 1, Lapses: 1}
	if v := mustCheck(t, mustRead(t, takeover), o); v.Result != Holds || v.Activity != o.AtLeast {
		t.Errorf("%s, %+v, want that it holds with just that activity", v, v.Activity)
	}
	for _, more := range []Activity{{Operations: 5}, {Takeovers: 2}, {Writes: 2}, {Stale: 2}, {Renewals: 1}, {Lapses: 2}, {Unknown: 1}} {
		o.AtLeast = more
		if v := mustCheck(t, mustRead(t, takeover), o); v.Result != Unknown || !strings.Contains(v.Reason, "too little") {
			t.Errorf("at least %+v: %s, want unknown", more, v)
		}
	}
	// What is violated stays so, however little there was.
	if v := mustCheck(t, mustRead(t, takeover), Options{Model: o.Model, TTL: 40, AtLeast: Activity{Operations: 99}}); v.Result != Violated {
		t.Errorf("%s, want that it is violated", v)
	}
}

func TestDriftOverridesTheHistory(t *testing.T) {
	h := mustRead(t, `{"meta":{"version":1,"late":0}}`+"\n"+takeover)
	o := Options{Model: Model{Name: ModelLease}, TTL: 35}
	if v := mustCheck(t, h, o); v.Result != Violated {
		t.Errorf("%s, want that 31 < 35 is violated", v)
	}
	o.Drift = 200_000_000
	if v := mustCheck(t, h, o); v.Result != Holds {
		t.Errorf("%s, want that 31 >= 35/1.2 holds", v)
	}
}

func TestEndOfContextIsUnknownNotHolds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := Check(ctx, mustRead(t, takeover), Options{Model: Model{Name: ModelFencepost}, TTL: 20})
	if err != nil || v.Result != Unknown || !strings.Contains(v.Partitions[0].Reason, "context canceled") {
		t.Errorf("%s, %v, want unknown", v, err)
	}
}

// hard is a history of many overlapping increments that no order explains, and
// that no shortcut settles.
func hard(n int) History {
	h := History{Name: "hard", Meta: DefaultMeta()}
	add := func(p int64, t Type, f string, v Value) {
		h.Events = append(h.Events, Event{Index: int64(len(h.Events)), Time: NoTime, Process: p, Type: t, F: f, Fields: []Field{{"value", v}}})
	}
	for p := range int64(n) {
		add(p, Invoke, "append", String(fmt.Sprint(p)))
	}
	for p := range int64(n) {
		add(p, OK, "append", String(fmt.Sprint(p)))
	}
	add(0, Invoke, "get", Value{})
	add(0, OK, "get", String("no such value"))
	return h
}

// endsLater is a context that ends when it was asked for the third time.
type endsLater struct {
	context.Context
	asked *atomic.Int32
}

func (c endsLater) Err() error {
	if c.asked.Add(1) < 3 {
		return nil
	}
	return context.DeadlineExceeded
}

func TestSearchStopsWhenItsContextEnds(t *testing.T) {
	v, err := Check(endsLater{t.Context(), new(atomic.Int32)}, hard(14), Options{Model: Model{Name: ModelKV}})
	if err != nil || v.Result != Unknown || !strings.Contains(v.Partitions[0].Reason, context.DeadlineExceeded.Error()) {
		t.Errorf("%s, %v, want that it ran out of time", v, err)
	}
}

func TestSearchStopsWithinMemory(t *testing.T) {
	v := mustCheck(t, hard(10), Options{Model: Model{Name: ModelKV}, Memory: 1 << 20})
	if v.Result != Unknown || !strings.Contains(v.Partitions[0].Reason, "memory") {
		t.Errorf("%s, want that it ran out of memory", v)
	}
}

func TestPanicOfAModelIsUnknown(t *testing.T) {
	h := mustRead(t, takeover)
	d, err := digestOf(&h, Options{Model: Model{Name: ModelStorage}})
	if err != nil {
		t.Fatal(err)
	}
	parts := d.parts
	parts[0].load().machine.step = func(any, *action) (any, bool) { panic("odd") }
	s := newSearch(t.Context(), &h.Meta, d.parts[0].load(), DefaultMemory)
	if result := s.run(); result != porcupine.Unknown || s.stopped != "the model failed: odd" {
		t.Errorf("%v, %q, want unknown and why", result, s.stopped)
	}
}

// longRegister is a legal history of one register, with some unknown writes.
func longRegister(n int) History {
	rng := rand.New(rand.NewPCG(7, 7))
	h := History{Name: "long", Meta: DefaultMeta()}
	value := int64(0)
	add := func(p int64, t Type, f string, v Value) {
		h.Events = append(h.Events, Event{Index: int64(len(h.Events)), Time: int64(len(h.Events)), Process: p, Type: t, F: f, Fields: []Field{{"value", v}}})
	}
	fresh := int64(2)
	for range n {
		switch a, b := rng.Int64N(5), rng.Int64N(5); rng.IntN(50) {
		case 0: // an unknown write, which the next read may find
			if fresh > 5 {
				break
			}
			add(fresh, Invoke, "write", Int(a))
			if fresh++; rng.IntN(2) == 0 {
				value = a
			}
		case 1, 2, 3, 4, 5: // two writes at once, and a read of either
			add(0, Invoke, "write", Int(a))
			add(1, Invoke, "write", Int(b))
			add(0, OK, "write", Int(a))
			add(1, OK, "write", Int(b))
			value = []int64{a, b}[rng.IntN(2)]
		default:
			add(0, Invoke, "read", Value{})
			add(0, OK, "read", Int(value))
		}
	}
	return h
}

func TestLongHistoryIsCutIntoSegments(t *testing.T) {
	h := longRegister(5_000)
	m := Model{Name: ModelRegister, Init: Int(0)}
	d, err := digestOf(&h, Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	s := newSearch(t.Context(), &h.Meta, d.parts[0].load(), DefaultMemory)
	if result := s.run(); result != porcupine.Ok || len(s.segments) < 4 {
		t.Errorf("%v (%s) in %d segments, want Ok in at least 4", result, s.stopped, len(s.segments))
	}
	if v := mustCheck(t, h, Options{Model: m}); v.Result != Holds {
		t.Error(v)
	}
	// A value that nobody wrote is found where it is.
	at := len(h.Events) - 1
	for ; h.Events[at].F != "read" || h.Events[at].Type != OK || at > len(h.Events)*3/4; at-- {
	}
	h.Events[at].Fields = []Field{{"value", Int(99)}}
	v := mustCheck(t, h, Options{Model: m})
	if v.Result != Violated || v.Partitions[0].Index != int64(at) {
		t.Errorf("%s, want that event %d has no explanation", v, at)
	}
}

func TestVerdictIsJSON(t *testing.T) {
	v := mustCheck(t, mustRead(t, takeover), Options{Model: Model{Name: ModelFencepost}, TTL: 40})
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verdict    string
		Partitions []struct{ Verdict, Key, Model string }
		Findings   []struct {
			Check, Invariant, Blame string
			Shows                   []string
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Verdict != "violated" || len(got.Partitions) != 2 || got.Partitions[0].Verdict != "violated" || got.Partitions[1].Verdict != "holds" ||
		len(got.Findings) != 2 || got.Findings[0].Check != "overlap" || got.Findings[0].Invariant != "belief-safety" || got.Findings[0].Blame != "store" ||
		got.Findings[1].Check != "taken-early" || len(got.Findings[1].Shows) != 2 || !strings.Contains(got.Findings[1].Shows[1], `"token":2`) {
		t.Errorf("got %s", b)
	}
}

func TestEpsLeavesProcessesInOrder(t *testing.T) {
	// Two processes overlap within the error of the stamps; a process does not
	// overlap with itself.
	text := func(p int) string {
		return fmt.Sprintf(`{"meta":{"version":1,"eps":5}}
{"index":0,"time":10,"process":0,"type":"invoke","f":"write","value":1}
{"index":1,"time":11,"process":0,"type":"ok","f":"write","value":1}
{"index":2,"time":12,"process":%d,"type":"invoke","f":"read","value":null}
{"index":3,"time":13,"process":%d,"type":"ok","f":"read","value":0}
`, p, p)
	}
	m := Model{Name: ModelRegister, Init: Int(0)}
	if v := mustCheck(t, mustRead(t, text(1)), Options{Model: m}); v.Result != Holds {
		t.Errorf("another process: %s", v)
	}
	if v := mustCheck(t, mustRead(t, text(0)), Options{Model: m}); v.Result != Violated {
		t.Errorf("the same process: %s", v)
	}
	// Exactly twice the error apart is in order.
	apart := strings.NewReplacer(`"time":12`, `"time":21`, `"time":13`, `"time":22`).Replace(text(1))
	if v := mustCheck(t, mustRead(t, apart), Options{Model: m}); v.Result != Violated {
		t.Errorf("10 apart: %s", v)
	}
}

// TestAClientWithANameIsNoFault: what is taken for a fault explains nothing.
func TestAClientWithANameIsNoFault(t *testing.T) {
	const named = `{"process":0,"type":"invoke","f":"acquire"}` + "\n" + `{"process":0,"type":"ok","f":"acquire"}` + "\n" +
		`{"process":"c1","type":"invoke","f":"acquire"}` + "\n" + `{"process":"c1","type":"ok","f":"acquire"}` + "\n"
	_, err := Check(t.Context(), mustRead(t, named), Options{Model: Model{Name: ModelMutex}})
	var bad *SyntaxError
	if !errors.As(err, &bad) || bad.Line != 3 || bad.Field != "process" {
		t.Errorf("%v, want an error in line 3, field process", err)
	}
	for _, fault := range []string{`{"process":"nemesis","type":"info","f":"acquire"}`, `{"process":"chaos","type":"invoke","f":"partition"}`} {
		if v := mustCheck(t, mustRead(t, fault+"\n"+strings.Join(strings.SplitAfter(named, "\n")[:2], "")), Options{Model: Model{Name: ModelMutex}}); v.Result != Holds {
			t.Error(v)
		}
	}
}
