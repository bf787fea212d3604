package model

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

func testMeter() *meter { return &meter{show: new(atomic.Int64)} }

func TestVisitedAgreesWithAMap(t *testing.T) {
	for _, shards := range []int{1, 2, visitedShards} {
		r := rand.New(rand.NewPCG(3, uint64(shards)))
		m := testMeter()
		v := newVisited(shards, m)
		seen := map[uint64]bool{}
		for i := range 200_000 {
			// Few enough for many repetitions; small ones share the first slot.
			fp := mix(r.Uint64N(60_000))
			if i%3 == 0 {
				fp = r.Uint64N(300)
			}
			if peeked := v.peek([]uint64{fp}, nil)[0]; peeked == fp && fp != 0 && !seen[fp] {
				t.Fatalf("%d shards: %#x seen by peek before it was added", shards, fp)
			}
			if got, want := v.add(fp), !seen[fp]; got != want {
				t.Fatalf("%d shards: %#x is new: %v, want %v", shards, fp, got, want)
			}
			seen[fp] = true
		}
		var bytes int64
		for i := range v.slots {
			bytes += 8 * int64(len(*v.slots[i].Load()))
		}
		if m.now.Load() != bytes || m.show.Load() != bytes || m.peak.Load() < bytes {
			t.Errorf("%d shards: %d bytes in slots, the meter says %d, peak %d", shards, bytes, m.now.Load(), m.peak.Load())
		}
	}
}

func TestEachFingerprintIsNewExactlyOnce(t *testing.T) {
	const n, goroutines = 20_000, 8
	for _, shards := range []int{1, visitedShards} {
		v := newVisited(shards, testMeter())
		added := make([]atomic.Int32, n) // by number: how many were told it is new
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for i := range n {
					// Half of them forward, half backward, so that all meet
					// while the set grows.
					if g%2 == 1 {
						i = n - 1 - i
					}
					if v.add(mix(uint64(i))) { // 0 among them: mix(0) is 0
						added[i].Add(1)
					}
				}
			})
		}
		all.Wait()
		for i := range added {
			if got := added[i].Load(); got != 1 {
				t.Fatalf("%d shards: fingerprint %d was new %d times", shards, i, got)
			}
		}
	}
}

// unmix undoes mix step by step; the multipliers are the inverses of mix's
// modulo 2^64, found by Newton's iteration.
func unmix(x uint64) uint64 {
	inverse := func(a uint64) uint64 {
		b := a
		for range 6 {
			b *= 2 - a*b
		}
		return b
	}
	x ^= x>>31 ^ x>>62
	x *= inverse(0x94d049bb133111eb)
	x ^= x>>27 ^ x>>54
	x *= inverse(0xbf58476d1ce4e5b9)
	return x ^ x>>30 ^ x>>60
}

func TestMixIsABijection(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, x := range []uint64{0, 1, math.MaxUint64, 1 << 63} {
		if y := unmix(mix(x)); y != x {
			t.Errorf("%#x was mixed to what comes from %#x", x, y)
		}
	}
	for range 100_000 {
		if x := r.Uint64(); unmix(mix(x)) != x {
			t.Fatalf("%#x was mixed to what comes from %#x", x, unmix(mix(x)))
		}
	}
}

// Published values of SplitMix64 from the seed 0: the generator gives
// mix(n * 0x9e3779b97f4a7c15).
func TestMixIsTheFinalizerOfSplitMix64(t *testing.T) {
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := mix(uint64(i+1) * 0x9e3779b97f4a7c15); got != want {
			t.Errorf("value %d is %#x, want %#x", i+1, got, want)
		}
	}
}

func TestShortStatesOfOneWidthAreToldApartExactly(t *testing.T) {
	for width := 1; width <= 9; width++ {
		f := fingerprints{width: width, seed: maphash.MakeSeed(), keep: math.MaxUint64}
		if want := width <= 8; f.exact() != want {
			t.Errorf("width %d: exact %v, want %v", width, f.exact(), want)
		}
		seen := map[uint64]bool{}
		for at := range width {
			for b := 1; b < 256; b++ {
				state := make([]byte, width)
				state[at] = byte(b)
				seen[f.of(state)] = true
			}
		}
		if want := 255 * width; len(seen) != want {
			t.Errorf("width %d: %d fingerprints of %d states", width, len(seen), want)
		}
	}
	if f := (&fingerprints{keep: math.MaxUint64}); f.exact() {
		t.Error("states of any length are told apart by hashes, but it says exactly")
	}
}
