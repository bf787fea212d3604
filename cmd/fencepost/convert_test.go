package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	tupleEDN = `{:index 0, :time 5, :process 0, :type :invoke, :f :write, :value [x 1], :note "n"}
{:index 1, :time 7, :process 0, :type :ok, :f :write, :value [x 1]}
`
	fieldJSON = `{"meta":{"version":1,"drift":0,"early":0,"late":null,"eps":0,"tokens":"next","anchor":"grant"}}
{"index":0,"time":5,"process":0,"type":"invoke","f":"write","key":"x","value":1,"note":"n"}
{"index":1,"time":7,"process":0,"type":"ok","f":"write","key":"x","value":1}
`
)

// file writes text to a file of its own.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConvertBothWays(t *testing.T) {
	edn := strings.ReplaceAll(tupleEDN, "[x", `["x"`)
	code, out, errs := invoke(t, "convert", "--independent", file(t, "h.edn", edn))
	if code != exitHolds || out != fieldJSON || errs != "" {
		t.Errorf("exit %d, stderr %q:\n%s", code, errs, out)
	}
	to := filepath.Join(t.TempDir(), "out")
	code, out, errs = invoke(t, "convert", "--from", "jsonl", "--to", "edn", "--tuples", file(t, "h.jsonl", fieldJSON), to)
	b, err := os.ReadFile(to)
	if code != exitHolds || out != "" || errs != "" || err != nil || string(b) != edn {
		t.Errorf("exit %d, stdout %q, stderr %q, %v:\n%s", code, out, errs, err, b)
	}
}

func TestConvertSaysWhatIsLost(t *testing.T) {
	path := file(t, "h.jsonl", fieldJSON)
	code, out, errs := invoke(t, "convert", "--to", "log", path)
	if want := "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:ok\t:write\t1\n"; code != exitHolds || out != want {
		t.Errorf("exit %d:\n%s", code, out)
	}
	want := "fencepost: " + path + ": log cannot say everything: "
	for _, loss := range []string{"time of 2 events is lost, first from line 2", "key of 2 events is lost, first from line 2", "note of 1 event is lost, first from line 2"} {
		if !strings.Contains(errs, want+loss+"\n") {
			t.Errorf("does not say %q:\n%s", loss, errs)
		}
	}
	if lines := strings.Count(errs, "\n"); lines != 3 {
		t.Errorf("%d lines, want 3:\n%s", lines, errs)
	}
}

func TestConvertNotesWhatItChanged(t *testing.T) {
	path := file(t, "h.edn", "{:process 3, :type :invoke, :f :read}\n{:process 3, :type :info, :f :read}\n{:process 3, :type :invoke, :f :read}\n")
	code, out, errs := invoke(t, "convert", "--to", "ops", path)
	if code != exitHolds || !strings.HasSuffix(out, "\n0..1\t3\tread\tinfo\n2..\t1000000\tread\tinfo\n") || !strings.Contains(errs, "process 3 in line 3") {
		t.Errorf("exit %d, stderr %q:\n%s", code, errs, out)
	}
}

// TestBadInputLeavesTheOutputAlone also when the output is the input.
func TestBadInputLeavesTheOutputAlone(t *testing.T) {
	bad := fieldJSON + `{"index":2,"time":6,"process":0,"type":"invoke","f":"read"}` + "\n"
	path := file(t, "h.jsonl", bad)
	code, out, errs := invoke(t, "convert", "--to", "edn", path, path)
	want := "fencepost: " + path + `:4: field "time": 6 is before 7`
	if code != exitUnknown || out != "" || !strings.HasPrefix(errs, want) {
		t.Errorf("exit %d, stdout %q, stderr %q, want %q", code, out, errs, want)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != bad {
		t.Errorf("the file has become %q (%v)", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left %v (%v)", left, err)
	}
	// What is good replaces itself.
	path = file(t, "h.jsonl", fieldJSON)
	if code, _, errs := invoke(t, "convert", "--to", "edn", path, path); code != exitHolds {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "{:index 0") {
		t.Errorf("the file has become %q (%v)", b, err)
	}
}

func TestConvertRefuses(t *testing.T) {
	path := file(t, "h.jsonl", fieldJSON)
	for want, args := range map[string][]string{
		`--to: "yaml" is no format of a history: want one of jsonl, json,`: {"--to", "yaml", path},
		`--from: "unknown" is no format`:                                   {"--from", "unknown", path},
		`no such file`:                                                     {path + "x"},
		path + ":1: ":                                                      {"--from", "edn", path},
		path + `:2: field "value": want an independent tuple, [key value], not`: {"--independent", path},
	} {
		code, out, errs := invoke(t, append([]string{"convert"}, args...)...)
		if code != exitUnknown || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q, want %q", args, code, out, errs, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := invokeIn(ctx, "convert", path); code != exitUnknown || !strings.Contains(errs, "context canceled") {
		t.Errorf("interrupted: exit %d, stderr %q", code, errs)
	}
}
