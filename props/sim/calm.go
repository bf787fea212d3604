package sim

import (
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// calm ends every fault and lets a.D of fair time pass, or less once a client
// leads: messages take a.Delay, clients run every a.Every. Raw parties are
// silent. What must happen then is the monitor's to say.
func (w *World) calm(a *Action) {
	none := [model.MaxNodes]int32{}
	for i := range w.nodes {
		n, nd := model.Node(i), &w.nodes[i]
		if names[i].Name == "" || names[i].Role == model.RoleClient && int(n-firstClient) >= w.setup.cfg.Clients {
			continue
		}
		if nd.crashed {
			w.restart(n, nd)
		}
		if nd.stopped != KindNone {
			w.fault(Resume, n, nd)
		}
		if nd.rate != million {
			nd.rate = million
			w.emit(&model.Event{Kind: model.KindDrift, Node: n, Value: million})
		}
	}
	if w.cuts != ([model.MaxNodes]uint16{}) {
		w.cuts = [model.MaxNodes]uint16{}
		w.emit(&model.Event{Kind: model.KindHeal})
	}
	for i := range w.setup.cfg.Clients {
		w.act(&Action{Kind: WorkEnd, Who: ClientNode(i)}, i)
	}
	for i := range w.nmsgs {
		w.msgs[i].due = w.now
	}
	every, delay := int64(a.every()), int64(a.Delay)
	w.emit(&model.Event{Kind: model.KindCalm, Remaining: delay, TTL: every})
	w.calming = true
	began := w.now
	settled := began + delay
	for tick, end := w.now, w.now+int64(a.D); w.violated == 0; {
		// The next thing to happen: a message that is due, or everybody's tick.
		next, msg := tick, -1
		for i := range w.nmsgs {
			if due := w.msgs[i].due + delay; due < next || due == next && msg < 0 {
				next, msg = due, i
			}
		}
		if next > end {
			w.advance(end-w.now, &none)
			break
		}
		if next > w.now {
			w.advance(next-w.now, &none)
		}
		if msg >= 0 {
			w.deliver(w.msgs[msg].id)
		} else {
			for i := range w.setup.cfg.Clients {
				w.act(&Action{Kind: Tick, Who: ClientNode(i)}, i)
			}
			tick += every
		}
		if w.now >= settled && w.leads() {
			break
		}
	}
	w.calming = false
	w.emit(&model.Event{Kind: model.KindCalmEnd})
}

// roomy reports whether all that correct candidates send has room in the
// network while messages take delay and ticks are every apart: each client has
// a request or its answer on the way for each time it asked within a round
// trip, and one of them fences besides. Else it would be no calm: what gets
// lost then is no fault of theirs.
func (c *Config) roomy(delay, every time.Duration) bool {
	senders := c.Clients
	if c.Lease.Barrier {
		senders++
	}
	apart := max(c.Lease.Retry(), every)
	return senders*(1+int((2*delay+apart-1)/apart)) <= MaxMessages
}

// every is how far apart the ticks of a calm are, a millisecond at the least.
func (a *Action) every() time.Duration { return max(a.Every, time.Millisecond) }

func (w *World) leads() bool {
	for i := range w.setup.cfg.Clients {
		if c := &w.clients[i]; c.acting && c.phase == lease.Leading {
			return true
		}
	}
	return false
}
