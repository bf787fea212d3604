package storetest

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"fencepost/props/kit"
	"fencepost/props/script"
)

// times are the durations that the checks work with, legal under the options.
type times struct {
	ttl, short, long time.Duration // short is half of ttl, and long twice
	late, delay      time.Duration
	grain            time.Duration // the unit of TTLs, 1 ns where they are exact
	least            time.Duration // the shortest TTL in whole seconds
	minTTL, maxTTL   time.Duration
	most             time.Duration // that may pass at once
}

// least TTL that a store is asked for unless it takes only longer ones: long
// enough to be cut into parts, and to be read as a number of seconds.
const usualTTL = 10 * time.Second

func timesOf(o kit.Options) times {
	t := times{late: o.Late, delay: o.LockDelay, grain: max(o.Granularity, 1), minTTL: o.MinTTL, maxTTL: cmp.Or(o.MaxTTL, math.MaxInt64)}
	t.ttl = ceil(max(usualTTL, 2*o.MinTTL), 2*t.grain)
	t.short, t.long = t.ttl/2, 2*t.ttl
	t.least = ceil(o.MinTTL, time.Second)
	t.most = math.MaxInt64
	if o.Late > 0 {
		// Whoever sweeps now and then does so for all of it.
		t.most = max(sweeps*min(o.Late, math.MaxInt64/sweeps), t.long)
	}
	return t
}

// sweeps is how many a store may have to make while time passes once.
const sweeps = 100_000

// gone is when a tenure of ttl has certainly lapsed, and free when it can
// certainly be granted again.
func (t times) gone() time.Duration { return t.ttl + t.late }
func (t times) free() time.Duration { return t.gone() + t.delay }

func ceil(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// Names that a script may use for durations, in braces and with + and -
// between: {T-1ns}. X.end is when a tenure of X ends, rounded up as the store
// promises.
func (t times) named(name string) (time.Duration, bool) {
	if name, ok := strings.CutSuffix(name, ".end"); ok {
		d, ok := t.named(name)
		return ceil(d, t.grain), ok
	}
	switch name {
	case "T":
		return t.ttl, true
	case "short":
		return t.short, true
	case "long":
		return t.long, true
	case "tenths": // a TTL that whole seconds cannot say
		return t.least + 1500*time.Millisecond, true
	case "micros": // nor whole milliseconds
		return t.least + 1500*time.Millisecond + 500*time.Microsecond, true
	case "nanos": // nor whole microseconds
		return t.least + time.Second + time.Nanosecond, true
	// TTLs above what a store may cut them to, such as a minute, an hour, a day,
	// or milliseconds of 32 bits; and how long no row may be kept for.
	case "minutes":
		return max(min(90*time.Second, t.most, t.maxTTL), t.minTTL), true
	case "hours":
		return max(min(25*time.Hour, t.most, t.maxTTL), t.minTTL), true
	case "weeks":
		return max(min(8*7*24*time.Hour, t.most, t.maxTTL), t.minTTL), true
	case "hour":
		return min(time.Hour, t.most), true
	case "day":
		return min(24*time.Hour, t.most), true
	case "year":
		return min(400*24*time.Hour, t.most), true
	case "late":
		return t.late, true
	case "delay":
		return t.delay, true
	case "gone":
		return t.gone(), true
	case "free":
		return t.free(), true
	}
	d, err := time.ParseDuration(name)
	return d, err == nil
}

// steps reads a script whose durations have names. Steps in which no time
// passes are left out.
func (t times) steps(text string) []script.Step {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = t.fill(line)
		if strings.TrimSpace(line) != "advance 0s" {
			b.WriteString(line)
		}
	}
	return script.Parse(b.String())
}

func (t times) fill(line string) string {
	for {
		before, rest, ok := strings.Cut(line, "{")
		if !ok {
			return line
		}
		expr, after, _ := strings.Cut(rest, "}")
		line = before + t.eval(expr).String() + after
	}
}

func (t times) eval(expr string) (sum time.Duration) {
	sign := time.Duration(1)
	for expr != "" {
		i := strings.IndexAny(expr, "+-")
		term := expr
		if i >= 0 {
			term = expr[:i]
		}
		d, ok := t.named(term)
		if !ok {
			panic(fmt.Sprintf("storetest: no duration is called %q", term))
		}
		sum += sign * d
		if i < 0 {
			break
		}
		if sign = 1; expr[i] == '-' {
			sign = -1
		}
		expr = expr[i+1:]
	}
	return sum
}
