package linearizability_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"fencepost/linearizability"
)

func draw(t *testing.T, file string) string {
	t.Helper()
	v := check(t, filepath.Join(ownHistories, file), fencepost())
	var b bytes.Buffer
	if err := v.WriteHTML(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPictureShowsOperationsBeliefsAndFindings(t *testing.T) {
	page := draw(t, "violated-belief-store-early.jsonl")
	for _, want := range []string{
		"acquire key=shard owner=b#1 ttl=2000000000", // an operation
		"line 5 (1s) to line 6 (1.1s)",               // where and when it was
		`"Tag":"leads shard ","Start"`,               // beliefs that overlap
		`"Tag":"leads shard +","Start"`,
		"b#1 (token 2)",
		"as recorded",
		"held by a#1, token 1", // a state, with the names of the history
		`"Tag":"findings"`,
		"blame the store",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPictureShowsFaults(t *testing.T) {
	v := check(t, filepath.Join(ownHistories, "violated-storage-highest-forgotten.jsonl"), linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelStorage}})
	var b bytes.Buffer
	if err := v.WriteHTML(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Tag":"faults"`, "line 4 (2s) node=disk", "highest 34"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPictureOfWhatHoldsIsDrawnToo(t *testing.T) {
	if page := draw(t, "holds-frozen-client-fenced.jsonl"); !strings.Contains(page, "acquire key=shard owner=c2") {
		t.Error("the page lacks an operation")
	}
}

func TestPictureIsSafeToOpen(t *testing.T) {
	h, err := linearizability.Read(strings.NewReader(`{"process":0,"type":"invoke","f":"read","value":"</script><script>alert(1)</script>"}`+"\n"+
		`{"process":0,"type":"ok","f":"read","value":"</script>"}`), "h")
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(t.Context(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelRegister}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := v.WriteHTML(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script>alert") {
		t.Error("text of the history can run as a script")
	}
}

func TestNothingToDrawIsAnError(t *testing.T) {
	if err := (linearizability.Verdict{}).WriteHTML(t.Context(), &bytes.Buffer{}); err == nil {
		t.Error("an empty verdict is drawn")
	}
}
