package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"fencepost/linearizability"
	"fencepost/linearizability/report"
)

// checkSchema describes what check prints with --json.
//
//go:embed check.schema.json
var checkSchema string

// checkSchemaVersion rises when a field goes or changes its meaning; new fields
// may come without.
const checkSchemaVersion = 1

// checkJSON is one file.
type checkJSON struct {
	Schema int    `json:"schema"`
	Kind   string `json:"kind"` // "file"
	linearizability.Verdict
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"` // why it could not be read or checked
	Line    int     `json:"line,omitempty"`  // of the error
	Field   string  `json:"field,omitempty"` // of the error
}

func writeCheckJSON(w io.Writer, m linearizability.Model, o report.Outcome) error {
	out := checkJSON{Schema: checkSchemaVersion, Kind: "file", Verdict: o.Verdict, Seconds: o.Elapsed.Seconds()}
	if o.Err != nil {
		out.Verdict = linearizability.Verdict{Result: linearizability.Unknown, Model: m.String(), Reason: o.Err.Error()}
		out.Error = o.Err.Error()
		var syntax *linearizability.SyntaxError
		if errors.As(o.Err, &syntax) {
			out.Line, out.Field = syntax.Line, syntax.Field
		}
	}
	out.File = o.File
	if out.Partitions == nil {
		out.Partitions = []linearizability.Partition{}
	}
	return json.NewEncoder(w).Encode(out)
}

// checkSummary is the last object, and the last line.
type checkSummary struct {
	Schema     int     `json:"schema"`
	Kind       string  `json:"kind"` // "summary"
	Files      int     `json:"files"`
	Holds      int     `json:"holds"`
	Violated   int     `json:"violated"`
	Unknown    int     `json:"unknown"` // those that cannot be read included
	Skipped    int     `json:"skipped"` // in directories: no histories
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	Exit       int     `json:"exit"`
}

func (s *checkSummary) add(o report.Outcome) {
	s.Files++
	switch o.Result() {
	case linearizability.Holds:
		s.Holds++
	case linearizability.Violated:
		s.Violated++
	default:
		s.Unknown++
	}
	if o.Err == nil {
		s.Operations += o.Verdict.Activity.Operations
	}
}

func (s checkSummary) writeJSON(w io.Writer) error {
	s.Schema, s.Kind = checkSchemaVersion, "summary"
	return json.NewEncoder(w).Encode(s)
}

func (s checkSummary) String() string {
	return fmt.Sprintf("%s: %d hold, %d violated, %d unknown, %d skipped", counted(int64(s.Files), "file", "files"), s.Holds, s.Violated, s.Unknown, s.Skipped)
}
