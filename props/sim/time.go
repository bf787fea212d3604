package sim

import (
	"math"
	"time"

	"fencepost/model"
)

// node is one machine: its clocks and whether it runs.
type node struct {
	elapsed  int64 // ns its hardware clock has counted, never reset
	fraction int64 // and millionths of a ns
	rate     int64 // ppm
	origin   int64 // elapsed at which the boot clock read zero
	lost     int64 // by which the monotonic clock is behind the boot clock
	wall     int64 // by which the wall clock is ahead of elapsed
	boots    uint16
	stopped  Kind // Pause, Suspend, Freeze or KindNone
	crashed  bool
}

func (n *node) clocks() Clocks {
	boot := n.elapsed - n.origin
	return Clocks{Boot: time.Duration(boot), Mono: time.Duration(boot - n.lost), Wall: time.Duration(n.elapsed + n.wall)}
}

// up reports whether the node does anything at all.
func (n *node) up() bool { return !n.crashed && n.stopped == KindNone }

// advance lets d ns of real time pass. Deadlines and lapses inside it are
// events at their exact instants; on a tie belief ends first.
func (w *World) advance(d int64, rates *[model.MaxNodes]int32) {
	end := w.now + d
	for {
		at, who := w.next(end, rates)
		w.elapse(at-w.now, rates)
		switch {
		case who == 0:
			return
		case who == StoreNode:
			w.lapse(w.nodes[StoreNode].clocks().Boot)
		default:
			c := &w.clients[who-firstClient]
			c.acting = false
			w.emit(&model.Event{Kind: model.KindStepDown, Node: who, Owner: c.term, Token: c.token, Reason: model.ReasonLapsed})
		}
	}
}

// next is the first instant up to end at which a belief ends or the tenure
// lapses, and whose; end and nobody if there is none.
func (w *World) next(end int64, rates *[model.MaxNodes]int32) (at int64, who model.Node) {
	at = end
	s := &w.setup.subject
	for i := range w.setup.cfg.Clients {
		if c := &w.clients[i]; c.acting {
			n := ClientNode(i)
			nd := &w.nodes[n]
			left := s.Client.Ends(&c.ClientState, nd.clocks(), nd.stopped == Suspend)
			if t := nd.reach(int64(left), w.now, w.rate(n, rates)); t < at || t == at && who == 0 {
				at, who = t, n
			}
		}
	}
	if w.tenure.running && (w.setup.steady || !w.nodes[StoreNode].crashed) {
		now := w.nodes[StoreNode].clocks()
		_, _, ends, running := s.Store.Tenure(&w.store, now)
		left := int64(ends - now.Boot)
		if !running {
			left = 0
		}
		if t := w.nodes[StoreNode].reach(left, w.now, w.rate(StoreNode, rates)); t < at || t == at && who == 0 {
			at, who = t, StoreNode
		}
	}
	return at, who
}

// reach is the first whole ns of real time at which a clock that runs at rate
// has counted left more than now.
func (n *node) reach(left, now, rate int64) int64 {
	const far = int64(1 << 43) // longer than any advance, shorter than overflow
	switch {
	case left <= 0:
		return now
	case rate == 0 || left > far:
		return math.MaxInt64
	}
	return now + (left*million-n.fraction+rate-1)/rate
}

func (w *World) rate(n model.Node, rates *[model.MaxNodes]int32) int64 {
	switch {
	case w.nodes[n].stopped == Freeze:
		return 0
	case rates[n] != 0:
		return int64(rates[n])
	}
	return w.nodes[n].rate
}

// rates tells of the clocks that run otherwise for one advance only.
func (w *World) rates(rates *[model.MaxNodes]int32, begin bool) {
	if w.setup.opts.Trace == nil || *rates == ([model.MaxNodes]int32{}) {
		return // it is for the reader of a trace
	}
	for i, r := range rates {
		if n := &w.nodes[i]; r != 0 && int64(r) != n.rate {
			e := model.Event{Kind: model.KindDrift, Node: model.Node(i), Value: int64(r)}
			if !begin {
				e.Value = n.rate
			}
			w.emit(&e)
		}
	}
}

// elapse moves real time and every clock by dt.
func (w *World) elapse(dt int64, rates *[model.MaxNodes]int32) {
	w.now += dt
	for i := range w.nodes {
		n := &w.nodes[i]
		if names[i].Name == "" {
			continue
		}
		sum := n.fraction + dt*w.rate(model.Node(i), rates)
		n.elapsed += sum / million
		n.fraction = sum % million
		if n.stopped == Suspend {
			n.lost += sum / million
		}
	}
}
