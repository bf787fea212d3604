package linearizability_test

import (
	"fmt"
	"strings"
	"testing"

	"fencepost/linearizability"
)

// summary is index, time, process, type and f of each event, and its fields.
func summary(h linearizability.History) string {
	var b strings.Builder
	for _, e := range h.Events {
		time := "-"
		if e.Time != linearizability.NoTime {
			time = fmt.Sprint(e.Time)
		}
		fmt.Fprintf(&b, "%d %s %d %v %s", e.Index, time, e.Process, e.Type, e.F)
		for _, f := range e.Fields {
			fmt.Fprintf(&b, " %s=%v", f.Name, f.Value)
		}
		fmt.Fprintf(&b, " (line %d)\n", e.Line)
	}
	return b.String()
}

func TestOperationsOfOneLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"indexes and times", "# fencepost ops: with a comment\nmeta\tversion=1 eps=2\n0@10..3@40 0 acquire ok key=\"k\" ttl=5 -> token=1\n1@20..  1 get info key=\"k\"\n2@30 - cut fault node=:n1\n4@50..5@60\t0\t\"re new\"\tfail\t-> error=:lost\n", `0 10 0 invoke acquire key="k" ttl=5 (line 3)
1 20 1 invoke get key="k" (line 4)
2 30 -1 info cut node=:n1 (line 5)
3 40 0 ok acquire token=1 (line 3)
4 50 0 invoke re new (line 6)
5 60 0 fail re new error=:lost (line 6)
`},
		{"indexes alone", "# fencepost ops\n1..4 0 read ok -> value=1\n2..3 1 write info value=2 -> value=2\n", `1 - 0 invoke read (line 2)
2 - 1 invoke write value=2 (line 3)
3 - 1 info write value=2 (line 3)
4 - 0 ok read value=1 (line 2)
`},
		// Two ends at one instant: nobody knows which came first, so they overlap,
		// except within a process.
		{"times alone", "# fencepost ops\n@1..@2 0 read ok\n@1..@5 1 read ok\n@2..@2 2 read ok\n@2..@3 0 read ok\n@3 - cut fault\n", `0 1 0 invoke read (line 2)
1 1 1 invoke read (line 3)
2 2 2 invoke read (line 4)
3 2 0 ok read (line 2)
4 2 0 invoke read (line 5)
5 2 2 ok read (line 4)
6 3 -1 info cut (line 6)
7 3 0 ok read (line 5)
8 5 1 ok read (line 3)
`},
		{"returns at one instant", "# fencepost ops\n@1..@9 2 read ok\n@2..@9 0 read ok\n@3..@9 3 read ok\n@4..@9 1 read ok\n", `0 1 2 invoke read (line 2)
1 2 0 invoke read (line 3)
2 3 3 invoke read (line 4)
3 4 1 invoke read (line 5)
4 9 2 ok read (line 2)
5 9 0 ok read (line 3)
6 9 3 ok read (line 4)
7 9 1 ok read (line 5)
`},
	} {
		if got := summary(read(t, c.text, linearizability.Reader{})); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestOperationsAreWrittenToBeRead(t *testing.T) {
	h := read(t, handwritten["lease"], linearizability.Reader{})
	got, _ := write(t, h, linearizability.Writer{Format: linearizability.FormatOps})
	_, got, _ = strings.Cut(got, "\n")
	want := "meta\tversion=1 drift=0.0002 early=0 late=nil eps=0 tokens=\"next\" anchor=\"grant\"\n" +
		"0@0..1@900\t0\tacquire\tok\tkey=\"shard-1\" owner=\"a#1\" ttl=2000000000 -> key=\"shard-1\" owner=\"a#1\" token=10\n" +
		"2@900..4@1000\t1\tacquire\tfail\tkey=\"shard-1\" owner=\"b#1\" -> key=\"shard-1\" owner=\"b#1\" error=:held holder=\"a#1\"\n" +
		"3@950\t-\tcut\tfault\tnode=\"n1\"\n" +
		"5@1001..\t1\tget\tinfo\tkey=\"shard-1\"\n" +
		"6@1001..7@1002\t2\trenew\tinfo\tkey=\"shard-1\" owner=\"a#1\" token=10 -> error=\"timed out\"\n" +
		"8@1003..\t3\trelease\tinfo\tkey=\"shard-1\" owner=\"a#1\" token=10\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMalformedOperations(t *testing.T) {
	for text, want := range map[string]string{
		"0..1 0 read":                        `h:2: want instants, process, f and outcome`,
		"0..1":                               `h:2: want instants, process, f and outcome`,
		"0..1 0 read done":                   `h:2: field "outcome": want ok, fail, info or fault, not "done"`,
		"0..1 0 read invoke":                 `h:2: field "outcome": want ok, fail, info or fault, not "invoke"`,
		"0.. 0 read ok":                      `h:2: field "outcome": "ok" without the instant of the return`,
		"0..1 0 read fault":                  `h:2: want call..return, a process and its outcome`,
		"0..1 - read ok":                     `h:2: want call..return, a process and its outcome`,
		"0 0 read ok":                        `h:2: want call..return, a process and its outcome`,
		"x..1 0 read ok":                     `h:2: field "index": "x" is no instant`,
		"0..-1 0 read ok":                    `h:2: field "index": "-1" is no instant`,
		"0@..1@2 0 read ok":                  `h:2: field "time": "0@" is no instant`,
		"..1 0 read ok":                      `h:2: field "index": "" is no instant`,
		"5..4 0 read ok":                     `h:2: returns at "4", before its call at "5"`,
		"0..1 a read ok":                     `h:2: field "process": want an integer from 0, or - for a fault, not "a"`,
		"0..1 0 :read ok":                    `h:2: field "f": ":read": want it in quotes`,
		"0..1 0 \"read ok":                   `h:2: field "f": truncated`,
		"0..1 0 read ok value":               `h:2: "value" is no field: want name=value`,
		"0..1 0 read ok \"value\" 1":         `h:2: field "value": want an equals sign`,
		"0..1 0 read ok value=":              `h:2: field "value": truncated`,
		"0..1 0 read ok value=[1":            `h:2: field "value": truncated`,
		"0..1 0 read ok value=1\"a\"=2":      `h:2: field "value": want a space after the value`,
		"0..1 0 read ok value=1 value=2":     `h:2: field "value": appears twice`,
		"0..1 0 read ok type=1":              `h:2: field "type": is a column`,
		"0..1 0 read ok -> index=1":          `h:2: field "index": is a column`,
		"0..1 0 read ok -> -> a=1":           `h:2: two arrows`,
		"0.. 0 read info -> a=1":             `h:2: fields of a return, but no instant of one`,
		"meta version=2":                     `h:2: field "version": "2" is not a version`,
		"meta version=1 -> a=1":              `h:2: a meta line has no return`,
		"0..2 0 read ok\n1..3 0 read ok":     `h:3: field "process": 0 calls "read" while its "read" of line 2 is open`,
		"3..4 0 read ok\n1..2 1 read ok":     `h:3: field "index": 1 comes after 3`,
		"0@1..1@2 0 read ok\n2..3 1 read ok": `h:3: field "time": on some events only`,
		"0@5..1@6 0 read ok\n2@1.. 1 a info": `h:3: field "time": 1 is before 6`,
	} {
		h, err := linearizability.Read(strings.NewReader("# fencepost ops\n"+text), "h")
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s\n%s", text, err, want, summary(h))
		}
	}
}

// TestProcessesThatGoOnAfterInfo: a file of somebody else's may have them. One
// whose meta promises a history may not, unless it says so.
func TestProcessesThatGoOnAfterInfo(t *testing.T) {
	const lines = `{"process":3,"type":"invoke","f":"read"}
{"process":1000000,"type":"invoke","f":"read"}
{"process":3,"type":"info","f":"read"}
{"process":3,"type":"invoke","f":"write"}
{"process":3,"type":"info","f":"write"}
{"process":1000001,"type":"invoke","f":"get"}
{"process":3,"type":"invoke","f":"cas"}
{"process":1000000,"type":"ok","f":"read"}
{"process":1000001,"type":"info","f":"get"}
{"process":3,"type":"ok","f":"cas"}
`
	want := []int64{3, 1000000, 3, 1000001, 1000001, 1000002, 1000003, 1000000, 1000002, 1000003}
	for _, meta := range []string{"", `{"meta":{"version":1,"reuse":true}}` + "\n"} {
		h := read(t, meta+lines, linearizability.Reader{})
		for i, e := range h.Events {
			if e.Process != want[i] {
				t.Errorf("event %d is of process %d, want %d", i, e.Process, want[i])
			}
		}
		if len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "2 in all") || !strings.Contains(h.Notes[0], "process 3 in line") {
			t.Errorf("notes %q", h.Notes)
		}
		if err := h.Validate(); err != nil {
			t.Error(err)
		}
		// What is written needs no excuse.
		text, _ := write(t, h, linearizability.Writer{})
		if again := read(t, text, linearizability.Reader{}); again.Notes != nil || strings.Contains(text, "reuse") {
			t.Errorf("notes %q of\n%s", again.Notes, text)
		}
	}
	for _, meta := range []string{`{"meta":{"version":1}}`, `{"meta":{"version":1,"reuse":false}}`} {
		_, err := linearizability.Read(strings.NewReader(meta+"\n"+lines), "h")
		if err == nil || !strings.HasPrefix(err.Error(), `h:5: field "process": 3 goes on after its operation of line 4 ended as info`) {
			t.Errorf("%s: got %v", meta, err)
		}
	}
	// A second answer is no new call.
	_, err := linearizability.Read(strings.NewReader(`{"process":3,"type":"invoke","f":"read"}
{"process":3,"type":"info","f":"read"}
{"process":3,"type":"ok","f":"read"}`), "h")
	if err == nil || !strings.HasPrefix(err.Error(), `h:3: field "process": 3 goes on after`) {
		t.Errorf("a late answer: %v", err)
	}
}

// TestNemesisIsFaults whatever the types of its events.
func TestNemesisIsFaults(t *testing.T) {
	h := read(t, handwritten["nemesis"], linearizability.Reader{})
	want := `0 - -1 info start value=nil type=:invoke (line 1)
1 - -1 info start value={"n1" #{"n2"}} (line 1)
2 - -1 info stop process="chaos monkey" value=:all type=:ok (line 2)
3 - -1 info stop (line 2)
`
	if got := summary(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for f, first := range map[linearizability.Format]string{
		linearizability.FormatJSONLines: `{"index":0,"process":"nemesis","f":"start","value":null,"type":"invoke"}`,
		linearizability.FormatJSONArray: `[{"index":0,"process":"nemesis","f":"start","value":null,"type":"invoke"},`,
		linearizability.FormatEDN:       `{:index 0, :process :nemesis, :f :start, :value nil, :type :invoke}`,
		linearizability.FormatLog:       "INFO  jepsen.util - :nemesis\t:invoke\t:start\tnil",
		linearizability.FormatKVLog:     `{:process :nemesis, :type :invoke, :f :start, :value nil}`,
		linearizability.FormatOps:       "0\t-\tstart\tfault\tvalue=nil type=:invoke",
	} {
		if text, _ := write(t, h, linearizability.Writer{Format: f}); !strings.Contains("\n"+text, "\n"+first+"\n") {
			t.Errorf("%v: has no line %s\n%s", f, first, text)
		}
	}
}

// TestPorcupinesShapes: the lines of its tests come back byte by byte.
func TestPorcupinesShapes(t *testing.T) {
	for f, text := range map[linearizability.Format]string{
		linearizability.FormatLog:   "INFO  jepsen.util - 0\t:invoke\t:read\tnil\nINFO  jepsen.util - 3\t:invoke\t:cas\t[1 4]\nINFO  jepsen.util - 0\t:fail\t:read\t:timed-out\nINFO  jepsen.util - 3\t:info\t:cas\t:timed-out\n",
		linearizability.FormatKVLog: "{:process 0, :type :invoke, :f :append, :key \"0\", :value \"x 0 0 y\"}\n{:process 1, :type :invoke, :f :get, :key \"7\", :value nil}\n{:process 1, :type :ok, :f :get, :key \"7\", :value \"\"}\n{:process 0, :type :ok, :f :append, :key \"0\", :value \"x 0 0 y\"}\n",
	} {
		got, losses := write(t, read(t, text, linearizability.Reader{}), linearizability.Writer{Format: f})
		if got != text || losses != nil {
			t.Errorf("%v: got\n%swith losses %v, want\n%s", f, got, losses, text)
		}
	}
}
