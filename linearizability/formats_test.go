package linearizability_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost/linearizability"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestFormatNamesParse(t *testing.T) {
	for _, f := range linearizability.Formats() {
		if got, err := linearizability.ParseFormat(f.String()); err != nil || got != f {
			t.Errorf("%v is parsed as %v, %v", f, got, err)
		}
	}
	if n := len(linearizability.Formats()); n != 8 {
		t.Errorf("%d formats, want 8", n)
	}
	for _, name := range []string{"", "unknown", "JSONL", "Format(9)"} {
		if f, err := linearizability.ParseFormat(name); err == nil {
			t.Errorf("%q is %v", name, f)
		}
	}
}

// sayable is what a format can say of h, by the words of its documentation.
func sayable(h linearizability.History, f linearizability.Format) linearizability.History {
	var keeps func(name string) bool
	switch f {
	case linearizability.FormatLog:
		keeps = func(name string) bool { return name == "value" || name == "error" }
	case linearizability.FormatKVLog:
		keeps = func(name string) bool { return name == "value" || name == "key" }
	default:
		return h
	}
	h.Meta = linearizability.DefaultMeta()
	h.Events = slices.Clone(h.Events)
	for i := range h.Events {
		e := &h.Events[i]
		e.Index, e.Time = int64(i), linearizability.NoTime
		var fields []linearizability.Field
		for _, f := range e.Fields {
			if keeps(f.Name) && !f.Value.IsNil() || e.Process == linearizability.NoProcess && (f.Name == "process" || f.Name == "type") {
				if text := f.Value.String(); f.Name == "error" && strings.HasPrefix(text, "#") {
					f.Value = linearizability.String(text) // a mark of a comment there: its loss is listed
				}
				fields = append(fields, f)
			}
		}
		e.Fields = fields
	}
	return h
}

// told is h without what no format has to say: where an event was read. Of a
// format without times, the order of the fields does not count, nor does one
// that is nil. (Such formats come last.)
func told(h linearizability.History, f linearizability.Format) linearizability.History {
	out := linearizability.History{Meta: h.Meta}
	// That times may step back goes without saying where they do.
	out.Meta.Journal = false
	for i, e := range h.Events {
		if i > 0 && h.Meta.Eps == 0 && e.Time < h.Events[i-1].Time {
			out.Meta.Journal = true
		}
		e.Line = 0
		e.Fields = slices.Clone(e.Fields)
		if f >= linearizability.FormatLog {
			e.Fields = slices.DeleteFunc(e.Fields, func(f linearizability.Field) bool { return f.Value.IsNil() })
			slices.SortFunc(e.Fields, func(a, b linearizability.Field) int { return cmp.Compare(a.Name, b.Name) })
		}
		if len(e.Fields) == 0 {
			e.Fields = nil
		}
		out.Events = append(out.Events, e)
	}
	return out
}

func write(t *testing.T, h linearizability.History, w linearizability.Writer) (string, []linearizability.Loss) {
	t.Helper()
	var b bytes.Buffer
	losses, err := w.Write(&b, &h)
	if err != nil {
		t.Fatalf("%s in %v: %v", h.Name, w.Format, err)
	}
	return b.String(), losses
}

func read(t *testing.T, text string, r linearizability.Reader) linearizability.History {
	t.Helper()
	h, err := r.Read(strings.NewReader(text), "h")
	if err != nil {
		t.Fatalf("%v: %v in\n%s", r.Format, err, head(text))
	}
	return h
}

func same(t *testing.T, what string, want, got linearizability.History, f linearizability.Format) bool {
	t.Helper()
	want, got = told(want, f), told(got, f)
	if equalHistories(want, got) {
		return true
	}
	t.Errorf("%s: (-want +got)\n%s", what, gocmp.Diff(want, got, gocmp.AllowUnexported(linearizability.History{})))
	return false
}

// equalHistories spares go-cmp, which is slow.
func equalHistories(a, b linearizability.History) bool {
	field := func(a, b linearizability.Field) bool {
		return a.Name == b.Name && a.Value.Equal(b.Value) && a.Value.Kind() == b.Value.Kind()
	}
	m, n := a.Meta, b.Meta
	return m.Drift == n.Drift && m.Early == n.Early && m.Late == n.Late && m.Eps == n.Eps && m.Tokens == n.Tokens && m.Anchor == n.Anchor &&
		m.LockDelay == n.LockDelay && m.RenewAfterLapse == n.RenewAfterLapse && m.First == n.First && m.Barrier == n.Barrier && m.Journal == n.Journal &&
		slices.EqualFunc(m.Extra, n.Extra, field) &&
		slices.EqualFunc(a.Events, b.Events, func(a, b linearizability.Event) bool {
			return a.Index == b.Index && a.Time == b.Time && a.Process == b.Process && a.Type == b.Type && a.F == b.F && slices.EqualFunc(a.Fields, b.Fields, field)
		})
}

// roundTrips takes h through each pair of the formats and back, and compares
// everything that all on the way can say.
func roundTrips(t *testing.T, h linearizability.History) {
	t.Helper()
	for _, f := range linearizability.Formats() {
		text, losses := write(t, h, linearizability.Writer{Format: f})
		first := sayable(h, f)
		if whole := equalHistories(told(h, f), told(first, f)); whole != (len(losses) == 0) {
			t.Errorf("%s in %v: everything is said: %v, but the losses are %v", h.Name, f, whole, losses)
		}
		once := read(t, text, linearizability.Reader{Format: f})
		if !same(t, fmt.Sprintf("%s in %v", h.Name, f), first, once, f) {
			return
		}
		for _, g := range linearizability.Formats() {
			there, _ := write(t, once, linearizability.Writer{Format: g})
			twice := read(t, there, linearizability.Reader{Format: g})
			back, losses := write(t, twice, linearizability.Writer{Format: f})
			thrice := read(t, back, linearizability.Reader{Format: f})
			if !same(t, fmt.Sprintf("%s in %v, %v, %v", h.Name, f, g, f), sayable(first, g), thrice, max(f, g)) {
				return
			}
			if g == f && losses != nil {
				t.Errorf("%s: %v loses %v of its own", h.Name, f, losses)
			}
		}
	}
}

// handwritten are histories with everything that some format might stumble on.
var handwritten = map[string]string{
	"lease": `{"meta":{"version":1,"drift":0.0002,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"shard-1","owner":"a#1","ttl":2000000000}
{"index":1,"time":900,"process":0,"type":"ok","f":"acquire","key":"shard-1","owner":"a#1","token":10}
{"index":2,"time":900,"process":1,"type":"invoke","f":"acquire","key":"shard-1","owner":"b#1"}
{"index":3,"time":950,"type":"info","f":"cut","node":"n1"}
{"index":4,"time":1000,"process":1,"type":"fail","f":"acquire","key":"shard-1","owner":"b#1","error":"held","holder":"a#1"}
{"index":5,"time":1001,"process":1,"type":"invoke","f":"get","key":"shard-1"}
{"index":6,"time":1001,"process":2,"type":"invoke","f":"renew","key":"shard-1","owner":"a#1","token":10}
{"index":7,"time":1002,"process":2,"type":"info","f":"renew","error":"timed out"}
{"index":8,"time":1003,"process":3,"type":"invoke","f":"release","key":"shard-1","owner":"a#1","token":10}`,
	"odd names and every value": `{"meta":{"version":1,"drift":0.000000001,"early":4,"late":5,"eps":3,"tokens":"rising","anchor":"call","lockDelay":7,"renewAfterLapse":true,"first":18446744073709551615,"barrier":true,"host":"n1","seed":[1,{"a b":null}]}}
{"index":7,"time":0,"process":12,"type":"invoke","f":"odd name","Ünïcode":"\u0000\t\"\\ ☃ \ud83d\ude00\n\r\u007f","error":"held","token":18446744073709551615,"a/b":1,"0":2,"true":true,"nil":null,"x":{":k":":v","#edn":"5","#edn 5":"#edn","":[]},"a=b":"=","->":"->","-x":-1,"":""}
{"index":9,"time":2,"type":"info","f":"cut","process":"n1","n":-0.0,"e":1e400,"big":123456789012345678901234567890,"error":"two words; and # more","meta":7}
{"index":10,"time":1,"type":"info","f":"..","error":{"#edn":"\"held\""},"value":"# no comment"}`,
	"Clojure": `{:process 0, :type :invoke, :f :cas, :value [1 -2.50M 3N 1/2 +7 ##Inf], :k/x {0 :a, "s" "t", :n/kw nil, [1] #{}}, :error [:timeout "x" \newline \a sym]}
{:process :other, :type :info, :f :kill, :value #inst "2014-01-01", :list (1 (2)), :error "timeout", "string key" :v}
{:process 0, :type :fail, :f :cas, :value (), :error sym}`,
	"nemesis": `[{:process :nemesis, :type :invoke, :f :start, :value nil} {:process :nemesis, :type :info, :f :start, :value {"n1" #{"n2"}}}
{:process "chaos monkey", :f :stop, :type :ok, :value :all} {:process :nemesis, :type :info, :f :stop}]`,
	"journal":         "{:process 0, :type :invoke, :f :read, :time 9}\n{:process 1, :type :invoke, :f :read, :time 8}\n{:process 1, :type :info, :f :read, :time 8, :error \"a\\tb\"}",
	"porcupine's log": "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:info\t:write\t:timed-out\nINFO  jepsen.util - :nemesis\t:info\t:start\tnil\tboom: connection refused\n",
	"porcupine's key-value log": `{:process 0, :type :invoke, :f :append, :key "0", :value "x 0 0 y"}
{:process 1, :type :invoke, :f :get, :key "7", :value nil}
{:process 1, :type :ok, :f :get, :key "7", :value ""}
{:process 0, :type :ok, :f :append, :key "0", :value "x 0 0 y"}`,
	"nothing but a meta": `{"meta":{"version":1}}
{"index":0,"type":"info","f":"x"}`,
}

func TestEveryFormatToEveryOtherAndBack(t *testing.T) {
	for name, text := range handwritten {
		h := read(t, text, linearizability.Reader{})
		h.Name = name
		roundTrips(t, h)
	}
	seeds := uint64(20)
	if os.Getenv("FENCEPOST_LONG") == "1" {
		seeds = 1000
	}
	for seed := range seeds {
		h := randomHistory(rand.New(rand.NewPCG(seed, 1)))
		h.Name = fmt.Sprint("random ", seed)
		if err := h.Validate(); err != nil {
			t.Fatalf("the generator is wrong: %v", err)
		}
		if roundTrips(t, h); t.Failed() {
			return
		}
	}
}

// randomHistory is a valid history of up to 30 events.
func randomHistory(rng *rand.Rand) linearizability.History {
	h := linearizability.History{Meta: linearizability.DefaultMeta()}
	if rng.IntN(2) == 0 {
		h.Meta.Drift, h.Meta.Eps = rng.Int64N(1e9), rng.Int64N(3)
		h.Meta.Late = []int64{0, 5, linearizability.Unbounded}[rng.IntN(3)]
		h.Meta.Extra = randomFields(rng, "meta")
	}
	type caller struct {
		f          string
		open, dead bool
	}
	callers := make([]caller, 4)
	timed, steps := rng.IntN(3) > 0, rng.IntN(3) == 0
	index, now := int64(0), int64(10)
	last := make([]int64, len(callers))
	for range 1 + rng.IntN(30) {
		e := linearizability.Event{Index: index, Time: linearizability.NoTime, Process: linearizability.NoProcess, Type: linearizability.Info}
		index += 1 + rng.Int64N(2)
		if now += rng.Int64N(3); steps && rng.IntN(5) == 0 {
			now -= 3
			h.Meta.Journal = true
		}
		e.F = []string{"acquire", "read", "odd f", "x/y", "..", "fault", "ünï"}[rng.IntN(7)]
		e.Fields = randomFields(rng, "key")
		p := rng.IntN(len(callers) + 1)
		if p < len(callers) && !callers[p].dead {
			c := &callers[p]
			e.Process = int64(p)
			if timed {
				now = max(now, last[p])
				last[p] = now
			}
			if c.open {
				e.Type, e.F = []linearizability.Type{linearizability.OK, linearizability.Fail, linearizability.Info}[rng.IntN(3)], c.f
				c.open, c.dead = false, e.Type == linearizability.Info
			} else {
				e.Type = linearizability.Invoke
				c.open, c.f = true, e.F
			}
		} else if rng.IntN(3) == 0 {
			e.Fields = slices.Concat([]linearizability.Field{{Name: "process", Value: linearizability.Keyword("n1")}}, e.Fields,
				[]linearizability.Field{{Name: "type", Value: linearizability.Keyword("ok")}})
		}
		if timed {
			e.Time = now
		}
		h.Events = append(h.Events, e)
	}
	return h
}

// randomFields are up to four, with no key that a return would have to repeat.
func randomFields(rng *rand.Rand, but string) []linearizability.Field {
	names := []string{"key", "value", "error", "owner", "token", "note", "a b", "->", "a=b", "edn", "#edn", "nil", "9", "x.y/z-", "ü"}
	var fields []linearizability.Field
	for range rng.IntN(5) {
		name := names[rng.IntN(len(names))]
		if name == but || slices.ContainsFunc(fields, func(f linearizability.Field) bool { return f.Name == name }) {
			continue
		}
		f := linearizability.Field{Name: name, Value: randomValue(rng, 3)}
		switch name {
		case "key":
			f.Value = linearizability.String("k")
		case "owner":
			f.Value = linearizability.Int(rng.Int64N(9))
		case "token":
			f.Value = linearizability.Uint(rng.Uint64())
		}
		fields = append(fields, f)
	}
	return fields
}

func randomValue(rng *rand.Rand, depth int) linearizability.Value {
	words := []string{"", "a", ":a", "nil", "1", "1N", "held", "two words", "#edn", "#edn 1", "\"", "\\", "\n\t\x00", "☃", "; x", "# x", "->", "a=b", "..", "\u2028"}
	switch n := rng.IntN(8); {
	case n == 0:
		return linearizability.Value{}
	case n == 1:
		return linearizability.Bool(rng.IntN(2) == 0)
	case n == 2:
		return linearizability.Int(rng.Int64() >> rng.IntN(64))
	case n == 3:
		return linearizability.Uint(rng.Uint64())
	case n == 4:
		return linearizability.Keyword([]string{"a", "a/b", "held", "x?", "+"}[rng.IntN(5)])
	case n == 5 && depth > 0:
		elems := make([]linearizability.Value, rng.IntN(4))
		for i := range elems {
			elems[i] = randomValue(rng, depth-1)
		}
		return linearizability.Vector(elems...)
	}
	return linearizability.String(words[rng.IntN(len(words))])
}

// TestRecordedHistoriesInEveryFormat takes what was recorded elsewhere.
func TestRecordedHistoriesInEveryFormat(t *testing.T) {
	dir, _ := corpus(t)
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Dir(path) == filepath.Clean(dir) {
			return err
		}
		h, err := linearizability.ReadFile(path)
		var syntax *linearizability.SyntaxError
		if errors.As(err, &syntax) && strings.HasPrefix(syntax.Msg, "empty") {
			return nil // one of porcupine's is
		}
		if err != nil {
			return err
		}
		files++
		if files%10 == 0 || os.Getenv("FENCEPOST_LONG") == "1" { // all take half a minute
			roundTrips(t, h)
		}
		return nil
	})
	if err != nil || files < 135 {
		t.Errorf("%d files were read, want at least 135 (%v)", files, err)
	}
}

// TestConversionNeedsNoHistory: a stream is converted as its whole is.
func TestConversionIsThatOfTheWhole(t *testing.T) {
	for name, text := range handwritten {
		for _, f := range linearizability.Formats() {
			w := linearizability.Writer{Format: f}
			want, wantLosses := write(t, read(t, text, linearizability.Reader{}), w)
			s, err := linearizability.Reader{}.Open(strings.NewReader(text), name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			losses, err := w.Convert(&got, s)
			if err != nil || got.String() != want || !slices.Equal(losses, wantLosses) {
				t.Errorf("%s in %v: %v, losses %v, want %v\n%s\nwant\n%s", name, f, err, losses, wantLosses, got.String(), want)
			}
		}
	}
}

func TestIndependentTuplesAreKeysAndValues(t *testing.T) {
	const fields = `{"process":0,"type":"invoke","f":"cas","key":"x","value":[1,2]}
{"type":"info","f":"start","value":["n1",3]}
{"process":0,"type":"ok","f":"cas","key":"x","value":[1,2],"note":"n"}
{"process":1,"type":"invoke","f":"read","key":7,"value":null}
{"process":1,"type":"info","f":"read","key":7,"value":null}`
	want := read(t, fields, linearizability.Reader{})
	for name, text := range map[string]string{
		"plain": `{:process 0, :type :invoke, :f :cas, :value ["x" [1 2]]} {:process :nemesis, :type :info, :f :start, :value ["n1" 3]}
{:process 0, :type :ok, :f :cas, :value ["x" [1 2]], :note "n"} {:process 1, :type :invoke, :f :read, :value (7 nil)} {:process 1, :type :info, :f :read, :value [7 nil]}`,
		"tagged": `{:process 0, :type :invoke, :f :cas, :value #jepsen.independent/tuple ["x" [1 2]]} {:process :nemesis, :type :info, :f :start, :value ["n1" 3]}
{:process 0, :type :ok, :f :cas, :value #jepsen.independent.Tuple ["x" [1 2]], :note "n"} {:process 1, :type :invoke, :f :read, :value #independent/tuple [7 nil]} {:process 1, :type :info, :f :read, :value #independent/tuple [7 nil]}`,
	} {
		got := read(t, text, linearizability.Reader{Independent: name == "plain"})
		same(t, name, want, got, linearizability.FormatEDN)
	}
	// Without the option, and without a tag, a pair is a pair.
	if h := read(t, `{:process 0, :type :invoke, :f :cas, :value [1 2]}`, linearizability.Reader{}); h.Events[0].Has("key") {
		t.Error("the values of a cas were taken for a tuple")
	}
	for _, f := range linearizability.Formats() {
		text, losses := write(t, want, linearizability.Writer{Format: f, Independent: true})
		got := read(t, text, linearizability.Reader{Format: f, Independent: true})
		expect := want
		if f == linearizability.FormatLog || f == linearizability.FormatKVLog { // the note is in no column
			expect = read(t, strings.Replace(fields, `,"note":"n"`, "", 1), linearizability.Reader{})
			if len(losses) != 1 || losses[0].What != "note" {
				t.Errorf("%v: losses %v, want the note", f, losses)
			}
		}
		same(t, f.String(), expect, got, f)
	}
	// A return that repeats no key gets it from its call.
	h := read(t, `{"process":0,"type":"invoke","f":"acquire","key":"x","owner":"a"}`+"\n"+`{"process":0,"type":"ok","f":"acquire","token":3}`, linearizability.Reader{})
	if text, _ := write(t, h, linearizability.Writer{Format: linearizability.FormatEDN, Independent: true}); !strings.HasSuffix(text, `:f :acquire, :token 3, :value ["x" nil]}`+"\n") {
		t.Errorf("got %s", text)
	}
	h.Events[0].Fields = nil
	var syntax *linearizability.SyntaxError
	if _, err := (linearizability.Writer{Independent: true}).Write(io.Discard, &h); !errors.As(err, &syntax) || syntax.Field != "key" || syntax.Line != 1 {
		t.Errorf("no key: got %v, want a SyntaxError of line 1, field key", err)
	}
}

func TestNotTuples(t *testing.T) {
	for text, want := range map[string]string{
		`{:process 0, :type :invoke, :f :read, :value 3}`:                                 `h:1: field "value": want an independent tuple, [key value], not "3"`,
		`{:process 0, :type :invoke, :f :read}`:                                           `h:1: field "value": missing: want an independent tuple`,
		`{:process 0, :type :invoke, :f :read, :value [1 2 3]}`:                           `h:1: field "value": want an independent tuple`,
		`{:process 0, :type :invoke, :f :read, :key 1, :value [1 2]}`:                     `h:1: field "key": appears twice`,
		`{:process 0, :type :invoke, :f :read, :value [[1] 2]}`:                           `h:1: field "key": want a name`,
		`{:process 0, :type :invoke, :f :read, :value #jepsen.independent/tuple [1 2 3]}`: `h:1: field "value": want an independent tuple`,
	} {
		_, err := linearizability.Reader{Independent: true}.Read(strings.NewReader(text), "h")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	empty := linearizability.History{Name: "h", Meta: linearizability.DefaultMeta()}
	long := empty
	long.Events = []linearizability.Event{{Time: linearizability.NoTime, Process: linearizability.NoProcess, Type: linearizability.Info, F: "x",
		Fields: []linearizability.Field{{Name: "value", Value: linearizability.String(strings.Repeat("x", linearizability.MaxEventBytes))}}}}
	for _, f := range linearizability.Formats() {
		var syntax *linearizability.SyntaxError
		_, err := linearizability.Writer{Format: f}.Write(io.Discard, &long)
		if !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), "h:1: longer than the 1048576 bytes") {
			t.Errorf("%v: an event too long to be read: %v", f, err)
		}
		var b bytes.Buffer
		_, err = linearizability.Writer{Format: f}.Write(&b, &empty)
		if says := f < linearizability.FormatLog; says != (err == nil) {
			t.Errorf("%v: no event: %v", f, err)
		} else if says {
			same(t, "empty", empty, read(t, b.String(), linearizability.Reader{Format: f}), f)
		}
	}
	if _, err := (linearizability.Writer{Format: 99}).Write(io.Discard, &empty); err == nil {
		t.Error("an unknown format was written")
	}
	failed := errors.New("disk full")
	h := read(t, invoke+ok, linearizability.Reader{})
	for _, f := range linearizability.Formats() {
		if _, err := (linearizability.Writer{Format: f}).Write(failing{failed}, &h); !errors.Is(err, failed) {
			t.Errorf("%v: got %v, want the writer's error", f, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestLossesAreNamed(t *testing.T) {
	const text = `{"meta":{"version":1,"drift":0.5}}
{"index":0,"process":0,"type":"invoke","f":"put","key":"x","value":1,"note":"n"}
{"index":2,"process":0,"type":"fail","f":"put","error":"full","note":"n","gone":null}`
	h := read(t, text, linearizability.Reader{})
	for f, want := range map[linearizability.Format][]linearizability.Loss{
		linearizability.FormatJSONLines: nil, linearizability.FormatJSONArray: nil, linearizability.FormatEDN: nil,
		linearizability.FormatEDNVector: nil, linearizability.FormatEDNList: nil, linearizability.FormatOps: nil,
		linearizability.FormatLog:   {{What: "meta"}, {What: "key", Events: 1, Line: 2}, {What: "note", Events: 2, Line: 2}, {What: "index", Events: 1, Line: 3}},
		linearizability.FormatKVLog: {{What: "meta"}, {What: "note", Events: 2, Line: 2}, {What: "index", Events: 1, Line: 3}, {What: "error", Events: 1, Line: 3}},
	} {
		if _, losses := write(t, h, linearizability.Writer{Format: f}); !slices.Equal(losses, want) {
			t.Errorf("%v: losses %v, want %v", f, losses, want)
		}
	}
	if got := fmt.Sprint(linearizability.Loss{What: "meta"}, linearizability.Loss{What: "time", Events: 3}); got != "meta is lost time of 3 events is lost" {
		t.Error(got)
	}
}

// TestDeepestValueIsReadInEveryFormat: what one reader takes, all take.
func TestDeepestValueIsReadInEveryFormat(t *testing.T) {
	nested := func(depth int) string {
		return `{"type":"info","f":"x","value":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	}
	roundTrips(t, read(t, nested(linearizability.MaxDepth), linearizability.Reader{}))
	if _, err := linearizability.Read(strings.NewReader(nested(linearizability.MaxDepth+1)), "h"); err == nil {
		t.Error("a deeper one was read")
	}
}

// TestLargestIntegersAreIntegers in both notations.
func TestLargestIntegersAreIntegers(t *testing.T) {
	for text, want := range map[string]linearizability.Kind{
		"9223372036854775807": linearizability.KindInt, "-9223372036854775808": linearizability.KindInt, "0": linearizability.KindInt, "-1": linearizability.KindInt,
		"9223372036854775808": linearizability.KindNumber, "-9223372036854775809": linearizability.KindNumber, "-0": linearizability.KindNumber,
		"18446744073709551616": linearizability.KindNumber, "99999999999999999999": linearizability.KindNumber,
	} {
		for _, line := range []string{`{"type":"info","f":"x","v":` + text + `}`, `{:type :info, :f :x, :v ` + text + `}`} {
			if v := read(t, line, linearizability.Reader{}).Events[0].Field("v"); v.Kind() != want || v.String() != text {
				t.Errorf("%s is read as %v of kind %d, want kind %d", line, v, v.Kind(), want)
			}
		}
	}
}

// TestNamesAreNotGuessedWrong: a reader that expects the names of the event
// before finds others.
func TestNamesAreNotGuessedWrong(t *testing.T) {
	h := read(t, `{"type":"info","f":"x","a":1,"key":"k"}
{"type":"info","f":"x","ab:c":2,"key:":"k"}
{"type":"info","f":"x","a" :3,"ke":"k"}
{"type":"info","f":"x","a":4,"a2":"k","key":"k"}`, linearizability.Reader{})
	var got []string
	for _, e := range h.Events {
		for _, f := range e.Fields {
			got = append(got, f.Name)
		}
	}
	if want := []string{"a", "key", "ab:c", "key:", "a", "ke", "a", "a2", "key"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
