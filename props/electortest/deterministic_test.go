package electortest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// outcomes are what the checks came to, without the log, whose lines are in
// the order of the scheduler.
func outcomes(t *testing.T, start func(Env) Candidate, o Options) map[string]kit.Outcome {
	t.Helper()
	got := map[string]kit.Outcome{}
	for _, c := range Checks(start, o, kit.Effort{Seed: 7}) {
		out := c.Run(t)
		if out.Failure != nil {
			out.Failure.Log, out.Failure.More = "", ""
		}
		got[c.Name] = out
	}
	return got
}

func TestTheSameSeedTellsTheSameStory(t *testing.T) {
	for name, start := range map[string]func(Env) Candidate{
		"elector": elector, "right": newRight, "from the reply": fromTheReply,
		"leads on": client(slips{leadOnAfterRefusal: true}), "releases early": client(slips{releaseEarly: true}),
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Plans: 15}
			want := outcomes(t, start, o)
			for range rounds() {
				if diff := cmp.Diff(want, outcomes(t, start, o)); diff != "" {
					t.Fatalf("two runs differ (-first +later):\n%s", diff)
				}
			}
		})
	}
}

func rounds() int {
	if os.Getenv("FENCEPOST_LONG") != "" {
		return 200
	}
	return 1
}

func TestAnotherSeedPlaysOtherPlans(t *testing.T) {
	covered := map[string]bool{}
	for seed := range uint64(3) {
		covered[random(t, elector, Options{Plans: 10}.withDefaults(), kit.Effort{Seed: seed}).Covered] = true
	}
	if len(covered) != 3 {
		t.Errorf("three seeds covered %v", covered)
	}
}

func TestAFailureReplaysFromItsFile(t *testing.T) {
	start := client(slips{leadOnAfterRefusal: true})
	f := random(t, start, Options{}.withDefaults(), kit.Effort{Seed: 1}).Failure
	if f == nil || f.File == nil {
		t.Fatalf("no failure with a file: %+v", f)
	}
	if !IsPlan(f.File.Data) || IsPlan([]byte("{}")) {
		t.Error("a plan's file is not told from another")
	}
	// The least that it takes: one operator deletes the lease once.
	var file struct{ Calls []map[string]any }
	if err := json.Unmarshal(f.File.Data, &file); err != nil || len(file.Calls) != 1 || file.Calls[0]["before"] != "delete" {
		t.Errorf("not minimal: %s", f.File.Data)
	}
	c, err := Replay(f.File.Data, start, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := c.Run(t).Failure
	if got == nil || got.Rule != "belief/ends-at-a-refusal" || !cmp.Equal(got.Story, f.Story) {
		t.Errorf("replayed as %+v, want %+v", got, f)
	}
	right, err := Replay(f.File.Data, newRight, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out := right.Run(t); out.Failure != nil {
		t.Errorf("a right client fails: %s", report(out.Failure))
	}
}

func TestAPlanSurvivesItsFile(t *testing.T) {
	o := Options{}.withDefaults()
	p := plan{clients: 2, store: rateSlow, linger: time.Second, until: time.Minute, fates: []placed{
		{0, 3, fate{Request: 1, Answer: 2 * time.Hour, Lost: lostAnswer, Deaf: true, Copy: 3, Before: upsetRestart, Percent: 50}},
		{1, 0, fate{Lost: lostRequest, Hang: true, Before: upsetDelete}},
		{1, 4, fate{Before: upsetRival}},
	}}
	got, cfg, err := readPlan(p.file(o, "x").Data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got, cmp.AllowUnexported(plan{}, placed{}, fate{})); diff != "" {
		t.Errorf("read back otherwise (-written +read):\n%s", diff)
	}
	if cfg != o.Config {
		t.Errorf("the timing is read back as %+v", cfg)
	}
}

func TestABadFileIsRefusedByLineAndField(t *testing.T) {
	good := string(plan{clients: 1, store: rateTrue, until: time.Minute, fates: []placed{{0, 1, cut(time.Second)}}}.file(Options{}.withDefaults(), "x").Data)
	for _, tt := range []struct {
		change, to  string
		line        int
		field, says string
	}{
		{`"elector-plan"`, `"schedule"`, 0, "kind", "elector-plan"},
		{`"version": 1`, `"version": 2`, 0, "version", "2"},
		{`"clients": 1`, `"clients": 9`, 0, "clients", "between 1 and 8"},
		{`"clients": 1`, `"clients": "one"`, 12, "clients", "int"},
		{`"store": "true"`, `"store": "mad"`, 0, "store", "mad"},
		{`"until": "1m0s"`, `"until": "1w"`, 14, "", "not a duration"},
		{`"until": "1m0s"`, `"until": "1000h"`, 0, "until", "1000 TTLs"},
		{`"call": 1`, `"call": -1`, 0, "calls[0].call", "negative"},
		{`"client": 0`, `"client": 1`, 0, "calls[0].client", "number of clients"},
		{`"lost": "request"`, `"lost": "all"`, 0, "calls[0].lost", "all"},
		{`"lost": "request"`, `"missing": 1`, 20, "", "missing"},
		{`"ttl": "10s"`, `"ttl": "0s"`, 0, "config", "TTL"},
		{`"ttl": "10s"`, `"ttl": "8000h"`, 0, "config", "24h"},
		{"{", "", 2, "", ""},
		{"\n}\n", "\n}\n{", 24, "", ""},
	} {
		if !strings.Contains(good, tt.change) {
			t.Fatalf("%q is not in\n%s", tt.change, good)
		}
		_, err := Replay([]byte(strings.Replace(good, tt.change, tt.to, 1)), newRight, Options{})
		e, ok := errors.AsType[*FileError](err)
		if !ok || e.Field != tt.field || !strings.Contains(e.Reason, tt.says) || tt.line != 0 && e.Line != tt.line {
			t.Errorf("%s: %#v, want line %d, field %q, %q", tt.to, err, tt.line, tt.field, tt.says)
		}
	}
	if _, err := Replay(make([]byte, maxFile+1), newRight, Options{}); err == nil {
		t.Error("a huge file is read")
	}
}

func FuzzReadPlan(f *testing.F) {
	o := Options{}.withDefaults()
	f.Add(plan{clients: 2, store: rateFast, until: time.Minute, fates: []placed{{1, 1, cut(time.Second)}}}.file(o, "x").Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, cfg, err := readPlan(data)
		if err != nil {
			if _, ok := errors.AsType[*FileError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		again, _, err := readPlan(p.file(Options{Config: cfg}, "x").Data)
		if diff := cmp.Diff(p, again, cmp.AllowUnexported(plan{}, placed{}, fate{})); err != nil || diff != "" {
			t.Fatalf("written and read back: %v %s", err, diff)
		}
	})
}

func TestBadOptionsAreRefusedByField(t *testing.T) {
	for _, tt := range []struct {
		o     Options
		field string
	}{
		{Options{Config: lease.Config{TTL: time.Microsecond}}, "Config"},
		{Options{Config: lease.Config{TTL: 48 * time.Hour}}, "Config"},
		{Options{Config: lease.Config{TTL: time.Second, SafetyMargin: time.Second}}, "Config"},
		{Options{Config: lease.Config{TTL: time.Second, MaxDriftRate: 0.95}}, "Config"},
		{Options{TakeoverWithin: -1}, "TakeoverWithin"},
		{Options{Plans: -1}, "Plans"},
	} {
		e, ok := errors.AsType[*kit.OptionsError](tt.o.Validate())
		if !ok || e.Field != tt.field {
			t.Errorf("%+v: %v, want %s refused", tt.o, e, tt.field)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero options: %v", err)
	}
}

func TestAClientWithoutRunIsNotKnown(t *testing.T) {
	for name, out := range outcomes(t, func(Env) Candidate { return Candidate{} }, Options{}) {
		if !strings.Contains(out.Unknown, "Candidate.Run") {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func TestAClientThatShowsNothingIsToldHow(t *testing.T) {
	mute := byWork(byAsking(elector))
	out := outcomes(t, mute, Options{Plans: 3})
	f := out["acquire/leads-when-free"].Failure
	if f == nil || !strings.Contains(f.What, "give Candidate.IsLeader, or call Env.Lead") {
		t.Errorf("%+v", f)
	}
}

func TestACheckedClientLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	outcomes(t, elector, Options{Plans: 30})
	// Those that are about to end may be seen, for as long as the machine lets
	// others run: only one that does not end is waited for to the last.
	for limit := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
}

func TestAClientThatWaitsOutsideOfItsBubbleIsNotKnown(t *testing.T) {
	outside := make(chan struct{})
	waits := func(env Env) Candidate {
		return Candidate{IsLeader: func() bool { return false }, Run: func(context.Context) error {
			<-outside
			return nil
		}}
	}
	unknown, skipped := 0, 0
	for _, out := range outcomes(t, waits, Options{patience: 3}) {
		if strings.HasPrefix(out.Unknown, stuckOutside) && strings.Contains(out.Unknown, "chan receive") {
			unknown++
		}
		if out.Skipped != "" {
			skipped++
		}
	}
	// What takes real time is found out once.
	if unknown != 1 || skipped != len(stories(Options{})) {
		t.Errorf("unknown %d, skipped %d", unknown, skipped)
	}
}
