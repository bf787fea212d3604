package linearizability

import (
	"fmt"
	"strings"
)

// Result is a verdict in one word.
type Result string

// The results. Unknown is not a pass.
const (
	Holds    Result = "holds"
	Violated Result = "violated"
	Unknown  Result = "unknown"
)

// Verdict is what Check found out about a history.
type Verdict struct {
	Result Result `json:"verdict"`
	File   string `json:"file,omitempty"`
	Model  string `json:"model"`
	// Chosen says why the model is this one, if nobody named it.
	Chosen string `json:"chosen,omitempty"`
	// Reading says how a history in a foreign vocabulary was understood.
	Reading string `json:"reading,omitempty"`
	// Reason is one sentence: what is violated, or why it is unknown.
	Reason     string      `json:"reason,omitempty"`
	Activity   Activity    `json:"activity"`
	Partitions []Partition `json:"partitions"`
	Findings   []Finding   `json:"findings,omitempty"`
	// Notes say what weakens the verdict, such as a misspelt field of meta.
	Notes []string `json:"notes,omitempty"`

	source  eventSource
	digest  *digest
	beliefs []term
}

// Partition is the verdict on a part of a history that is judged by itself:
// one register, key, lease or storage.
type Partition struct {
	Model      string `json:"model"`
	Key        string `json:"key,omitempty"`
	Result     Result `json:"verdict"`
	Operations int    `json:"operations"` // that were checked
	Unknown    int    `json:"unknown"`    // of these, with unknown outcome
	Reason     string `json:"reason,omitempty"`
	// Line is that of the first return which no order explains, if violated;
	// Index is that of its event.
	Line  int   `json:"line,omitempty"`
	Index int64 `json:"index,omitempty"`

	stuck Op // the operation of that return, if there is one
}

// Activity counts what a history exercised. A history in which nothing
// happened shows nothing.
type Activity struct {
	Operations int `json:"operations"` // that the model checks
	Takeovers  int `json:"takeovers"`  // grants of a lease to another owner than the one before
	Writes     int `json:"writes"`     // under a fencing token that landed
	Stale      int `json:"stale"`      // writes and fences refused as stale
	Renewals   int `json:"renewals"`   // that succeeded
	Lapses     int `json:"lapses"`     // tenures that ended by themselves, as an answer or the next grant shows
	Unknown    int `json:"unknown"`    // operations with unknown outcome
}

// lacks says in what a falls short of want; empty if in nothing.
func (a Activity) lacks(want Activity) string {
	var short []string
	for _, c := range []struct {
		what      string
		have, min int
	}{
		{"operations", a.Operations, want.Operations},
		{"takeovers", a.Takeovers, want.Takeovers},
		{"fenced writes", a.Writes, want.Writes},
		{"stale writes refused", a.Stale, want.Stale},
		{"renewals", a.Renewals, want.Renewals},
		{"lapses", a.Lapses, want.Lapses},
		{"unknown outcomes", a.Unknown, want.Unknown},
	} {
		if c.have < c.min {
			short = append(short, fmt.Sprintf("%d %s where at least %d were asked for", c.have, c.what, c.min))
		}
	}
	return strings.Join(short, ", ")
}

// Linearizable is the verdict on the order of the answers alone, without the
// findings.
func (v Verdict) Linearizable() Result {
	worst := Holds
	for _, p := range v.Partitions {
		if p.Result == Violated {
			return Violated
		}
		if p.Result == Unknown {
			worst = Unknown
		}
	}
	return worst
}

// String is the verdict as a user reads it: the result, then a line for each
// thing that is wrong.
func (v Verdict) String() string {
	var b strings.Builder
	if v.File != "" {
		b.WriteString(v.File + ": ")
	}
	fmt.Fprintf(&b, "%s: %s, %d %s in %d %s", v.Model, v.Result, v.Activity.Operations, plural(v.Activity.Operations, "operation"),
		len(v.Partitions), plural(len(v.Partitions), "partition"))
	if a := v.Activity; v.Result == Holds && (a.Takeovers > 0 || a.Writes > 0 || a.Stale > 0) {
		fmt.Fprintf(&b, " (%d %s, %d fenced %s, %d stale refused)", a.Takeovers, plural(a.Takeovers, "takeover"), a.Writes, plural(a.Writes, "write"), a.Stale)
	}
	if v.Reason != "" && v.Result != Violated { // the lines below say it
		b.WriteString(": " + v.Reason)
	}
	for _, p := range v.Partitions {
		if p.Result != Holds {
			fmt.Fprintf(&b, "\n  %s: %s: %s", p.name(), p.Result, p.Reason)
		}
	}
	for _, f := range v.Findings {
		b.WriteString("\n  " + f.String())
	}
	if v.Chosen != "" {
		b.WriteString("\n  model chosen: " + v.Chosen)
	}
	if v.Reading != "" {
		b.WriteString("\n  read as a " + v.Reading)
	}
	for _, n := range v.Notes {
		b.WriteString("\n  note: " + n)
	}
	return b.String()
}

func (p Partition) name() string {
	if p.Key == "" {
		return p.Model
	}
	return p.Model + " " + quote(p.Key)
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}
