package linearizability

import (
	"cmp"
	"fmt"
	"slices"
)

// seen is a token that a storage had processed by the return of an operation.
type seen struct {
	ret   int64
	token uint64
	shown *fact
}

// storage names the part of a storage that has a highest token of its own.
func (r *report) storage(key string, slot int16) slotName {
	if r.meta.Slots <= 1 {
		slot = noSlot
	}
	return slotName{key, slot}
}

// writes reports writes that landed and must not: under a token below one that
// the storage had processed, below one that somebody already led under where
// there is a barrier, or under one that was not granted to the sender.
func (r *report) writes() {
	highest := r.processed()
	for i := range r.all {
		w := &r.all[i]
		if w.kind != factWrite || w.Type != OK || !w.hasToken {
			continue
		}
		list := highest[r.storage(w.key, w.slot)]
		n, _ := slices.BinarySearchFunc(list, w.call, func(a seen, place int64) int { return cmp.Compare(a.ret, place) })
		if n > 0 && list[n-1].token > w.token {
			r.add(Finding{
				Check: checkStale, Key: w.key, Blame: BlameStorage, Violates: true,
				Text: fmt.Sprintf("a write of %s to %s landed with token %d after the storage had processed %d", quote(w.owner), quote(w.key), w.token, list[n-1].token),
			}, list[n-1].shown, w)
		}
		if w.owner != "" && !r.grants.may(r.leaseOf(w.key), w.owner, w.token, w.ret, w.to) {
			r.add(Finding{
				Check: checkWrite, Key: w.key, Blame: BlameClient, Violates: true,
				Text: fmt.Sprintf("a write of %s to %s landed with token %d, which it was not granted", quote(w.owner), quote(w.key), w.token),
			}, w)
		}
	}
	if r.meta.Barrier {
		r.barrier()
	}
}

// processed lists, for each storage in the order of the returns, the highest
// token that it had processed by then.
func (r *report) processed() map[slotName][]seen {
	lists := make(map[slotName][]seen)
	for i := range r.all {
		f := &r.all[i]
		if f.kind != factWrite && f.kind != factFence || f.Return < 0 || f.Type == Info {
			continue
		}
		token := f.token
		switch {
		case f.Type == OK:
		case !f.stale:
			continue
		case f.named:
			token = f.number
		default:
			token++
		}
		at := r.storage(f.key, f.slot)
		lists[at] = append(lists[at], seen{f.ret, token, f})
	}
	for _, list := range lists {
		slices.SortFunc(list, func(a, b seen) int { return cmp.Compare(a.ret, b.ret) })
		for i := range list {
			if i > 0 && list[i-1].token > list[i].token {
				list[i].token, list[i].shown = list[i-1].token, list[i-1].shown
			}
		}
	}
	return lists
}

// barrier reports landed writes below the token of a leader of their own lease
// who had begun to lead before their call. Whose belief is not on record has
// begun to lead when it writes: until then it may wait for a fence. A leader that
// fenced or wrote to some storages need not have fenced the others.
func (r *report) barrier() {
	type leader struct {
		begun, begin int64
		highest      *term
	}
	type used struct{ lease, storage string } // by whoever used none on record: any, ""
	leaders := make(map[used][]leader)
	wrote := make(map[fence]*fact) // what was called first
	uses := make(map[fence][]string)
	for i := range r.all {
		f := &r.all[i]
		if f.kind != factWrite && f.kind != factFence || !f.sent {
			continue
		}
		by := fence{f.owner, f.token}
		if f.kind == factWrite && wrote[by] == nil {
			wrote[by] = f
		}
		if !slices.Contains(uses[by], f.key) {
			uses[by] = append(uses[by], f.key)
		}
	}
	for i := range r.beliefs {
		t := &r.beliefs[i]
		by := fence{t.owner, t.token}
		l := leader{t.begun, t.begin, t}
		if !t.led {
			w := wrote[by]
			if w == nil || !slices.Equal(r.grants.leases[by], []string{t.key}) {
				continue
			}
			l.begun, l.begin = max(l.begun, w.call), max(l.begin, w.from)
		}
		storages := uses[by]
		if len(storages) == 0 {
			storages = []string{""}
		}
		for _, storage := range storages {
			leaders[used{t.key, storage}] = append(leaders[used{t.key, storage}], l)
		}
	}
	for _, list := range leaders {
		slices.SortStableFunc(list, func(a, b leader) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.begun, b.begun)) })
		for i := range list {
			if i > 0 && list[i-1].highest.token >= list[i].highest.token {
				list[i].highest = list[i-1].highest
			}
			if i > 0 {
				list[i].begun = max(list[i].begun, list[i-1].begun)
			}
		}
	}
	for i := range r.all {
		w := &r.all[i]
		if w.kind != factWrite || w.Type != OK || !w.hasToken || w.from == NoTime {
			continue
		}
		for _, key := range r.grants.of(w.key, w.owner, w.token) {
			var t *term
			for _, storage := range []string{w.key, ""} {
				list := leaders[used{key, storage}]
				n, _ := slices.BinarySearchFunc(list, w.from-2*r.meta.Eps, func(l leader, time int64) int {
					if l.begin <= time {
						return -1
					}
					return 1
				})
				for n > 0 && list[n-1].begun >= w.call {
					n-- // at one instant, the order of the events decides
				}
				if n > 0 && (t == nil || list[n-1].highest.token > t.token) {
					t = list[n-1].highest
				}
			}
			if t == nil || t.token <= w.token {
				continue
			}
			r.add(Finding{
				Check: checkBarrier, Key: w.key, Blame: BlameClient, Violates: true,
				Text: fmt.Sprintf("a write of %s to %s landed with token %d after %s had begun to lead %s under %d", quote(w.owner), quote(w.key), w.token, quote(t.owner), quote(key), t.token),
			}, t.shown, w)
			break
		}
	}
}

// leaseOf is the lease under whose tokens alone a storage is written to, empty
// if it may be any: a lease with slots has the storage of its name.
func (r *report) leaseOf(storage string) string {
	if r.meta.Slots > 0 && r.grants.keys[storage] {
		return storage
	}
	return ""
}

// cellValue is a value of one key of a storage.
type cellValue struct {
	cell  int32
	value uint64
}

// lost reports reads that show older than a write that had been acknowledged
// before they were called: every write of what they show had returned before
// that one was called.
func (r *report) lost() {
	latest := make(map[cellValue]int64) // return of the last write of the value
	acked := make(map[int32][]*fact)    // by return
	for i := range r.all {
		w := &r.all[i]
		if w.kind != factWrite || w.Type == Fail {
			continue
		}
		at := cellValue{w.cell, w.number}
		latest[at] = max(latest[at], w.ret)
		if w.Type == OK {
			acked[w.cell] = append(acked[w.cell], w)
		}
	}
	for _, list := range acked {
		slices.SortFunc(list, func(a, b *fact) int { return cmp.Compare(a.ret, b.ret) })
	}
	// Of those that returned first, the one called last.
	newest := make(map[int32][]*fact, len(acked))
	for cell, list := range acked {
		top := slices.Clone(list)
		for i := range top {
			if i > 0 && top[i-1].call > top[i].call {
				top[i] = top[i-1]
			}
		}
		newest[cell] = top
	}
	for i := range r.all {
		f := &r.all[i]
		if f.kind != factRead {
			continue
		}
		n, _ := slices.BinarySearchFunc(acked[f.cell], f.call, func(w *fact, place int64) int { return cmp.Compare(w.ret, place) })
		shown, written := latest[cellValue{f.cell, f.number}]
		if n == 0 || !written && f.number != 0 {
			continue // a value from nowhere, which the order of the answers shows
		}
		if w := newest[f.cell][n-1]; w.call > shown {
			r.add(Finding{
				Check: checkLost, Key: f.key, Blame: BlameStorage, Violates: true,
				Text: fmt.Sprintf("a read of %s shows older than a write of %s (token %d) that had been acknowledged before", quote(f.key), quote(w.owner), w.token),
			}, w, f)
		}
	}
}

// landed judges what storages say has landed, in order.
func (r *report) landed() {
	lists := make(map[int64]*fact)
	byKey := make(map[string][]*fact) // the lists of one storage; of all, for the empty key
	for i := range r.all {
		if f := &r.all[i]; f.kind == factLanded {
			lists[f.call] = f
			byKey[f.key] = append(byKey[f.key], f)
		}
	}
	if len(lists) == 0 {
		return
	}
	type written struct{ key, id string }
	writes := make(map[written]*fact)
	for i := range r.all {
		if f := &r.all[i]; f.kind == factWrite && r.ids[f.call] != "" {
			writes[written{f.key, r.ids[f.call]}] = f
		}
	}
	granted := make(map[tokenOf]*fact)
	for _, f := range r.grants.known {
		if granted[tokenOf{f.key, f.token}] == nil {
			granted[tokenOf{f.key, f.token}] = f
		}
	}
	type part struct {
		of int64
		at slotName
	}
	highest := make(map[part]record)
	has := make(map[int64]map[written]bool)
	for _, c := range r.records {
		list := lists[c.of]
		bad := func(check string, blame Party, also *fact, format string, args ...any) {
			f := Finding{Check: check, Key: c.key, Blame: blame, Violates: true, Text: fmt.Sprintf(format, args...)}
			if also == nil {
				r.add(f, list)
			} else {
				r.add(f, also, list)
			}
		}
		id := written{c.key, c.id}
		if has[c.of] == nil {
			has[c.of] = make(map[written]bool)
		}
		has[c.of][id] = true
		w := writes[id]
		switch {
		case c.id == "":
		case w == nil:
			bad(checkPhantom, BlameStorage, nil, "record %d of %s is %s, which nobody wrote", c.position, quote(c.key), quote(c.id))
		case w.Type == Fail:
			bad(checkPhantom, BlameStorage, w, "record %d of %s is %s, whose write was refused", c.position, quote(c.key), quote(c.id))
		case w.call > list.ret:
			bad(checkPhantom, BlameStorage, w, "record %d of %s is %s, which was written later", c.position, quote(c.key), quote(c.id))
		}
		for _, key := range r.grants.of(c.key, c.owner, c.token) {
			if g := granted[tokenOf{key, c.token}]; g != nil && c.owner != "" && g.owner != c.owner && !r.grants.may(r.leaseOf(c.key), c.owner, c.token, list.ret, list.to) {
				bad(checkTwoOwners, BlameClient, g, "record %d of %s has token %d in the name of %s, to whom it was not granted but to %s",
					c.position, quote(c.key), c.token, quote(c.owner), quote(g.owner))
			}
		}
		if c.owner != "" && !r.grants.may(r.leaseOf(c.key), c.owner, c.token, list.ret, list.to) {
			bad(checkWrite, BlameClient, nil, "record %d of %s has token %d in the name of %s, to whom it was not granted", c.position, quote(c.key), c.token, quote(c.owner))
		}
		if r.meta.Slots > 0 && int(c.slot) >= r.meta.Slots {
			bad(checkSlot, BlameStore, nil, "record %d of %s is of slot %d of a lease that has %d", c.position, quote(c.key), c.slot, r.meta.Slots)
		}
		at := part{c.of, r.storage(c.key, c.slot)}
		if top, ok := highest[at]; ok && top.token > c.token {
			bad(checkStale, BlameStorage, nil, "record %d of %s has token %d after record %d has %d", c.position, quote(c.key), c.token, top.position, top.token)
		} else {
			highest[at] = c
		}
	}
	for i := range r.all {
		w := &r.all[i]
		id := written{w.key, r.ids[w.call]}
		if w.kind != factWrite || w.Type != OK || id.id == "" {
			continue
		}
		for _, key := range slices.Compact([]string{"", w.key}) {
			for _, l := range byKey[key] {
				if r.count[counted{checkLost, true}] > maxFindings {
					return // each looks at all lists
				}
				if l.call > w.ret && !has[l.call][id] {
					r.add(Finding{
						Check: checkLost, Key: w.key, Blame: BlameStorage, Violates: true,
						Text: fmt.Sprintf("%s was written to %s under token %d and acknowledged, and is not among what landed", quote(id.id), quote(w.key), w.token),
					}, w, l)
				}
			}
		}
	}
}
