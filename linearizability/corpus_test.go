package linearizability_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fencepost/linearizability"

	"github.com/google/go-cmp/cmp"
)

// corpus is a folder of histories recorded elsewhere, which are no part of
// fencepost. It has a manifest: file, source, licence, kind, model, verdict,
// number of events.
func corpus(t testing.TB) (dir string, rows [][]string) {
	dir = os.Getenv("FENCEPOST_HISTORIES")
	if dir == "" {
		dir = "../../shared/histories"
	}
	b, err := os.ReadFile(filepath.Join(dir, "manifest.tsv"))
	if err != nil {
		t.Skipf("no recorded histories here; FENCEPOST_HISTORIES names their folder (%v)", err)
	}
	for line := range strings.Lines(string(b)) {
		if row := strings.Split(strings.TrimSpace(line), "\t"); len(row) == 7 {
			rows = append(rows, row)
		}
	}
	return dir, rows[1:]
}

// TestRecordedVerdicts checks every row of the manifest that has a verdict, in
// each spelling that is there. An anomaly that it names must be found by that
// name.
func TestRecordedVerdicts(t *testing.T) {
	dir, rows := corpus(t)
	decided := make(map[string]int)
	for _, row := range rows {
		file, name, expected := row[0], row[4], row[5]
		verdict, rest, _ := strings.Cut(expected, " ")
		want := map[string]linearizability.Result{"valid": linearizability.Holds, "invalid": linearizability.Violated}[verdict]
		if want == "" || strings.HasPrefix(file, "(absent") {
			continue // an empty file, or one that is too large for the folder
		}
		anomaly := strings.Trim(strings.TrimSuffix(rest, " (limit 1)]"), "[]")
		set, o, reading := recordedOptions(t, name)
		if !reading {
			anomaly = ""
		}
		for _, file := range spellings(file) {
			v := checkRecorded(t, filepath.Join(dir, file), o)
			decided[set+" "+verdict]++
			if v.Result != want || reading != (v.Reading != "") {
				t.Errorf("want %s, by a reading that is named: %v: %s", want, reading, v)
			}
			if anomaly != "" && verdict == "invalid" && !found(v, anomaly) {
				t.Errorf("want %s found: %s", anomaly, v)
			}
			if verdict == "valid" && len(v.Findings) > 0 {
				t.Errorf("nothing is wrong with it: %s", v)
			}
		}
	}
	t.Logf("verdicts compared: %v", decided)
	if diff := cmp.Diff(map[string]int{
		"cas-register(0) valid": 56, "cas-register(0) invalid": 4, "cas-register(nil) valid": 12, "cas-register(nil) invalid": 38,
		"kv valid": 3, "kv invalid": 1, "mutex invalid": 2, "owner-mutex invalid": 1, "etcd lock valid": 1, "queen valid": 6, "queen invalid": 14,
	}, decided); diff != "" {
		t.Errorf("verdicts compared, by model (-want +got):\n%s", diff)
	}
}

// recordedOptions are those that a model of the manifest asks for; reading, if a
// vocabulary of its own has to be read as ours.
func recordedOptions(t *testing.T, name string) (set string, o linearizability.Options, reading bool) {
	switch {
	case strings.HasPrefix(name, "kv "):
		name = linearizability.ModelKV
	case strings.HasPrefix(name, "lease ttl=2s, anchor=call"):
		return "etcd lock", linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}, TTL: 2 * time.Second}, true
	case strings.HasPrefix(name, "queen "):
		return "queen", fencepost(), true
	}
	m, err := linearizability.ParseModel(name)
	if err != nil {
		t.Fatal(err)
	}
	return m.String(), linearizability.Options{Model: m}, false
}

// spellings are the files that a row means: x.{a,b} is x.a and x.b.
func spellings(file string) []string {
	stem, list, many := strings.Cut(strings.TrimSuffix(file, "}"), "{")
	if !many {
		return []string{file}
	}
	var files []string
	for ending := range strings.SplitSeq(list, ",") {
		files = append(files, stem+ending)
	}
	return files
}

func found(v linearizability.Verdict, name string) bool {
	return slices.ContainsFunc(v.Findings, func(f linearizability.Finding) bool { return f.Check == name && f.Violates })
}

// checkRecorded is check, of a file in which a process may go on after an
// unknown outcome.
func checkRecorded(t *testing.T, path string, o linearizability.Options) linearizability.Verdict {
	t.Helper()
	h, err := linearizability.Read(strings.NewReader(renumbered(t, path)), path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// renumbered is the text of one of Queen's histories in which a process that
// goes on after an unknown outcome does so under a new number; that of any
// other file.
func renumbered(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(path, "queen") {
		return string(b)
	}
	number := regexp.MustCompile(`(:process |"process": )(\d+)`)
	alias := make(map[string]string)
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		m := number.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: no process in %s", path, line)
		}
		if as, ok := alias[m[2]]; ok {
			line = strings.Replace(line, m[0], m[1]+as, 1)
		}
		out.WriteString(line)
		if strings.Contains(line, ":type :info") || strings.Contains(line, `"type": "info"`) {
			alias[m[2]] = strconv.Itoa(1000 + len(alias))
		}
	}
	return out.String()
}

// TestEtcdLockIsALease: the recording that no mutex explains is that of a
// lease whose TTL is 2 s; of one whose TTL is 10 s it is not.
func TestEtcdLockIsALease(t *testing.T) {
	dir, _ := corpus(t)
	for _, file := range []string{"knossos/data/mutex/bad/etcd.edn", "elle-cli/histories/knossos/mutex/bad/etcd.json"} {
		for ttl, want := range map[time.Duration]linearizability.Result{2 * time.Second: linearizability.Holds, 10 * time.Second: linearizability.Violated} {
			v := check(t, filepath.Join(dir, file), linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}, TTL: ttl})
			if v.Result != want || v.Reading == "" || found(v, "lapsed-early") != (want == linearizability.Violated) {
				t.Errorf("TTL %v: want %s by a reading that is named, and lapsed-early if it is violated: %s", ttl, want, v)
			}
		}
	}
}

// TestTwoMayHoldWhatHasTwoSlots: what a lease with one slot must not do, one
// with two may.
func TestTwoMayHoldWhatHasTwoSlots(t *testing.T) {
	dir, _ := corpus(t)
	for _, file := range spellings("queen-w11/bad-semaphore-records-on-a-lock.{edn,jsonl}") {
		h, err := linearizability.Read(strings.NewReader(renumbered(t, filepath.Join(dir, file))), file)
		if err != nil {
			t.Fatal(err)
		}
		h.Meta.Slots = 2
		v, err := linearizability.Check(t.Context(), h, fencepost())
		if err != nil || v.Result != linearizability.Holds || len(v.Findings) > 0 {
			t.Errorf("want that it holds: %s (%v)", v, err)
		}
	}
}

func check(t *testing.T, path string, o linearizability.Options) linearizability.Verdict {
	t.Helper()
	h, err := linearizability.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRecordedHistoriesSurviveConversion(t *testing.T) {
	dir, _ := corpus(t)
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Dir(path) == filepath.Clean(dir) {
			return err
		}
		if h, err := linearizability.ReadFile(path); err == nil {
			files++
			survives(t, h)
		}
		return nil
	})
	if err != nil || files < 135 {
		t.Errorf("%d files were read, want at least 135 (%v)", files, err)
	}
}

// survives checks that both formats give back what was written.
func survives(t *testing.T, h linearizability.History) {
	t.Helper()
	lines := h
	lines.Notes = nil // what was changed is so in what is written
	lines.Events = append([]linearizability.Event(nil), h.Events...)
	for i := range lines.Events {
		lines.Events[i].Line = 0
	}
	for name, write := range map[string]func(*linearizability.History, *bytes.Buffer) error{
		"JSON": func(h *linearizability.History, b *bytes.Buffer) error { return h.WriteJSON(b) },
		"EDN":  func(h *linearizability.History, b *bytes.Buffer) error { return h.WriteEDN(b) },
	} {
		var b bytes.Buffer
		if err := write(&h, &b); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		got, err := linearizability.Read(&b, h.Name)
		if err != nil {
			t.Errorf("%s cannot be read back: %v\n%s", name, err, head(text))
			continue
		}
		for i := range got.Events {
			got.Events[i].Line = 0
		}
		if reflect.DeepEqual(lines, got) {
			continue // cmp is slow on large histories
		}
		if diff := cmp.Diff(lines, got, cmp.AllowUnexported(linearizability.History{})); diff != "" {
			t.Errorf("%s in %s gives back another history (-want +got):\n%s\n%s", h.Name, name, diff, head(text))
		}
	}
}

func head(s string) string { return s[:min(len(s), 2000)] }
