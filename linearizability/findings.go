package linearizability

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fencepost/model"
)

// Party is whom a Finding blames.
type Party string

// The parties.
const (
	BlameStore   Party = "store"   // granted what it must not
	BlameClient  Party = "client"  // acted without the right to
	BlameStorage Party = "storage" // let land what it must refuse
)

// Finding is one thing that is wrong beside the order of the answers.
type Finding struct {
	Invariant model.Invariant `json:"invariant"`
	Key       string          `json:"key,omitempty"` // of the lease or storage
	Blame     Party           `json:"blame"`
	Text      string          `json:"text"` // one sentence
	// Lines and Indexes name the events that show it, in order.
	Lines   []int   `json:"lines,omitempty"`
	Indexes []int64 `json:"indexes"`
	// Violates is false for what is only worth knowing: an overlap within the
	// error of the time stamps, or one after an operator deleted the lease.
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
	if !f.Violates {
		note = " (no violation)"
	}
	return fmt.Sprintf("%s: %s; blame the %s%s (%s)", f.Invariant, f.Text, f.Blame, note, strings.Join(where, ", "))
}

// maxFindings bounds the findings of one invariant: what is broken once is
// often broken a thousand times.
const maxFindings = 10

// report collects findings.
type report struct {
	meta  *Meta
	found []Finding
	count map[model.Invariant]int
}

// add reports what the events of the given operations show.
func (r *report) add(f Finding, shown ...*fact) {
	if r.count[f.Invariant]++; r.count[f.Invariant] > maxFindings {
		return
	}
	var at []place
	for _, x := range shown {
		if x.Return >= 0 && x.kind != factLead {
			at = append(at, x.returned)
		} else {
			at = append(at, x.called)
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

// findings looks for what an order of the answers alone does not show, or does
// not name: who believed too long, which token went wrong, which write landed
// too late. Each invariant is judged by itself.
func (x *facts) findings(beliefs []term) []Finding {
	r := &report{meta: x.meta, count: make(map[model.Invariant]int)}
	r.overlaps(beliefs)
	r.continuity(beliefs)
	g := x.grants()
	r.tokens(g, x.all)
	r.led(g, beliefs)
	r.writes(g, x.all, beliefs)
	return r.found
}

// overlaps reports two beliefs at one instant (invariant 3), and who is to
// blame: the earlier leader if it stayed beyond what its last grant allowed,
// else the store that granted the lease to another.
func (r *report) overlaps(beliefs []term) {
	byKey := make(map[string][]term)
	var keys []string
	for _, t := range beliefs {
		if byKey[t.key] == nil {
			keys = append(keys, t.key)
		}
		byKey[t.key] = append(byKey[t.key], t)
	}
	for _, key := range keys {
		ts := byKey[key]
		slices.SortStableFunc(ts, func(a, b term) int { return cmp.Compare(a.begin, b.begin) })
		var running []term
		for _, b := range ts {
			running = slices.DeleteFunc(running, func(a term) bool { return a.end <= b.begin })
			for _, a := range running {
				if a.owner != b.owner || a.token != b.token {
					r.overlap(a, b)
				}
			}
			running = append(running, b)
		}
	}
}

func (r *report) overlap(a, b term) {
	both := min(a.end, b.end) - b.begin
	f := Finding{Invariant: model.BeliefSafety, Key: a.key, Blame: BlameStore, Violates: true}
	why := "the store granted the lease before it could have lapsed"
	if a.led && a.entitled <= b.begin {
		f.Blame = BlameClient
		why = fmt.Sprintf("%s stayed beyond its last successful renewal", quote(a.owner))
	}
	if a.entitled == NoTime {
		why = fmt.Sprintf("no grant to %s is on record", quote(a.owner))
	}
	switch {
	case a.waived != "" || b.waived != "":
		f.Violates = false
		why = cmp.Or(a.waived, b.waived)
	case both <= 2*r.meta.Eps:
		f.Violates = false
		why = "within the error of the time stamps"
	}
	f.Text = fmt.Sprintf("%s (token %d) and %s (token %d) both led %s for %v: %s",
		quote(a.owner), a.token, quote(b.owner), b.token, quote(a.key), duration(both), why)
	r.add(f, a.shown, b.shown)
}

func duration(ns int64) string {
	if ns > int64(100*365*24*time.Hour) {
		return "the rest of the history"
	}
	return time.Duration(ns).String()
}

// continuity reports a token under which somebody began to lead twice
// (invariant 5).
func (r *report) continuity(beliefs []term) {
	if r.meta.Tokens == TokensNone {
		return
	}
	type tenure struct {
		key   string
		token uint64
	}
	first := make(map[tenure]term)
	for _, t := range beliefs {
		if !t.led {
			continue
		}
		was, again := first[tenure{t.key, t.token}]
		if !again {
			first[tenure{t.key, t.token}] = t
			continue
		}
		r.add(Finding{
			Invariant: model.Continuity, Key: t.key, Blame: BlameClient, Violates: true,
			Text: fmt.Sprintf("%s began to lead %s under token %d, under which %s had led before", quote(t.owner), quote(t.key), t.token, quote(was.owner)),
		}, was.shown, t.shown)
	}
}

// led reports beliefs under a token that was never granted to the believer
// (invariant 4).
func (r *report) led(g grants, beliefs []term) {
	for _, t := range beliefs {
		if !t.led || g.may(t.key, t.owner, t.token, t.begun) {
			continue
		}
		r.add(Finding{
			Invariant: model.BeliefOwnership, Key: t.key, Blame: BlameClient, Violates: true,
			Text: fmt.Sprintf("%s led %s under token %d, which it was not granted", quote(t.owner), quote(t.key), t.token),
		}, t.shown)
	}
}

// tokens reports grants whose tokens break monotonicity (invariant 1): one for
// two owners, one below an earlier one, one granted anew after its release.
func (r *report) tokens(g grants, all []fact) {
	if r.meta.Tokens == TokensNone {
		return
	}
	released := make(map[tokenOf]*fact)
	for i := range all {
		if f := &all[i]; f.kind == factRelease && f.Type == OK {
			released[tokenOf{f.key, f.token}] = f
		}
	}
	highest := make(map[string]*fact)
	owner := make(map[tokenOf]*fact)
	// In the order of the calls, with the returns that came before each.
	byReturn := slices.Clone(g.known)
	slices.SortFunc(byReturn, func(a, b *fact) int { return cmp.Compare(a.ret, b.ret) })
	bad := func(text string, a, b *fact) {
		r.add(Finding{Invariant: model.TokenMonotonicity, Key: a.key, Blame: BlameStore, Text: text, Violates: true}, a, b)
	}
	for _, b := range g.known {
		for len(byReturn) > 0 && byReturn[0].ret < b.call {
			if a := byReturn[0]; highest[a.key] == nil || a.token > highest[a.key].token {
				highest[a.key] = a
			}
			byReturn = byReturn[1:]
		}
		t := tokenOf{b.key, b.token}
		if a := owner[t]; a == nil {
			owner[t] = b
		} else if a.owner != b.owner {
			bad(fmt.Sprintf("token %d of %s was granted to %s and to %s", b.token, quote(b.key), quote(a.owner), quote(b.owner)), a, b)
		}
		if a := highest[b.key]; a != nil && b.token < a.token {
			bad(fmt.Sprintf("token %d of %s was granted to %s after %d to %s", b.token, quote(b.key), quote(b.owner), a.token, quote(a.owner)), a, b)
		}
		if a := released[t]; a != nil && a.ret < b.call {
			bad(fmt.Sprintf("token %d of %s was granted to %s after its release", b.token, quote(b.key), quote(b.owner)), a, b)
		}
	}
}

// writes reports writes that landed and must not: under a token below one that
// the storage had processed (invariant 2), below one that somebody already led
// under where there is a barrier (9), or under one that was not granted to the
// sender (10).
func (r *report) writes(g grants, all []fact, beliefs []term) {
	type seen struct {
		*fact
		token uint64
	}
	byStorage := make(map[string][]seen)
	for i := range all {
		f := &all[i]
		if f.kind != factWrite && f.kind != factFence || f.Return < 0 || f.Type == Info {
			continue
		}
		token := f.token
		switch {
		case f.Type == OK:
		case !f.stale:
			continue
		case f.named:
			token = f.highest
		default:
			token++
		}
		byStorage[f.key] = append(byStorage[f.key], seen{f, token})
	}
	for _, list := range byStorage {
		slices.SortFunc(list, func(a, b seen) int { return cmp.Compare(a.ret, b.ret) })
	}
	// The highest of those that returned first.
	highest := make(map[string][]seen, len(byStorage))
	for key, list := range byStorage {
		top := slices.Clone(list)
		for i := range top {
			if i > 0 && top[i-1].token > top[i].token {
				top[i] = top[i-1]
			}
		}
		highest[key] = top
	}
	for i := range all {
		w := &all[i]
		if w.kind != factWrite || w.Type != OK {
			continue
		}
		f := Finding{Key: w.key, Blame: BlameStorage, Violates: true}
		n, _ := slices.BinarySearchFunc(byStorage[w.key], w.call, func(a seen, place int64) int { return cmp.Compare(a.ret, place) })
		if n > 0 && highest[w.key][n-1].token > w.token {
			top := highest[w.key][n-1]
			f.Invariant = model.StorageSafety
			f.Text = fmt.Sprintf("a write of %s to %s landed with token %d after the storage had processed %d", quote(w.owner), quote(w.key), w.token, top.token)
			r.add(f, top.fact, w)
		}
		if r.meta.Barrier {
			r.barrier(w, beliefs)
		}
		if w.owner != "" && !g.may("", w.owner, w.token, w.ret) {
			f.Invariant, f.Blame = model.Attribution, BlameClient
			f.Text = fmt.Sprintf("a write of %s to %s landed with token %d, which it was not granted", quote(w.owner), quote(w.key), w.token)
			r.add(f, w)
		}
	}
}

// barrier judges one landed write by who had begun to lead before its call.
func (r *report) barrier(w *fact, beliefs []term) {
	call := w.from - 2*r.meta.Eps
	for _, t := range beliefs {
		if t.begun < w.call && t.begin <= call && t.token > w.token {
			r.add(Finding{
				Invariant: model.Barrier, Key: w.key, Blame: BlameClient, Violates: true,
				Text: fmt.Sprintf("a write of %s to %s landed with token %d after %s had begun to lead under %d", quote(w.owner), quote(w.key), w.token, quote(t.owner), t.token),
			}, t.shown, w)
			return
		}
	}
}
