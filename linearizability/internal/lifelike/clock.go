package lifelike

import (
	"math/bits"
	"math/rand/v2"
)

// billion is a rate of one, in parts per billion.
const billion = 1_000_000_000

// clock is the store's: it runs at a rate that changes every now and then,
// anywhere within the bound. Rates are drawn ahead as far as somebody asks.
type clock struct {
	rng       *rand.Rand
	drift     int64 // bound, in parts per billion
	stretch   int64 // about how long a rate lasts
	stretches []stretch
}

// stretch is a time of constant rate.
type stretch struct{ begin, end, rate int64 }

// after returns the first instant at or after which d has passed on the clock
// since t. That is right to the nanosecond at most: the caller holds it to the
// bound.
func (c *clock) after(t, d int64) int64 {
	if c.drift == 0 {
		return t + d
	}
	for i := 0; d > 0; i++ {
		if i == len(c.stretches) {
			c.draw(t)
		}
		s := c.stretches[i]
		if s.end <= t {
			continue
		}
		if passes := mulDiv(s.end-t, s.rate, billion); passes < d {
			d -= passes
			t = s.end
			continue
		}
		return t + mulDiv(d, billion, s.rate)
	}
	return t
}

// draw adds a stretch that begins when the last one ends, or at t.
func (c *clock) draw(t int64) {
	if n := len(c.stretches); n > 0 {
		t = c.stretches[n-1].end
	}
	rate := int64(billion)
	switch c.rng.IntN(4) {
	case 0:
		rate -= c.drift
	case 1:
		rate += c.drift
	default:
		rate += c.rng.Int64N(2*c.drift+1) - c.drift
	}
	c.stretches = append(c.stretches, stretch{t, t + 1 + c.rng.Int64N(2*c.stretch), rate})
}

// forget drops the rates before t.
func (c *clock) forget(t int64) {
	n := 0
	for n < len(c.stretches)-1 && c.stretches[n].end <= t {
		n++
	}
	if n > 64 { // now and then, so that it costs nothing
		c.stretches = append(c.stretches[:0], c.stretches[n:]...)
	}
}

// fastest is how soon d can have passed on a clock within the bound, rounded up;
// slowest is how late, rounded down.
func fastest(d, drift int64) int64 { return -mulDivFloor(-d, billion, billion+drift) }
func slowest(d, drift int64) int64 { return mulDivFloor(d, billion, billion-drift) }

// mulDiv is a*b/c, none of which is negative.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	quo, _ := bits.Div64(hi, lo, uint64(c))
	return int64(quo)
}

// mulDivFloor is a*b/c rounded down, for a of either sign.
func mulDivFloor(a, b, c int64) int64 {
	if a >= 0 {
		return mulDiv(a, b, c)
	}
	hi, lo := bits.Mul64(uint64(-a), uint64(b))
	quo, rem := bits.Div64(hi, lo, uint64(c))
	if rem > 0 {
		quo++
	}
	return -int64(quo)
}
