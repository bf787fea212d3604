package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// invoke runs the command line and gives what it printed.
func invoke(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return invokeIn(t.Context(), args...)
}

func invokeIn(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(&env{ctx: ctx, out: &o, err: &e, clock: func() time.Duration { return 0 }}, args)
	return code, o.String(), e.String()
}

const schedules = "../../testdata/schedules/"

func TestVerifyHolds(t *testing.T) {
	code, out, errs := invoke(t, "verify", "--schedules", "200", "--seed", "5", "--no-mutants")
	if code != exitHolds || errs != "" {
		t.Fatalf("exit %d, stderr %q\n%s", code, errs, out)
	}
	for _, part := range []string{"seed 5", "200 schedules", "token-monotonicity", "lockstep", "holds"} {
		if !strings.Contains(out, part) {
			t.Errorf("does not print %q:\n%s", part, out)
		}
	}
	if _, again, _ := invoke(t, "verify", "--schedules", "200", "--seed", "5", "--no-mutants"); again != out {
		t.Errorf("the same seed printed\n%s\nthen\n%s", out, again)
	}
}

func TestVerifyJSON(t *testing.T) {
	code, out, _ := invoke(t, "verify", "--schedules", "50", "--seed", "5", "--no-mutants", "--json")
	var got sweepJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitHolds {
		t.Fatalf("exit %d, %v:\n%s", code, err, out)
	}
	if got.Verdict != "holds" || got.Seed != 5 || got.Schedules != 50 || got.Histories != 50 || len(got.Invariants) != 11 || got.Failure != nil {
		t.Errorf("got %+v", got)
	}
	if float64(got.Effective) < 0.9*float64(got.Actions) || got.Actions < 50*100 {
		t.Errorf("%d of %d actions effective", got.Effective, got.Actions)
	}
}

// TestNothingHappenedIsUnknown: an invariant that nothing put to the test does
// not hold.
func TestNothingHappenedIsUnknown(t *testing.T) {
	code, out, _ := invoke(t, "verify", "--schedules", "1", "--steps", "1", "--seed", "5", "--no-mutants", "--json")
	var got sweepJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if code != exitUnknown || got.Verdict != "unknown" || got.Invariants[0].Untested == "" {
		t.Errorf("exit %d after one schedule: %+v", code, got)
	}
}

func TestVerifyJSONIsOneObject(t *testing.T) {
	code, out, errs := invoke(t, "verify", "--schedules", "300", "--seed", "5", "--json")
	dec := json.NewDecoder(strings.NewReader(out))
	var got sweepJSON
	if err := dec.Decode(&got); err != nil || code != exitHolds || len(got.Mutants) < 24 || dec.More() {
		t.Errorf("exit %d, %v, %d planted bugs, more: %v\n%s", code, err, len(got.Mutants), dec.More(), errs)
	}
}

func TestInterruptedIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"verify", "--no-mutants"}, {"soak", "1h"}, {"mutants"}} {
		if code, out, _ := invokeIn(ctx, args...); code != exitUnknown || strings.Contains(out, "MISSED") {
			t.Errorf("%v exits %d after an interrupt:\n%s", args, code, out)
		}
	}
}

func TestSoakEndsInTime(t *testing.T) {
	// In so short a time it may not meet everything that it must.
	code, out, errs := invoke(t, "soak", "50ms", "--seed", "9")
	if code == exitViolated || !strings.Contains(out, "seed 9") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}

func TestMutantsAreAllCaught(t *testing.T) {
	code, out, errs := invoke(t, "mutants", "--json")
	if code != exitHolds {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	var actions []int
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var row mutantJSON
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if !row.Caught || row.Invariant == 0 || row.Schedules < 1 || row.Schedules > 10_000 || row.Actions < 1 || row.Actions > 20 {
			t.Errorf("%+v", row)
		}
		actions = append(actions, row.Actions)
	}
	if slices.Sort(actions); len(actions) < 24 || actions[len(actions)/2] > 9 {
		t.Errorf("%d rows with lengths %v; want at least 24 with at most 9 in the median", len(actions), actions)
	}
}

func TestMutantsByName(t *testing.T) {
	if code, out, _ := invoke(t, "mutants", "unfenced"); code != exitHolds || !strings.Contains(out, "storage-safety") || strings.Contains(out, "no-barrier") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, _, errs := invoke(t, "mutants", "no-such-bug"); code != exitUnknown || !strings.Contains(errs, "unfenced") {
		t.Errorf("an unknown name exits %d: %s", code, errs)
	}
	if code, out, _ := invoke(t, "mutants", "--list"); code != exitHolds || !strings.Contains(out, "Seen: ") {
		t.Errorf("--list exits %d:\n%s", code, out)
	}
}

func TestReplay(t *testing.T) {
	red := filepath.Join(t.TempDir(), "red.json")
	b, err := os.ReadFile(schedules + "frozen-client-mutant.json")
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(`"expect": "storage-safety"`), []byte(`"expect": "none"`), 1)
	if err := os.WriteFile(red, b, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"as expected", []string{schedules + "frozen-client.json"}, exitHolds, []string{"every invariant holds"}},
		{"a planted bug, as expected", []string{schedules + "frozen-client-mutant.json"}, exitHolds, []string{"VIOLATED: storage-safety", "As expected"}},
		{"expects none and fails", []string{red}, exitViolated, []string{"NOT as expected", "VIOLATED"}},
		{"another subject", []string{"--subject", "mutant:unfenced", schedules + "frozen-client.json"}, exitViolated, []string{"storage-safety"}},
		{"every event", []string{"--trace", schedules + "frozen-client.json"}, exitHolds, []string{"granted token 34"}},
		{"7-bit", []string{"--ascii", schedules + "frozen-client.json"}, exitHolds, []string{"C1"}},
		{"no such file", []string{"no-such-file.json"}, exitUnknown, nil},
		{"no such subject", []string{"--subject", "mutant:nobody", schedules + "frozen-client.json"}, exitUnknown, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := invoke(t, append([]string{"replay"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit %d, want %d: %s\n%s", code, c.code, errs, out)
			}
			for _, part := range c.says {
				if !strings.Contains(out, part) {
					t.Errorf("does not print %q:\n%s", part, out)
				}
			}
			if c.code == exitUnknown && strings.Count(strings.TrimSpace(errs), "\n") != 0 {
				t.Errorf("the error has more than one line:\n%s", errs)
			}
			if c.name == "7-bit" && strings.ContainsFunc(out, func(r rune) bool { return r > 126 }) {
				t.Errorf("not 7-bit:\n%s", out)
			}
		})
	}
}

func TestReplayJSONAndHTML(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, errs := invoke(t, "replay", "--json", "--html", page, schedules+"frozen-client-mutant.json")
	var got replayJSON
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitHolds {
		t.Fatalf("exit %d, %v: %s\n%s", code, err, errs, out)
	}
	if !got.AsFiled || !slices.Equal(got.Violated, []string{"storage-safety"}) || got.At != int64(11*time.Second) {
		t.Errorf("got %+v", got)
	}
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("<svg")) {
		t.Errorf("no picture in the page: %v", err)
	}
}

func TestScenarios(t *testing.T) {
	if code, out, errs := invoke(t, "scenarios"); code != exitHolds || !strings.Contains(out, "frozen-client") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	if code, out, errs := invoke(t, "scenarios", "run"); code != exitHolds || strings.Contains(out, "NOT as expected") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	if code, out, _ := invoke(t, "scenarios", "run", "frozen-client"); code != exitHolds || !strings.Contains(out, "33") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, _, errs := invoke(t, "scenarios", "run", "nobody"); code != exitUnknown || !strings.Contains(errs, "nobody") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

const lease = `{"meta":{"version":1,"drift":0,"late":0,"tokens":"next"}}
{"index":0,"time":0,"process":0,"type":"invoke","f":"acquire","key":"k","owner":"a","ttl":2000}
{"index":1,"time":10,"process":0,"type":"ok","f":"acquire","key":"k","owner":"a","token":1}
{"index":2,"time":20,"process":1,"type":"invoke","f":"acquire","key":"k","owner":"b","ttl":2000}
`

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.jsonl", lease+`{"index":3,"time":30,"process":1,"type":"fail","f":"acquire","key":"k","owner":"b","error":"held"}`+"\n")
	bad := file("bad.jsonl", lease+`{"index":3,"time":30,"process":1,"type":"ok","f":"acquire","key":"k","owner":"b","token":2}`+"\n")
	broken := file("broken.jsonl", lease+`{"index":3,"time":"soon"`+"\n")
	page := filepath.Join(dir, "page.html")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"holds", []string{good}, exitHolds, "holds"},
		{"violated", []string{bad}, exitViolated, "violated"},
		{"the worst counts", []string{good, bad, broken}, exitViolated, "violated"},
		{"malformed", []string{broken}, exitUnknown, ""},
		{"no such model", []string{"--model", "pudding", good}, exitUnknown, ""},
		{"drift that is none", []string{"--drift", "2", good}, exitUnknown, ""},
		{"as JSON", []string{"--json", bad}, exitViolated, `"verdict":"violated"`},
		{"drawn", []string{"--html", page, bad}, exitViolated, "violated"},
		{"no such file", []string{filepath.Join(dir, "nothing")}, exitUnknown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := invoke(t, append([]string{"check"}, c.args...)...)
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, want %d: %s\n%s", code, c.code, errs, out)
			}
			if c.name == "malformed" && !strings.Contains(errs, broken+":5:") {
				t.Errorf("the error does not name file and line: %s", errs)
			}
		})
	}
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("<html")) {
		t.Errorf("no page: %v", err)
	}
}

func TestHelpIsWorthReading(t *testing.T) {
	for _, cmd := range []string{"verify", "soak", "replay", "scenarios", "mutants", "check", "explore"} {
		code, out, _ := invoke(t, cmd, "--help")
		if code != exitHolds || len(out) < 200 {
			t.Errorf("%s --help exits %d and prints %q", cmd, code, out)
		}
	}
	if code, _, errs := invoke(t, "nonsense"); code != exitUnknown || errs == "" {
		t.Errorf("an unknown command exits %d: %q", code, errs)
	}
}
