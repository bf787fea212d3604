package script

import (
	"bytes"
	"encoding/json"
	"fmt"

	"fencepost/model"
	"fencepost/props/kit"
)

const (
	// Version is of the files that [File] writes and [Read] reads.
	Version = 1
	// FileKind tells them from other files of counterexamples.
	FileKind = "store-script"
)

// Contents is what a file of a script says. Only Options and Steps matter to a
// replay.
type Contents struct {
	Name    string // of the rule that was broken
	Shows   string // what a correct store would have answered
	Test    string // the test that found it
	Options kit.Options
	Steps   []Step
	Answers []string // one a step, or none
}

// File is r as a file: JSON, a step a line, to be replayed by [Run] with the
// steps that [Read] gives back.
func File(r Result, name, test string, o kit.Options) kit.File {
	head := fileHead{Version: Version, Kind: FileKind, Name: name, Test: test, Options: optionsInFile(o)}
	if r.Breach != nil {
		head.Shows = "expected: " + r.Breach.Want
	}
	var steps, answers []string
	for i := range r.Lines {
		l := r.Lines[i]
		l.describe()
		steps = append(steps, l.Step.String())
		if l.NoOp {
			l.Answer = "(no effect)"
		}
		answers = append(answers, l.Answer)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // people read and write these files
	enc.SetIndent("", "  ")
	encode(enc, head)
	out.Truncate(out.Len() - len("\n}\n"))
	enc.SetIndent("", "")
	for _, list := range []struct {
		name  string
		lines []string
	}{{"steps", steps}, {"answers", answers}} {
		fmt.Fprintf(&out, ",\n  %q: [", list.name)
		for i, line := range list.lines {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString("\n    ")
			encode(enc, line)
			out.Truncate(out.Len() - 1)
		}
		out.WriteString("\n  ]")
	}
	out.WriteString("\n}\n")
	return kit.NewFile(name, "json", out.Bytes())
}

// encode cannot fail: all of it is strings, numbers and booleans.
func encode(enc *json.Encoder, v any) {
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
}

type fileHead struct {
	Version int         `json:"version"`
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Shows   string      `json:"shows,omitempty"`
	Test    string      `json:"test,omitempty"`
	Options fileOptions `json:"options"`
}

// fileOptions are options with the names that they have in a file. How many
// calls there may be is no part of a counterexample.
type fileOptions struct {
	Tokens          string `json:"tokens,omitempty"`
	Granularity     string `json:"granularity,omitempty"`
	MinTTL          string `json:"minTTL,omitempty"`
	LockDelay       string `json:"lockDelay,omitempty"`
	Late            string `json:"late,omitempty"`
	RenewAfterLapse bool   `json:"renewAfterLapse,omitempty"`
	SteadyClock     bool   `json:"steadyClock,omitempty"`
	Volatile        bool   `json:"volatile,omitempty"`
	Terse           bool   `json:"terse,omitempty"`
	NoGet           bool   `json:"noGet,omitempty"`
}

func optionsInFile(o kit.Options) fileOptions {
	f := fileOptions{RenewAfterLapse: o.RenewAfterLapse, SteadyClock: o.SteadyClock, Volatile: o.Volatile, Terse: o.Terse, NoGet: o.NoGet}
	if o.Tokens != model.TokensNext {
		f.Tokens = o.Tokens.String()
	}
	for _, d := range durationsOf(&o) {
		if *d.value != 0 {
			*d.in(&f) = d.value.String()
		}
	}
	return f
}
