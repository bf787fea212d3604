package linearizability

import "slices"

// A stray is an unknown action that asks for something in the name of an owner
// of whom the rest of the history does not speak: every known action that names
// him has returned, and he will not call again. An unknown acquire of a lease
// stays available for ever, and a service with a name for each incarnation of a
// client leaves ever more of them behind. But nothing that follows can tell one
// stray owner from another. So a way need not know which of them it has used,
// only how many are left; and of two ways that were led to one state, the one
// with more left can do whatever the other can.
//
// One owner may have left several acquires behind. Whoever used one of them is
// the holder, and may use the others to prolong his tenure. So strays are counted
// by how many an owner has: a way with more owners of at least k, for each k, has
// more left.

// strayRules are what a machine knows of strays.
type strayRules struct {
	// of gives the owner of an action, and what it asks for. The action can be a
	// stray only if ok.
	of func(a *action) (owner int32, asks int64, ok bool)
	// silent is the place from which on the history speaks of an owner no more.
	silent func(owner int32) int64
	// before reports that whatever follows a state takes effect after the call of
	// an action.
	before func(state any, a *action) bool
	// holder is the owner to whom another action of his would make a difference.
	holder func(state any) int32
	// grant is a step by a stray owner who was not the holder; he then passes for
	// strayOwner. again is one by strayOwner.
	grant, again func(state any, asks int64) (any, bool)
	// may, idle, late and hindsight are as those of forward.
	may       func(before, after any, asks int64) bool
	idle      func(state any, asks int64) bool
	late      func(state any, asks int64) bool
	hindsight func(state any, asks int64) (any, bool)
}

const (
	// maxStrays is how many actions of one owner may become strays.
	maxStrays = 8
	// maxAsks is how many different things strays may ask for.
	maxAsks = 16
	// joinEvery is after how many returns a walk looks for new strays.
	joinEvery = 64
)

// strayed is an owner whose actions have become strays, by any way.
type strayed struct {
	owner   int32
	asks    int64
	actions []int32
}

// strayUse is a stray in an order: which one it was is found out at the end.
type strayUse struct {
	asks   int64
	has    int  // of a grant: how many its owner had
	again  bool // by the holder
	other  bool // of a grant: by another than the last who used a stray, who is the holder still
	joined int  // of the strayed there were
}

// spare is how many strays a way has left.
type spare struct {
	// owners counts those who have at least k that ask for the same, at position
	// maxStrays*a+k-1 for the a-th thing asked for. What is beyond its end is 0.
	owners []int32
	held   int32 // how many more strayOwner has, who is the holder
	asks   int32 // for which thing
}

// exactly counts the owners who have k left that ask for the a-th thing.
func (s *spare) exactly(a, k int) int32 {
	at := maxStrays*a + k - 1
	if at >= len(s.owners) {
		return 0
	}
	n := s.owners[at]
	if k < maxStrays {
		n -= s.owners[at+1]
	}
	return n
}

// add counts an owner who has k, or one less.
func (s *spare) add(a, k int, by int32) {
	if k == 0 {
		return
	}
	if end := maxStrays * (a + 1); len(s.owners) < end {
		s.owners = append(s.owners, make([]int32, end-len(s.owners))...)
	}
	for i := range k {
		s.owners[maxStrays*a+i] += by
	}
}

// more reports whether s has no less than t.
func (s *spare) more(t *spare) bool {
	if s.held < t.held || s.held > 0 && t.held > 0 && s.asks != t.asks {
		return false
	}
	for i, n := range t.owners {
		if n > 0 && (i >= len(s.owners) || s.owners[i] < n) {
			return false
		}
	}
	return true
}

// left has the holder's strays counted with the others, if he is it no more.
func (f *frontier) left(w *way) {
	if w.spare.held > 0 && f.machine.strays.holder(w.state) != strayOwner {
		w.spare.owners = slices.Clone(w.spare.owners)
		w.spare.add(int(w.spare.asks), int(w.spare.held), 1)
		w.spare.held = 0
	}
}

// leadStrays goes on from w by each stray that can come next. It reports whether
// one may be used in hindsight.
func (f *frontier) leadStrays(x int32, w *way) (late bool) {
	r := f.machine.strays
	for a, asks := range f.asks {
		var state any
		ok, tried := false, false
		for k := 1; k <= maxStrays && maxStrays*a+k <= len(w.spare.owners) && (ok || !tried); k++ {
			if w.spare.exactly(a, k) == 0 {
				continue
			}
			if !tried {
				tried = true
				if r.idle(w.state, asks) || !f.step() {
					break
				}
				state, ok = r.grant(w.state, asks)
			}
			if ok {
				f.stray(x, w, state, strayUse{asks: asks, has: k, other: w.spare.held > 0}, a, false)
			}
		}
	}
	if w.spare.held == 0 {
		return false
	}
	a := int(w.spare.asks)
	asks := f.asks[a]
	if !r.idle(w.state, asks) && f.step() {
		if state, ok := r.again(w.state, asks); ok {
			f.stray(x, w, state, strayUse{asks: asks, again: true}, a, false)
		}
	}
	return f.machine.late != nil && r.late(w.state, asks)
}

// strayInHindsight lets the holder use one of his strays in hindsight.
func (f *frontier) strayInHindsight(x int32, w *way) {
	if w.spare.held == 0 || !f.machine.strays.late(w.state, f.asks[w.spare.asks]) || !f.step() {
		return
	}
	asks := f.asks[w.spare.asks]
	if state, ok := f.machine.strays.hindsight(w.state, asks); ok {
		f.stray(x, w, state, strayUse{asks: asks, again: true}, int(w.spare.asks), true)
	}
}

// stray enters what the use of a stray makes of w.
func (f *frontier) stray(x int32, w *way, state any, use strayUse, a int, hindsight bool) {
	for _, part := range f.parts(state) {
		switch {
		case f.covers(w.state, part),
			f.machine.by != nil && !f.machine.by(part, f.actions[x].until),
			!hindsight && !f.machine.strays.may(w.state, part, use.asks):
			continue
		}
		if hindsight {
			f.late++
		}
		n := &way{state: part, used: slices.Clone(w.used), kin: f.kin(part), order: w.order, spare: w.spare}
		if use.again {
			n.spare.held--
			f.left(n)
		} else {
			n.spare.owners = slices.Clone(n.spare.owners)
			n.spare.add(a, use.has, -1)
			n.spare.add(int(w.spare.asks), int(w.spare.held), 1)
			n.spare.held, n.spare.asks = int32(use.has-1), int32(a)
			f.left(n)
		}
		if f.keep {
			use.joined = len(f.strayed)
			n.order = &link{action: none, stray: &use, late: hindsight, before: w.order}
		}
		f.settle(n)
		f.enter(x, n)
	}
}

// join makes strays of what has become that.
func (f *frontier) join() {
	r := f.machine.strays
	if r == nil || f.decided%f.joinEvery != 0 || len(f.unknown) == 0 {
		return
	}
	var found []strayed
	at := make(map[int32]int)
	barred := make(map[int32]bool)
	for _, i := range f.unknown {
		owner, asks, ok := r.of(&f.actions[i])
		if !ok || r.silent(owner) > f.place {
			barred[owner] = true
		}
		n, seen := at[owner]
		if !seen {
			n = len(found)
			at[owner] = n
			found = append(found, strayed{owner: owner, asks: asks})
		}
		found[n].actions = append(found[n].actions, i)
		barred[owner] = barred[owner] || found[n].asks != asks || len(found[n].actions) > maxStrays
	}
	gone := false
	for _, s := range found {
		if barred[s.owner] || !f.strays(s) {
			continue
		}
		a := slices.Index(f.asks, s.asks)
		if a < 0 {
			if len(f.asks) == maxAsks {
				continue
			}
			a = len(f.asks)
			f.asks = append(f.asks, s.asks)
		}
		for _, w := range f.now.list {
			k := 0
			for _, i := range s.actions {
				if !w.has(f.slot[i]) {
					k++
				}
			}
			w.spare.owners = slices.Clone(w.spare.owners)
			w.spare.add(a, k, 1)
		}
		for _, i := range s.actions {
			f.release(i)
		}
		gone = true
		if f.keep {
			f.strayed = append(f.strayed, s)
		}
	}
	if gone {
		f.unknown = slices.DeleteFunc(f.unknown, func(i int32) bool { return f.slot[i] == none })
	}
}

// strays reports whether nothing tells the actions of an owner from those of
// another who asks for the same: neither what they must come after, nor a state
// that knows the owner.
func (f *frontier) strays(s strayed) bool {
	r := f.machine.strays
	for _, i := range s.actions {
		if p := f.pred[i]; p != none && f.slot[p] != none && !slices.Contains(s.actions, p) {
			return false
		}
		for _, w := range f.now.list {
			if !r.before(w.state, &f.actions[i]) || r.holder(w.state) == s.owner {
				return false
			}
		}
	}
	return true
}

// named gives each stray in an order the action of an owner who can have been
// the one.
func (f *frontier) named(order []*link) []*link {
	used := make(map[int32]bool)
	for _, l := range order {
		if l.stray == nil {
			used[l.action] = true
		}
	}
	type owner struct{ left []int32 }
	var owners []*owner // that have strayed, and are not the holder
	var holder *owner
	joined := 0
	for n, l := range order {
		if l.stray == nil {
			continue
		}
		for ; joined < l.stray.joined; joined++ {
			left := slices.DeleteFunc(slices.Clone(f.strayed[joined].actions), func(i int32) bool { return used[i] })
			owners = append(owners, &owner{left})
		}
		if !l.stray.again {
			next := slices.IndexFunc(owners, func(o *owner) bool {
				return !(l.stray.other && o == holder) && len(o.left) == l.stray.has && f.askedBy(o.left[0]) == l.stray.asks
			})
			holder = owners[next]
		}
		order[n] = &link{action: holder.left[0], late: l.late}
		holder.left = holder.left[1:]
	}
	return order
}

func (f *frontier) askedBy(i int32) int64 {
	_, asks, _ := f.machine.strays.of(&f.actions[i])
	return asks
}
