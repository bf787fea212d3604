package sim

import (
	"bytes"
	"fmt"

	"fencepost/model"
)

// What a World made from a key begins with: the reading of every clock, and
// the incarnation of every client, older ones counting down from there.
const (
	clockBase   = int64(1) << 40
	currentBase = 1 << 10
)

// AppendKey appends the key of w. Worlds of one key go on alike.
func (sp *Space) AppendKey(dst []byte, w *World) []byte {
	c := &sp.c
	ends := c.write(w)
	n := sp.clients
	order := [MaxClients]int8{0, 1, 2, 3}
	if sp.red&Symmetry != 0 && n > 1 {
		c.sort(ends[:n+1], order[:n])
	}
	dst = append(dst, c.buf[:c.n]...)
	if sp.red&MessageOrder == 0 {
		for _, i := range order[:n] {
			for k := range w.nmsgs {
				if c.whose[k] == i {
					dst = append(dst, byte(k))
				}
			}
		}
	}
	return dst
}

// write writes the header and each client to buf, and says where they end.
func (c *codec) write(w *World) (ends [MaxClients + 1]int) {
	c.w, c.reading, c.n = w, false, 0
	c.gather()
	c.header()
	ends[0] = c.n
	for i := range c.sp.clients {
		c.client(i)
		ends[i+1] = c.n
	}
	return ends
}

// Parts are the parts of a key: a header, and one for each client. Where only
// clocks ran since, a client's part depends on its own clock alone, so that the
// keys for all combinations of rates can be joined from a few.
type Parts struct {
	buf    []byte
	ends   [MaxClients + 1]int
	tokens uint64
	shift  uint64
	refs   [refCount]model.Owner
	odd    bool
}

// Part takes the key of w to pieces.
func (sp *Space) Part(p *Parts, w *World) {
	c := &sp.c
	p.ends = c.write(w)
	p.buf = append(p.buf[:0], c.buf[:c.n]...)
	p.tokens, p.shift, p.refs, p.odd = c.tokens, c.shift, c.refs, c.odd
}

// Joins reports whether the parts of p and q go together, p and q having come
// from one World by nothing but the passing of equal time: what the parts of
// different clients share must be the same in both.
func (sp *Space) Joins(p, q *Parts) bool {
	return sp.red&MessageOrder != 0 && p.tokens == q.tokens && p.shift == q.shift && p.refs == q.refs && p.odd == q.odd &&
		bytes.Equal(p.buf[:p.ends[0]], q.buf[:q.ends[0]])
}

// Join appends the key that has each client's part from one of several, which
// must go together.
func (sp *Space) Join(dst []byte, from []*Parts) []byte {
	var parts [MaxClients][]byte
	for i, p := range from {
		parts[i] = p.buf[p.ends[i]:p.ends[i+1]]
		if sp.red&Symmetry == 0 {
			continue
		}
		for j := i; j > 0 && bytes.Compare(parts[j], parts[j-1]) < 0; j-- {
			parts[j], parts[j-1] = parts[j-1], parts[j]
		}
	}
	dst = append(dst, from[0].buf[:from[0].ends[0]]...)
	for _, part := range parts[:len(from)] {
		dst = append(dst, part...)
	}
	return dst
}

// sort sorts parts of buf, each from one end to the next, and what they are
// called. There are few, and mostly they are in order.
func (c *codec) sort(ends []int, names []int8) {
	for i := 1; i < len(names); i++ {
		for j := i; j > 0; j-- {
			from, mid, to := ends[j-1], ends[j], ends[j+1]
			if bytes.Compare(c.buf[mid:to], c.buf[from:mid]) >= 0 {
				break
			}
			n := copy(c.tmp[:], c.buf[from:mid])
			ends[j] = from + copy(c.buf[from:], c.buf[mid:to])
			copy(c.buf[ends[j]:], c.tmp[:n])
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
}

// Decode makes w a World with that key. The key must be one of this space.
func (sp *Space) Decode(key []byte, w *World) {
	c := &sp.c
	w.CopyFrom(&sp.template)
	c.w, c.reading, c.b = w, true, key
	c.refs, c.mem, c.spec, c.rec, c.odd = [refCount]model.Owner{}, model.Memory{}, model.LeaseMemory{}, ownership{}, false
	c.bearer, c.timed = [64]model.Owner{}, [MaxClients]bool{}
	for i := range sp.used() {
		w.nodes[i] = node{rate: million, elapsed: clockBase, wall: w.nodes[i].wall}
		w.nodes[i].wall = 0
	}
	w.nmsgs = 0
	c.header()
	for i := range sp.clients {
		c.client(i)
	}
	if sp.red&MessageOrder == 0 {
		var msgs [MaxMessages]message
		copy(msgs[:], w.msgs[:w.nmsgs])
		for i := range w.nmsgs {
			w.msgs[c.b[i]] = msgs[i]
		}
		c.b = c.b[w.nmsgs:]
	}
	if len(c.b) != 0 {
		panic(fmt.Sprintf("sim: a key with %d bytes too many: of another space", len(c.b)))
	}
	c.restore()
}

// Timeless reports whether nothing in the World last decoded depends on the
// clock of client i: whatever its rate, the same follows.
func (sp *Space) Timeless(i int) bool {
	return sp.tightClient && sp.red&(TimeShift|Saturation) == TimeShift|Saturation && !sp.c.timed[i]
}

// Idle reports whether client i of the World last decoded has no term: there is
// nothing to resign, no work begins and nobody writes.
func (sp *Space) Idle(i int) bool { return sp.tightClient && sp.c.idle[i] }

// Same reports whether message i of the World last decoded equals the one
// before it.
func (sp *Space) Same(i int) bool { return sp.red&MessageOrder != 0 && sp.c.same[i] }
