package model

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// zoneBound bounds the difference of two instants from above: x - y <= b, or
// x - y < b. It is whole nanoseconds plus frac/2 units of the zone's scale; the
// lowest bit of frac says that the bound itself is allowed. So bounds order as
// pairs, and of two equal amounts the strict one is the lower.
type zoneBound struct {
	whole int64
	frac  uint64
}

// zoneInf is the whole part of "no bound", and the size of the largest finite
// amount: two of them still add up in an int64. Amounts beyond it saturate
// towards the looser bound, which can only make a verdict more lenient.
const zoneInf = 1 << 62

var (
	zoneNone = zoneBound{zoneInf, 0}
	zoneZero = zoneBound{0, 1}
)

func (a zoneBound) less(b zoneBound) bool {
	return a.whole < b.whole || a.whole == b.whole && a.frac < b.frac
}

// strict is a with the bound itself excluded.
func (a zoneBound) strict() zoneBound { return zoneBound{a.whole, a.frac &^ 1} }

// zoneWhole is the bound x - y <= v.
func zoneWhole(v int64) zoneBound {
	if v >= zoneInf {
		return zoneNone
	}
	return zoneBound{max(v, -zoneInf), 1}
}

// zoneScale makes bounds under drift exact. A duration of T on a clock whose
// rate is within 1-d and 1+d of the recorder's lasts between T/(1+d) and
// T/(1-d); with d = D/1e9 both are whole multiples of 1/((1e9-D)(1e9+D)) ns.
type zoneScale struct {
	slow, fast uint64 // 1e9-D, 1e9+D
	unit       uint64 // twice their product, the frac of one whole nanosecond
}

func newZoneScale(driftPPB int64) zoneScale {
	slow, fast := uint64(1e9-driftPPB), uint64(1e9+driftPPB)
	return zoneScale{slow, fast, 2 * slow * fast}
}

// longest is the bound x - y <= ttl/(1-d) + late.
func (c zoneScale) longest(ttl, late int64) zoneBound {
	return c.elapsed(ttl, c.slow, c.fast).plus(late)
}

// shortest is the bound y - x >= ttl/(1+d) - early, put as one of x - y.
func (c zoneScale) shortest(ttl, early int64) zoneBound {
	return c.negate(c.elapsed(ttl, c.fast, c.slow)).plus(early)
}

// lead is the largest bound on x - y that lets a TTL a started at y outlast a
// TTL b started at x, whatever the clock does.
func (c zoneScale) lead(a, b int64) zoneBound {
	if a >= b {
		return c.elapsed(a-b, c.fast, c.slow)
	}
	return c.negate(c.elapsed(b-a, c.slow, c.fast))
}

// elapsed is the bound x - y <= ttl*1e9/rate.
func (c zoneScale) elapsed(ttl int64, rate, other uint64) zoneBound {
	if c.slow == c.fast {
		return zoneWhole(ttl)
	}
	hi, lo := bits.Mul64(uint64(ttl), 1e9)
	if hi >= rate {
		return zoneNone
	}
	whole, rest := bits.Div64(hi, lo, rate)
	if whole >= zoneInf {
		return zoneNone
	}
	return zoneBound{int64(whole), 2*rest*other | 1}
}

// negate is the bound x - y <= -b.
func (c zoneScale) negate(b zoneBound) zoneBound {
	if b.frac <= 1 {
		return zoneBound{-b.whole, 1}
	}
	return zoneBound{-b.whole - 1, c.unit - b.frac + 2}
}

// plus is b later by d >= 0.
func (b zoneBound) plus(d int64) zoneBound {
	if d >= zoneInf || b.whole >= zoneInf-d {
		return zoneNone
	}
	return zoneBound{b.whole + d, b.frac}
}

// The variables of every zone: the origin of the recorder's clock and the
// instant of the operation linearized last. Others follow from zoneVars on.
const (
	zoneOrigin = iota
	zoneNow
	zoneVars
)

// zone is a set of instants given by bounds on their differences: a difference
// bound matrix in canonical form, the way timed automata keep clocks (Dill
// 1989; Alur & Dill 1994). Canonical means that each bound is the tightest the
// others imply; so leaving a variable out is exact, and two equal sets have
// equal bounds.
type zone struct {
	dim, stride int
	unit        uint64

	// The bound of x_i - x_j is at i*stride+j: of few, which keeps small zones
	// off the heap, unless there is many.
	few  [25]zoneBound
	many []zoneBound
}

func (z *zone) get(i, j int) zoneBound { return *z.at(i, j) }

func (z *zone) at(i, j int) *zoneBound {
	if z.many != nil {
		return &z.many[i*z.stride+j]
	}
	return &z.few[i*z.stride+j]
}

func (z *zone) set(i, j int, b zoneBound) { *z.at(i, j) = b }

func (z *zone) add(a, b zoneBound) zoneBound {
	if a.whole == zoneInf || b.whole == zoneInf {
		return zoneNone
	}
	whole, frac := a.whole+b.whole, a.frac&^1+b.frac&^1
	if frac >= z.unit {
		whole, frac = whole+1, frac-z.unit
	}
	if whole >= zoneInf {
		return zoneNone
	}
	return zoneBound{max(whole, -zoneInf), frac | a.frac&b.frac&1}
}

// constrain keeps the instants with x_i - x_j within b, and reports whether
// any are left. After false the zone must not be used.
func (z *zone) constrain(i, j int, b zoneBound) bool {
	if !b.less(z.get(i, j)) {
		return true
	}
	if z.add(z.get(j, i), b).less(zoneZero) {
		return false
	}
	for p := range z.dim {
		to := b
		if p != i {
			to = z.add(z.get(p, i), b)
		}
		if !to.less(z.get(p, j)) {
			continue // whatever leads on from j is no tighter either
		}
		for q := range z.dim {
			via := to
			if q != j {
				via = z.add(to, z.get(j, q))
			}
			if q != p && via.less(z.get(p, q)) {
				z.set(p, q, via)
			}
		}
	}
	return true
}

// within keeps the instants with lo <= x_i <= hi.
func (z *zone) within(i int, lo, hi int64) bool {
	return z.constrain(zoneOrigin, i, zoneWhole(-max(lo, -zoneInf))) && z.constrain(i, zoneOrigin, zoneWhole(hi))
}

// free adds a variable that may be any instant.
func (z *zone) free() int {
	v := z.dim
	z.dim++
	for i := range z.dim {
		z.set(v, i, zoneNone)
		z.set(i, v, zoneNone)
	}
	z.set(v, v, zoneZero)
	return v
}

// now adds a variable that equals the present instant.
func (z *zone) now() int {
	v := z.dim
	z.dim++
	for i := range v {
		z.set(v, i, z.get(zoneNow, i))
		z.set(i, v, z.get(i, zoneNow))
	}
	z.set(v, v, zoneZero)
	return v
}

// drop leaves variable v out.
func (z *zone) drop(v int) {
	z.dim--
	for i := range z.dim + 1 {
		for j := v; j < z.dim; j++ {
			z.set(i, j, z.get(i, j+1))
		}
	}
	for i := v; i < z.dim; i++ {
		for j := range z.dim {
			z.set(i, j, z.get(i+1, j))
		}
	}
}

// timedTTLs is a list of n TTLs; few keeps short ones off the heap.
type timedTTLs struct {
	n    int
	few  [2]int64
	many []int64 // those after few, and room for more
}

func (t *timedTTLs) ref(i int) *int64 {
	if i < len(t.few) {
		return &t.few[i]
	}
	return &t.many[i-len(t.few)]
}

func (t *timedTTLs) at(i int) int64 { return *t.ref(i) }

func (t *timedTTLs) push(ttl int64) {
	if t.n == len(t.few)+len(t.many) {
		t.many = append(t.many, 0)
	}
	*t.ref(t.n) = ttl
	t.n++
}

func (t *timedTTLs) drop(i int) {
	t.n--
	for ; i < t.n; i++ {
		*t.ref(i) = *t.ref(i + 1)
	}
}

// timedPhase says how the last tenure stands, as far as anybody knows.
type timedPhase uint8

const (
	timedFree    timedPhase = iota // never held, or released
	timedHolding                   // held, or lapsed without anybody having been told
	timedLapsed                    // lapsed, and somebody was told
)

// TimedState is what may be known of a lease after some operations: who holds
// it, which token was granted last, and the zone of all instants at which its
// TTLs may have started and the last operation may have taken effect. It is an
// immutable value, comparable with ==; states come from [TimedParams.Init] and
// [TimedParams.Step].
type TimedState struct {
	lo, hi  uint64 // the last token granted is within
	largest int64  // TTL of the tenure, for restarts
	holder  int32
	phase   timedPhase
	lapse   bool  // the zone keeps the instant of the lapse
	anchors int32 // in the zone, after the lapse

	// The bounds of the zone, row by row without the row of zoneNow, which
	// bounds nothing: time may pass. Up to one variable they are in near, the
	// anchor's TTL in ttl; else far has first the TTLs and then the bounds.
	near [4]zoneBound
	ttl  int64
	far  string
}

func (s *TimedState) vars() int {
	if s.lapse {
		return int(s.anchors) + 1
	}
	return int(s.anchors)
}

// pack stores z, from now on until any later instant, and the TTLs of its
// anchors.
func (s *TimedState) pack(z *zone, ttls *timedTTLs) {
	s.anchors, s.lapse = int32(ttls.n), z.dim-ttls.n > zoneVars
	s.near, s.ttl, s.far = [4]zoneBound{}, 0, ""
	if s.vars() <= 1 {
		if ttls.n > 0 {
			s.ttl = ttls.at(0)
		}
		n := 0
		for i, j := range z.packed {
			s.near[n] = z.get(i, j)
			n++
		}
		return
	}
	var room [2*8 + 16*16]byte // for three variables; more move it to the heap
	b := room[:0]
	for i := range ttls.n {
		b = binary.LittleEndian.AppendUint64(b, uint64(ttls.at(i)))
	}
	for i, j := range z.packed {
		c := z.get(i, j)
		b = binary.LittleEndian.AppendUint64(b, uint64(c.whole))
		b = binary.LittleEndian.AppendUint64(b, c.frac)
	}
	s.far = string(b)
}

// packed yields the places of the bounds a state keeps, in order.
func (z *zone) packed(yield func(i, j int) bool) {
	for i := range z.dim {
		for j := range z.dim {
			if i != zoneNow && i != j && !yield(i, j) {
				return
			}
		}
	}
}

// word is the i-th number of far.
func (s *TimedState) word(i int) uint64 {
	f := s.far[8*i : 8*i+8]
	return uint64(f[0]) | uint64(f[1])<<8 | uint64(f[2])<<16 | uint64(f[3])<<24 |
		uint64(f[4])<<32 | uint64(f[5])<<40 | uint64(f[6])<<48 | uint64(f[7])<<56
}

// anchorTTL is the TTL of anchor i.
func (s *TimedState) anchorTTL(i int) int64 {
	if s.vars() <= 1 {
		return s.ttl
	}
	return int64(s.word(i))
}

// bound is the n-th bound of the zone, of (vars+1) squared.
func (s *TimedState) bound(n int) zoneBound {
	if s.vars() <= 1 {
		return s.near[n]
	}
	at := int(s.anchors) + 2*n
	return zoneBound{int64(s.word(at)), s.word(at + 1)}
}

// unpack makes the zone and the TTLs of w those of its state, with room for
// what one operation may add.
func (w *timedStep) unpack() {
	vars := w.s.vars()
	z := &w.z
	z.dim, z.unit, z.stride = zoneVars+vars, w.scale.unit, zoneVars+max(vars+1, 2)
	if n := z.stride * z.stride; n > len(z.few) && z.many == nil {
		z.many = make([]zoneBound, n)
	}
	n := 0
	for i, j := range z.packed {
		z.set(i, j, w.s.bound(n))
		n++
	}
	for i := range z.dim {
		z.set(zoneNow, i, zoneNone)
		z.set(i, i, zoneZero)
	}
	w.ttls.n = 0
	for i := range int(w.s.anchors) {
		w.ttls.push(w.s.anchorTTL(i))
	}
}

// covers reports that whatever may follow t may follow s.
func (s *TimedState) covers(t *TimedState) bool {
	if s.phase != t.phase || s.holder != t.holder || s.lo > t.lo || s.hi < t.hi ||
		s.largest != t.largest || s.anchors != t.anchors || s.lapse != t.lapse {
		return false
	}
	for i := range int(s.anchors) {
		if s.anchorTTL(i) != t.anchorTTL(i) {
			return false
		}
	}
	vars := s.vars()
	for n := range (vars + 1) * (vars + 1) {
		if s.bound(n).less(t.bound(n)) {
			return false
		}
	}
	return true
}

// Equal reports whether s and t allow the same futures by the same knowledge.
// It is ==.
func (s TimedState) Equal(t TimedState) bool { return s == t }

// Hash is equal for equal states, and the same in every run.
func (s TimedState) Hash() uint64 {
	h := uint64(s.holder)<<32 | uint64(s.phase)
	mix := func(v uint64) {
		hi, lo := bits.Mul64(h^v^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	mix(s.lo)
	mix(s.hi)
	mix(uint64(s.largest))
	for i := range int(s.anchors) {
		mix(uint64(s.anchorTTL(i)))
	}
	vars := s.vars()
	for n := range (vars + 1) * (vars + 1) {
		b := s.bound(n)
		mix(uint64(b.whole))
		mix(b.frac)
	}
	return h
}

// String says who holds the lease, under which token, and between which
// instants its TTLs may have started. Instants are rounded to whole
// nanoseconds.
func (s TimedState) String() string {
	var b strings.Builder
	switch s.phase {
	case timedHolding:
		fmt.Fprintf(&b, "held by %d, ", s.holder)
	case timedLapsed:
		b.WriteString("lapsed, ")
		if s.holder != 0 {
			fmt.Fprintf(&b, "last held by %d, ", s.holder)
		}
	default:
		b.WriteString("free, ")
	}
	switch {
	case s.lo == s.hi:
		fmt.Fprintf(&b, "token %d", s.lo)
	case s.hi == ^uint64(0):
		fmt.Fprintf(&b, "token >= %d", s.lo)
	default:
		fmt.Fprintf(&b, "token %d to %d", s.lo, s.hi)
	}
	var z timedStep
	z.s = s
	z.unpack()
	if s.lapse {
		fmt.Fprintf(&b, ", lapse in %s", z.z.span(zoneVars))
	}
	for i := range z.ttls.n {
		fmt.Fprintf(&b, ", %v from %s", time.Duration(z.ttls.at(i)), z.z.span(z.anchor(i)))
	}
	if low := z.z.get(zoneOrigin, zoneNow); low != zoneNone {
		fmt.Fprintf(&b, ", now >= %v", time.Duration(-low.whole))
	}
	return b.String()
}

// span is the interval of instants that variable i may have.
func (z *zone) span(i int) string {
	lo, hi := "(-inf", "inf)"
	if b := z.get(zoneOrigin, i); b != zoneNone {
		lo = fmt.Sprintf("%c%v", "(["[b.frac&1], time.Duration(-b.whole))
	}
	if b := z.get(i, zoneOrigin); b != zoneNone {
		hi = fmt.Sprintf("%v%c", time.Duration(b.whole), ")]"[b.frac&1])
	}
	return lo + ", " + hi
}
