package linearizability

import "math/bits"

// least is how long a TTL runs at least, on the fastest clock that the store may
// have, rounded down; most is how long at most, on the slowest, rounded up. Both
// in nanoseconds, without how early or late the store may be besides.
func (m *Meta) least(ttl int64) int64 {
	hi, lo := bits.Mul64(uint64(max(ttl, 0)), 1e9)
	quo, _ := bits.Div64(hi, lo, uint64(1e9+m.Drift))
	return int64(quo)
}

func (m *Meta) most(ttl int64) int64 {
	hi, lo := bits.Mul64(uint64(max(ttl, 0)), 1e9)
	slowest := uint64(1e9 - m.Drift)
	if hi >= slowest {
		return Unbounded
	}
	quo, rem := bits.Div64(hi, lo, slowest)
	if rem > 0 {
		quo++
	}
	return int64(min(quo, Unbounded))
}
