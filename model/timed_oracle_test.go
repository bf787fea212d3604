package model

import "slices"

// This file decides small timed histories by brute force, sharing nothing with
// the zones: it goes through all orders, all choices of what happened and all
// tokens, and for each through one system of difference constraints over the
// instants of all operations, anchors and lapses at once, which it decides by
// looking for a negative cycle (Bellman-Ford). What a specification of one
// state at a time must forget and merge, it keeps.

// oracleWeight is a bound on a difference of instants, in scaled ns, less so
// many infinitely small steps: a strict bound has one.
type oracleWeight struct{ ns, steps int64 }

type oracleEdge struct {
	x, y int // x - y <= w
	w    oracleWeight
}

type oracleAnchor struct {
	start int // its variable
	end   int // the same for the instant it runs out; with a lock delay only
	ttl   int64
}

// oracleWorld is one way in which some operations may have happened.
type oracleWorld struct {
	edges []oracleEdge
	at    []oracleWeight // instants that satisfy the edges
	last  int            // variable of the operation linearized last

	token   uint64
	holder  int32
	phase   oraclePhase
	anchors []oracleAnchor
	lapse   int // variable of a known lapse; with a lock delay only
	largest int64
}

type oraclePhase int

const (
	oracleFree oraclePhase = iota
	oracleTenure
	oracleLapsed
)

type oracle struct {
	TimedParams
	ops         []TimedOp
	scale       int64 // of all instants and bounds
	long, short int64 // a TTL of 1 ns on the store's clock lasts at most and at least
	beyond      uint64
	worlds      int
	flaw        string // the guard that it gets wrong; none if empty
}

// oracleLegal is the verdict on ops, and how many worlds it took.
func oracleLegal(p TimedParams, ops []TimedOp) (bool, int) { return oracleFlawed(p, ops, "") }

// oracleFlawed is the verdict with one guard wrong.
func oracleFlawed(p TimedParams, ops []TimedOp, flaw string) (bool, int) {
	num, den := p.DriftPPB, int64(1e9)
	for a, b := num, den; ; a, b = b%a, a {
		if a == 0 {
			num, den = num/b, den/b
			break
		}
	}
	o := oracle{flaw: flaw, TimedParams: p, ops: ops, scale: (den - num) * (den + num), long: den * (den + num), short: den * (den - num)}
	for _, op := range ops {
		o.beyond = max(o.beyond, op.Token+1, op.HolderToken+1)
	}
	first := []uint64{0}
	switch {
	case p.First > 0:
		first[0] = p.First - 1
	case p.Tokens == TokensNext:
		for t := uint64(1); t <= o.beyond; t++ {
			first = append(first, t)
		}
	}
	for _, t := range first {
		if o.search(0, oracleWorld{token: t, at: make([]oracleWeight, 1), last: -1}) {
			return true, o.worlds
		}
	}
	return false, o.worlds
}

// search tries every operation next.
func (o *oracle) search(done uint, w oracleWorld) bool {
	o.worlds++
	open := false
	for i, op := range o.ops {
		if done&(1<<i) == 0 && op.Outcome != TimedUnknown {
			open = true
		}
	}
	if !open {
		return true // what is left may never have happened
	}
	for i, op := range o.ops {
		if done&(1<<i) != 0 {
			continue
		}
		v, n := w.clone().variable()
		if v.last >= 0 {
			v.atMost(v.last, n, 0)
		}
		v.last = n
		v.atMost(0, n, -op.Call*o.scale)
		if op.Outcome != TimedUnknown && op.Return != Unbounded {
			v.atMost(n, 0, op.Return*o.scale)
		}
		for _, next := range o.happened(v, op, n) {
			if next.feasible() && o.search(done|1<<i, next) {
				return true
			}
		}
	}
	return false
}

func (w oracleWorld) clone() oracleWorld {
	w.edges, w.at, w.anchors = slices.Clone(w.edges), slices.Clone(w.at), slices.Clone(w.anchors)
	return w
}

func (w oracleWorld) variable() (oracleWorld, int) {
	w.at = append(w.at, oracleWeight{})
	return w, len(w.at) - 1
}

func (w *oracleWorld) atMost(x, y int, ns int64) {
	w.edges = append(w.edges, oracleEdge{x, y, oracleWeight{ns, 0}})
}

func (w *oracleWorld) below(x, y int, ns int64) {
	w.edges = append(w.edges, oracleEdge{x, y, oracleWeight{ns, -1}})
}

// feasible moves w.at until it satisfies all edges. A lone variable needs no
// more rounds than there are variables, unless a cycle is negative.
func (w *oracleWorld) feasible() bool {
	for range len(w.at) + 1 {
		settled := true
		for _, e := range w.edges {
			to := oracleWeight{w.at[e.y].ns + e.w.ns, w.at[e.y].steps + e.w.steps}
			if at := w.at[e.x]; to.ns < at.ns || to.ns == at.ns && to.steps < at.steps {
				w.at[e.x], settled = to, false
			}
		}
		if settled {
			return true
		}
	}
	return false
}

// held is every way in which the tenure runs at n.
func (o *oracle) held(w oracleWorld, n int) (ways []oracleWorld) {
	if w.phase != oracleTenure {
		return nil
	}
	for _, a := range w.anchors {
		v := w.clone()
		switch {
		case o.flaw == "held for ever":
		case o.LockDelay > 0 && o.flaw == "held when it lapses":
			v.atMost(n, a.end, 0)
		case o.LockDelay > 0:
			v.below(n, a.end, 0)
		case o.Late != Unbounded && o.flaw == "held when it lapses":
			v.atMost(n, a.start, a.ttl*o.long+o.Late*o.scale)
		case o.Late != Unbounded:
			v.below(n, a.start, a.ttl*o.long+o.Late*o.scale)
		}
		ways = append(ways, v)
	}
	return ways
}

// lapsed is every way in which the tenure has run out by n; known or not.
func (o *oracle) lapsed(w oracleWorld, n int) (ways []oracleWorld) {
	if w.phase == oracleLapsed {
		return []oracleWorld{w}
	}
	if w.phase != oracleTenure {
		return nil
	}
	if o.LockDelay == 0 {
		v := w.clone()
		for _, a := range w.anchors {
			switch o.flaw {
			case "lapsed at any time":
			case "lapsed only after it lapses":
				v.below(a.start, n, o.Early*o.scale-a.ttl*o.short)
			default:
				v.atMost(a.start, n, o.Early*o.scale-a.ttl*o.short)
			}
			if o.flaw == "one TTL of many" {
				break
			}
		}
		return []oracleWorld{v}
	}
	for _, last := range w.anchors {
		v := w.clone()
		for _, a := range w.anchors {
			v.atMost(a.end, last.end, 0)
		}
		v.atMost(last.end, n, 0)
		v.lapse = last.end
		ways = append(ways, v)
	}
	return ways
}

// noticed is every way in which the tenure has run out by n and is known to.
func (o *oracle) noticed(w oracleWorld, n int) (ways []oracleWorld) {
	for _, v := range o.lapsed(w, n) {
		if o.flaw != "a lapse is forgotten" {
			v.phase, v.anchors = oracleLapsed, nil
		}
		ways = append(ways, v)
	}
	return ways
}

// delayed is every way in which n is in the lock delay.
func (o *oracle) delayed(w oracleWorld, n int) (ways []oracleWorld) {
	if o.LockDelay == 0 {
		return nil
	}
	for _, v := range o.noticed(w, n) {
		v = v.clone()
		if o.flaw == "delayed when the delay ends" {
			v.atMost(n, v.lapse, o.LockDelay*o.long)
		} else {
			v.below(n, v.lapse, o.LockDelay*o.long)
		}
		ways = append(ways, v)
	}
	return ways
}

// anchored lets ttl run from n, or since the call if the operation may wait,
// and then, if it has nothing else to be held by, to n at least.
func (o *oracle) anchored(w oracleWorld, op TimedOp, n int, ttl int64, alone bool) oracleWorld {
	w = w.clone()
	if alone || o.flaw == "a renewal shortens" {
		w.anchors = nil
	}
	a := oracleAnchor{start: n, ttl: ttl}
	wait := op.Kind == TimedAcquire && o.Anchor == AnchorCall
	if wait {
		w, a.start = w.variable()
		w.atMost(0, a.start, -op.Call*o.scale)
		w.atMost(a.start, n, 0)
	}
	if o.LockDelay > 0 {
		w, a.end = w.variable()
		w.atMost(a.start, a.end, 0)
		w.atMost(a.start, a.end, o.Early*o.scale-ttl*o.short)
		if o.Late != Unbounded {
			w.atMost(a.end, a.start, ttl*o.long+o.Late*o.scale)
		}
		if wait && alone && o.flaw != "granted after it lapsed" {
			w.below(n, a.end, 0)
		}
	} else if wait && alone && o.Late != Unbounded && o.flaw != "granted after it lapsed" {
		w.below(n, a.start, ttl*o.long+o.Late*o.scale)
	}
	w.anchors = append(w.anchors, a)
	w.phase = oracleTenure
	if w.largest = max(w.largest, ttl); o.flaw == "a restart knows the last TTL only" {
		w.largest = ttl
	}
	return w
}

// tokens is what a new tenure may get.
func (o *oracle) tokens(w oracleWorld, op TimedOp) (ts []uint64) {
	top := w.token + 1
	if o.flaw == "a token may come again" {
		defer func() {
			if op.Outcome == TimedUnknown || op.Token == w.token {
				ts = append(ts, w.token)
			}
		}()
	}
	switch o.Tokens {
	case TokensNone:
		return []uint64{0}
	case TokensRising:
		top = o.beyond + uint64(len(o.ops))
	}
	for t := w.token + 1; t <= top; t++ {
		if op.Outcome == TimedUnknown || op.Token == t {
			ts = append(ts, t)
		}
	}
	return ts
}

// happened is every way in which op may take effect in w at n. Taking effect
// without any is left to search, which may leave an unknown operation out.
func (o *oracle) happened(w oracleWorld, op TimedOp, n int) (ways []oracleWorld) {
	unknown := op.Outcome == TimedUnknown
	done := unknown || op.Outcome == TimedOK
	mine := w.phase != oracleFree && w.holder == op.Owner &&
		(o.Tokens == TokensNone || w.token == op.Token || op.Kind == TimedAcquire && unknown)
	switch o.flaw {
	case "any owner":
		mine = w.phase != oracleFree && (o.Tokens == TokensNone || w.token == op.Token || op.Kind == TimedAcquire && unknown)
	case "any token":
		mine = w.phase != oracleFree && w.holder == op.Owner
	case "no retry":
		mine = mine && op.Kind != TimedAcquire
	}
	switch op.Kind {
	case TimedAcquire, TimedRenew:
		if done && mine {
			for _, v := range o.held(w, n) {
				ways = append(ways, o.anchored(v, op, n, op.TTL, false))
			}
			if o.RenewAfterLapse {
				for _, v := range o.lapsed(w, n) {
					ways = append(ways, o.anchored(v, op, n, op.TTL, true))
				}
			}
		}
	case TimedRelease:
		if done && mine {
			for _, v := range o.held(w, n) {
				if o.flaw != "a release frees nothing" {
					v.phase = oracleFree
				}
				ways = append(ways, v)
			}
		}
	case TimedWrite:
		if done && mine {
			ways = append(ways, o.held(w, n)...)
		}
	case TimedGet:
		switch {
		case unknown:
			ways = append(ways, o.noticed(w, n)...)
		case op.Holder != 0 && op.Holder != w.holder && o.flaw == "a get names anybody",
			op.Holder == w.holder && op.HolderToken != w.token && o.flaw == "a get tells any token":
			ways = append(ways, o.held(w, n)...)
		case op.Holder == 0 && w.phase == oracleFree:
			ways = append(ways, w)
		case op.Holder == 0:
			ways = append(ways, o.noticed(w, n)...)
		case op.Holder == w.holder && (op.HolderToken == 0 || o.Tokens == TokensNone || op.HolderToken == w.token):
			ways = append(ways, o.held(w, n)...)
		}
	case TimedRestart:
		ways = o.restarted(w, op, n)
	case TimedDelete:
		if o.flaw != "a deletion frees nothing" {
			w.phase = oracleFree
		}
		ways = append(ways, w)
	}

	if op.Kind == TimedAcquire {
		ways = append(ways, o.acquired(w, op, n)...)
	}
	if op.Kind == TimedRenew || op.Kind == TimedRelease || op.Kind == TimedWrite {
		if unknown || op.Outcome == TimedRefused {
			ways = append(ways, o.noticed(w, n)...)
			if !mine || w.phase == oracleFree || o.flaw == "refuses whom it likes" {
				ways = append(ways, w)
			}
		}
	}
	return ways
}

// restarted is every way in which the store comes back at n: a tenure that was
// not on record as lapsed is held again, and one that was is not. When it went on
// record does not show, if nobody was told.
func (o *oracle) restarted(w oracleWorld, op TimedOp, n int) (ways []oracleWorld) {
	switch {
	case w.phase != oracleTenure || o.flaw == "a restart restarts no TTL":
		ways = append(ways, w)
	default:
		ways = append(ways, o.anchored(w, op, n, w.largest, true))
	}
	var over []oracleWorld
	switch {
	case w.phase == oracleTenure && o.flaw == "a restart may end any tenure":
		v := w.clone()
		v.phase, v.anchors, v.lapse = oracleLapsed, nil, n
		over = append(over, v)
	case w.phase == oracleTenure && o.flaw != "a lapse that was not told is not on record":
		over = o.noticed(w, n)
	}
	ways = append(ways, over...)
	for i := range ways {
		if ways[i].phase == oracleLapsed && o.flaw != "a restart restarts no delay" {
			ways[i].lapse = n
		}
	}
	return ways
}

// acquired is every way in which an acquire is granted a new tenure or refused.
func (o *oracle) acquired(w oracleWorld, op TimedOp, n int) (ways []oracleWorld) {
	named := op.Outcome == TimedHeld && op.Holder != 0
	switch op.Outcome {
	case TimedOK, TimedUnknown:
		before := o.lapsed(w, n)
		if w.phase == oracleFree {
			before = append(before, w)
		}
		for _, v := range before {
			if w.phase != oracleFree && o.LockDelay > 0 {
				v = v.clone()
				if o.flaw == "granted only after the delay" {
					v.below(v.lapse, n, -o.LockDelay*o.short)
				} else {
					v.atMost(v.lapse, n, -o.LockDelay*o.short)
				}
			}
			for _, t := range o.tokens(w, op) {
				v.token, v.holder, v.largest = t, op.Owner, 0
				ways = append(ways, o.anchored(v, op, n, op.TTL, true))
			}
		}
	case TimedHeld:
		own, named := w.holder == op.Owner && o.flaw != "refused as held by himself", named && o.flaw != "a refusal names anybody"
		if !own && (!named || w.holder == op.Holder) {
			ways = append(ways, o.held(w, n)...)
		}
	}
	if op.Outcome != TimedOK && !named {
		ways = append(ways, o.delayed(w, n)...)
	}
	return ways
}
