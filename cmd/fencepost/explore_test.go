package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// small is a world that is explored in a moment.
func small(args ...string) []string { return append([]string{"explore", "--messages", "1"}, args...) }

func exploreAsJSON(t *testing.T, args ...string) (got exploreJSON, code int) {
	t.Helper()
	code, out, errs := invoke(t, append(args, "--json")...)
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil || dec.More() || errs != "" {
		t.Fatalf("exit %d, %v, more: %v: %s\n%s", code, err, dec.More(), errs, out)
	}
	return got, code
}

func TestExploreHolds(t *testing.T) {
	code, out, errs := invoke(t, small()...)
	if code != exitHolds || errs != "" {
		t.Fatalf("exit %d, stderr %q\n%s", code, errs, out)
	}
	for _, part := range []string{
		"every interleaving of the built-in implementation", "2 clients, up to 1 message in flight", "on:  loss, duplication, drift, writes, resign",
		"off: work, client-crash, store-crash, storage-crash, suspend, delete, jump", "HOLDS: complete: ", "64-bit hashes: were these random",
		"NEVER  this exploration says nothing about it", "one fair schedule", "Assumed: time passes in ticks of 400ms", "reductions checked: ", "belief-implies-ownership, continuity", "Not judged: linearizability: ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("does not print %q:\n%s", part, out)
		}
	}
	if strings.Contains(out, "violated") || strings.Contains(out, "bounded") {
		t.Errorf("what holds is called violated or bounded:\n%s", out)
	}
}

// TestExploreTellsWhatItDidNotReach: a world of one client has no zombies, and
// what was asked of them has no answer.
func TestExploreTellsWhatItDidNotReach(t *testing.T) {
	got, code := exploreAsJSON(t, small("--clients", "1", "--without", "writes")...)
	if code != exitHolds || !got.Complete || got.Clients != 1 || slices.Contains(got.Faults, "writes") || !slices.Contains(got.Off, "writes") {
		t.Errorf("exit %d: %+v", code, got)
	}
	for _, s := range got.Sometimes {
		if never := s.Steps == 0; never != (s.Name == "a write lands" || s.Name == "the storage refuses a stale token" || strings.HasPrefix(s.Name, "a client takes over")) {
			t.Errorf("%q was reached by %d steps", s.Name, s.Steps)
		}
	}
}

func TestExploreCountsAddUp(t *testing.T) {
	got, _ := exploreAsJSON(t, small()...)
	var states, steps, standing uint64
	byKind := map[string]uint64{}
	for _, l := range got.Levels {
		states += l.States
		for k, n := range l.Steps {
			byKind[k] += n
			steps += n
		}
	}
	for _, c := range got.Standing {
		standing += c.States
	}
	if states != got.States || steps != got.Transitions || len(got.Levels) != got.Depth+1 || standing != uint64(got.Clients)*got.States || !maps.Equal(byKind, got.Steps) {
		t.Errorf("levels have %d states and %d steps %v, clients stand in %d: %+v", states, steps, byKind, standing, got)
	}
	if got.Collision <= 0 || got.Collision > 1e-6 || got.Exact {
		t.Errorf("collision %v, exact %v", got.Collision, got.Exact)
	}
}

// TestExploreJSONKeys: whoever reads the object relies on its names.
func TestExploreJSONKeys(t *testing.T) {
	_, out, _ := invoke(t, small("--mutant", "off-by-one", "--clients", "1", "--out", t.TempDir(), "--json")...)
	_, held, _ := invoke(t, small("--json")...)
	var keys []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, v := range v {
				if path == ".steps" || path == ".levels.steps" || path == ".notJudged" {
					continue // named by kinds of action and by invariants
				}
				keys = append(keys, path+"."+k)
				walk(path+"."+k, v)
			}
		case []any:
			for _, v := range v {
				walk(path, v)
			}
		}
	}
	for _, text := range []string{out, held} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		walk("", v)
	}
	slices.Sort(keys)
	want := strings.Fields(`.assumed .barrier .claim .clients .collision .compared .complete .depth .drift .exact .failure .failure.actions .failure.file .failure.invariant
		.failure.reason .failure.shortest .failure.violated .fair .fair.bound .fair.delay .fair.every .fair.longest .fair.states .faults .judged .keys
		.levels .levels.states .levels.steps .lockDelay .memory .messages .notJudged .off .seconds .sometimes .sometimes.depth .sometimes.name
		.sometimes.steps .standing .standing.client .standing.states .states .steps .subject .tick .transitions .ttl .verdict`)
	if diff := cmp.Diff(want, slices.Compact(keys)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestExploreFindsAPlantedBugAndReplayConfirms(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := invoke(t, small("--mutant", "off-by-one", "--clients", "1", "--out", dir)...)
	if code != exitViolated || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	m := regexp.MustCompile(`(?m)^replay:   fencepost (replay (\S+))$`).FindStringSubmatch(out)
	for _, part := range []string{
		"the planted bug off-by-one: ", "VIOLATED: belief-implies-ownership breaks within 7 actions, and nothing breaks within fewer",
		"    1  tick C", "    7  advance 400ms C", "━━━ VIOLATED: belief-implies-ownership at 1.6s",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("does not print %q:\n%s", part, out)
		}
	}
	if m == nil || filepath.Dir(m[2]) != dir {
		t.Fatalf("says no way to replay:\n%s", out)
	}
	if code, out, errs := invoke(t, strings.Fields(m[1])...); code != exitHolds || !strings.Contains(out, "7 of 7 actions done, 0 without effect") ||
		!strings.Contains(out, "As expected: belief-implies-ownership is violated") {
		t.Errorf("replay exits %d: %s\n%s", code, errs, out)
	}
}

// TestExploreKeepsWhatItFound: a file that cannot be written takes nothing
// away.
func TestExploreKeepsWhatItFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	inFile := filepath.Join(file, "page.html")
	code, out, errs := invoke(t, small("--mutant", "off-by-one", "--clients", "1", "--out", inFile)...)
	if code != exitViolated || !strings.Contains(out, "    7  advance") || strings.Contains(out, "drawn in") || strings.Contains(out, "replay:") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if !strings.Contains(errs, "fencepost: --out: ") {
		t.Errorf("nothing is said of the file: %s", errs)
	}
}

// TestExploreLooksAtItsFilesFirst: who asked for a page does not wait for the
// end of a search to hear that there can be none.
func TestExploreLooksAtItsFilesFirst(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "no", "folder")
	for _, flag := range []string{"--html", "--longest"} {
		if code, out, errs := invoke(t, small(flag, nowhere)...); code != exitUnknown || strings.Contains(out, "HOLDS") || !strings.Contains(errs, nowhere) {
			t.Errorf("%s: exit %d: %s%s", flag, code, out, errs)
		}
	}
}

// TestExploreSaysWhereAPlantedBugDoesNotShow: what holds of it holds only here.
func TestExploreSaysWhereAPlantedBugDoesNotShow(t *testing.T) {
	code, out, _ := invoke(t, small("--mutant", "monotonic-clock", "--ttl", "2", "--faults", "")...)
	if code != exitHolds || !strings.Contains(out, "The planted bug does not show in this world") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestExploreBoundedIsUnknown(t *testing.T) {
	for _, c := range []struct {
		args []string
		by   string
		says string
	}{
		{[]string{"explore", "--max-states", "1000"}, "states", "ended by --max-states"},
		{[]string{"explore", "--max-memory", "64KiB"}, "memory", "ended by --max-memory"},
		{[]string{"explore", "--max-depth", "5"}, "depth", "every schedule of up to 5 actions was covered"},
	} {
		code, out, _ := invoke(t, c.args...)
		if code != exitUnknown || !strings.Contains(out, c.says) || !strings.Contains(out, "UNKNOWN: bounded at ") || strings.Contains(out, "complete") {
			t.Errorf("%v exits %d:\n%s", c.args, code, out)
		}
		if got, code := exploreAsJSON(t, c.args...); code != exitUnknown || got.Bounded != c.by || got.Complete || got.Verdict != explore.Unknown {
			t.Errorf("%v exits %d: %+v", c.args, code, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, _ := invokeIn(ctx, "explore"); code != exitUnknown || !strings.Contains(out, "ended by an interrupt") {
		t.Errorf("an interrupt exits %d:\n%s", code, out)
	}
}

func TestExploreFlagsSetTheWorld(t *testing.T) {
	n, on := func(n int) *int { return &n }, true
	for _, c := range []struct {
		name string
		cmd  exploreCmd
		set  func(*explore.Options)
	}{
		{"defaults", exploreCmd{}, func(*explore.Options) {}},
		{"numbers", exploreCmd{Clients: n(3), TTL: n(5), Drift: n(5), Messages: n(1), Keys: n(2), LockDelay: n(1), Barrier: &on}, func(o *explore.Options) {
			o.Clients, o.TTL, o.Drift, o.Messages, o.Keys, o.LockDelay, o.Barrier = 3, 5, 5, 1, 2, 1, true
		}},
		{"bounds", exploreCmd{MaxStates: 1, MaxMemory: 2, MaxDepth: 3, Workers: 4}, func(o *explore.Options) {
			o.MaxStates, o.MaxMemory, o.MaxDepth, o.Workers = 1, 2, 3, 4
		}},
		{"faults instead", exploreCmd{Faults: []string{"loss"}}, func(o *explore.Options) { o.Faults = explore.Loss }},
		{"no faults", exploreCmd{Faults: []string{}}, func(o *explore.Options) { o.Faults = 0 }},
		{"more and fewer faults", exploreCmd{With: []string{"client-crash", "delete"}, Without: []string{"loss"}}, func(o *explore.Options) {
			o.Faults = explore.DefaultFaults&^explore.Loss | explore.ClientCrash | explore.Deletion
		}},
		{"true clocks do not drift", exploreCmd{Drift: n(1)}, func(o *explore.Options) { o.Drift, o.Faults = 1, explore.DefaultFaults&^explore.Drifting }},
	} {
		want := explore.Default()
		c.set(&want)
		got, what, err := c.cmd.options()
		if err != nil || what != "the built-in implementation" {
			t.Fatalf("%s: %q, %v", c.name, what, err)
		}
		got.Subject, want.Subject = sim.Subject{}, sim.Subject{} // of functions
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestExploreFlagsWinOverTheBug: a planted bug sets the world that shows it,
// and flags that were given change it.
func TestExploreFlagsWinOverTheBug(t *testing.T) {
	one := 1
	c := exploreCmd{Mutant: "off-by-one", Messages: &one}
	o, what, err := c.options()
	if err != nil || o.Messages != 1 || o.Subject.Name != "mutant:off-by-one" || !strings.Contains(what, "off-by-one: ") || o.Judged == 0 {
		t.Errorf("%q with %d messages on %s, judged %v: %v", what, o.Messages, o.Subject.Name, o.Judged, err)
	}
}

func TestExploreRefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--with", "locusts"}, "--with: there is no fault \"locusts\"; there are [loss duplication drift "},
		{[]string{"--without", "locusts"}, "--without: "},
		{[]string{"--faults", "loss,locusts"}, "--faults: "},
		{[]string{"--mutant", "nobody"}, "off-by-one"},
		{[]string{"--clients", "9"}, "9 clients are not between 1 and 4"},
		{[]string{"--drift", "1", "--with", "drift"}, "need a bound"},
		{[]string{"--drift", "3"}, "2, 4, 5"},
		{[]string{"--max-memory", "lots"}, "512MiB"},
		{[]string{"--max-memory", "16777216TiB"}, "512MiB"},
		{[]string{"--workers", "-1"}, "--workers"},
		{[]string{"--max-depth", "-1"}, "depth"},
	} {
		code, out, errs := invoke(t, append([]string{"explore"}, c.args...)...)
		if code != exitUnknown || !strings.Contains(errs, c.says) || strings.Contains(out, "states") {
			t.Errorf("%v exits %d, and the error lacks %q: %s\n%s", c.args, code, c.says, errs, out)
		}
	}
}

func TestExploreMemoryIsReadWithItsUnit(t *testing.T) {
	for text, want := range map[string]byteSize{"0": 0, "17": 17, "17B": 17, "64KiB": 64 << 10, "512MiB": 512 << 20, "8GiB": 8 << 30, "2TiB": 2 << 40} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s is %d: %v", text, b, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1.5GiB", "8GB", "8 GiB", "8giB"} {
		if err := new(byteSize).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is an amount of memory", text)
		}
	}
}

func TestExploreDrawsAPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	code, out, errs := invoke(t, small("--mutant", "off-by-one", "--clients", "1", "--out", t.TempDir(), "--html", page)...)
	b, err := os.ReadFile(page)
	if err != nil || code != exitViolated || !strings.Contains(out, "drawn in: "+page) {
		t.Fatalf("exit %d, %v: %s\n%s", code, err, errs, out)
	}
	if n := bytes.Count(b, []byte("<svg")); n != 2 || !bytes.Contains(b, []byte("<h1>violated</h1>")) {
		t.Errorf("%d pictures; want the map and the timeline", n)
	}
}

func TestExploreShowsTheLongestWait(t *testing.T) {
	file := filepath.Join(t.TempDir(), "longest.json")
	got, code := exploreAsJSON(t, small("--longest", file)...)
	if code != exitHolds || got.Fair == nil || got.Fair.File != file || got.Fair.Longest <= 0 || got.Fair.Longest > got.Fair.Bound || got.Fair.States == 0 {
		t.Fatalf("exit %d: %+v", code, got.Fair)
	}
	wait := time.Duration(got.Fair.Longest).String()
	if code, out, errs := invoke(t, "replay", file); code != exitHolds || !strings.Contains(out, wait) || !strings.Contains(out, "calm: no faults from here") {
		t.Errorf("replay exits %d: %s\n%s", code, errs, out)
	}
}

// TestExploreHelpGivesTheDefaults: flags that were not given are nil, so kong
// cannot say what stands for them.
func TestExploreHelpGivesTheDefaults(t *testing.T) {
	_, out, _ := invoke(t, "explore", "--help")
	text := strings.Join(strings.Fields(out), " ")
	o := explore.Default()
	for _, want := range []string{
		fmt.Sprintf("Candidates, 1 to %d (default %d)", sim.MaxClients, o.Clients), fmt.Sprintf("1 to 64 (default %d)", o.TTL), fmt.Sprintf("1/N (default %d)", o.Drift),
		fmt.Sprintf("1 to 24 (default %d)", o.Messages), fmt.Sprintf("1 to %d (default %d)", model.Keys, o.Keys), fmt.Sprintf("in ticks (default %d)", o.LockDelay), "(default off)",
		"(default " + strings.Join(o.Faults.Names(), ",") + ")", strings.Join((explore.AllFaults &^ o.Faults).Names(), ", "),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, out)
		}
	}
}

// TestExploreProgressTellsHowFar: on a terminal only.
func TestExploreProgressTellsHowFar(t *testing.T) {
	var p model.ExploreProgress
	p.Depth.Store(17)
	p.Frontier.Store(250_000)
	p.Expanded.Store(4500)
	p.Memory.Store(48 << 20)
	if got, want := standing(&p), "depth 17: 4500 of 250k expanded, 48 MiB"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	var out, errs bytes.Buffer
	e := &env{ctx: t.Context(), out: &out, err: &errs, clock: func() time.Duration { return 0 }, terminal: true}
	if code := run(e, small("--json")); code != exitHolds || !json.Valid(out.Bytes()) {
		t.Errorf("exit %d, and progress among what is printed:\n%s", code, out.String())
	}
}
