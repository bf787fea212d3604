package linearizability

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// overlaps reports two beliefs at one instant, and who is to blame: the earlier
// leader if it stayed beyond what its last grant allowed, else the store that
// granted the lease to another.
func (r *report) overlaps() {
	bySlot := make(map[slotName][]term)
	var names []slotName
	for _, t := range r.beliefs {
		if r.meta.Slots <= 1 {
			t.slot = noSlot // whatever it is called, there is one
		} else if t.slot == noSlot {
			continue // it may be any
		}
		name := slotName{t.key, t.slot}
		if bySlot[name] == nil {
			names = append(names, name)
		}
		bySlot[name] = append(bySlot[name], t)
	}
	for _, name := range names {
		ts := bySlot[name]
		slices.SortStableFunc(ts, func(a, b term) int { return cmp.Compare(a.begin, b.begin) })
		var running []term
		for _, b := range ts {
			running = slices.DeleteFunc(running, func(a term) bool { return a.end <= b.begin })
			for _, a := range running {
				if a.owner != b.owner || a.token != b.token {
					r.overlap(a, b)
				}
			}
			// Those that last longest are evidence enough against whoever comes.
			if running = append(running, b); len(running) > maxFindings {
				slices.SortStableFunc(running, func(a, b term) int { return cmp.Compare(b.end, a.end) })
				running = running[:maxFindings]
			}
		}
	}
}

func (r *report) overlap(a, b term) {
	both := min(a.end, b.end) - b.begin
	if both <= 0 {
		return
	}
	f := Finding{Check: checkOverlap, Key: a.key, Blame: BlameStore, Violates: true}
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
	lease := "the lease"
	if a.key != "" {
		lease = quote(a.key)
	}
	f.Text = fmt.Sprintf("%s%s and %s%s both led %s for %v: %s", quote(a.owner), r.under(a.shown), quote(b.owner), r.under(b.shown), lease, duration(both), why)
	r.add(f, a.shown, b.shown)
}

func duration(ns int64) string {
	if ns > int64(100*365*24*time.Hour) {
		return "the rest of the history"
	}
	return time.Duration(ns).String()
}

// overstayed reports beliefs that went on when their last grant no longer
// covered them, whether or not anybody else led. An end that nobody recorded
// shows nothing.
func (r *report) overstayed() {
	for _, t := range r.beliefs {
		if !t.led || t.endless || t.entitled == NoTime || t.end <= t.allowed {
			continue
		}
		f := Finding{Check: checkOverstayed, Key: t.key, Blame: BlameClient, Violates: true}
		over := t.end - t.allowed
		f.Text = fmt.Sprintf("%s led %s under token %d for %v longer than its last grant or renewal allowed", quote(t.owner), quote(t.key), t.token, duration(over))
		switch {
		case t.waived != "":
			f.Violates = false
			f.Text += ": " + t.waived
		case over <= 2*r.meta.Eps:
			f.Violates = false
			f.Text += ": within the error of the time stamps"
		}
		r.add(f, t.last, t.shown)
	}
}

// led reports beliefs under a token that was never granted to the believer.
func (r *report) led() {
	for _, t := range r.beliefs {
		if !t.led || !t.shown.hasToken || r.grants.may(t.key, t.owner, t.token, t.begun, t.begin) {
			continue
		}
		r.add(Finding{
			Check: checkUngranted, Key: t.key, Blame: BlameClient, Violates: true,
			Text: fmt.Sprintf("%s led %s under token %d, which it was not granted", quote(t.owner), quote(t.key), t.token),
		}, t.shown)
	}
}

// continuity reports a token under which somebody began to lead twice.
func (r *report) continuity() {
	if r.meta.Tokens == TokensNone {
		return
	}
	first := make(map[tokenOf]term)
	for _, t := range r.beliefs {
		if !t.led || !t.shown.hasToken {
			continue
		}
		was, again := first[tokenOf{t.key, t.token}]
		if !again {
			first[tokenOf{t.key, t.token}] = t
			continue
		}
		r.add(Finding{
			Check: checkContinuity, Key: t.key, Blame: BlameClient, Violates: true,
			Text: fmt.Sprintf("%s began to lead %s under token %d, under which %s had led before", quote(t.owner), quote(t.key), t.token, quote(was.owner)),
		}, was.shown, t.shown)
	}
}

// early reports grants that came before the TTL of an earlier tenure can have
// run out. Only what had returned before the grant was called counts against
// it, and nothing that the owner may have released, or an operator deleted.
func (r *report) early() {
	news := make(map[slotName][]*fact)
	var names []slotName
	seen := make(map[tokenOf]bool)
	for _, f := range r.grants.acquires {
		t := tokenOf{f.key, f.token}
		if f.found || f.from == NoTime || r.meta.Tokens != TokensNone && seen[t] {
			continue // no new tenure
		}
		seen[t] = true
		name := slotName{f.key, f.slot}
		if news[name] == nil {
			names = append(names, name)
		}
		news[name] = append(news[name], f)
	}
	for _, name := range names {
		extents := r.sweep.extents[name]
		// The tenures that last longest, of two owners and tokens.
		var longest, other *extent
		for _, b := range news[name] {
			for len(extents) > 0 && extents[0].place < b.call {
				switch e := &extents[0]; {
				case longest == nil || r.same(e.shown, longest.shown):
					if longest == nil || e.until > longest.until {
						longest = e
					}
				case e.until > longest.until:
					longest, other = e, longest
				case other == nil || e.until > other.until:
					other = e
				}
				extents = extents[1:]
			}
			a := longest
			if a != nil && r.same(a.shown, b) {
				a = other
			}
			if a == nil || a.until == NoTime || b.to+2*r.meta.Eps >= a.until || r.deleted(a.shown, b) {
				continue
			}
			r.add(Finding{
				Check: checkTakenEarly, Key: b.key, Blame: BlameStore, Violates: true,
				Text: fmt.Sprintf("%s was granted to %s%s at least %v before the TTL of %s%s can have run out", quote(b.key), quote(b.owner), r.under(b),
					duration(a.until-b.to), quote(a.shown.owner), r.under(a.shown)),
			}, a.shown, b)
		}
	}
}

// lapsed reports owners that were refused what they must still have held.
func (r *report) lapsed() {
	var all []refusal
	for _, list := range r.sweep.refused {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b refusal) int { return cmp.Compare(a.shown.call, b.shown.call) })
	for _, x := range all {
		f := x.shown
		if r.deleted(x.last, f) {
			continue
		}
		r.add(Finding{
			Check: checkLapsedEarly, Key: f.key, Blame: BlameStore, Violates: true,
			Text: fmt.Sprintf("%s was told that it no longer held %s%s at least %v before the TTL of its last grant or renewal can have run out",
				quote(f.owner), quote(f.key), r.under(f), duration(x.until-f.to)),
		}, x.last, f)
	}
}

// same reports whether two grants can be of one tenure.
func (r *report) same(a, b *fact) bool {
	return a.owner == b.owner && (r.meta.Tokens == TokensNone || a.token == b.token)
}

// under names the token of a grant, if there are tokens.
func (r *report) under(f *fact) string {
	if r.meta.Tokens == TokensNone {
		return ""
	}
	return fmt.Sprintf(" (token %d)", f.token)
}

// deleted reports whether an operator may have ended the tenure of a before b.
func (r *report) deleted(a, b *fact) bool {
	ret, ok := r.sweep.deletes[b.key].byCall.latest(b.ret)
	return ok && ret > a.call
}

// until is how long one fact lets a lease be held at most, by its owner.
type until struct {
	call, time int64
	shown      *fact
}

// orphans reports leases that were still held when the TTLs of all that can
// have made or prolonged them had run out, late as the store may be. Without a
// promise of lateness a lease need never lapse.
func (r *report) orphans() {
	if r.meta.Late == Unbounded {
		return
	}
	lasts := make(map[holding][]until) // the longest of those called before
	restarts := r.restarts()
	largest := make(map[string]int64)
	for i := range r.all {
		f := &r.all[i]
		if f.from == NoTime {
			return
		}
		if f.Type == Fail || f.kind != factAcquire && f.kind != factRenew {
			continue
		}
		u := until{f.call, Unbounded, f}
		if f.Type == OK {
			u.time = r.longest(f.to, f.ttl)
			largest[f.key] = max(largest[f.key], f.ttl)
		}
		for _, h := range []holding{{f.key, f.owner}, {f.key, ""}} {
			list := lasts[h]
			if n := len(list); n > 0 && list[n-1].time > u.time {
				u.time, u.shown = list[n-1].time, list[n-1].shown
			}
			lasts[h] = append(list, u)
		}
	}
	for i := range r.all {
		f := &r.all[i]
		if f.kind != factHolds {
			continue
		}
		list := lasts[holding{f.key, f.owner}]
		n, _ := slices.BinarySearchFunc(list, f.ret, func(u until, place int64) int { return cmp.Compare(u.call, place) })
		if n == 0 {
			continue
		}
		last := list[n-1]
		ends := last.time
		if to, ok := restarts.latest(f.ret); ok {
			ends = max(ends, r.longest(to, largest[f.key]))
		}
		if f.owner == "" {
			ends = plus(ends, r.meta.most(r.meta.LockDelay)) // a refusal may be its
		}
		if ends == Unbounded || f.from < plus(ends, 2*r.meta.Eps) {
			continue
		}
		who := "the lease"
		if f.owner != "" {
			who = "the lease of " + quote(f.owner)
		}
		r.add(Finding{
			Check: checkOrphan, Key: f.key, Blame: BlameStore, Violates: true,
			Text: fmt.Sprintf("%s on %s was still held %v after it must have lapsed, with nobody renewing it", who, quote(f.key), duration(f.from-ends)),
		}, last.shown, f)
	}
}

// restarts are the restarts of the store that may have happened: the places of
// their calls, and until when those up to them may have taken.
func (r *report) restarts() endings {
	var out endings
	for i := range r.all {
		switch f := &r.all[i]; {
		case f.kind != factRestart || f.Type == Fail:
		case f.Type == Info:
			out = append(out, ended{f.call, Unbounded})
		default:
			out = append(out, ended{f.call, f.to})
		}
	}
	out.sort()
	return out
}

// longest is until when a TTL that started at a time holds at most: on the
// slowest clock the store may have, and as late as it may be.
func (r *report) longest(from, ttl int64) int64 {
	return plus(plus(from, r.meta.most(ttl)), r.meta.Late)
}

// plus adds two times from 0; Unbounded stays so.
func plus(a, b int64) int64 {
	if a > Unbounded-b {
		return Unbounded
	}
	return a + b
}
