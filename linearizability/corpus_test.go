package linearizability_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
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

func TestRecordedVerdicts(t *testing.T) {
	dir, rows := corpus(t)
	decided := make(map[string]int)
	for _, row := range rows {
		file, name, verdict := row[0], row[4], row[5]
		if strings.HasPrefix(name, "kv ") {
			name = linearizability.ModelKV
		}
		want := map[string]linearizability.Result{"valid": linearizability.Holds, "invalid": linearizability.Violated}[verdict]
		model, err := linearizability.ParseModel(name)
		if err != nil || want == "" || strings.HasPrefix(file, "(absent") {
			continue // of another family, empty, or not there
		}
		v := check(t, filepath.Join(dir, file), linearizability.Options{Model: model})
		if v.Result != want {
			t.Errorf("want %s: %s", want, v)
		}
		decided[model.String()]++
	}
	if diff := cmp.Diff(map[string]int{"cas-register(0)": 60, "cas-register(nil)": 50, "kv": 4, "mutex": 2, "owner-mutex": 1}, decided); diff != "" {
		t.Errorf("verdicts compared, by model (-want +got):\n%s", diff)
	}
}

// TestEtcdLockIsALease: the recording that no mutex explains is that of a
// lease whose TTL is 2 s; of one whose TTL is 10 s it is not.
func TestEtcdLockIsALease(t *testing.T) {
	dir, _ := corpus(t)
	for _, file := range []string{"knossos/data/mutex/bad/etcd.edn", "elle-cli/histories/knossos/mutex/bad/etcd.json"} {
		for ttl, want := range map[time.Duration]linearizability.Result{2 * time.Second: linearizability.Holds, 10 * time.Second: linearizability.Violated} {
			v := check(t, filepath.Join(dir, file), linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}, TTL: ttl})
			if v.Result != want || v.Reading == "" {
				t.Errorf("TTL %v: want %s by a reading that is named: %s", ttl, want, v)
			}
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
