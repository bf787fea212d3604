package lifelike

// step is something that happens at an instant. Of two at one instant the one
// that was planned first comes first.
type step struct {
	at, rank int64
	run      func()
}

func (s step) before(t step) bool { return s.at < t.at || s.at == t.at && s.rank < t.rank }

// queue is the steps to come: a binary heap.
type queue struct {
	heap    []step
	planned int64
}

func (q *queue) push(at int64, run func()) {
	q.planned++
	s := step{at, q.planned, run}
	q.heap = append(q.heap, s)
	h, i := q.heap, len(q.heap)-1
	for i > 0 && s.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = s
}

// pop takes the next step; there must be one.
func (q *queue) pop() step {
	h, last := q.heap, len(q.heap)-1
	top, s := h[0], h[last]
	h[last] = step{} // free what it refers to
	h = h[:last]
	q.heap = h
	for i := 0; last > 0; {
		down := 2*i + 1
		if down+1 < last && h[down+1].before(h[down]) {
			down++
		}
		if down >= last || !h[down].before(s) {
			h[i] = s
			break
		}
		h[i] = h[down]
		i = down
	}
	return top
}
