package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/linearizability"
)

const (
	heldBack = `{"index":3,"time":30,"process":1,"type":"fail","f":"acquire","key":"k","owner":"b","error":"held"}` + "\n"
	granted2 = `{"index":3,"time":30,"process":1,"type":"ok","f":"acquire","key":"k","owner":"b","token":2}` + "\n"
)

// tree writes files into a new directory, which it makes the working one.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func someRuns(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "")
	tree(t, map[string]string{
		"runs/b/bad.jsonl":     lease + granted2,
		"runs/a/good.jsonl":    lease + heldBack,
		"runs/broken.jsonl":    lease + `{"index":3,"time":"soon"` + "\n",
		"runs/package.json":    `{"name":"no history","version":1}`,
		"runs/README.md":       "no history",
		"runs/empty.txt":       "",
		"other/register.edn":   "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n",
		"nothing/here.txt":     "at all",
		"runs/b/c/nested.json": lease + heldBack,
	})
}

func TestCheckExpandsDirectoriesAndGlobs(t *testing.T) {
	someRuns(t)
	for _, c := range []struct {
		args    []string
		files   []string
		skipped int
		err     string
	}{
		{[]string{"runs"}, []string{"runs/a/good.jsonl", "runs/b/bad.jsonl", "runs/b/c/nested.json", "runs/broken.jsonl"}, 3, ""},
		{[]string{"runs/**/*.jsonl"}, []string{"runs/a/good.jsonl", "runs/b/bad.jsonl", "runs/broken.jsonl"}, 0, ""},
		{[]string{"runs/*/*.jsonl"}, []string{"runs/a/good.jsonl", "runs/b/bad.jsonl"}, 0, ""},
		{[]string{"**/[cb]*.jsonl"}, []string{"runs/b/bad.jsonl", "runs/broken.jsonl"}, 0, ""},
		{[]string{"runs/**"}, []string{"runs/README.md", "runs/a/good.jsonl", "runs/b/bad.jsonl", "runs/b/c/nested.json", "runs/broken.jsonl", "runs/empty.txt", "runs/package.json"}, 0, ""},
		{[]string{"runs/b/bad.jsonl", "runs/b", "-"}, []string{"runs/b/bad.jsonl", "runs/b/c/nested.json", "-"}, 0, ""},
		{[]string{"runs/b/bad.jsonl", "./runs/a/../b/bad.jsonl"}, []string{"runs/b/bad.jsonl"}, 0, ""},
		{[]string{"no-such-file"}, []string{"no-such-file"}, 0, ""},
		{[]string{"runs/*.edn"}, nil, 0, "matches no file"},
		{[]string{"gone/*.edn"}, nil, 0, "matches no file"},
		{[]string{"runs/[.edn"}, nil, 0, "syntax error"},
		{[]string{"nothing"}, nil, 0, "no history below"},
	} {
		files, skipped, err := historyFiles(c.args)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: error %v, want %q", c.args, err, c.err)
			continue
		}
		if !slices.Equal(files, c.files) || skipped != c.skipped {
			t.Errorf("%v: %v and %d skipped, want %v and %d", c.args, files, skipped, c.files, c.skipped)
		}
	}
}

func TestCheckTellsOfFilesInTheirOrder(t *testing.T) {
	someRuns(t)
	code, out, errs := invoke(t, "check", "runs", "other/register.edn", "--model", "fencepost")
	if code != exitViolated {
		t.Errorf("exit %d", code)
	}
	good, bad := strings.Index(out, "runs/a/good.jsonl: fencepost: holds"), strings.Index(out, "runs/b/bad.jsonl: fencepost: violated")
	if good < 0 || bad < good {
		t.Errorf("not in order:\n%s", out)
	}
	if !strings.HasSuffix(out, "\n5 files: 2 hold, 1 violated, 2 unknown, 3 skipped\n") {
		t.Errorf("no sum:\n%s", out)
	}
	for _, want := range []string{"runs/broken.jsonl:5:", `other/register.edn:1: field "token": missing`} {
		if !strings.Contains(errs, want) {
			t.Errorf("the errors do not name %s:\n%s", want, errs)
		}
	}
}

// TestCheckExitCodes: 2 is what nobody knows, unless --fail-on unknown.
func TestCheckExitCodes(t *testing.T) {
	someRuns(t)
	good, bad, broken := "runs/a/good.jsonl", "runs/b/bad.jsonl", "runs/broken.jsonl"
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{good}, exitHolds},
		{[]string{good, "--fail-on", "unknown"}, exitHolds},
		{[]string{bad}, exitViolated},
		{[]string{broken}, exitUnknown},
		{[]string{broken, "--fail-on", "unknown"}, exitViolated},
		{[]string{broken, bad}, exitViolated},
		{[]string{good, "--at-least", "takeovers=1"}, exitUnknown},
		{[]string{good, "--at-least", "takeovers=1", "--fail-on", "unknown"}, exitViolated},
		{[]string{good, "--at-least", "operations=2,takeovers=0"}, exitHolds},
		{[]string{good, "--at-least", "miracles=1"}, exitUnknown},
		{[]string{good, "--at-least", "writes=-1"}, exitUnknown},
		{[]string{good, "--fail-on", "anything"}, exitUnknown},
		{nil, exitUnknown},
	} {
		if code, out, errs := invoke(t, append([]string{"check"}, c.args...)...); code != c.code {
			t.Errorf("%v exits %d, want %d\n%s%s", c.args, code, c.code, out, errs)
		}
	}
}

func TestCheckSaysNoMoreThanAScreenful(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "")
	var b strings.Builder
	b.WriteString(`{"meta":{"version":1,"late":0}}` + "\n")
	for i := range 100 {
		for j, owner := range []string{"a", "b"} {
			n := 4*i + 2*j
			fmt.Fprintf(&b, `{"index":%d,"time":%d,"process":0,"type":"invoke","f":"acquire","key":"k%d","owner":%q,"ttl":2000}`+"\n", n, n, i, owner)
			fmt.Fprintf(&b, `{"index":%d,"time":%d,"process":0,"type":"ok","f":"acquire","key":"k%d","owner":%q,"token":%d}`+"\n", n+1, n+1, i, owner, j+1)
		}
	}
	tree(t, map[string]string{"bad.jsonl": b.String()})
	code, out, _ := invoke(t, "check", "bad.jsonl")
	if n := strings.Count(out, "\n"); code != exitViolated || n > 22 || !strings.Contains(out, "more lines: --json") {
		t.Errorf("exit %d, %d lines:\n%s", code, n, out)
	}
}

func TestCheckWritesReducedHistories(t *testing.T) {
	someRuns(t)
	code, out, errs := invoke(t, "check", "runs/b", "runs/a/good.jsonl", "--reduce", "small", "--html", "pages")
	if code != exitViolated || !strings.Contains(out, "reduced to 2 operations in "+filepath.Join("small", "runs-b-bad.jsonl.jsonl")) && !strings.Contains(out, "runs-b-bad.jsonl") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	for dir, want := range map[string]string{"small": "runs-b-bad.jsonl.jsonl", "pages": "runs-b-bad.jsonl.html"} {
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 1 || files[0].Name() != want {
			t.Errorf("%s has %v (%v), want %s alone", dir, files, err, want)
		}
	}
	if code, out, errs := invoke(t, "check", filepath.Join("small", "runs-b-bad.jsonl.jsonl")); code != exitViolated {
		t.Errorf("what is left exits %d: %s%s", code, out, errs)
	}
	if code, _, errs := invoke(t, "check", "runs/b/bad.jsonl", "--reduce", "small.edn"); code != exitViolated {
		t.Errorf("exit %d: %s", code, errs)
	}
	if b, err := os.ReadFile("small.edn"); err != nil || linearizability.Detect(b) != linearizability.FormatEDN {
		t.Errorf("no EDN in small.edn: %v", err)
	}
	// A violation stays one where something cannot be written.
	if code, out, errs := invoke(t, "check", "runs/b/bad.jsonl", "--reduce", "no/such/place.edn"); code != exitViolated || errs == "" || !strings.Contains(out, "violated") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestCheckAnnotatesInAGitHubAction(t *testing.T) {
	someRuns(t)
	code, out, _ := invoke(t, "check", "runs/b/bad.jsonl")
	if strings.Contains(out, "::") {
		t.Errorf("exit %d, annotated:\n%s", code, out)
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	if _, out, _ = invoke(t, "check", "runs/b/bad.jsonl"); !strings.Contains(out, "\n::error file=runs/b/bad.jsonl,line=5,title=fencepost%3A not linearizable::") {
		t.Errorf("not annotated:\n%s", out)
	}
	if _, out, _ = invoke(t, "check", "runs/a/good.jsonl", "--at-least", "writes=1"); !strings.Contains(out, "\n::warning file=runs/a/good.jsonl,title=fencepost%3A unknown::") {
		t.Errorf("no warning:\n%s", out)
	}
	if _, out, _ = invoke(t, "check", "runs/b/bad.jsonl", "--no-annotations"); strings.Contains(out, "::") {
		t.Errorf("annotated though it must not be:\n%s", out)
	}
	_, out, errs := invoke(t, "check", "runs/b/bad.jsonl", "--json")
	if strings.Contains(out, "::error") || !strings.Contains(errs, "::error") {
		t.Errorf("annotations are among the JSON:\n%s", out)
	}
}

func TestCheckWritesJUnit(t *testing.T) {
	someRuns(t)
	if code, _, errs := invoke(t, "check", "runs", "--junit", "junit.xml"); code != exitViolated {
		t.Errorf("exit %d: %s", code, errs)
	}
	b, err := os.ReadFile("junit.xml")
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	if err == nil {
		err = xml.Unmarshal(b, &got)
	}
	if err != nil || got.Tests != 4 || got.Failures != 1 || got.Errors != 1 {
		t.Errorf("%+v %v\n%s", got, err, b)
	}
}

// TestCheckJSONIsOfItsSchema: every object that is printed has what the schema
// requires, and nothing that it does not describe.
func TestCheckJSONIsOfItsSchema(t *testing.T) {
	histories, err := filepath.Abs("../../testdata/histories")
	if err != nil {
		t.Fatal(err)
	}
	someRuns(t)
	code, text, _ := invoke(t, "check", "--schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil || code != exitHolds {
		t.Fatalf("exit %d, %v", code, err)
	}
	_, out, _ := invoke(t, "check", "runs", histories, "--json")
	kinds := map[any]int{}
	seen := map[string]bool{}
	dec := json.NewDecoder(strings.NewReader(out))
	for dec.More() {
		var got map[string]any
		if err := dec.Decode(&got); err != nil {
			t.Fatal(err)
		}
		kinds[got["kind"]]++
		def := schema["$defs"].(map[string]any)[got["kind"].(string)]
		if err := conforms(schema, def.(map[string]any), got, "", seen); err != nil {
			t.Errorf("%v: %v", got["file"], err)
		}
	}
	if kinds["file"] < 50 || kinds["summary"] != 1 {
		t.Errorf("objects: %v", kinds)
	}
	for _, path := range []string{".error", ".line", ".findings[].blame", ".partitions[].index", ".notes[]", ".reason"} {
		if !seen[path] {
			t.Errorf("no object has %s: it was not put to the test", path)
		}
	}
}

// conforms checks a value against the part of JSON Schema that check.schema.json
// uses; a field that is not described is an error too.
func conforms(root, schema map[string]any, v any, path string, seen map[string]bool) error {
	seen[path] = true
	if ref, ok := schema["$ref"].(string); ok {
		name, _ := strings.CutPrefix(ref, "#/$defs/")
		def, ok := root["$defs"].(map[string]any)[name].(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no schema %s", path, ref)
		}
		return conforms(root, def, v, path, seen)
	}
	for key := range schema {
		if !slices.Contains([]string{"type", "const", "enum", "minimum", "required", "properties", "items", "description"}, key) {
			return fmt.Errorf("%s: the schema says %s, which this test does not check", path, key)
		}
	}
	if want, ok := schema["const"]; ok && v != want {
		return fmt.Errorf("%s: %v, want %v", path, v, want)
	}
	if want, ok := schema["enum"].([]any); ok && !slices.Contains(want, v) {
		return fmt.Errorf("%s: %v, want one of %v", path, v, want)
	}
	number, _ := v.(float64)
	if low, ok := schema["minimum"].(float64); ok && number < low {
		return fmt.Errorf("%s: %v is below %v", path, v, low)
	}
	is := true
	switch schema["type"] {
	case "string":
		_, is = v.(string)
	case "boolean":
		_, is = v.(bool)
	case "number":
		_, is = v.(float64)
	case "integer":
		_, is = v.(float64)
		is = is && number == float64(int64(number))
	case "array":
		list, ok := v.([]any)
		is = ok
		for _, x := range list {
			if err := conforms(root, schema["items"].(map[string]any), x, path+"[]", seen); err != nil {
				return err
			}
		}
	case "object":
		m, ok := v.(map[string]any)
		is = ok
		for _, name := range schema["required"].([]any) {
			if _, has := m[name.(string)]; !has {
				return fmt.Errorf("%s: no %v", path, name)
			}
		}
		for name, x := range m {
			def, ok := schema["properties"].(map[string]any)[name].(map[string]any)
			if !ok {
				return fmt.Errorf("%s.%s: the schema does not describe it", path, name)
			}
			if err := conforms(root, def, x, path+"."+name, seen); err != nil {
				return err
			}
		}
	}
	if !is {
		return fmt.Errorf("%s: %v is no %v", path, v, schema["type"])
	}
	return nil
}

// TestCheckNeverLosesAViolation: whatever else goes wrong, exit code 1 stays.
func TestCheckNeverLosesAViolation(t *testing.T) {
	someRuns(t)
	bad := "runs/b/bad.jsonl"
	if code, _, errs := invoke(t, "check", bad, "--junit", "no/such/place.xml"); code != exitViolated || errs == "" {
		t.Errorf("no report: exit %d, %s", code, errs)
	}
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"check", bad}, exitViolated},
		{[]string{"check", bad, "--json"}, exitViolated},
		{[]string{"check", "runs/a/good.jsonl"}, exitUnknown},
		{[]string{"check", "runs/a/good.jsonl", "--json"}, exitUnknown},
		{[]string{"convert", "runs/a/good.jsonl"}, exitUnknown},
	} {
		var errs bytes.Buffer
		e := &env{ctx: t.Context(), out: fullDisk{}, err: &errs, clock: func() time.Duration { return 0 }}
		if code := run(e, c.args); code != c.code || !strings.Contains(errs.String(), errFull.Error()) {
			t.Errorf("%v onto a full disk: exit %d, want %d: %s", c.args, code, c.code, &errs)
		}
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestCheckWritesOverNoHistory: an output is never what is checked.
func TestCheckWritesOverNoHistory(t *testing.T) {
	someRuns(t)
	bad := "runs/b/bad.jsonl"
	before, err := os.ReadFile(bad)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--html", "--svg", "--reduce", "--junit"} {
		if code, _, errs := invoke(t, "check", bad, flag, "./runs/a/../b/bad.jsonl"); code != exitUnknown || !strings.Contains(errs, "history") {
			t.Errorf("%s: exit %d, %s", flag, code, errs)
		}
	}
	if after, err := os.ReadFile(bad); err != nil || string(after) != string(before) {
		t.Errorf("it was written over: %v", err)
	}
}
