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
	h     *History
	found []Finding
	count map[model.Invariant]int
}

// add reports what the events of the given operations show.
func (r *report) add(f Finding, ops ...Op) {
	if r.count[f.Invariant]++; r.count[f.Invariant] > maxFindings {
		return
	}
	var at []int
	for _, op := range ops {
		if op.Return >= 0 && r.h.Events[op.Call].F != "lead" {
			at = append(at, op.Return)
		} else {
			at = append(at, op.Call)
		}
	}
	slices.Sort(at)
	for _, pos := range slices.Compact(at) {
		e := &r.h.Events[pos]
		f.Indexes = append(f.Indexes, e.Index)
		if e.Line > 0 {
			f.Lines = append(f.Lines, e.Line)
		}
	}
	r.found = append(r.found, f)
}

// findings looks for what an order of the answers alone does not show, or does
// not name: who believed too long, which token went wrong, which write landed
// too late. Each invariant is judged by itself.
func findings(h *History, spans []span, beliefs []term) []Finding {
	r := &report{h: h, count: make(map[model.Invariant]int)}
	r.overlaps(beliefs)
	r.continuity(beliefs)
	g := grantsOf(h, spans)
	r.tokens(g, spans)
	r.led(g, beliefs)
	r.writes(g, spans, beliefs)
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
	case both <= 2*r.h.Meta.Eps:
		f.Violates = false
		why = "within the error of the time stamps"
	}
	f.Text = fmt.Sprintf("%s (token %d) and %s (token %d) both led %s for %v: %s",
		quote(a.owner), a.token, quote(b.owner), b.token, quote(a.key), duration(both), why)
	r.add(f, a.op, b.op)
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
	if r.h.Meta.Tokens == TokensNone {
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
		}, was.op, t.op)
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
		}, t.op)
	}
}

// tokens reports grants whose tokens break monotonicity (invariant 1): one for
// two owners, one below an earlier one, one granted anew after its release.
func (r *report) tokens(g grants, spans []span) {
	if r.h.Meta.Tokens == TokensNone {
		return
	}
	released := make(map[tokenOf]span)
	for _, s := range spans {
		if r.h.Events[s.Call].F == "release" && s.Type == OK {
			token, _ := r.h.field(s.Op, "token").Uint()
			released[tokenOf{r.h.name(s.Op, "key"), token}] = s
		}
	}
	highest := make(map[string]grant)
	owner := make(map[tokenOf]grant)
	// In the order of the calls, with the returns that came before each.
	byReturn := slices.Clone(g.known)
	slices.SortFunc(byReturn, func(a, b grant) int { return cmp.Compare(a.ret, b.ret) })
	bad := func(text string, ops ...Op) {
		f := Finding{Invariant: model.TokenMonotonicity, Key: r.h.name(ops[0], "key"), Blame: BlameStore, Text: text, Violates: true}
		r.add(f, ops...)
	}
	for _, b := range g.known {
		for len(byReturn) > 0 && byReturn[0].ret < b.call {
			if a := byReturn[0]; a.token > highest[a.key].token {
				highest[a.key] = a
			}
			byReturn = byReturn[1:]
		}
		t := tokenOf{b.key, b.token}
		if a, ok := owner[t]; !ok {
			owner[t] = b
		} else if a.owner != b.owner {
			bad(fmt.Sprintf("token %d of %s was granted to %s and to %s", b.token, quote(b.key), quote(a.owner), quote(b.owner)), a.Op, b.Op)
		}
		if a := highest[b.key]; b.token < a.token {
			bad(fmt.Sprintf("token %d of %s was granted to %s after %d to %s", b.token, quote(b.key), quote(b.owner), a.token, quote(a.owner)), a.Op, b.Op)
		}
		if a, ok := released[t]; ok && a.ret < b.call {
			bad(fmt.Sprintf("token %d of %s was granted to %s after its release", b.token, quote(b.key), quote(b.owner)), a.Op, b.Op)
		}
	}
}

// writes reports writes that landed and must not: under a token below one that
// the storage had processed (invariant 2), below one that somebody already led
// under where there is a barrier (9), or under one that was not granted to the
// sender (10).
func (r *report) writes(g grants, spans []span, beliefs []term) {
	h := r.h
	type seen struct {
		place int64
		span
		token uint64
	}
	byStorage := make(map[string][]seen)
	for _, s := range spans {
		f := h.Events[s.Call].F
		if f != "write" && f != "fence" || s.Return < 0 || s.Type == Info {
			continue
		}
		token, _ := h.Events[s.Call].Field("token").Uint()
		if s.Type == Fail {
			highest, named := h.Events[s.Return].Field("highest").Uint()
			switch {
			case h.errorWord(s.Op) != "stale":
				continue
			case named:
				token = highest
			default:
				token++
			}
		}
		key := h.name(s.Op, "key")
		byStorage[key] = append(byStorage[key], seen{s.ret, s, token})
	}
	for _, list := range byStorage {
		slices.SortFunc(list, func(a, b seen) int { return cmp.Compare(a.place, b.place) })
		for i := range list {
			if i > 0 && list[i-1].token > list[i].token {
				list[i].token, list[i].span = list[i-1].token, list[i-1].span
			}
		}
	}
	for _, s := range spans {
		if h.Events[s.Call].F != "write" || s.Type != OK {
			continue
		}
		token, _ := h.Events[s.Call].Field("token").Uint()
		key, owner := h.name(s.Op, "key"), h.name(s.Op, "owner")
		f := Finding{Key: key, Blame: BlameStorage, Violates: true}
		list := byStorage[key]
		i, _ := slices.BinarySearchFunc(list, s.call, func(a seen, place int64) int { return cmp.Compare(a.place, place) })
		if i > 0 && list[i-1].token > token {
			f.Invariant = model.StorageSafety
			f.Text = fmt.Sprintf("a write of %s to %s landed with token %d after the storage had processed %d", quote(owner), quote(key), token, list[i-1].token)
			r.add(f, list[i-1].Op, s.Op)
		}
		if h.Meta.Barrier {
			r.barrier(s, token, owner, key, beliefs)
		}
		if owner != "" && !g.may("", owner, token, s.ret) {
			f.Invariant, f.Blame = model.Attribution, BlameClient
			f.Text = fmt.Sprintf("a write of %s to %s landed with token %d, which it was not granted", quote(owner), quote(key), token)
			r.add(f, s.Op)
		}
	}
}

// barrier judges one landed write by who had begun to lead before its call.
func (r *report) barrier(s span, token uint64, owner, key string, beliefs []term) {
	call := r.h.Events[s.Call].Time - 2*r.h.Meta.Eps
	for _, t := range beliefs {
		if t.begun < s.call && t.begin <= call && t.token > token {
			r.add(Finding{
				Invariant: model.Barrier, Key: key, Blame: BlameClient, Violates: true,
				Text: fmt.Sprintf("a write of %s to %s landed with token %d after %s had begun to lead under %d", quote(owner), quote(key), token, quote(t.owner), t.token),
			}, t.op, s.Op)
			return
		}
	}
}
