// Package report says in the formats of CI systems what came of checking
// histories: JUnit XML, as GitLab, Jenkins and GitHub actions read it, and the
// workflow commands by which GitHub annotates lines of files.
//
// It must not judge: it takes verdicts as package linearizability gives them,
// and decides nothing but whether an unknown one counts as a failure, which its
// caller says.
//
// Start at [Outcome], which is one file checked, then [JUnit] and
// [WriteAnnotations].
package report

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"fencepost/linearizability"
)

// Outcome is what came of one file.
type Outcome struct {
	File    string // as named by the user; "-" is standard input
	Verdict linearizability.Verdict
	Err     error // why the file could not be read or checked; the Verdict says nothing then
	Elapsed time.Duration
}

// Result is the verdict in one word: unknown where there is none.
func (o Outcome) Result() linearizability.Result {
	if o.Err != nil {
		return linearizability.Unknown
	}
	return o.Verdict.Result
}

// Problem is one thing to tell about a file.
type Problem struct {
	Title string // a few words
	Text  string // one sentence
	Line  int    // from 1; 0 if it has no line
}

// Problems lists what is wrong, each violated partition and finding by itself,
// or why it is unknown. It is empty for a history that holds.
func (o Outcome) Problems() []Problem {
	if o.Err != nil {
		p := Problem{Title: "cannot be checked", Text: o.Err.Error()}
		var syntax *linearizability.SyntaxError
		if errors.As(o.Err, &syntax) {
			p.Title, p.Line = "cannot be read", syntax.Line
		}
		return []Problem{p}
	}
	v := &o.Verdict
	if v.Result == linearizability.Unknown {
		return []Problem{{Title: "unknown", Text: v.Reason}}
	}
	var problems []Problem
	for _, p := range v.Partitions {
		if p.Result == linearizability.Violated {
			name := p.Model
			if p.Key != "" {
				name = fmt.Sprintf("%s %q", name, p.Key)
			}
			problems = append(problems, Problem{"not linearizable", name + ": " + p.Reason, p.Line})
		}
	}
	for _, f := range v.Findings {
		if !f.Violates {
			continue
		}
		p := Problem{Title: f.Check, Text: strings.TrimPrefix(f.String(), f.Check+": ")}
		if n := len(f.Lines); n > 0 {
			p.Line = f.Lines[n-1] // the first shows nothing yet
		}
		problems = append(problems, p)
	}
	return problems
}
