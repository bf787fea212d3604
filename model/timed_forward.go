package model

import "math/bits"

// What follows serves a search that goes forward through a history and keeps
// all the states that the operations so far can have led to: it tells which of
// them it need not keep.

// Covers reports that whatever may follow t may follow s, so that of the two
// only s is to be kept.
func (s TimedState) Covers(t TimedState) bool { return s.covers(&t) }

// Kin is equal for any two states of which one covers the other, and the same
// in every run.
func (s TimedState) Kin() uint64 {
	h := uint64(s.holder)<<32 | uint64(s.anchors)<<8 | uint64(s.phase)
	if s.lapse {
		h |= 1 << 7
	}
	mix := func(v uint64) {
		hi, lo := bits.Mul64(h^v^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	mix(uint64(s.largest))
	for i := range int(s.anchors) {
		mix(uint64(s.anchorTTL(i)))
	}
	return h
}

// LastToken is the lowest and the highest that the last token granted can be.
func (s TimedState) LastToken() (lo, hi uint64) { return s.lo, s.hi }

// Holds reports whether s is a tenure of the owner, which nobody was told is
// over.
func (s TimedState) Holds(owner int32) bool { return s.phase == timedHolding && s.holder == owner }

// Past reports that op, whose outcome is unknown, can change nothing: not in s,
// and in no state that follows it. False does not say that it can.
func (p TimedParams) Past(s TimedState, op TimedOp) bool {
	switch op.Kind {
	case TimedGet, TimedWrite:
		return true
	case TimedRenew, TimedRelease:
		if p.Tokens == TokensNone || op.Token > s.lo {
			return false
		}
		// The tenure that it asks about is the last one, or over: another would
		// get a higher token.
		return op.Token < s.lo || s.phase == timedFree || s.holder != op.Owner
	}
	return false
}

// AppendLate adds to dst the states that op leads to from s if op took effect
// in the tenure that s is in, at any instant since its call and since the last
// renewal that s knows of: operations that took effect after op may have been
// stepped before it, as long as they needed the lease held, or did not ask. It
// is for renewals and acquires of unknown outcome by the one who holds the
// lease, where all the TTLs of the tenure are equal, and none runs from a call.
func (p TimedParams) AppendLate(dst []TimedState, s TimedState, op TimedOp) []TimedState {
	if !p.valid() || op.TTL <= 0 || op.Owner <= 0 || !s.Holds(op.Owner) {
		return dst
	}
	w := timedStep{TimedParams: p, scale: newZoneScale(p.DriftPPB), s: s, op: op, dst: dst}
	next := s
	if op.Kind == TimedRenew && !w.settle(&next, op.Token) {
		return dst
	}
	next.largest = max(next.largest, op.TTL)
	for i := range int(s.anchors) {
		w.unpack()
		if w.late(i) {
			w.emit(next)
		}
	}
	return w.dst
}

// late adds the anchor of an op that found the lease held, said anchor i.
func (w *timedStep) late(i int) bool {
	g, held := w.z.free(), w.scale.longest(w.ttls.at(i), w.Late).strict()
	a := g - w.ttls.n + i
	if !w.z.within(g, w.op.Call, Unbounded) || !w.z.constrain(g, zoneNow, zoneZero) ||
		!w.z.constrain(a, g, zoneZero) || !w.z.constrain(g, a, held) {
		return false
	}
	w.ttls.push(w.op.TTL)
	return !w.s.lapse || w.z.constrain(g, zoneVars, zoneZero.strict()) &&
		w.z.constrain(g, zoneVars, w.scale.shortest(w.op.TTL, w.Early))
}

// By reports whether the last operation can have taken effect by an instant.
func (s TimedState) By(at int64) bool {
	b := s.bound(0) // of the origin minus now
	if b.whole >= zoneInf || at >= zoneInf {
		return true
	}
	return !(zoneBound{b.whole + at, b.frac}).less(zoneZero)
}

// Holder is the owner of the last tenure, as far as that still matters: 0 if it
// does not.
func (s TimedState) Holder() int32 { return s.holder }

// Renamed is s if the one that it knows as from were to.
func (s TimedState) Renamed(from, to int32) TimedState {
	if s.holder == from {
		s.holder = to
	}
	return s
}

// Longest is how long at most, in ns, a TTL leaves the lease held, rounded up;
// Unbounded if it may for ever.
func (p TimedParams) Longest(ttl int64) int64 {
	b := newZoneScale(p.DriftPPB).longest(ttl, p.Late)
	if b.whole >= zoneInf {
		return Unbounded
	}
	return b.whole + 1
}
