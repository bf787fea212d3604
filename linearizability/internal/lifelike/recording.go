package lifelike

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"fencepost/linearizability"
)

// recorders is how many recorders a history with time stamp errors is merged
// from.
const recorders = 3

// recording stamps what happens and yields it in the order of the stamps.
type recording struct {
	yield   func(linearizability.Event) bool
	stopped bool // nobody listens
	eps     int64
	rng     *rand.Rand
	offset  [recorders]int64
	last    map[int64]int64         // by process that has not ended: its last stamp
	pending []linearizability.Event // that an earlier stamp may yet precede, in order
	index   int64
}

func newRecording(yield func(linearizability.Event) bool, eps int64, rng *rand.Rand) recording {
	r := recording{yield: yield, eps: eps, rng: rng, last: make(map[int64]int64)}
	if eps > 0 {
		r.offset = [recorders]int64{-eps, eps}
	}
	return r
}

// add records an event that happens now.
func (r *recording) add(now int64, e linearizability.Event) {
	e.Time = now
	if r.eps == 0 {
		r.emit(e)
		return
	}
	// Each recorder is off by its own error and by some jitter; the stamps of one
	// process keep their order, which brings none of them further off.
	at := now + max(-r.eps, min(r.eps, r.offset[max(e.Process, 0)%recorders]+r.rng.Int64N(r.eps/2+1)-r.eps/4))
	if e.Process != linearizability.NoProcess {
		at = max(at, r.last[e.Process])
		if r.last[e.Process] = at; e.Type == linearizability.Info {
			delete(r.last, e.Process)
		}
	}
	e.Time = at
	i, _ := slices.BinarySearchFunc(r.pending, at+1, func(p linearizability.Event, t int64) int { return cmp.Compare(p.Time, t) })
	r.pending = slices.Insert(r.pending, i, e)
	r.flush(now - r.eps)
}

// flush yields what is stamped before t.
func (r *recording) flush(t int64) {
	n := 0
	for n < len(r.pending) && r.pending[n].Time < t {
		r.emit(r.pending[n])
		n++
	}
	r.pending = slices.Delete(r.pending, 0, n)
}

func (r *recording) emit(e linearizability.Event) {
	e.Index = r.index
	r.index++
	r.stopped = r.stopped || !r.yield(e)
}
