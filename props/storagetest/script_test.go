package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestAStepReadsBackAsItWasWritten(t *testing.T) {
	for _, text := range []string{
		"write 2 x=v1", "write 18446744073709551615 x=v1", `write 0 ""=""`, `write 2 "a b"="c=d"`, `write 2 "\xff\x00"="\u00fc"`,
		"fence 3", "read x", `read "x y"`, "restart", "grant", "release",
	} {
		st, err := parseStep(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if st.String() != text {
			t.Errorf("%s: reads as %s", text, st)
		}
	}
}

func TestABadStepSaysWhatIsWrongWithIt(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "want write, fence",
		"wrote 2 x=v":                  `"wrote": want write`,
		"write x=v":                    `token "x=v": want an integer`,
		"write -1 x=v":                 "want an integer",
		"write 18446744073709551616 x": "want an integer",
		"write 1":                      "key",
		"write 1 x":                    "want key=value",
		"write 1 x=":                   "value",
		"write 1 x=a b":                "plain word",
		`write 1 "x=a`:                 "quote that does not end",
		`write 1 x="a"b`:               "too much",
		"fence 1 2":                    "too much",
		"fence":                        "want an integer",
		"read":                         "key",
		"read x y":                     "plain word",
		"restart now":                  "too much",
	} {
		if _, err := parseStep(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", text, err, want)
		}
	}
	if _, err := parse(strings.NewReader("# a comment\n\nfence 1\nfence x\n")); err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("%v, want it to name line 4", err)
	}
}

func FuzzParseStep(f *testing.F) {
	for _, text := range []string{"write 2 x=v1", `write 0 "a b"="\xff"`, "fence 3", "read x", "restart", "grant", `write 1 "x`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		st, err := parseStep(text)
		if err != nil {
			return
		}
		again, err := parseStep(st.String())
		if err != nil || again != st {
			t.Errorf("%q reads as %+v, which reads as %+v, %v", text, st, again, err)
		}
	})
}

func FuzzReplayFile(f *testing.F) {
	f.Add([]byte(`{"kind":"storage-script","version":1,"breaks":"lower-token-is-refused","steps":["write 2 x=v1","fence 1"]}`))
	f.Add([]byte(`{"kind":"storage-script","version":1,"steps":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		out := Replay(fromScratch, Options{}, "file", data)
		if out.Failure != nil {
			t.Errorf("a right storage is convicted: %v", out.Failure)
		}
		if (out.Unknown == "") == (out.Covered == "") {
			t.Errorf("came to %+v", out)
		}
	})
}

func TestAFileThatIsNoScriptIsUnknown(t *testing.T) {
	const good = `{"kind":"storage-script","version":1,"breaks":"x","steps":["write 1 x=v1"]}`
	if out := Replay(fromScratch, Options{}, "f.json", []byte(good)); out.Covered != "1 step" {
		t.Fatalf("came to %+v, want 1 step covered", out)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"no JSON":         {"{", "", "f.json: no storage-script"},
		"a field":         {`"breaks"`, `"brakes"`, "brakes"},
		"more":            {"]}", "]} {}", "something follows"},
		"another kind":    {"storage-script", "store-script", "kind"},
		"another version": {`:1,`, `:2,`, "version: 2"},
		"a bad step":      {"write 1", "write", "steps[0]: write: token"},
		"no step":         {`"write 1 x=v1"`, "", "no step of it"},
		"another rule":    {`"steps"`, `"compareAndSwap":true,"steps"`, "Options.Carry"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := strings.Replace(good, c.old, c.new, 1)
			if bad == good {
				t.Fatal("the file is as good as before")
			}
			if out := Replay(fromScratch, Options{}, "f.json", []byte(bad)); !strings.Contains(out.Unknown, c.want) {
				t.Errorf("came to %+v, want unknown for %q", out, c.want)
			}
		})
	}
	if out := Replay(fromScratch, Options{}, "f.json", make([]byte, maxFile+1)); !strings.Contains(out.Unknown, "more than") {
		t.Errorf("a file that is too large came to %+v", out)
	}
}

// Of a script that fails for two of its steps, these two are left, under the
// least tokens.
func TestMinimizeLeavesWhatMatters(t *testing.T) {
	steps := generate(source(1, 1), Options{}, 40)
	i := slices.IndexFunc(steps, func(s step) bool { return s.do == doWrite })
	j := i + 1 + slices.IndexFunc(steps[i+1:], func(s step) bool { return s.do == doFence })
	if i < 0 || j <= i {
		t.Fatal("the script has no write before a fence")
	}
	fails := func(s []step) bool {
		w := slices.IndexFunc(s, func(st step) bool { return st.do == doWrite && st.value == steps[i].value })
		f := slices.IndexFunc(s, func(st step) bool { return st.do == doFence })
		return w >= 0 && f > w
	}
	if !fails(steps) {
		t.Fatal("the script does not fail to begin with")
	}
	small := minimize(steps, 1000, fails)
	if len(small) != 2 || !fails(small) || small[0].token > 2 || small[1].token > 2 {
		t.Errorf("left %v", small)
	}
	tries := 0
	minimize(steps, 5, func(s []step) bool { tries++; return fails(s) })
	if tries > 5 {
		t.Errorf("%d tries, want 5 at most", tries)
	}
}

// The scripts of one and of two steps, counted by hand: a key y comes only
// after x, and a restart only after something else.
func TestExploreLeavesOutOnlyRenamings(t *testing.T) {
	letters := alphabet(Options{})
	if len(letters) != 7 {
		t.Fatalf("%d letters, want 4 writes, 2 fences and a restart", len(letters))
	}
	// One: 2 writes of x, 2 fences. Two: after a write of x all 7; after a fence
	// these 4 and a restart.
	for n, want := range map[int]int{1: 4, 2: 2*7 + 2*5} {
		got := 0
		seen := map[string]bool{}
		for w := range words(letters, n) {
			got++
			seen[fmt.Sprint(w)] = true
		}
		if got != want || len(seen) != want {
			t.Errorf("%d scripts (%d different) of %d steps, want %d", got, len(seen), n, want)
		}
	}
}

// Random scripts do everything that there is to do, and are often refused.
func TestRandomScriptsCoverWhatThereIs(t *testing.T) {
	for name, c := range map[string]struct {
		open opener
		o    Options
		want []kind
	}{
		"highest": {journaled, Options{}, []kind{doWrite, doFence, doRead, doRestart}},
		"carry":   {compareAndSwap, Options{Carry: carry}, []kind{doWrite, doFence, doRead, doRestart, doGrant, doRelease}},
	} {
		t.Run(name, func(t *testing.T) {
			landed, refused, found := 0, 0, 0
			did := map[kind]int{}
			for n := range 50 {
				r := play(c.open, c.o, generate(source(7, n), c.o, lockstepSteps))
				if r.breach != nil {
					t.Fatal(r.breach.what)
				}
				for _, l := range r.lines {
					did[l.step.do]++
					switch {
					case l.noOp:
						t.Fatalf("%v is a no-op", l.step)
					case l.step.do == doWrite && l.answer.said == saidStale:
						refused++
					case l.step.do == doWrite:
						landed++
					case l.step.do == doRead && l.answer.found:
						found++
					}
				}
			}
			for _, k := range c.want {
				if did[k] < 30 {
					t.Errorf("%s: %d times in 2,000 steps", kindNames[k], did[k])
				}
			}
			if landed < 200 || refused < 200 || found < 100 {
				t.Errorf("%d writes landed, %d were refused, %d reads found something", landed, refused, found)
			}
		})
	}
}
