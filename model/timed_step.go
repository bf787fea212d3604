package model

import (
	"math"
	"slices"
)

// timedStep computes the successors of one state under one operation. What may
// have happened is a set of branches: each starts from the state anew with
// begin, narrows the zone by what it needs, changes it to what follows, and
// ends in emit. A branch whose zone runs empty did not happen.
type timedStep struct {
	TimedParams
	scale zoneScale
	s     TimedState
	op    TimedOp
	dst   []TimedState

	z    zone
	ttls timedTTLs // of the anchors, which are the zone's last variables
}

// begin moves the zone of s to an instant at which op may take effect.
func (w *timedStep) begin() bool {
	w.unpack()
	return w.z.within(zoneNow, w.op.Call, w.op.Return)
}

// anchor is the variable of anchor i. The lapse, if s keeps one, is zoneVars.
func (w *timedStep) anchor(i int) int { return w.z.dim - w.ttls.n + i }

// held narrows to "still held, says anchor i".
func (w *timedStep) held(i int) bool {
	return w.z.constrain(zoneNow, w.anchor(i), w.scale.longest(w.ttls.at(i), w.Late).strict()) &&
		(!w.s.lapse || w.z.constrain(zoneNow, zoneVars, zoneZero.strict()))
}

// lapsed narrows to "lapsed, say all anchors".
func (w *timedStep) lapsed() bool {
	for i := range w.ttls.n {
		if !w.z.constrain(w.anchor(i), zoneNow, w.scale.shortest(w.ttls.at(i), w.Early)) {
			return false
		}
	}
	return !w.s.lapse || w.z.constrain(zoneVars, zoneNow, zoneZero)
}

// delayOver narrows to after the lock delay, delayed to within it.
func (w *timedStep) delayOver() bool {
	return !w.s.lapse || w.z.constrain(zoneVars, zoneNow, w.scale.shortest(w.LockDelay, 0))
}

func (w *timedStep) delayed() bool {
	return w.s.lapse && w.z.constrain(zoneNow, zoneVars, w.scale.longest(w.LockDelay, 0).strict())
}

// whileHeld yields each way in which the tenure of s is still held.
func (w *timedStep) whileHeld(yield func() bool) {
	for i := range int(w.s.anchors) {
		if w.begin() && w.held(i) && !yield() {
			return
		}
	}
}

// whenLapsed yields each way in which the tenure of s has lapsed. With a lock
// delay its instant matters, and is bounded from above by the anchor that ran
// out last: any may be that one.
func (w *timedStep) whenLapsed(yield func() bool) {
	for i := range int(w.s.anchors) {
		if !w.begin() || !w.lapsed() {
			return
		}
		if !w.s.lapse {
			yield()
			return
		}
		if w.z.constrain(zoneVars, w.anchor(i), w.scale.longest(w.ttls.at(i), w.Late)) && !yield() {
			return
		}
	}
}

// noticeLapse ends the tenure of s as known to have lapsed.
func (w *timedStep) noticeLapse(inDelay bool) {
	for range w.whenLapsed {
		if !inDelay || w.delayed() {
			w.emitLapsed()
		}
	}
}

// settle narrows the token of next, and reports whether it can be token.
func (w *timedStep) settle(next *TimedState, token uint64) bool {
	if w.Tokens == TokensNone {
		return true
	}
	if token < next.lo || token > next.hi {
		return false
	}
	next.lo, next.hi = token, token
	return true
}

func (w *timedStep) acquire() {
	known := w.op.Outcome == TimedOK
	switch {
	case w.op.Owner <= 0:
	case known || w.op.Outcome == TimedUnknown:
		if w.op.TTL <= 0 {
			return
		}
		if next := w.s; next.holder == w.op.Owner && (!known || w.settle(&next, w.op.Token)) {
			w.prolong(next)
		}
		w.grant(known)
	case w.op.Outcome == TimedHeld:
		if h := w.s.holder; h != w.op.Owner && (w.op.Holder == 0 || w.op.Holder == h) {
			for range w.whileHeld {
				w.emit(w.s)
			}
		}
		if w.op.Holder == 0 {
			w.refusedByDelay()
		}
	case w.op.Outcome == TimedDelay:
		w.refusedByDelay()
	}
}

func (w *timedStep) refusedByDelay() {
	switch w.s.phase {
	case timedHolding:
		w.noticeLapse(true)
	case timedLapsed:
		if w.begin() && w.delayed() {
			w.emit(w.s)
		}
	}
}

// grant begins a new tenure.
func (w *timedStep) grant(known bool) {
	next := TimedState{phase: timedHolding, holder: w.op.Owner, largest: w.op.TTL}
	if !w.succeed(&next, known) {
		return
	}
	if w.begin() && w.lapsed() && w.delayOver() && w.start(w.op.TTL, w.Anchor) {
		w.emit(next)
	}
}

// succeed gives next the token after that of s, and reports whether there is
// one.
func (w *timedStep) succeed(next *TimedState, known bool) bool {
	t := w.op.Token
	switch {
	case w.Tokens == TokensNone:
	case known && w.Tokens == TokensNext:
		next.lo, next.hi = t, t
		return t > 0 && w.s.lo <= t-1 && t-1 <= w.s.hi
	case known:
		next.lo, next.hi = t, t
		return w.s.lo < t
	case w.s.lo == math.MaxUint64:
		return false
	default:
		next.lo, next.hi = w.s.lo+1, math.MaxUint64
		if w.Tokens == TokensNext && w.s.hi < math.MaxUint64 {
			next.hi = w.s.hi + 1
		}
	}
	return true
}

// prolong lets the tenure of s, which is the asker's, run on as next.
func (w *timedStep) prolong(next TimedState) {
	next.largest = max(next.largest, w.op.TTL)
	for range w.whileHeld {
		if w.run(w.op.TTL, w.runsFrom()) {
			w.emit(next)
		}
	}
	if w.RenewAfterLapse && w.s.phase != timedFree && w.begin() && w.lapsed() && w.start(w.op.TTL, w.runsFrom()) {
		next.phase = timedHolding
		w.emit(next)
	}
}

// runsFrom is the anchor of op's TTL: only an acquire waits.
func (w *timedStep) runsFrom() Anchor {
	if w.op.Kind == TimedAcquire {
		return w.Anchor
	}
	return AnchorGrant
}

// start forgets what ran before and lets ttl run alone.
func (w *timedStep) start(ttl int64, from Anchor) bool {
	w.z.dim, w.ttls.n = zoneVars, 0
	if w.LockDelay > 0 {
		w.z.free()
	}
	if !w.run(ttl, from) {
		return false
	}
	g := w.anchor(0)
	switch {
	case from == AnchorCall:
		return w.z.constrain(zoneNow, g, w.scale.longest(ttl, w.Late).strict()) &&
			(w.LockDelay <= 0 || w.z.constrain(zoneNow, zoneVars, zoneZero.strict()))
	case w.LockDelay > 0:
		return w.z.constrain(g, zoneVars, zoneZero)
	}
	return true
}

// run adds an anchor: a ttl that runs from op's instant, or from anywhere since
// its call. The lapse may come once it has run out, among others.
func (w *timedStep) run(ttl int64, from Anchor) bool {
	g := 0
	if from == AnchorGrant {
		g = w.z.now()
	} else {
		g = w.z.free()
		if !w.z.within(g, w.op.Call, Unbounded) || !w.z.constrain(g, zoneNow, zoneZero) {
			return false
		}
		// Of two equal TTLs only the later anchor matters, so that g may stand
		// for the later of the two.
		for i := range w.ttls.n {
			if w.ttls.at(i) == ttl && !w.z.constrain(g-w.ttls.n+i, g, zoneZero) {
				return false
			}
		}
	}
	w.ttls.push(ttl)
	return w.LockDelay <= 0 || w.z.constrain(g, zoneVars, w.scale.shortest(ttl, w.Early))
}

func (w *timedStep) renew() {
	done := w.op.Outcome == TimedOK || w.op.Outcome == TimedUnknown
	if next := w.s; done && w.op.TTL > 0 && w.mine(&next) {
		w.prolong(next)
	}
	w.refuse()
}

func (w *timedStep) use() {
	done := w.op.Outcome == TimedOK || w.op.Outcome == TimedUnknown && w.op.Kind == TimedRelease
	if next := w.s; done && w.mine(&next) {
		for range w.whileHeld {
			if w.op.Kind == TimedRelease {
				w.emitFree(next)
			} else {
				w.emit(next)
			}
		}
	}
	w.refuse()
}

// mine reports whether the last tenure can be the asker's under its token, and
// settles the token of next.
func (w *timedStep) mine(next *TimedState) bool {
	return w.op.Owner > 0 && w.s.holder == w.op.Owner && w.settle(next, w.op.Token)
}

// refuse is a renewal, release or write refused.
func (w *timedStep) refuse() {
	next := w.s
	switch {
	case w.op.Owner <= 0 || w.op.Outcome != TimedRefused:
	case w.s.phase != timedHolding || !w.mine(&next):
		w.emitSame(w.s)
	default:
		w.noticeLapse(false)
		// Or the tenure has another token than the one the asker carried.
		if next = w.s; next.lo < w.op.Token && w.Tokens != TokensNone {
			next.hi = w.op.Token - 1
			w.emitSame(next)
		}
		if next = w.s; next.hi > w.op.Token && w.Tokens != TokensNone {
			next.lo = w.op.Token + 1
			w.emitSame(next)
		}
	}
}

func (w *timedStep) get() {
	next := w.s
	switch {
	case w.op.Outcome != TimedOK:
	case w.op.Holder == 0 && w.s.phase == timedHolding:
		w.noticeLapse(false)
	case w.op.Holder == 0:
		w.emitSame(w.s)
	case w.s.holder == w.op.Holder && (w.op.HolderToken == 0 || w.settle(&next, w.op.HolderToken)):
		for range w.whileHeld {
			w.emit(next)
		}
	}
}

// restart brings the store back with a clock that says nothing of the time
// before. A tenure that may still be held is held for the largest TTL it was
// promised. If it may have lapsed, the store may also have put that on record,
// by a timer or while it answered somebody else, and told nobody: before a
// restart that makes no difference to any answer, and so it is left open until
// here. The lock delay of a lapse on record starts anew.
func (w *timedStep) restart() {
	if w.NoRestarts || w.op.Outcome != TimedOK && w.op.Outcome != TimedUnknown {
		return
	}
	if w.s.phase != timedHolding {
		if w.begin() {
			w.delayAnew()
			w.emit(w.s)
		}
		return
	}
	if w.begin() && w.start(w.s.largest, AnchorGrant) {
		w.emit(w.s)
	}
	for range w.whenLapsed {
		w.delayAnew()
		w.emitLapsed()
	}
}

// delayAnew makes the present the instant of the lapse, if s keeps one.
func (w *timedStep) delayAnew() {
	if w.s.lapse {
		w.z.dim, w.ttls.n = zoneVars, 0
		w.z.now()
	}
}

func (w *timedStep) remove() {
	if (w.op.Outcome == TimedOK || w.op.Outcome == TimedUnknown) && w.begin() {
		w.emitFree(w.s)
	}
}

// emitSame is a branch in which op changed nothing.
func (w *timedStep) emitSame(next TimedState) {
	if w.begin() {
		w.emit(next)
	}
}

// emitFree ends the tenure without a lapse.
func (w *timedStep) emitFree(next TimedState) {
	w.z.dim, w.ttls.n = zoneVars, 0
	w.emit(TimedState{lo: next.lo, hi: next.hi})
}

// emitLapsed ends the tenure with a lapse. Without a lock delay, and without
// renewals after a lapse, it leaves nothing that a release does not.
func (w *timedStep) emitLapsed() {
	w.z.dim -= w.ttls.n
	w.ttls.n = 0
	next := TimedState{lo: w.s.lo, hi: w.s.hi}
	if w.s.lapse {
		next.phase = timedLapsed
	}
	if w.RenewAfterLapse {
		next.phase, next.holder, next.largest = timedLapsed, w.s.holder, w.s.largest
	}
	w.emit(next)
}

// emit adds next with the zone and the anchors as they stand.
func (w *timedStep) emit(next TimedState) {
	w.dropDominated()
	if w.NoRestarts {
		next.largest = 0
	}
	next.pack(&w.z, &w.ttls)
	w.add(next)
}

// dropDominated leaves out each anchor that another outlasts in every case: it
// is held whenever the first is, and lapsed only if the first is.
func (w *timedStep) dropDominated() {
	for i := 0; i < w.ttls.n; i++ {
		if w.dominated(i) {
			w.z.drop(w.anchor(i))
			w.ttls.drop(i)
			i--
		}
	}
}

func (w *timedStep) dominated(i int) bool {
	for j := range w.ttls.n {
		// g_i + ttl_i <= g_j + ttl_j, however the clock drifts.
		if j != i && !w.scale.lead(w.ttls.at(j), w.ttls.at(i)).less(w.z.get(w.anchor(i), w.anchor(j))) {
			return true
		}
	}
	return false
}

// add keeps dst free of states that another covers.
func (w *timedStep) add(next TimedState) {
	for i := range w.dst {
		if w.dst[i].covers(&next) {
			return
		}
	}
	w.dst = append(slices.DeleteFunc(w.dst, func(have TimedState) bool { return next.covers(&have) }), next)
}
