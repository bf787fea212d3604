package script

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"fencepost/model"
	"fencepost/props/kit"
)

// noOwner is a store whose renewals do not compare the holder.
func noOwner() wrong { return wrongs()[1] }

const noOwnerFile = `{
  "version": 1,
  "kind": "store-script",
  "name": "renew-only-by-the-holder",
  "shows": "expected: refused as lost: a holds it under token 1 for another 10s, and this is b's request under token 1",
  "test": "TestMine",
  "options": {
    "lockDelay": "5s",
    "terse": true
  },
  "steps": [
    "acquire a 10s",
    "get on q",
    "renew b of a 10s"
  ],
  "answers": [
    "granted: token 1 for 10s",
    "nobody holds it",
    "granted: token 1 for 10s"
  ]
}
`

func TestAFileIsAStepALine(t *testing.T) {
	r := Run(noOwner().open, kit.Options{}, Parse("acquire a 10s\nget on q\nrenew b of a 10s"))
	f := File(r, "renew-only-by-the-holder", "TestMine", kit.Options{LockDelay: 5 * time.Second, Terse: true, Calls: 33})
	if string(f.Data) != noOwnerFile {
		t.Errorf("it reads\n%s", f.Data)
	}
	if again := File(r, "renew-only-by-the-holder", "TestMine", kit.Options{LockDelay: 5 * time.Second, Terse: true}); again.Name != f.Name {
		t.Errorf("one file has two names, %s and %s", f.Name, again.Name)
	}
	other := File(r, "renew-only-by-the-holder", "TestOther", kit.Options{})
	if other.Name == f.Name || !strings.HasPrefix(f.Name, "renew-only-by-the-holder-") || !strings.HasSuffix(f.Name, ".json") {
		t.Errorf("two files are called %s and %s", f.Name, other.Name)
	}
}

func TestFilesRoundTrip(t *testing.T) {
	all := kit.Options{Tokens: model.TokensRising, Granularity: time.Second, MinTTL: 2 * time.Second, LockDelay: 3 * time.Second,
		Late: 4 * time.Second, RenewAfterLapse: true, SteadyClock: true, Volatile: true, Terse: true, NoGet: true}
	for _, o := range []kit.Options{{}, all, {Late: 1}} {
		r := RunRandom(memory, kit.Options{}, rand.NewPCG(1, 1), 200)
		f := File(r, "a <b> & \"c\"", "TestMine/sub", o)
		c, err := Read(bytes.NewReader(f.Data), f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != "a <b> & \"c\"" || c.Test != "TestMine/sub" || c.Options != o || len(c.Answers) != 200 {
			t.Errorf("it read %q, %q, %+v, %d answers", c.Name, c.Test, c.Options, len(c.Answers))
		}
		if want := stepsOf(r); !slices.Equal(c.Steps, want) {
			t.Errorf("it read %v, want %v", c.Steps, want)
		}
	}
}

func stepsOf(r Result) []Step {
	var steps []Step
	for _, l := range r.Lines {
		steps = append(steps, l.Step)
	}
	return steps
}

func TestBadFilesAreRefusedNamingFileLineAndField(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(noOwnerFile, old) {
			t.Fatalf("no %q in the file", old)
		}
		return strings.Replace(noOwnerFile, old, new, 1)
	}
	for text, want := range map[string]string{
		"":                                       "mine.json:1: file: the file ends too early",
		"[]":                                     "mine.json:1: file: must be an object",
		"{]":                                     "mine.json:1: file: is no JSON: invalid character ']'",
		"nil":                                    "mine.json:1: file: is no JSON: invalid character 'i' in literal null (expecting 'u')",
		change(`"version": 1`, `"version": 2`):   "mine.json:2: version: is no version that this program reads; it reads 1",
		change(`"version": 1`, `"version": "1"`): "mine.json:2: version: is no version that this program reads; it reads 1",
		change(`store-script`, `schedule`):       `mine.json:3: kind: "schedule" is not "store-script": this is another kind of file`,
		change(`"name"`, `"Name"`):               "mine.json:4: Name: there is no such field",
		change(`"name"`, `"kind"`):               "mine.json:4: kind: stands twice",
		change("  \"name\": \"renew-only-by-the-holder\",\n", ""): "mine.json:20: name: is missing",
		change(`"TestMine"`, `null`):                              "mine.json:6: test: must not be null; leave it out",
		change(`"TestMine"`, `7`):                                 "mine.json:6: test: must be a string",
		change(`"5s"`, `"5"`):                                     `mine.json:8: options.lockDelay: "5" is not a duration such as 1.5s`,
		change(`"5s"`, `"-5s"`):                                   "mine.json:8: options.lockDelay: -5s is not between 0 and 24h",
		change(`lockDelay`, `lock delay`):                         `mine.json:8: options."lock delay": there is no such field`,
		change(`true`, `"true"`):                                  "mine.json:9: options.terse: must be true or false",
		change(`"terse": true`, `"tokens": "none"`):               `mine.json:9: options.tokens: "none" is neither next nor rising`,
		change(`acquire a 10s`, `aquire a 10s`):                   `mine.json:12: steps[0]: "aquire": is none of acquire, renew, release, get, advance, restart and delete`,
		change(`"get on q"`, `{}`):                                "mine.json:13: steps[1]: must be a string",
		change(`"steps": [`, `"steps": "x", "y": [`):              "mine.json:11: steps: must be an array",
		change(`    "nobody holds it",`+"\n", ``):                 "mine.json:20: answers: there are 2, for 3 steps",
		noOwnerFile + "x":                                         "mine.json:22: file: something stands after the script",
		strings.TrimSuffix(noOwnerFile, "]\n}\n"):                 "mine.json:20: answers: the file ends too early",
	} {
		c, err := Read(strings.NewReader(text), "mine.json")
		var bad *FileError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) || c.Steps != nil {
			t.Errorf("Read(%s)\n  = %v, %v\nwant %s", text, c.Steps, err, want)
		}
	}
}

func TestFilesAreBounded(t *testing.T) {
	long := strings.Replace(noOwnerFile, `"get on q",`, strings.Repeat("\"get\",\n", MaxSteps), 1)
	if _, err := Read(strings.NewReader(long), "f"); err == nil || !strings.Contains(err.Error(), "steps[100000]: there are at most 100000") {
		t.Errorf("100,002 steps: %v", err)
	}
	if _, err := Read(strings.NewReader(strings.Repeat(" ", MaxFile+1)), "f"); err == nil || err.Error() != "f:1: file: is larger than 16 MiB" {
		t.Errorf("more than 16 MiB: %v", err)
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), "f"); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(noOwnerFile))
	f.Add([]byte(`{"version":1,"kind":"store-script","name":"x","options":{"tokens":"rising","volatile":false},"steps":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(bytes.NewReader(data), "f")
		if err != nil {
			if msg := err.Error(); strings.Contains(msg, "\n") || len(msg) > 400 {
				t.Fatalf("the error is no short line: %q", msg)
			}
			return
		}
		if err := c.Options.Validate(); err != nil {
			t.Fatalf("it read options that make no sense: %v", err)
		}
		if len(c.Steps) > 200 {
			return
		}
		lines := make([]Line, len(c.Steps))
		for i, s := range c.Steps {
			lines[i].Step = s
		}
		again := File(Result{Lines: lines}, c.Name, c.Test, c.Options)
		back, err := Read(bytes.NewReader(again.Data), "f")
		if err != nil || !slices.Equal(back.Steps, c.Steps) || back.Options != c.Options {
			t.Fatalf("written and read again it is %+v, %v", back, err)
		}
	})
}
