package model

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// timedRat is a bound as a fraction, and whether it is allowed itself.
func timedRat(c zoneScale, b zoneBound) (*big.Rat, bool) {
	r := new(big.Rat).SetFrac(new(big.Int).SetUint64(b.frac&^1), new(big.Int).SetUint64(c.unit))
	return r.Add(r, new(big.Rat).SetInt64(b.whole)), b.frac&1 == 1
}

func TestTimedZoneBoundsAreTheFractionsTheyStandFor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	year := int64(366 * 24 * 3600 * 1e9)
	for range 5_000 {
		drift := r.Int64N(1e9)
		if r.IntN(2) == 0 {
			drift = r.Int64N(1e6)
		}
		c := newZoneScale(drift)
		// Durations small enough for the stretched ones to stay finite.
		limit := min(year, int64(1e9-drift)<<30)
		a, b, slack := r.Int64N(limit), r.Int64N(limit), r.Int64N(year)
		stretch := func(ttl, rate int64) *big.Rat {
			return new(big.Rat).Mul(big.NewRat(ttl, 1), big.NewRat(1e9, rate))
		}
		slackRat := big.NewRat(slack, 1)

		longest := new(big.Rat).Add(stretch(a, 1e9-drift), slackRat)
		shortest := new(big.Rat).Sub(slackRat, stretch(b, 1e9+drift))
		// lead is the lesser of the two differences, at either rate.
		lead := stretch(a-b, 1e9-drift)
		if other := stretch(a-b, 1e9+drift); other.Cmp(lead) < 0 {
			lead = other
		}
		z := zone{unit: c.unit}
		for _, x := range []struct {
			name string
			got  zoneBound
			want *big.Rat
		}{
			{"longest", c.longest(a, slack), longest},
			{"shortest", c.shortest(b, slack), shortest},
			{"lead", c.lead(a, b), lead},
			{"sum", z.add(c.longest(a, slack), c.shortest(b, slack)), new(big.Rat).Add(longest, shortest)},
		} {
			if got, within := timedRat(c, x.got); got.Cmp(x.want) != 0 || !within {
				t.Fatalf("drift %d, ttl %d and %d, slack %d: %s is %v, itself allowed: %v; want %v", drift, a, b, slack, x.name, got, within, x.want)
			}
		}
		if got, want := c.longest(a, slack).less(c.shortest(b, slack)), longest.Cmp(shortest) < 0; got != want {
			t.Fatalf("drift %d: %v < %v is %v", drift, longest, shortest, got)
		}
	}
}

func TestTimedZoneStrictIsLowerAndStaysSo(t *testing.T) {
	z := zone{unit: newZoneScale(5).unit}
	five := zoneWhole(5)
	if !five.strict().less(five) || five.less(five.strict()) || !zoneWhole(4).less(five.strict()) {
		t.Error("want 4 < 5 strictly < 5")
	}
	for _, b := range []zoneBound{z.add(five.strict(), five), z.add(five, five.strict()), z.add(five.strict(), five.strict())} {
		if b != zoneWhole(10).strict() {
			t.Errorf("a sum with a strict bound is %v, want 10 strictly", b)
		}
	}
}

func TestTimedZoneSaturatesTowardsLeniency(t *testing.T) {
	c := newZoneScale(999_999_999)
	z := zone{unit: c.unit}
	low := zoneWhole(-Unbounded)
	for name, b := range map[string]zoneBound{
		"whole":         zoneWhole(Unbounded),
		"longest":       c.longest(1e18, 0),
		"late":          c.longest(1, Unbounded),
		"early":         c.shortest(1, Unbounded),
		"sum":           z.add(zoneWhole(zoneInf-1), zoneWhole(zoneInf-1)),
		"sum with none": z.add(zoneNone, low),
	} {
		if b != zoneNone {
			t.Errorf("%s: %v, want no bound", name, b)
		}
	}
	if sum := z.add(low, low); sum != low {
		t.Errorf("two lowest bounds add up to %v, want %v", sum, low)
	}
}

// TestTimedZoneDropKeepsTheOthers leaves out each of five variables.
func TestTimedZoneDropKeepsTheOthers(t *testing.T) {
	for v := zoneVars; v < 5; v++ {
		z := zone{dim: 5, stride: 5}
		for i := range 5 {
			for j := range 5 {
				z.set(i, j, zoneWhole(int64(10*i+j)))
			}
		}
		z.drop(v)
		old := func(i int) int64 {
			if i >= v {
				i++
			}
			return int64(i)
		}
		for i := range 4 {
			for j := range 4 {
				if got, want := z.get(i, j), zoneWhole(10*old(i)+old(j)); got != want {
					t.Errorf("without %d: bound %d,%d is %v, want %v", v, i, j, got, want)
				}
			}
		}
	}
}

func TestTimedTTLsOfAnyLength(t *testing.T) {
	var l timedTTLs
	var want []int64
	r := rand.New(rand.NewPCG(2, 2))
	for i := range int64(1000) {
		if len(want) > 0 && r.IntN(5) < 2 {
			k := r.IntN(len(want))
			l.drop(k)
			want = append(want[:k], want[k+1:]...)
		} else {
			l.push(i)
			want = append(want, i)
		}
		if l.n != len(want) {
			t.Fatalf("length %d, want %d", l.n, len(want))
		}
		for k, v := range want {
			if l.at(k) != v {
				t.Fatalf("element %d is %d, want %v", k, l.at(k), want)
			}
		}
		if l.n == 0 {
			l.many = nil
		}
	}
}
