package lease

import (
	"hash/fnv"
	"math/bits"
	"time"
)

// maxSlots keeps the slots of a period from becoming finer than timers are.
const maxSlots = 256

// spread divides each period into slots. Every resource has a slot of its own,
// the same in each period: so renewals that began together do not stay together,
// and those of one slot are due at one instant, for one batch.
type spread struct {
	slots uint64 // a power of two
	nonce uint64
}

// spreadFor has no more slots than it takes to fill a batch of size requests
// from half to three quarters, on average, with n resources: fewer calls, and
// room for chance.
func spreadFor(n, size int, nonce uint64) spread {
	s := spread{slots: 1, nonce: nonce}
	for s.slots < maxSlots && int(s.slots)*size*3 < n*4 {
		s.slots *= 2
	}
	return s
}

// placeOf is where resource stands in any period: spread evenly over all of
// uint64, and differently by groups of different nonces.
func placeOf(resource string, nonce uint64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(resource)) // never fails
	return mix(h.Sum64() ^ mix(nonce))
}

// mix is the finalizer of MurmurHash3: names that differ in the last digit only
// come to lie far apart.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// last is the last instant, not after due, of the slot of place.
func (s spread) last(due, period time.Duration, place uint64) time.Duration {
	width := max(period/time.Duration(s.slots), 1)
	slot, _ := bits.Mul64(place, s.slots) // the top bits: slots divide evenly as they double
	// Groups on one machine read one clock: the nonce sets their slots apart.
	offset := time.Duration(slot)*width + time.Duration(s.nonce%uint64(width))
	behind := (due - offset%period) % period
	if behind < 0 {
		behind += period
	}
	return due - behind
}

// schedule is a heap of members by the instant at which each is due, and of one
// instant by the order in which they were added.
type schedule []due

// due has what members are compared by beside each other: to look into each of
// them would cost more than all the rest.
type due struct {
	at     time.Duration
	number uint64
	*member
}

func (s schedule) Len() int { return len(s) }

func (s schedule) Less(i, j int) bool {
	return s[i].at < s[j].at || s[i].at == s[j].at && s[i].number < s[j].number
}

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	m := x.(*member)
	m.index = len(*s)
	*s = append(*s, due{never, m.number, m})
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	m := (*s)[last].member
	(*s)[last] = due{}
	*s = (*s)[:last]
	m.index = -1
	return m
}
