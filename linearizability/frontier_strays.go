package linearizability

import "slices"

// A stray is an unknown action that asks for something in the name of an owner
// of whom the rest of the history does not speak: every known action that names
// him has returned, and he will not call again. An unknown acquire of a lease
// stays available for ever, and a service with a name for each incarnation of a
// client leaves ever more of them behind. But nothing that follows can tell one
// stray owner from another. So a way need not know which of them it has used,
// only how many are left.
//
// One owner may have left several acquires behind: while he is the holder, he may
// use another to prolong his tenure. So strays are counted by how many an owner
// has. A way finds out how many the holder must have had when his tenure is over.
// Of two ways that were led to one state, one covers the other if it has no less
// strays in all and, for each k from 2 on, no less owners of k or more: give each
// owner of the other his like, the largest first, and those who have one only
// whatever is left. One owner in place of several can do all that they can, since
// after a lapse he may be granted the lease again like anybody else.

// strayRules are what a machine knows of strays.
type strayRules struct {
	// of gives the owner of an action, and what it asks for. The action can be a
	// stray only if ok.
	of func(a *action) (owner int32, asks int64, ok bool)
	// silent is the place from which on the history speaks of an owner no more.
	silent func(owner int32) int64
	// before reports that whatever follows a state takes effect after the call of
	// an action, by so much that it makes no difference by how much.
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
	kind strayKind
	asks int64
	had  int // of strayOver: how many the owner had when his tenure began
}

type strayKind uint8

const (
	strayGrant strayKind = iota // a tenure begins
	strayAgain                  // is prolonged
	strayOver                   // is over
)

// spare is how many strays a way has left.
type spare struct {
	// owners counts those who have at least k that ask for the same, at position
	// maxStrays*a+k-1 for the a-th thing asked for. What is beyond its end is 0.
	owners []int32
	held   int32 // how many strayOwner has used of these, if he is the holder
	asks   int32 // for which thing
}

// at counts the owners who have at least k that ask for the a-th thing.
func (s *spare) at(a, k int) int32 {
	if n := maxStrays*a + k - 1; k <= maxStrays && n < len(s.owners) {
		return s.owners[n]
	}
	return 0
}

// resized returns s with one owner more who has to, and one less who has from.
func (s spare) resized(a, from, to int) spare {
	s.owners = append(slices.Clone(s.owners), make([]int32, max(0, maxStrays*(a+1)-len(s.owners)))...)
	for i := range s.owners[maxStrays*a : maxStrays*(a+1)] {
		if i < from {
			s.owners[maxStrays*a+i]--
		}
		if i < to {
			s.owners[maxStrays*a+i]++
		}
	}
	return s
}

// more reports whether s has no less than t.
func (s *spare) more(t *spare) bool {
	if len(s.owners) == 0 && len(t.owners) == 0 {
		return true
	}
	if s.held > t.held || t.held > 0 && s.asks != t.asks {
		return false
	}
	for a := 0; maxStrays*a < len(t.owners); a++ {
		have, need := s.at(a, 1), t.at(a, 1)
		for k := 2; k <= maxStrays; k++ {
			if s.at(a, k) < t.at(a, k) {
				return false
			}
			have, need = have+s.at(a, k), need+t.at(a, k)
		}
		if have < need {
			return false
		}
	}
	return true
}

// over yields what the end of the tenure of a stray owner makes of w: a way for
// each number of strays that he can have had. Where he used one only, he may as
// well have had the least.
func (f *frontier) over(w *way, yield func(*way) bool) {
	if w.spare.held == 0 {
		yield(w)
		return
	}
	a, used := int(w.spare.asks), int(w.spare.held)
	for had := used; had <= maxStrays; had++ {
		if w.spare.at(a, had) == w.spare.at(a, had+1) {
			continue
		}
		n := *w
		n.used = slices.Clone(w.used)
		n.spare = w.spare.resized(a, had, had-used)
		n.spare.held = 0
		f.strayLink(&n, strayUse{kind: strayOver, had: had}, false)
		if !yield(&n) || used == 1 {
			return
		}
	}
}

func (f *frontier) strayLink(w *way, use strayUse, late bool) {
	if f.keep {
		w.order = &link{action: none, stray: &use, joined: len(f.strayed), late: late, before: w.order}
	}
}

// arrive settles a way that was just made, and enters it: several, if that was
// the end of the tenure of a stray owner.
func (f *frontier) arrive(x int32, w *way) {
	if w.spare.held == 0 || f.machine.strays.holder(w.state) == strayOwner {
		f.settle(w)
		f.enter(x, w)
		return
	}
	for n := range func(yield func(*way) bool) { f.over(w, yield) } {
		f.settle(n)
		f.enter(x, n)
	}
}

// leadStrays goes on from w by each stray that can come next. It reports whether
// one may be used in hindsight.
func (f *frontier) leadStrays(x int32, w *way) (late bool) {
	r := f.machine.strays
	for a, asks := range f.asks {
		if w.spare.at(a, 1) == 0 || r.idle(w.state, asks) || !f.step() {
			continue
		}
		state, ok := r.grant(w.state, asks)
		if !ok {
			continue
		}
		for before := range func(yield func(*way) bool) { f.over(w, yield) } {
			if before.spare.at(a, 1) > 0 {
				f.stray(x, before, state, strayUse{kind: strayGrant, asks: asks}, a, false)
			}
		}
	}
	if !f.again(w) {
		return false
	}
	asks := f.asks[w.spare.asks]
	if r.late(w.state, asks) {
		return true
	}
	if f.step() {
		if state, ok := r.again(w.state, asks); ok {
			f.stray(x, w, state, strayUse{kind: strayAgain, asks: asks}, int(w.spare.asks), false)
		}
	}
	return false
}

// again reports whether the holder is a stray owner who may have another stray.
func (f *frontier) again(w *way) bool {
	return w.spare.held > 0 && w.spare.at(int(w.spare.asks), int(w.spare.held)+1) > 0
}

// strayInHindsight lets the holder use one of his strays in hindsight.
func (f *frontier) strayInHindsight(x int32, w *way) {
	if !f.again(w) || !f.machine.strays.late(w.state, f.asks[w.spare.asks]) || !f.step() {
		return
	}
	asks := f.asks[w.spare.asks]
	if state, ok := f.machine.strays.hindsight(w.state, asks); ok {
		f.stray(x, w, state, strayUse{kind: strayAgain, asks: asks}, int(w.spare.asks), true)
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
		n.spare.held, n.spare.asks = n.spare.held+1, int32(a)
		f.strayLink(n, use, hindsight)
		f.arrive(x, n)
	}
}

// join makes strays of what has become that.
func (f *frontier) join() {
	r := f.machine.strays
	if r == nil || f.decided < f.nextJoin || len(f.unknown) == 0 {
		return
	}
	if slices.ContainsFunc(f.now.list, func(w *way) bool { return w.spare.held > 0 }) {
		return // whoever joins now cannot have been the holder
	}
	f.nextJoin = f.decided + f.joinEvery
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
			w.spare = w.spare.resized(a, 0, k)
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
	// By what they ask for, what is left to each owner.
	left := make(map[int64][][]int32)
	joined := 0
	join := func(until int) {
		for ; joined < until; joined++ {
			s := f.strayed[joined]
			s.actions = slices.DeleteFunc(slices.Clone(s.actions), func(i int32) bool { return used[i] })
			left[s.asks] = append(left[s.asks], s.actions)
		}
	}
	var named []*link
	var tenure []*link // of a stray owner
	over := func(fits func(have int) bool) {
		owners := left[tenure[0].stray.asks]
		n := slices.IndexFunc(owners, func(have []int32) bool { return fits(len(have)) })
		for i, l := range tenure {
			l.action, l.stray = owners[n][i], nil
		}
		owners[n] = owners[n][len(tenure):]
		tenure = nil
	}
	for _, l := range order {
		switch {
		case l.stray == nil:
			named = append(named, l)
			continue
		case l.stray.kind == strayOver:
			over(func(have int) bool { return have == l.stray.had })
			continue
		case l.stray.kind == strayGrant:
			join(l.joined)
		}
		n := *l
		named, tenure = append(named, &n), append(tenure, &n)
	}
	if tenure != nil {
		over(func(have int) bool { return have >= len(tenure) })
	}
	return named
}
