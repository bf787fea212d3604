package linearizability

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fencepost/model"
)

// Party is whom a Finding blames.
type Party string

// The parties.
const (
	BlameStore   Party = "store"   // granted what it must not
	BlameClient  Party = "client"  // acted without the right to
	BlameStorage Party = "storage" // let land what it must refuse, or lost what it must keep
	// BlameRecorder: the recording contradicts itself, whatever the service did.
	BlameRecorder Party = "recorder"
)

// Finding is one thing that is wrong beside the order of the answers.
type Finding struct {
	Check     string          `json:"check"` // names the anomaly: see Checks
	Invariant model.Invariant `json:"invariant"`
	Key       string          `json:"key,omitempty"` // of the lease or storage
	Blame     Party           `json:"blame"`
	Text      string          `json:"text"` // one sentence
	// Lines and Indexes name the events that show it, in order.
	Lines   []int   `json:"lines,omitempty"`
	Indexes []int64 `json:"indexes"`
	// Shows are these events, each as a line of JSON; empty if the history was
	// not kept.
	Shows []string `json:"shows,omitempty"`
	// Violates is false for what is only worth knowing: an overlap within the
	// error of the time stamps, or one after an operator deleted the lease, or a
	// fault of the recording.
	Violates bool `json:"violates"`
}

func (f Finding) String() string {
	where := make([]string, len(f.Indexes))
	for i := range f.Indexes {
		where[i] = fmt.Sprintf("event %d", f.Indexes[i])
		if i < len(f.Lines) {
			where[i] = fmt.Sprintf("line %d", f.Lines[i])
		}
	}
	note := ""
	if !f.Violates && f.Blame != BlameRecorder {
		note = " (no violation)"
	}
	return fmt.Sprintf("%s: %s; blame the %s%s (%s)", f.Check, f.Text, f.Blame, note, strings.Join(where, ", "))
}

// maxFindings bounds the findings of one check: what is broken once is
// often broken a thousand times.
const maxFindings = 10

// report collects findings.
type report struct {
	*facts
	grants  grants
	sweep   *sweep
	beliefs []term
	found   []Finding
	count   map[counted]int
}

// counted is what findings are bounded by: what is no violation must not crowd
// out what is.
type counted struct {
	check    string
	violates bool
}

// add reports what the events of the given operations show: of each the return,
// or the call where only that is evidence.
func (r *report) add(f Finding, shown ...*fact) {
	by := counted{f.Check, f.Violates}
	if r.count[by]++; r.count[by] > maxFindings {
		return
	}
	f.Invariant = checkNamed(f.Check).Invariant
	var at []place
	for _, x := range shown {
		switch {
		case f.Check == checkRenamed, f.Check == checkRetoken, f.Check == checkOverstayed && x.kind == factLead:
			at = append(at, x.called, x.returned)
		case x.Return < 0, x.kind == factLead, f.Check == checkOverstayed: // a TTL counts from the call
			at = append(at, x.called)
		default:
			at = append(at, x.returned)
		}
	}
	slices.SortFunc(at, func(a, b place) int { return cmp.Compare(a.index, b.index) })
	for _, p := range slices.Compact(at) {
		f.Indexes = append(f.Indexes, p.index)
		if p.line > 0 {
			f.Lines = append(f.Lines, int(p.line))
		}
	}
	r.found = append(r.found, f)
}

// judge looks for what an order of the answers alone does not show, or does not
// name: who believed too long, which token went wrong, which write landed too
// late. Each check is by itself, takes n log n time, and reports nothing that
// some legal history also shows.
func (x *facts) judge() (beliefs []term, found []Finding) {
	r := &report{facts: x, grants: x.grants(), sweep: x.follow(), count: make(map[counted]int)}
	r.beliefs = r.sweep.beliefs()
	r.overlaps()
	r.overstayed()
	r.led()
	r.continuity()
	r.early()
	r.lapsed()
	r.orphans()
	r.tokens()
	r.gaps()
	r.already()
	r.slots()
	r.writes()
	r.lost()
	r.landed()
	r.recorder()
	return r.beliefs, r.found
}
