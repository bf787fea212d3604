package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/script"
)

func TestWrongStoresAreAllConvicted(t *testing.T) {
	code, out, errs := invoke(t, "stores", "--json")
	if code != exitHolds {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	rows := map[string]int{}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var row storesJSON
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		if !row.Convicted || row.Rule == "" || row.Lines < 1 || row.Lines > 10 || row.Breaks == "" || row.Seen == "" {
			t.Errorf("%+v", row)
		}
		rows[row.Kind]++
	}
	if rows["store"] < 25 || rows["storage"] < 10 {
		t.Errorf("%v", rows)
	}
}

func TestAWrongStoreByNameIsToldAsItsAuthorWouldReadIt(t *testing.T) {
	code, out, _ := invoke(t, "stores", "renewal-shortens", "unfenced")
	for _, want := range []string{"Seen: ", "Convicted by rules/renew-with-a-shorter-ttl-never-shortens:", "never-shortens: ", "◄", "rule:   ", "read:   go doc ", "Convicted by rules/lower-token-is-refused:"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != exitHolds {
		t.Errorf("exit %d", code)
	}
	if code, _, errs := invoke(t, "stores", "no-such-store"); code != exitUnknown || !strings.Contains(errs, "renewal-shortens") {
		t.Errorf("an unknown name exits %d: %s", code, errs)
	}
	if code, out, _ := invoke(t, "stores", "--list"); code != exitHolds || !strings.Contains(out, "Convicted by: ") {
		t.Errorf("--list exits %d:\n%s", code, out)
	}
}

// A script of somebody's own store is shown beside what is right.
func TestReplayShowsAScriptBesideARightStore(t *testing.T) {
	var wrong mutant.WrongStore
	for _, w := range mutant.WrongStores() {
		if w.Name == "renewal-shortens" {
			wrong = w
		}
	}
	r := script.Run(wrong.Open, kit.Options{}, script.Parse("acquire a 20s\nrenew a 10s\nadvance 10s\nacquire b 10s"))
	if r.Breach == nil {
		t.Fatal("it breaks nothing")
	}
	file := script.File(r, "never-shortens", "TestMine", kit.Options{})
	path := filepath.Join(t.TempDir(), file.Name)
	if err := os.WriteFile(path, file.Data, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := invoke(t, "replay", path)
	if code != exitHolds || errs != "" || !strings.Contains(out, "acquire b 10s             granted: token 2 for 10s                  refused: a holds it under token 1 for another 10s") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	code, out, _ = invoke(t, "replay", "--json", path)
	var got struct {
		Name  string
		Lines []struct{ Step, Answered, Right string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitHolds || got.Name != "never-shortens" || len(got.Lines) != 4 || got.Lines[3].Answered == got.Lines[3].Right {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	// By a right store on a clock like that of the one that was checked.
	o := kit.Options{SteadyClock: true}
	r = script.Run(mutant.RightStore(0), o, script.Parse("acquire a 10s\nadvance 5s\nrestart\nadvance 5s\nacquire b 10s"))
	file = script.File(r, "tenure-ends-after-restart", "TestMine", o)
	path = filepath.Join(t.TempDir(), file.Name)
	if err := os.WriteFile(path, file.Data, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := invoke(t, "replay", path); code != exitHolds || errs != "" || !strings.Contains(out, "another 5s  granted: token 2 for 10s") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	plan := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(plan, []byte(`{"version":1,"kind":"elector-plan"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := invoke(t, "replay", plan); code != exitUnknown || !strings.Contains(errs, "only the test that wrote it") {
		t.Errorf("a plan exits %d: %s", code, errs)
	}
}
