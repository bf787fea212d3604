package linearizability_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost/linearizability"
)

func FuzzJSONLines(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(ownHistories, "*.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(`{"type":"info","f":"x","v":{"#edn":"#{1 (2) \\a}"},"#edn 1":{"#edn 1":[]},"error":{"#edn":"\"held\""}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if readAnything(t, linearizability.FormatJSONLines, text) {
			for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
				if strings.Trim(line, " \t\r\n") != "" && !json.Valid([]byte(line)) {
					t.Fatalf("%q was read, but is no JSON", line)
				}
			}
		}
		readAnything(t, linearizability.FormatJSONArray, "["+strings.ReplaceAll(text, "\n", ",")+"]")
	})
}

func FuzzEDN(f *testing.F) {
	for _, text := range []string{
		"[{:process 0, :type :invoke, :f :read, :value nil}\n ; comment\n {:process 0, :type :ok, :f :read, :value 2}]",
		"({:index 0, :time 3, :type :info, :f :start, :process :nemesis} #_ {:x 1})",
		`#jepsen.history.Op{:process 1 :type :invoke :f :cas :value [1 2N 3.5e+7M 1/2 ##Inf \newline \u0041 sym/bol #{1} {"k" (v)}] :error [:x "\u00e9\ud83d\ude00"]}`,
		`{:meta {:version 1, :drift 0.5}} {:process 0, :type :invoke, :f :acquire, :key "k", :owner "a", :ttl 2, :time 0}`,
		`{"f" "read" :type "invoke" :process 3 :value #inst "2014"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { readAnything(t, linearizability.FormatEDN, text) })
}

func FuzzLog(f *testing.F) {
	f.Add("INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:info\t:write\t:timed-out\n")
	f.Add("INFO jepsen.core - x\nINFO  jepsen.util - :nemesis :info :start {:n1 [1 2]}")
	f.Fuzz(func(t *testing.T, text string) { readAnything(t, linearizability.FormatLog, text) })
}

// readAnything checks what holds of every input: it is refused in one line, or
// it is a history that survives conversion and that every model judges or
// refuses, without a panic and in bounded memory.
func readAnything(t *testing.T, format linearizability.Format, text string) bool {
	h, err := linearizability.Reader{Format: format, MaxEvents: 200, MaxBytes: 1 << 16}.Read(strings.NewReader(text), "h")
	if err != nil {
		oneLine(t, err)
		return false
	}
	if err := h.Validate(); err != nil {
		t.Fatalf("was read, but is not valid: %v", err)
	}
	survives(t, h)
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

func oneLine(t *testing.T, err error) {
	t.Helper()
	var syntax *linearizability.SyntaxError
	if !errors.As(err, &syntax) || syntax.Line < 1 || strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("got %q, want a SyntaxError of one line", err)
	}
}
