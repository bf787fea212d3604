package sim

import (
	"math/bits"
	"time"

	"fencepost/model"
)

// This file is the observer, who alone reads real time and every clock.

// look takes note of the tenure in the store.
func (w *World) look() {
	holder, token, _, running := w.setup.subject.Store.Tenure(&w.store, w.nodes[StoreNode].clocks())
	w.tenure.token, w.tenure.running = uint64(token), running
	if running {
		w.tenure.owner = ownerOf(holder)
	}
}

// lapse ends the tenure at now on the store's clock.
func (w *World) lapse(now time.Duration) {
	w.tenure.running = false
	w.emit(&model.Event{Kind: model.KindLapse, Node: StoreNode, Holder: w.tenure.owner, Token: w.tenure.token, Local: int64(now)})
}

// breakDown ends the run if the store is at fault beyond all answers. It differs
// from every specification then, which never panics.
func (w *World) breakDown() {
	if w.violated == 0 && w.setup.opaque.Fault() != nil {
		w.violated = model.SetOf(model.Lockstep)
		w.first = model.Violation{Invariant: model.Lockstep, At: w.now, Action: w.action, Node: StoreNode}
	}
}

// emit stamps e and shows it to whoever looks.
func (w *World) emit(e *model.Event) {
	o := &w.setup.opts
	w.counts.see(e)
	if !o.Monitor && !o.Lockstep && o.Trace == nil {
		return
	}
	w.stamp(e)
	switch e.Kind {
	case model.KindLead, model.KindHandle, model.KindLapse, model.KindRestart, model.KindDelete:
		e.Slow = w.slow()
	}
	if o.Trace != nil {
		o.Trace.Events = append(o.Trace.Events, *e)
	}
	if w.violated != 0 {
		return
	}
	if o.Monitor {
		if w.monitor.Observe(e); w.monitor.Violated() != 0 {
			w.violated, w.first = w.monitor.Violated(), w.monitor.First()
		}
	}
	if o.Lockstep && e.Kind == model.KindHandle {
		w.compare(e)
	}
}

func (w *World) stamp(e *model.Event) *model.Event {
	e.At, e.Action = w.now, w.action
	return e
}

// slow is the set of acting clients whose clock ran below the bound against
// the store's over the countdown of the term.
func (w *World) slow() (set uint16) {
	for i := range w.setup.cfg.Clients {
		if c := &w.clients[i]; c.acting {
			n := ClientNode(i)
			at := w.counted(n)
			// client/store < 1 - drift, in 128 bits
			ch, cl := bits.Mul64(uint64(at.client-c.since.client), 1e9)
			sh, sl := bits.Mul64(uint64(at.store-c.since.store), 1e9-w.setup.driftPPB)
			if ch < sh || ch == sh && cl < sl {
				set |= 1 << n
			}
		}
	}
	return set
}
