package linearizability

import (
	"cmp"
	"math/bits"
	"slices"

	"fencepost/model"
)

// This file decides what it can about operations with unknown outcome before
// the search begins, which has to try each of them at every place.

// settle turns an unknown acquire into one that succeeded where a later answer
// proves it: the answer shows that its owner got the lease, and the owner asked
// for it only once.
func (c *leaseCompiler) settle() {
	asked := make(map[int32]int)
	for _, a := range c.actions {
		if op := c.timed[a.timed]; op.Kind == model.TimedAcquire {
			asked[op.Owner]++
		}
	}
	// proof is the answer that returned first.
	proof := make(map[int32]action)
	for _, a := range c.actions {
		owner, _ := shows(c.timed[a.timed])
		if p, ok := proof[owner]; owner != 0 && !a.unknown && (!ok || a.ret < p.ret) {
			proof[owner] = a
		}
	}
	for i := range c.actions {
		a := &c.actions[i]
		op := &c.timed[a.timed]
		p, proven := proof[op.Owner]
		if !a.unknown || op.Kind != model.TimedAcquire || asked[op.Owner] != 1 || !proven {
			continue
		}
		a.unknown, a.ret = false, p.ret
		if _, token := shows(c.timed[p.timed]); token != 0 {
			op.Outcome, op.Token, op.Return = model.TimedOK, token, c.timed[p.timed].Return
			a.class, a.until = leaseClass(*op), op.Return
		}
	}
}

// shows returns the owner whom an answer to somebody shows to hold the lease,
// or to have held it, and under which token; 0 if none or unsaid.
func shows(x model.TimedOp) (owner int32, token uint64) {
	switch {
	case x.Kind == model.TimedAcquire && x.Outcome == model.TimedHeld:
		return x.Holder, 0
	case x.Kind == model.TimedGet && x.Outcome == model.TimedOK:
		return x.Holder, x.HolderToken
	case (x.Kind == model.TimedRenew || x.Kind == model.TimedRelease) && x.Outcome == model.TimedOK:
		return x.Owner, x.Token
	}
	return 0, 0
}

// tighten narrows the place and the time of each operation that shows a token:
// tenures follow each other in the order of their tokens.
func (c *leaseCompiler) tighten() {
	if c.meta.Eps > 0 || c.params.Tokens == model.TokensNone {
		return // nothing to go by, or a process would lose its own order
	}
	token := func(a *action) uint64 {
		switch op := &c.timed[a.timed]; {
		case op.Outcome == model.TimedOK && op.Kind == model.TimedGet:
			return op.HolderToken
		case op.Outcome == model.TimedOK, op.Outcome == model.TimedUnknown && op.Kind != model.TimedAcquire:
			return op.Token
		}
		return 0
	}
	var shown []*action
	for i := range c.actions {
		if token(&c.actions[i]) != 0 {
			shown = append(shown, &c.actions[i])
		}
	}
	slices.SortStableFunc(shown, func(a, b *action) int { return cmp.Compare(token(a), token(b)) })
	// What the operations under all lower tokens, and all higher ones, allow.
	type limit struct{ place, time int64 }
	lower, higher := make([]limit, len(shown)), make([]limit, len(shown))
	low, high := limit{0, -Unbounded}, limit{Unbounded, Unbounded}
	for i, j := 0, 0; i < len(shown); i = j {
		now := low
		for ; j < len(shown) && token(shown[j]) == token(shown[i]); j++ {
			lower[j] = low
			if !shown[j].unknown {
				now = limit{max(now.place, shown[j].call), max(now.time, shown[j].since)}
			}
		}
		low = now
	}
	for i, j := len(shown)-1, len(shown)-1; i >= 0; i = j {
		now := high
		for ; j >= 0 && token(shown[j]) == token(shown[i]); j-- {
			higher[j] = high
			if !shown[j].unknown {
				now = limit{min(now.place, shown[j].ret), min(now.time, shown[j].until)}
			}
		}
		high = now
	}
	for i, a := range shown {
		call, since := max(a.call, lower[i].place), max(a.since, lower[i].time)
		ret, until := a.ret, a.until
		if !a.unknown {
			ret, until = min(ret, higher[i].place), min(until, higher[i].time)
		}
		if call > ret || since > until {
			continue // a contradiction, which the search will find
		}
		a.call, a.ret, a.since, a.until = call, ret, since, until
		if op := &c.timed[a.timed]; c.params.Anchor != model.AnchorCall {
			op.Call, op.Return = since, until
		}
	}
	slices.SortStableFunc(c.actions, func(a, b action) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.ret, b.ret))
	})
}

// needs is until which place something may be easier to explain if an unknown
// operation happened before.
type needs struct {
	held    map[int32]int64 // by owner: that he still holds the lease
	anyHeld int64           // that anybody does
	free    int64           // that nobody does
	token   int64           // that a token was taken
	restart int64           // whatever was put on record before the store restarted
}

// drop leaves out the unknown operations that explain nothing. One that needs
// another to have happened keeps that one too.
func (c *leaseCompiler) drop() {
	if !slices.ContainsFunc(c.actions, func(a action) bool { return a.unknown }) {
		return
	}
	n := c.needs()
	kept := make([]bool, len(c.actions))
	for changed := true; changed; {
		changed = false
		for i, a := range c.actions {
			op := c.timed[a.timed]
			if kept[i] || a.unknown && !n.want(a, op) {
				continue
			}
			kept[i] = true
			if !a.unknown {
				continue
			}
			changed = true
			switch op.Kind {
			case model.TimedRestart:
				n.restart = Unbounded
			case model.TimedRenew:
				n.held[op.Owner] = Unbounded
			case model.TimedAcquire:
				n.free = Unbounded
			case model.TimedRelease:
				// Needs no renewal: had the lease lapsed meanwhile, it were as
				// free. Only a lock delay tells a release from a lapse.
				if c.params.LockDelay > 0 {
					n.held[op.Owner] = Unbounded
				}
			}
		}
	}
	i := 0
	c.actions = slices.DeleteFunc(c.actions, func(action) bool { i++; return !kept[i-1] })
}

// want reports whether u, whose outcome is unknown, may explain something.
func (n *needs) want(u action, op model.TimedOp) bool {
	if u.call < n.restart || op.Kind == model.TimedRestart {
		return true
	}
	held := u.call < max(n.held[op.Owner], n.anyHeld)
	switch op.Kind {
	case model.TimedRenew:
		return held
	case model.TimedAcquire:
		return held || u.call < n.token
	case model.TimedRelease, model.TimedDelete:
		return u.call < n.free
	}
	return false
}

// needs collects what the known operations need.
func (c *leaseCompiler) needs() needs {
	n := needs{held: make(map[int32]int64)}
	cover := c.newCover()
	gaps := c.tokenGaps()
	for _, a := range c.actions {
		if a.unknown {
			continue
		}
		op := c.timed[a.timed]
		owner, _ := shows(op)
		switch {
		case op.Kind == model.TimedRestart:
			n.restart = max(n.restart, a.ret)
		case op.Kind == model.TimedDelete:
		case op.Kind == model.TimedAcquire && op.Outcome == model.TimedOK:
			n.free = max(n.free, a.ret)
			if gaps {
				n.token = max(n.token, a.ret)
			}
			if cover.again(a, op) {
				n.held[op.Owner] = max(n.held[op.Owner], a.ret)
			}
		case op.Outcome == model.TimedRefused, op.Kind == model.TimedGet && owner == 0:
			n.free = max(n.free, a.ret)
		case op.Outcome == model.TimedDelay:
			n.anyHeld = max(n.anyHeld, a.ret)
		case owner == 0:
			if !cover.holds(a, op, cover.all) {
				n.anyHeld = max(n.anyHeld, a.ret)
			}
		case !cover.holds(a, op, cover.by[owner]):
			n.held[owner] = max(n.held[owner], a.ret)
		}
	}
	return n
}

// tokenGaps reports whether some token below the highest one granted on record
// may have gone to an acquire whose outcome is unknown.
func (c *leaseCompiler) tokenGaps() bool {
	if c.params.Tokens != model.TokensNext {
		return false
	}
	granted := make(map[uint64]bool)
	low, high := c.params.First, uint64(0)
	for _, a := range c.actions {
		if op := c.timed[a.timed]; op.Kind == model.TimedAcquire && op.Outcome == model.TimedOK {
			granted[op.Token] = true
			high = max(high, op.Token)
			if low == 0 || op.Token < low {
				low = op.Token
			}
		}
	}
	return len(granted) > 0 && high-low >= uint64(len(granted))
}

// cover knows which answers need no unknown operation because known ones alone
// make sure that the lease was held: an acquire or renewal that succeeded
// before, whose TTL cannot have run out, with nothing between that may have
// ended the tenure.
type cover struct {
	c    *leaseCompiler
	by   map[int32]*holds // by owner
	all  *holds
	ends map[int32][]action // releases and deletions, by owner; 0: of everybody
}

// holds is the successful acquires and renewals of somebody, by their returns.
type holds struct{ actions []action }

func (c *leaseCompiler) newCover() cover {
	v := cover{c: c, by: make(map[int32]*holds), all: &holds{}, ends: make(map[int32][]action)}
	for _, a := range c.actions {
		op := c.timed[a.timed]
		switch {
		case op.Kind == model.TimedRelease && op.Outcome != model.TimedRefused:
			v.ends[op.Owner] = append(v.ends[op.Owner], a)
		case op.Kind == model.TimedDelete:
			v.ends[0] = append(v.ends[0], a)
		case op.Outcome == model.TimedOK && (op.Kind == model.TimedAcquire || op.Kind == model.TimedRenew):
			if v.by[op.Owner] == nil {
				v.by[op.Owner] = &holds{}
			}
			v.by[op.Owner].actions = append(v.by[op.Owner].actions, a)
			v.all.actions = append(v.all.actions, a)
		}
	}
	byReturn := func(a, b action) int { return int(min(max(a.ret-b.ret, -1), 1)) }
	slices.SortFunc(v.all.actions, byReturn)
	for _, h := range v.by {
		slices.SortFunc(h.actions, byReturn)
	}
	return v
}

// holds reports whether the last of some successes before x makes sure that
// its owner holds the lease at x.
func (v cover) holds(x action, op model.TimedOp, by *holds) bool {
	if by == nil {
		return false
	}
	i, _ := slices.BinarySearchFunc(by.actions, x.call, func(a action, place int64) int { return int(min(max(a.ret-place, -1), 1)) })
	if i == 0 {
		return false
	}
	k := by.actions[i-1]
	last := v.c.timed[k.timed]
	if op.Kind == model.TimedAcquire && last.Owner == op.Owner || op.Return >= last.Call+v.c.shortest(last.TTL) {
		return false
	}
	ended := func(e action) bool { return e.call < x.ret && e.ret > k.call }
	return !slices.ContainsFunc(v.ends[last.Owner], ended) && !slices.ContainsFunc(v.ends[0], ended)
}

// again reports whether an acquire that succeeded may be a retry under a tenure
// which only unknown operations kept alive: its token was granted before, and
// known operations do not make sure that it was still held.
func (v cover) again(x action, op model.TimedOp) bool {
	by := v.by[op.Owner]
	before := slices.ContainsFunc(by.actions, func(a action) bool {
		other := v.c.timed[a.timed]
		return a.timed != x.timed && other.Kind == model.TimedAcquire && other.Token == op.Token && a.call < x.ret
	})
	op.Kind = model.TimedRenew // the asker may hold it
	return before && !v.holds(x, op, by)
}

// shortest is for how long a lease certainly does not lapse after its TTL
// started.
func (c *leaseCompiler) shortest(ttl int64) int64 {
	if c.params.Early == Unbounded {
		return -Unbounded
	}
	hi, lo := bits.Mul64(uint64(ttl), 1e9)
	quo, _ := bits.Div64(hi, lo, uint64(1e9+c.params.DriftPPB))
	return int64(quo) - c.params.Early
}
