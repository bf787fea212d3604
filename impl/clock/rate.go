package clock

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Rate is how fast a clock runs against another, in parts per million: at 800_000 it
// shows 0.8 s for each second of the other. Integers, so that a run can be repeated
// exactly. Rates from 0, a clock that stands still, to the largest int64 are valid.
type Rate int64

// True is the rate of a clock that does not drift.
const True Rate = 1_000_000

func (r Rate) mustRunForward() {
	if r < 0 {
		panic(fmt.Sprintf("clock: rate of %d ppm: a clock never goes back; use 0 to stop it", int64(r)))
	}
}

// line is the reading of a clock while its rate stays the same: the exact value
//
//	read + (part + rate*(base-from)) / True,   0 <= part < True
//
// when the base reads base, rounded down. As part carries what rounding down takes
// away, a chain of lines is as exact as one.
type line struct {
	from time.Duration // the base's instant at which the line begins
	read time.Duration
	part uint64
	rate Rate // not negative
}

// reading returns what the clock shows when the base reads base, rounded down, and the
// part of a nanosecond, in units of 1/True, lost by that. Before the line, it is as at
// its begin.
func (l line) reading(base time.Duration) (read time.Duration, part uint64) {
	base = max(base, l.from)
	// The products of two 64-bit numbers need 128 bits. A difference of two durations
	// can exceed the range of a Duration, but not that of uint64.
	hi, lo := bits.Mul64(uint64(l.rate), uint64(base)-uint64(l.from))
	lo, carry := bits.Add64(lo, l.part, 0)
	hi += carry
	if hi >= uint64(True) {
		return math.MaxInt64, 0
	}
	moved, part := bits.Div64(hi, lo, uint64(True))
	if moved > uint64(math.MaxInt64)-uint64(l.read) {
		return math.MaxInt64, 0
	}
	return time.Duration(uint64(l.read) + moved), part
}

// bend returns the line that begins where l is when the base reads base.
func (l line) bend(base time.Duration, rate Rate) line {
	read, part := l.reading(base)
	return line{from: max(base, l.from), read: read, part: part, rate: rate}
}

// reaches returns the base's first instant, of those on the line, at which the reading
// is at or more. There may be none: the clock stands, or the base will not get there.
func (l line) reaches(at time.Duration) (base time.Duration, ever bool) {
	if at <= l.read {
		return l.from, true
	}
	hi, lo := bits.Mul64(uint64(at)-uint64(l.read), uint64(True))
	lo, borrow := bits.Sub64(lo, l.part, 0)
	hi -= borrow
	if hi >= uint64(l.rate) { // the quotient is beyond uint64; or the rate is 0
		return 0, false
	}
	wait, rest := bits.Div64(hi, lo, uint64(l.rate))
	left := uint64(math.MaxInt64) - uint64(l.from)
	if wait > left || wait == left && rest > 0 {
		return 0, false
	}
	if rest > 0 {
		wait++
	}
	return time.Duration(uint64(l.from) + wait), true
}
