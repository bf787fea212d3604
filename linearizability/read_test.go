package linearizability_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"fencepost/linearizability"
)

func TestFormatsAreToldByContent(t *testing.T) {
	for text, want := range map[string]linearizability.Format{
		`{"meta":{"version":1}}`:       linearizability.FormatJSONLines,
		"\n  {\"index\":0}":            linearizability.FormatJSONLines,
		"\ufeff{\"index\":0}":          linearizability.FormatJSONLines,
		`[{"index":0}]`:                linearizability.FormatJSONArray,
		`[]`:                           linearizability.FormatJSONArray,
		`{:index 0}`:                   linearizability.FormatEDN,
		`[{:index 0}]`:                 linearizability.FormatEDNVector,
		`({:index 0})`:                 linearizability.FormatEDNList,
		"# fencepost ops: call":        linearizability.FormatOps,
		"; a comment\n{:index 0}":      linearizability.FormatEDN,
		`#jepsen.history.Op{:index 0}`: linearizability.FormatEDN,
		"INFO  jepsen.util - 0\t:invoke\t:read\tnil":     linearizability.FormatLog,
		"2014-01-01 INFO  jepsen.util - 0 :ok :read 1\n": linearizability.FormatLog,
		"":          linearizability.FormatUnknown,
		"\x00\x01":  linearizability.FormatUnknown,
		"some text": linearizability.FormatUnknown,
	} {
		if got := linearizability.Detect([]byte(text)); got != want {
			t.Errorf("Detect(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestOneHistoryInEveryFormat reads the same three events from each.
func TestOneHistoryInEveryFormat(t *testing.T) {
	for name, text := range map[string]string{
		"JSON lines": `{"process":0,"type":"invoke","f":"cas","value":[1,2]}` + "\r\n\n" + `{"type":"info","f":"kill"}` + "\n" + `{"process":0,"type":"ok","f":"cas","value":[1,2]}`,
		"JSON array": `[ {"process":0,"type":"invoke","f":"cas","value":[1,2]},` + "\n" + `{"process":"nemesis","type":"info","f":"kill"} , {"process":0,"type":"ok","f":"cas","value":[1,2]}]`,
		"EDN":        "; three\n{:process 0 :type :invoke, :f :cas, :value [1 2]} #_{:gone 1}\n{:process :nemesis, :type :info, :f :kill}{:process 0,:type :ok,:f :cas,:value (1 2)}",
		"EDN list":   "({:process 0 :type :invoke, :f :cas, :value [1 2]}\n{:process :nemesis, :type :info, :f :kill}; two\n #jepsen.history.Op{:process 0,:type :ok,:f :cas,:value [1,2]})\n",
		"log":        "INFO  jepsen.util - 0\t:invoke\t:cas\t[1 2]\nINFO  jepsen.core - something else\nINFO  jepsen.util - :nemesis :info :kill nil\n\nINFO  jepsen.util - 0  :ok  :cas  [1 2]\n",
	} {
		h, err := linearizability.Read(strings.NewReader(text), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, e := range h.Events {
			got = append(got, fmt.Sprint(e.Index, " ", e.Process, " ", e.Type, " ", e.F, " ", e.Field("value").Elems()))
		}
		if want := "0 0 invoke cas [1 2]|1 -1 info kill []|2 0 ok cas [1 2]"; strings.Join(got, "|") != want {
			t.Errorf("%s: got %s, want %s", name, strings.Join(got, "|"), want)
		}
		if h.Timed() || len(h.Ops()) != 1 {
			t.Errorf("%s: times %v, %d operations: want none and 1", name, h.Timed(), len(h.Ops()))
		}
	}
}

const (
	invoke = `{"index":0,"time":5,"process":0,"type":"invoke","f":"write","value":1}` + "\n"
	ok     = `{"index":1,"time":6,"process":0,"type":"ok","f":"write","value":1}` + "\n"
)

func TestEveryJSONIsRead(t *testing.T) {
	for _, text := range []string{
		`0`, `-0`, `12`, `-3.25`, `1e9`, `1E+9`, `0.5e-7`, `true`, `false`, `null`, `""`, `"\u00e9\n\/\\\""`, `[]`, `[ ]`, `{}`, `{ }`, `[1 , [2,{"a":[]}]]`, ` { "a" : { "b" : 0 } , "" : "x" } `,
	} {
		h, err := linearizability.Read(strings.NewReader(`{"type":"info","f":"x","v":`+text+`}`), "h")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		survives(t, h)
	}
	for _, text := range []string{`01`, `-`, `1.`, `.5`, `1e`, `+1`, `tru`, `nul`, `"\x"`, `"\ud800`, "\"\t\"", `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, `]`, `'x'`, ``} {
		if _, err := linearizability.Read(strings.NewReader(`{"type":"info","f":"x","v":`+text+`}`), "h"); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestMalformedInputIsOneLineWithFileLineAndField(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `h:1: empty`},
		{"blank", " \n\n ", `h:3: empty`},
		{"binary", "\x7fELF\x02\x01\x01\x00", `h:1: no known format`},
		{"prose", "all went well\n", `h:1: no known format`},
		{"truncated line", invoke + `{"index":1,"time":` + "\n", `h:2: field "time": truncated`},
		{"truncated string", `{"index`, `h:1: truncated`},
		{"two events a line", strings.TrimSpace(invoke) + strings.TrimSpace(ok), `h:1: more than one value`},
		{"no object", invoke + "7\n", `h:2: want an object`},
		{"not UTF-8", "{\"f\":\"\xff\"}\n", `h:1: not UTF-8`},
		{"type missing", `{"process":0,"f":"write"}`, `h:1: field "type": missing`},
		{"type unknown", `{"process":0,"type":"done","f":"write"}`, `h:1: field "type": want invoke, ok, fail or info, not "\"done\""`},
		{"type a number", `{"process":0,"type":3,"f":"write"}`, `h:1: field "type"`},
		{"f missing", `{"process":0,"type":"invoke"}`, `h:1: field "f": missing`},
		{"f a list", `{"process":0,"type":"invoke","f":[]}`, `h:1: field "f": want the name`},
		{"process missing", `{"type":"invoke","f":"write"}`, `h:1: field "process": missing`},
		{"process negative", `{"process":-3,"type":"invoke","f":"write"}`, `h:1: field "process": -3 is negative`},
		{"process a fraction", `{"process":1.5,"type":"invoke","f":"write"}`, `h:1: field "process": want an integer`},
		{"time a string", `{"process":0,"type":"invoke","f":"write","time":"now"}`, `h:1: field "time": want an integer`},
		{"time huge", `{"process":0,"type":"invoke","f":"write","time":1e400}`, `h:1: field "time": want an integer`},
		{"time too large", `{"process":0,"type":"invoke","f":"write","time":9223372036854775807}`, `h:1: field "time": 9223372036854775807 is out of range`},
		{"index negative", `{"process":0,"type":"invoke","f":"write","index":-1}`, `h:1: field "index": -1 is out of range`},
		{"token huge", `{"process":0,"type":"invoke","f":"write","token":99999999999999999999}`, `h:1: field "token": want a fencing token`},
		{"token a string", `{"process":0,"type":"invoke","f":"write","token":"7"}`, `h:1: field "token": want a fencing token`},
		{"ttl negative", `{"process":0,"type":"invoke","f":"acquire","ttl":-1}`, `h:1: field "ttl": -1 is out of range`},
		{"owner an object", `{"process":0,"type":"invoke","f":"acquire","owner":{}}`, `h:1: field "owner": want a name`},
		{"a field twice", `{"process":0,"type":"invoke","f":"write","k":1,"k":2}`, `h:1: field "k": appears twice`},
		{"an index twice", invoke + strings.Replace(ok, `"index":1`, `"index":0`, 1), `h:2: field "index": 0 appears twice`},
		{"an index falls", strings.Replace(invoke, `"index":0`, `"index":4`, 1) + ok, `h:2: field "index": 1 comes after 4`},
		{"an index missing", invoke + strings.Replace(ok, `"index":1,`, ``, 1), `h:2: field "index": on some events only`},
		{"a time missing", invoke + strings.Replace(ok, `"time":6,`, ``, 1), `h:2: field "time": on some events only`},
		{"time steps back", invoke + strings.Replace(ok, `"time":6`, `"time":4`, 1), `h:2: field "time": 4 is before 5`},
		{"return before call", strings.Replace(ok, `"index":1`, `"index":0`, 1), `h:1: field "process": 0 returns from "write" without a call`},
		{"return of another f", invoke + strings.Replace(ok, `write`, `read`, 1), `h:2: field "f": "read" returns, but process 0 called "write" in line 1`},
		{"return with another key", `{"process":0,"type":"invoke","f":"get","key":"a"}` + "\n" + `{"process":0,"type":"ok","f":"get","key":"b"}`, `h:2: field "key"`},
		{"two calls open", invoke + strings.Replace(invoke, `"index":0`, `"index":1`, 1), `h:2: field "process": 0 calls "write" while its "write" of line 1 is open`},
		{"after info", `{"meta":{"version":1}}` + "\n" + invoke + strings.Replace(ok, `"ok"`, `"info"`, 1) + strings.Replace(invoke, `"index":0,"time":5`, `"index":2,"time":7`, 1), `h:4: field "process": 0 goes on after`},
		{"meta too late", invoke + `{"meta":{"version":1}}`, `h:2: field "meta": only the first record`},
		{"meta without version", `{"meta":{"drift":0}}`, `h:1: field "version": missing`},
		{"meta from the future", `{"meta":{"version":2}}`, `h:1: field "version": "2" is not a version`},
		{"meta drift", `{"meta":{"version":1,"drift":1.5}}`, `h:1: field "drift": want a rate`},
		{"meta drift too fine", `{"meta":{"version":1,"drift":0.0000000001}}`, `h:1: field "drift": want a rate`},
		{"meta drift huge", `{"meta":{"version":1,"drift":1e999999999}}`, `h:1: field "drift": want a rate`},
		{"meta tokens", `{"meta":{"version":1,"tokens":"odd"}}`, `h:1: field "tokens": want next, rising or none`},
		{"meta anchor", `{"meta":{"version":1,"anchor":7}}`, `h:1: field "anchor": want grant or call`},
		{"meta eps null", `{"meta":{"version":1,"eps":null}}`, `h:1: field "eps": want an integer`},
		{"meta a number", `{"meta":7}`, `h:1: field "meta": want an object`},
		{"million deep JSON", `{"a":` + deep, `h:1: field "a": values nested deeper than 64`},
		{"million deep array", `[{"a":` + deep, `h:1: truncated`},
		{"million deep EDN", `{:a ` + deep, `h:1: values nested deeper than 64`},
		{"million tags", `{:a ` + strings.Repeat("#t ", 300_000), `h:1: values nested deeper than 64`},
		{"million discards", strings.Repeat("#_ ", 300_000), `h:1: values nested deeper than 64`},
		{"array not closed", `[` + strings.TrimSpace(invoke) + `,`, `h:1: truncated`},
		{"array without comma", `[` + strings.TrimSpace(invoke) + strings.TrimSpace(ok) + `]`, `h:1: want a comma`},
		{"array of numbers", `[{"process":0,"type":"invoke","f":"write"},7]`, `h:1: want an object in the array`},
		{"after the array", `[` + strings.TrimSpace(invoke) + `] 7`, `h:1: '7' after the end`},
		{"EDN not closed", "[{:process 0, :type :invoke, :f :read}\n", `h:2: truncated`},
		{"EDN closes nothing", "{:process 0, :type :invoke, :f :read}\n}", `h:2: '}' closes nothing`},
		{"EDN odd map", "{:process 0, :type}", `h:1: a map with a key but no value`},
		{"EDN key", "{0 1}", `h:1: want a map whose keys are keywords`},
		{"EDN number", "{:process 0x7}", `h:1: "0x7" is no number`},
		{"EDN escape", `{:f "\q"}`, `h:1: unknown escape "\\q" in a string`},
		{"EDN surrogate", `{:f "\ud800\u0020"}`, `h:1: half of a surrogate pair`},
		{"EDN char", `{:f \abc}`, `h:1: "\\abc" is no character`},
		{"EDN string not closed", "{:f \"abc\n\n", `h:3: truncated`},
		{"EDN no map", "({:process 0 :type :invoke :f :read} 7)", `h:1: want a map`},
		{"log values", "INFO jepsen.util - 0 :invoke :read", `h:1: want process, type, f and value, not 3 values`},
		{"log truncated", "INFO jepsen.util - 0 :invoke :read nil\nINFO jepsen.ut", `h:2: want a line of a log`},
		{"log value", "INFO jepsen.util - 0 :invoke :read [1", `h:1: truncated`},
	} {
		_, err := linearizability.Read(strings.NewReader(c.text), "h")
		var syntax *linearizability.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%s: got %v, want a SyntaxError", c.name, err)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, c.want) || strings.Contains(text, "\n") || len(text) > 300 {
			t.Errorf("%s: got %q, want one line that begins with %q", c.name, text, c.want)
		}
	}
}

// TestLongEventIsNotHeld feeds an event of 100 MB in each format.
func TestLongEventIsNotHeld(t *testing.T) {
	const size = 100 << 20
	for name, text := range map[string][2]string{
		"JSON lines": {`{"process":0,"type":"invoke","f":"`, "x"},
		"JSON array": {`[{"process":0,"type":"invoke","f":"`, "x"},
		"EDN string": {`{:process 0, :type :invoke, :f "`, "x"},
		"EDN list":   {`{:process 0, :type :invoke, :f [`, "1 "},
		"discarded":  {`#_[`, "1 "},
		"ops":        {`# fencepost ops`, " 1"},
		"log":        {`INFO jepsen.util - 0 :invoke :write `, "1 "},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := &counter{r: io.LimitReader(io.MultiReader(strings.NewReader(text[0]), &repeat{text: text[1]}), size)}
		_, err := linearizability.Read(r, name)
		runtime.ReadMemStats(&after)
		var syntax *linearizability.SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != 1 || !strings.HasPrefix(syntax.Msg, "an event ") {
			t.Errorf("%s: got %v, want an event that is too long in line 1", name, err)
		}
		if held := after.TotalAlloc - before.TotalAlloc; held > 32<<20 || r.n > 4<<20 {
			t.Errorf("%s: %d bytes were read and %d allocated, want few", name, r.n, held)
		}
	}
}

// repeat is a text without an end.
type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestLogHasBareErrors: Jepsen prints the error of an operation as it is.
func TestLogHasBareErrors(t *testing.T) {
	for text, want := range map[string]linearizability.Value{
		``:                             {},
		"\t":                           {},
		"\t:timeout":                   linearizability.Keyword("timeout"),
		"\t[:http 500]":                linearizability.Vector(linearizability.Keyword("http"), linearizability.Int(500)),
		"\tread timed out; no luck":    linearizability.String("read timed out; no luck"),
		"\t\"in quotes\"":              linearizability.String("in quotes"),
		"\t#object[java.lang.X \"x\"]": linearizability.String(`#object[java.lang.X "x"]`),
		"\t#_gone back":                linearizability.String("#_gone back"),
	} {
		h := read(t, "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:fail\t:write\t1"+text+"\n", linearizability.Reader{})
		if got := h.Events[1].Field("error"); !got.Equal(want) {
			t.Errorf("%q is read as %v, want %v", text, got, want)
		}
	}
}

func TestReaderIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `{"index":%d,"type":"info","f":"kill"}`+"\n", i)
	}
	if _, err := (linearizability.Reader{MaxEvents: 99}).Read(strings.NewReader(b.String()), "h"); err == nil || !strings.HasPrefix(err.Error(), "h:100: more than 99 events") {
		t.Errorf("99 events are allowed of 100: %v", err)
	}
	if _, err := (linearizability.Reader{MaxBytes: 1000}).Read(strings.NewReader(b.String()), "h"); err == nil || !strings.Contains(err.Error(), "bound of bytes") {
		t.Errorf("1000 bytes are allowed: %v", err)
	}
	if h, err := (linearizability.Reader{MaxEvents: 100}).Read(strings.NewReader(b.String()), "h"); err != nil || len(h.Events) != 100 {
		t.Errorf("100 events are allowed of 100: %v", err)
	}
}

func TestFailureToReadIsNoSyntaxError(t *testing.T) {
	for _, text := range []string{"", invoke, "[", "{:f ", "INFO jepsen.util - "} {
		broken := errors.New("disk on fire")
		_, err := linearizability.Read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), "h")
		var syntax *linearizability.SyntaxError
		if !errors.Is(err, broken) || errors.As(err, &syntax) {
			t.Errorf("after %q: got %v, want the error of the reader", text, err)
		}
	}
}

func TestJournalMayStepBack(t *testing.T) {
	text := "{:process 0, :type :invoke, :f :read, :time 9}\n{:process 1, :type :invoke, :f :read, :time 8}\n"
	h, err := linearizability.Read(strings.NewReader(text), "h")
	if err != nil || !h.Meta.Journal {
		t.Fatalf("Journal is %v (%v), want true", h.Meta.Journal, err)
	}
	survives(t, h)
	text += "{:process 1, :type :ok, :f :read, :time 7}\n"
	if _, err := linearizability.Read(strings.NewReader(text), "h"); err == nil || !strings.Contains(err.Error(), "of process 1 in line 2") {
		t.Errorf("got %v, want that a process has one time", err)
	}
}

// TestConversionLosesNothing takes each format's own peculiarities through the
// other and back.
func TestConversionLosesNothing(t *testing.T) {
	for _, text := range []string{
		`{"meta":{"version":1,"drift":0.0002,"early":null,"late":5,"eps":3,"tokens":"rising","anchor":"call","lockDelay":7,"renewAfterLapse":true,"first":18446744073709551615,"barrier":true,"host":"n1","seed":[1,{"a b":null}]}}
{"index":7,"time":0,"process":12,"type":"invoke","f":"odd name","Ünïcode":"\u0000\t\"\\ ☃ \ud83d\ude00","error":"held","token":18446744073709551615,"a/b":1,"0":2,"true":true,"nil":null,"x":{":k":":v","#edn":"5","#edn 5":"#edn","":[]}}
{"index":9,"time":2,"type":"info","f":"cut","process":"n1","n":-0.0,"e":1e400,"big":123456789012345678901234567890,"error":"two words"}`,
		`{:process 0, :type :invoke, :f :cas, :value [1 -2.50M 3N 1/2 +7 ##Inf], :k/x {0 :a, "s" "t", :n/kw nil, [1] #{}}, :error [:timeout "x" \newline \a sym]}
{:process :other, :type :info, :f :kill, :value #inst "2014-01-01", :list (1 (2)), :error "timeout", "string key" :v}`,
	} {
		h, err := linearizability.Read(strings.NewReader(text), "h")
		if err != nil {
			t.Fatal(err)
		}
		survives(t, h)
		// Both ways once more, through the other format.
		var edn, json, edn2, json2 bytes.Buffer
		step := func(write func(io.Writer) error, b *bytes.Buffer) {
			if err := write(b); err != nil {
				t.Fatal(err)
			}
			if h, err = linearizability.Read(strings.NewReader(b.String()), "h"); err != nil {
				t.Fatalf("%v in\n%s", err, b.String())
			}
		}
		step(h.WriteEDN, &edn)
		step(h.WriteJSON, &json)
		step(h.WriteEDN, &edn2)
		step(h.WriteJSON, &json2)
		if edn.String() != edn2.String() || json.String() != json2.String() {
			t.Errorf("changes on the way:\n%s\n%s\n%s\n%s", edn.String(), edn2.String(), json.String(), json2.String())
		}
	}
}
