package linearizability_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fencepost/linearizability"
)

// seed adds all that is written by hand, in the format that is read.
func seed(f *testing.F, format linearizability.Format, more ...string) {
	for name, text := range handwritten {
		h, err := linearizability.Read(strings.NewReader(text), name)
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := (linearizability.Writer{Format: format}).Write(&b, &h); err != nil {
			f.Fatal(err)
		}
		f.Add(b.String())
	}
	for _, text := range more {
		f.Add(text)
	}
}

func FuzzReadJSONLines(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(ownHistories, "*.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	var texts []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	seed(f, linearizability.FormatJSONLines, append(texts,
		`{"type":"info","f":"x","v":{"#edn":"#{1 (2) \\a}"},"#edn 1":{"#edn 1":[]},"error":{"#edn":"\"held\""}}`,
		`{"type":"info","f":"x","v":{"#edn nil":"a"},"w":{"#edn 5":{"#edn":"#_"}}}`)...)
	f.Fuzz(func(t *testing.T, text string) {
		if readAnything(t, linearizability.FormatJSONLines, text) {
			for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
				torn := strings.HasPrefix(line, "{") && !strings.HasSuffix(line, "\n") // the last, which is left out
				if strings.Trim(line, " \t\r\n") != "" && !json.Valid([]byte(line)) && !torn {
					t.Fatalf("%q was read, but is no JSON", line)
				}
			}
		}
	})
}

func FuzzReadJSONArray(f *testing.F) {
	seed(f, linearizability.FormatJSONArray, `[ {"type":"info","f":"x"} , {"type":"info","f":"y","process":"nemesis"} ] `)
	f.Fuzz(func(t *testing.T, text string) {
		if readAnything(t, linearizability.FormatJSONArray, text) && !json.Valid([]byte(strings.TrimPrefix(text, "\ufeff"))) {
			t.Fatal("was read, but is no JSON")
		}
	})
}

func FuzzReadEDN(f *testing.F) {
	seed(f, linearizability.FormatEDN,
		"[{:process 0, :type :invoke, :f :read, :value nil}\n ; comment\n {:process 0, :type :ok, :f :read, :value 2}]",
		"({:index 0, :time 3, :type :info, :f :start, :process :nemesis} #_ {:x 1})",
		`#jepsen.history.Op{:process 1 :type :invoke :f :cas :value [1 2N 3.5e+7M 1/2 ##Inf \newline \u0041 sym/bol #{1} {"k" (v)}] :error [:x "\u00e9\ud83d\ude00"]}`,
		`{:meta {:version 1, :drift 0.5, :reuse true}} {:process 0, :type :invoke, :f :acquire, :key "k", :owner "a", :ttl 2, :time 0}`,
		`{"f" "read" :type "invoke" :process 3 :value #inst "2014"}`,
		`{:process 0, :type :invoke, :f :cas, :value #jepsen.independent/tuple ["x" [1 2]]} {:process 0, :type :info, :f :cas, :value [7 nil]} {:process 0, :type :invoke, :f :read, :value (1 2)}`)
	f.Fuzz(func(t *testing.T, text string) { readAnything(t, linearizability.FormatEDN, text) })
}

func FuzzReadLog(f *testing.F) {
	seed(f, linearizability.FormatLog,
		"INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:info\t:write\t:timed-out\n",
		"INFO jepsen.core - x\nINFO  jepsen.util - :nemesis :info :start {:n1 [1 2]}",
		"INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:fail\t:write\t1\tread timed out; no luck\n")
	f.Fuzz(func(t *testing.T, text string) { readAnything(t, linearizability.FormatLog, text) })
}

func FuzzReadOps(f *testing.F) {
	seed(f, linearizability.FormatOps,
		"@1..@2 0 read ok -> value=1\n@1..@1 1 \"odd f\" fail error=:held\n@1..@3 1 write ok value=2\n@4.. 2 write info\n@4 - cut fault process=:n1\n",
		"1..4 0 read ok\n\n# comment\n2..3 1 a/b info \"a b\"=[1 \"x y\"] -> \"->\"=-1 token=18446744073709551615\n5 - stop fault type=:ok\n")
	f.Fuzz(func(t *testing.T, text string) { readAnything(t, linearizability.FormatOps, text) })
}

// readAnything checks what holds of every input: it is refused in one line, or
// it is a history that every format gives back as far as it can say it, and that
// every model judges or refuses; without a panic and in bounded memory.
func readAnything(t *testing.T, format linearizability.Format, text string) bool {
	r := linearizability.Reader{Format: format, MaxEvents: 200, MaxBytes: 1 << 16}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, err := r.Read(strings.NewReader(text), "h")
	runtime.ReadMemStats(&after)
	if made, bound := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+512*len(text)); made > bound {
		t.Fatalf("%d bytes were allocated for a text of %d: want at most %d", made, len(text), bound)
	}
	if err != nil {
		oneLine(t, err)
		return false
	}
	if err := h.Validate(); err != nil {
		t.Fatalf("was read, but is not valid: %v", err)
	}
	for _, f := range linearizability.Formats() {
		comesBack(t, h, sayable(h, f), f, false)
	}
	r.Independent = true
	if h, err := r.Read(strings.NewReader(text), "h"); err == nil && !deep(h) {
		for _, f := range linearizability.Formats() {
			comesBack(t, h, h, f, true)
		}
	}
	if _, _, err := linearizability.Choose(&h); err != nil {
		var open *linearizability.AmbiguousError
		if !errors.As(err, &open) {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"register(nil)", "cas-register(0)", "mutex", "owner-mutex", "kv", "lease", "storage", "fencepost",
		"multi-register(0)", "reentrant-mutex(2)", "fenced-mutex", "reentrant-fenced-mutex", "permits(2)", "cas-storage"} {
		model, err := linearizability.ParseModel(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := linearizability.Check(t.Context(), h, linearizability.Options{Model: model, TTL: 2, Memory: 1 << 16})
		if err != nil {
			oneLine(t, err)
			continue
		}
		for _, p := range v.Partitions {
			if strings.Contains(p.Reason, "the model failed") {
				t.Fatalf("%s: %s", name, p.Reason)
			}
		}
	}
	return true
}

// comesBack checks that h, written in a format, is read as want, and written
// again is the same text.
func comesBack(t *testing.T, h, want linearizability.History, f linearizability.Format, tuples bool) {
	t.Helper()
	if f >= linearizability.FormatLog && len(h.Events) == 0 {
		return // cannot be written
	}
	w, r := linearizability.Writer{Format: f, Independent: tuples}, linearizability.Reader{Format: f, Independent: tuples}
	if f >= linearizability.FormatLog {
		want = sayable(want, f)
		if tuples {
			want = withKeys(want, h)
		}
	}
	text, _ := write(t, h, w)
	got := read(t, text, r)
	if !same(t, f.String(), want, got, f) {
		t.Fatal(text)
	}
	if again, losses := write(t, got, w); again != text || losses != nil {
		t.Fatalf("%v: written again, with losses %v, it is\n%s\nand not\n%s", f, losses, again, text)
	}
}

// withKeys puts the keys back that tuples carry in any format.
func withKeys(h, from linearizability.History) linearizability.History {
	for i := range h.Events {
		if e := &h.Events[i]; e.Process != linearizability.NoProcess && !e.Has("key") {
			e.Fields = append(slices.Clone(e.Fields), linearizability.Field{Name: "key", Value: from.Events[i].Field("key")})
		}
	}
	return h
}

// deep reports whether a value of h is so deep that it fits in no tuple.
func deep(h linearizability.History) bool {
	depth := func(v linearizability.Value) int {
		text := v.String()
		return strings.Count(text, "[") + strings.Count(text, "(") + strings.Count(text, "{") + strings.Count(text, "#")
	}
	for i := range h.Events {
		if v := h.Events[i].Field("value"); depth(v) >= linearizability.MaxDepth {
			return true
		}
	}
	return false
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	var syntax *linearizability.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line < 1 || strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("got %q, want a SyntaxError of one line", err)
	}
}
