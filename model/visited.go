package model

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// fingerprints tells states apart by 64 bits. For states of one width of up to
// 8 bytes this is exact: the fingerprint is a bijection of the state. Other
// states are hashed, under a seed of their own in every exploration, so that a
// collision in one run is not one in the next.
type fingerprints struct {
	width int
	seed  maphash.Seed
	keep  uint64 // the bits that are kept; all of them, but in a test
}

// exactWidth is the most bytes of which a fingerprint is a bijection.
const exactWidth = 8

func (f *fingerprints) exact() bool {
	return 0 < f.width && f.width <= exactWidth && f.keep == math.MaxUint64
}

// all appends the fingerprints of the states added to s. One may have any value,
// 0 included, if exact; a hash is never 0.
func (f *fingerprints) all(s *Steps, to []uint64) []uint64 {
	if f.width == 8 {
		for rest := s.states; len(rest) >= 8; rest = rest[8:] {
			to = append(to, mix(binary.LittleEndian.Uint64(rest))&f.keep)
		}
		return to
	}
	for i := range s.count() {
		to = append(to, f.of(s.at(i)))
	}
	return to
}

func (f *fingerprints) of(state []byte) uint64 {
	if 0 < f.width && f.width <= exactWidth {
		var b [8]byte
		copy(b[:], state)
		return mix(binary.LittleEndian.Uint64(b[:])) & f.keep
	}
	return max(maphash.Bytes(f.seed, state)&f.keep, 1)
}

// mix is the finalizer of SplitMix64 (Steele, Lea & Flood 2014, with Stafford's
// constants): each step can be undone, so the whole is a bijection, and every
// bit of the result depends on every bit of x.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// visited is the set of the fingerprints seen so far. Any number of goroutines
// may use it at once. It holds bare fingerprints, 8 bytes a slot: open
// addressing with linear probing in shards that grow one at a time, so that
// growth never needs the memory twice.
//
// A look-up takes no lock. It may miss a fingerprint that is being added, never
// find one that was not: whoever misses looks again under the shard's mutex.
type visited struct {
	// By shard. What every look-up reads is apart from what every addition
	// writes: on one cache line, cores would wait for each other's additions.
	slots  []atomic.Pointer[[]uint64] // never full; replaced by a larger copy to grow
	shards []visitedShard

	zero   atomic.Bool // whether fingerprint 0, which marks a free slot, is in the set
	memory *meter
}

type visitedShard struct {
	mu   sync.Mutex // held to write a slot, or to replace the slots
	used int
	_    [48]byte // one cache line each: workers lock neighbours
}

const (
	visitedShards = 256
	visitedSlots  = 64 // of a shard at first, or up to half as many more: see newVisited
	lineSlots     = 8  // slots in a cache line; a shard has whole lines
)

// newVisited makes an empty set in a number of shards that is a power of two.
func newVisited(shards int, memory *meter) *visited {
	v := &visited{
		slots:  make([]atomic.Pointer[[]uint64], shards),
		shards: make([]visitedShard, shards),
		memory: memory,
	}
	for i := range v.slots {
		// Fingerprints fill all shards alike. Sizes spread over one step of
		// growth keep them from growing all at the same moment, so the set as
		// a whole stays at its average load.
		n := int(visitedSlots*math.Pow(1.5, float64(i)/float64(shards))) &^ (lineSlots - 1)
		slots := make([]uint64, n)
		v.slots[i].Store(&slots)
		memory.add(8 * n)
	}
	return v
}

// shard is which shard holds fp: its low bits, as homeSlot uses the high ones.
func (v *visited) shard(fp uint64) uint64 { return fp & uint64(len(v.slots)-1) }

// homeSlot is where the search for fp starts in n slots. It keeps the order of
// fingerprints, so that growing reads and writes memory in sequence.
func homeSlot(fp uint64, n int) int {
	hi, _ := bits.Mul64(fp, uint64(n))
	return int(hi)
}

// peek reads for each of prints the slot where the search for it starts, and
// appends it to homes. The set holds it if the two are equal and not 0.
//
// Most of the time of an exploration goes into waiting for these slots. Reads
// that depend on nothing are under way many at once, so this comes before add.
func (v *visited) peek(prints, homes []uint64) []uint64 {
	for _, fp := range prints {
		slots := *v.slots[v.shard(fp)].Load()
		homes = append(homes, atomic.LoadUint64(&slots[homeSlot(fp, len(slots))]))
	}
	return homes
}

// add puts fp into the set and says whether it is new: to exactly one of those
// who add it.
func (v *visited) add(fp uint64) bool {
	if fp == 0 {
		return !v.zero.Load() && !v.zero.Swap(true)
	}
	shard := v.shard(fp)
	seen := v.slots[shard].Load()
	i, found := findSlot(*seen, homeSlot(fp, len(*seen)), fp)
	if found {
		return false
	}
	s := &v.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := v.slots[shard].Load()
	if now != seen {
		i = homeSlot(fp, len(*now))
	}
	// In the same slots none that was passed on the way to i can have become fp:
	// they were taken.
	if i, found = findSlot(*now, i, fp); found {
		return false
	}
	atomic.StoreUint64(&(*now)[i], fp)
	s.used++
	if s.used > len(*now)/4*3 {
		v.slots[shard].Store(v.grown(*now))
	}
	return true
}

// grown copies a shard's slots into half as many more. The caller holds its mutex.
func (v *visited) grown(old []uint64) *[]uint64 {
	slots := make([]uint64, (len(old)+len(old)/2)&^(lineSlots-1))
	v.memory.add(8 * len(slots))
	for _, fp := range old {
		if fp != 0 {
			i, _ := findSlot(slots, homeSlot(fp, len(slots)), fp)
			slots[i] = fp
		}
	}
	v.memory.add(-8 * len(old))
	return &slots
}

// findSlot looks for fp from slot i on, to the first free slot. It goes round the
// cache line of slot i before it reads the next one.
func findSlot(slots []uint64, i int, fp uint64) (at int, found bool) {
	for {
		line := i &^ (lineSlots - 1)
		for range lineSlots {
			switch atomic.LoadUint64(&slots[i]) {
			case fp:
				return i, true
			case 0:
				return i, false
			}
			i = line | (i+1)&(lineSlots-1)
		}
		if i = line + lineSlots; i == len(slots) {
			i = 0
		}
	}
}

// meter counts the bytes in use and their peak.
type meter struct {
	now, peak atomic.Int64
	show      *atomic.Int64
}

func (m *meter) add(bytes int) {
	now := m.now.Add(int64(bytes))
	m.show.Store(now)
	for {
		peak := m.peak.Load()
		if now <= peak || m.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}
