package sim

import (
	"encoding/binary"
	"math"
	"math/bits"

	"fencepost/model"
)

// The coding of single values. Each writes what it is given, or reads and
// returns what was written.

func (c *codec) num(v uint64) uint64 {
	if c.reading || v >= 0x80 || uint(c.n) >= uint(len(c.buf)) {
		return c.long(v)
	}
	c.buf[c.n] = byte(v)
	c.n++
	return v
}

// long is num where a byte does not do, or where it reads.
func (c *codec) long(v uint64) uint64 {
	if !c.reading {
		c.n += binary.PutUvarint(c.buf[c.n:], v)
		return v
	}
	if len(c.b) > 0 && c.b[0] < 0x80 {
		v = uint64(c.b[0])
		c.b = c.b[1:]
		return v
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		panic("sim: a key that ends early: of another space")
	}
	c.b = c.b[n:]
	return v
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func zigzag(x int64) uint64   { return uint64(x<<1) ^ uint64(x>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// span codes a duration: whole grains shortly, anything else to the
// nanosecond, and what is for ever.
func (c *codec) span(d int64) int64 {
	const forever, exactly = 3, 1
	if c.reading {
		switch u := c.num(0); {
		case u == forever:
			return math.MaxInt64
		case u&1 == 0:
			return unzigzag(u>>1) * c.sp.grain.unit
		default:
			return unzigzag(u >> 2)
		}
	}
	size := uint64(d)
	if d < 0 {
		size = uint64(-d)
	}
	if d == math.MaxInt64 {
		c.num(forever)
	} else if q, whole := c.sp.grain.divide(size); whole {
		if d < 0 {
			c.num((2*q - 1) << 1)
		} else {
			c.num(2 * q << 1)
		}
	} else {
		c.num(zigzag(d)<<2 | exactly)
	}
	return d
}

// instant codes t relative to now; what is more than past ago saturates.
func (c *codec) instant(t, now, past int64) int64 {
	if c.reading {
		if d := c.span(0); d != math.MaxInt64 {
			return now + d
		}
		return math.MaxInt64
	}
	if t == math.MaxInt64 {
		return c.span(t)
	}
	d := t - now
	if d < -past && c.sp.red&Saturation != 0 {
		d = -past
	}
	c.span(d)
	return t
}

// set codes whether an instant is one at all: zero is none.
func (c *codec) set(t int64) bool { return c.num(bit(t != 0)) == 1 }

// clientInstant codes t on the clock of client i, and notes while reading
// whether that clock matters.
func (c *codec) clientInstant(i int, t, past int64) int64 {
	now := c.now(i)
	t = c.instant(t, now, past)
	if c.reading && t > now-past {
		c.timed[i] = true
	}
	return t
}

// past is how long ago an instant is when nothing tells it from longer ago:
// tight for the built-in rules, and with room to spare for others.
func (c *codec) past(tight bool, d int64) int64 {
	if tight {
		return d
	}
	return c.sp.loose
}

// rank codes a token that something refers to.
func (c *codec) rank(t uint64) uint64 {
	switch {
	case c.reading:
		return c.num(0)
	case c.exact || t == 0:
		c.num(t)
	default:
		c.num(uint64(bits.OnesCount64(c.tokens & (2<<(t-c.shift) - 1))))
	}
	return t
}

// bar codes a token of which only matters which of those referred to are below
// it, or at it where at is set.
func (c *codec) bar(t uint64, at bool) uint64 {
	if c.reading {
		if t = c.num(0); t > 0 && !at && !c.exact {
			t++
		}
		return t
	}
	c.num(c.under(t, at))
	return t
}

// under is how many of the tokens referred to are below t, or at it where at is
// set; t itself where tokens are kept as they are.
func (c *codec) under(t uint64, at bool) uint64 {
	switch {
	case c.exact:
		return t
	case t <= c.shift:
		return 0
	}
	below := uint64(1)<<(t-c.shift) - 1
	if at {
		below = below<<1 | 1
	}
	return uint64(bits.OnesCount64(c.tokens & below))
}

// age codes an incarnation of client i; where none is set it may be nobody's.
func (c *codec) age(o model.Owner, i int, none bool) model.Owner {
	if c.sp.red&IncarnationRanks == 0 {
		return c.owner(o)
	}
	if c.reading {
		a := c.num(0)
		if none {
			if a == 0 {
				return model.Owner{}
			}
			a--
		}
		return model.Owner{Node: ClientNode(i), Seq: uint32(currentBase - a)}
	}
	if none {
		if o.Node != ClientNode(i) {
			c.num(0)
			return o
		}
		c.num(c.seen[i].age(o) + 1)
		return o
	}
	c.num(c.seen[i].age(o))
	return o
}

// owner codes an incarnation as it is.
func (c *codec) owner(o model.Owner) model.Owner {
	return model.Owner{Node: model.Node(c.num(uint64(o.Node))), Boot: uint16(c.num(uint64(o.Boot))), Seq: uint32(c.num(uint64(o.Seq)))}
}

// ttl codes a duration that mostly is the TTL of the configuration.
func (c *codec) ttl(d int64) int64 {
	if c.reading {
		switch c.num(0) {
		case 0:
			return c.sp.full
		case 1:
			return 0
		}
		return c.span(0)
	}
	switch d {
	case c.sp.full:
		c.num(0)
	case 0:
		c.num(1)
	default:
		c.num(2)
		c.span(d)
	}
	return d
}

// class codes a value written to key k. There are two, 0 and 1, and all that
// matters of one is whether it equals what landed there last.
func (c *codec) class(k uint8, v int64) int64 {
	if c.reading {
		return int64(c.num(0))
	}
	c.num(bit(v != c.mem.Values[k]))
	return v
}

// scratch codes the memory of rules that are not built in, but for the
// references to incarnations.
func (c *codec) scratch(x *Scratch, means *[4]Meaning, now int64) {
	for k, m := range means {
		switch v := &x.N[k]; m {
		case MeansNumber:
			*v = unzigzag(c.num(zigzag(*v)))
		case MeansToken, MeansGrant:
			*v = int64(c.rank(uint64(*v)))
		case MeansValue:
			*v = c.class(uint8(k), *v)
		default:
			if c.num(bit(*v != 0)) == 0 {
				continue
			}
			from := now
			if m == MeansSending {
				from = clockBase
				if c.sp.red&TimeShift == 0 {
					from = 0
				} else if !c.reading {
					from = c.clock(int(c.refs[refScratch].Node - firstClient))
				}
			}
			*v = c.instant(*v, from, c.past(false, 0))
		}
	}
}

// grants notes, while a World is made, what was granted to the Who of x.
func (c *codec) grants(x *Scratch, means *[4]Meaning) {
	for k, m := range means {
		if m == MeansGrant {
			c.bears(uint64(x.N[k]), ownerOf(x.Who))
		}
	}
}

var stopKinds = [...]Kind{KindNone, Pause, Suspend, Freeze}

func (c *codec) stopped(k Kind) Kind {
	for i := range stopKinds {
		if stopKinds[i] == k {
			return stopKinds[c.num(uint64(i))]
		}
	}
	return KindNone
}
