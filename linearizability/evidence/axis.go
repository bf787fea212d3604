package evidence

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// scale places instants on the canvas, from left to right.
type scale struct {
	zero        int64   // from which the axis counts
	from, to    float64 // the edges, since zero
	left, right float64 // the edges, in pixels
}

// since is at - zero, also where int64 has no room for it.
func since(at, zero int64) float64 {
	if d := at - zero; (at^zero)&(at^d) >= 0 {
		return float64(d)
	}
	return float64(at) - float64(zero)
}

// beyond is how far outside the canvas things are drawn: enough that an open
// end is not seen.
const beyond = 24

func (s scale) x(at int64) float64 {
	switch {
	case at >= Unbounded:
		return s.right + beyond
	case at <= -Unbounded:
		return s.left - beyond
	}
	return s.place(since(at, s.zero))
}

func (s scale) place(at float64) float64 {
	return s.left + (at-s.from)/(s.to-s.from)*(s.right-s.left)
}

// clip is x, at most a little outside the canvas: no renderer has to add up
// numbers of any size.
func (s scale) clip(at int64) float64 { return min(max(s.x(at), s.left-beyond), s.right+beyond) }

// sees reports whether any of the pixels from x0 to x1 is on the canvas.
func (s scale) sees(x0, x1 float64) bool { return x1 >= s.left && x0 <= s.right }

// tick is a labelled instant of the axis.
type tick struct {
	X     float64
	Label string
}

// tickRoom is the least distance of two ticks, in pixels.
const tickRoom = 92

// ticks are the round instants of the axis. page.js has the same rule.
func (s scale) ticks(u Unit) (all []tick) {
	step := niceStep((s.to-s.from)*tickRoom/max(s.right-s.left, 1), u)
	most := max(math.Abs(s.from), math.Abs(s.to))
	for k := math.Ceil(s.from / step); k*step <= s.to; k++ {
		at := k*step + 0 // -0 is 0
		all = append(all, tick{s.place(at), tickLabel(at, step, most, u)})
	}
	return all
}

const (
	second = float64(time.Second)
	minute = 60 * second
)

// niceStep is the least round step that is at least so long.
func niceStep(atLeast float64, u Unit) float64 {
	if u == Nanoseconds && atLeast > 50*second {
		for _, m := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 240, 480, 1440} {
			if m*minute >= atLeast {
				return m * minute
			}
		}
		return math.Ceil(atLeast/(1440*minute)) * 1440 * minute
	}
	step := math.Pow(10, math.Floor(math.Log10(max(atLeast, 1))))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= atLeast {
			return m * step
		}
	}
	return 10 * step
}

// tickLabel is an instant in the unit that suits the axis.
func tickLabel(at, step, most float64, u Unit) string {
	if u == Order {
		return strconv.FormatFloat(at, 'f', 0, 64)
	}
	if step >= minute {
		m := int64(math.Round(at / minute))
		if m%60 == 0 && m != 0 {
			return strconv.FormatInt(m/60, 10) + " h"
		}
		if m > 60 {
			return strconv.FormatInt(m/60, 10) + " h " + strconv.FormatInt(m%60, 10)
		}
		return strconv.FormatInt(m, 10) + " min"
	}
	size, suffix := unitFor(most)
	digits := max(0, int(math.Ceil(math.Log10(size/step)-1e-9)))
	return strconv.FormatFloat(at/size, 'f', digits, 64) + " " + suffix
}

func unitFor(most float64) (size float64, suffix string) {
	switch {
	case most >= second:
		return second, "s"
	case most >= float64(time.Millisecond):
		return float64(time.Millisecond), "ms"
	case most >= float64(time.Microsecond):
		return float64(time.Microsecond), "µs"
	}
	return 1, "ns"
}

// instant is the whole of an instant, in words.
func instant(at int64, u Unit) string {
	if u == Order {
		return "event " + strconv.FormatInt(at, 10)
	}
	return length(at)
}

// length is a time in the largest unit that it fills.
func length(d int64) string {
	size, suffix := unitFor(math.Abs(float64(d)))
	s := strconv.FormatFloat(float64(d)/size, 'f', 9, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " " + suffix
}

// during is a span in words. An end that is not known is left open.
func during(s Span, u Unit) string {
	switch {
	case s.From <= -Unbounded && s.To >= Unbounded:
		return "at any time"
	case s.From <= -Unbounded:
		return "until " + instant(s.To, u)
	case s.To >= Unbounded:
		return "from " + instant(s.From, u)
	case s.From == s.To:
		return "at " + instant(s.From, u)
	case u == Order:
		return "event " + strconv.FormatInt(s.From, 10) + " to " + strconv.FormatInt(s.To, 10)
	}
	return instant(s.From, u) + " to " + instant(s.To, u) + " (" + length(int64(min(since(s.To, s.From), 1<<62))) + ")"
}
