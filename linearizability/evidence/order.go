package evidence

import "slices"

// point is an operation of an order, and an instant at which it may have taken
// effect. The instants of an order never fall.
type point struct {
	op     *Operation
	number int // in the order, from 1
	state  string
	at     int64
}

// points places an order in time: each operation between its call and its
// return, in the middle of what the others leave to it. Where the file's order
// and its instants disagree a little, the order wins. Operations that
// are not drawn are skipped.
func (r *Resource) points(end int64) []point {
	byID := make(map[int]*Operation, len(r.Operations))
	for i := range r.Operations {
		byID[r.Operations[i].ID] = &r.Operations[i]
	}
	var all []point
	for i, o := range r.Order.Placed {
		if op := byID[o.Op]; op != nil {
			all = append(all, point{op: op, number: i + 1, state: prose(o.State)})
		}
	}
	latest := make([]int64, len(all))
	limit := end
	for i, p := range slices.Backward(all) {
		limit = min(limit, p.op.Return)
		latest[i] = limit
	}
	var earliest, last int64 = -Unbounded, -Unbounded
	for i := range all {
		earliest = max(earliest, all[i].op.Call)
		at := earliest
		if latest[i] > at {
			at += int64(since(latest[i], at) / 2)
		}
		last = max(last, at)
		all[i].at = last
	}
	return all
}
