package sim

import (
	"fencepost/impl/lease"
	"fencepost/model"
)

// Mismatch is an answer that differs from the specification's.
type Mismatch struct {
	Event     model.Event
	Got, Want model.Answer
}

func (w *World) compare(e *model.Event) {
	if e.Node == StoreNode {
		w.expect(e, w.lease.Step(e))
	} else {
		w.expect(e, w.guard.Step(e))
	}
}

// compareState compares what store and storage show after an action: what they
// would answer to whoever asked now. They are put back as they were, since to
// be told of a lapse makes it known.
func (w *World) compareState() {
	if n := &w.nodes[StoreNode]; n.up() {
		now, m, was := n.clocks(), message{op: model.OpGet, lease: lease.Request{Op: lease.OpGet}}, w.store
		rep := w.setup.subject.Store.Handle(&w.store, now, w.setup.delay, m.lease)
		w.store = was
		e, spec := w.handled(&m, StoreNode, now.Boot, rep), w.lease
		w.expect(w.stamp(&e), spec.Step(&e))
	}
	for k := range uint8(model.Keys) {
		if w.storage.Values[k] != w.guard.Values[k] || uint64(w.storage.Highest) != w.guard.Highest {
			e := model.Event{Kind: model.KindHandle, Node: StorageNode, Op: model.OpRead, Key: k, Code: model.CodeValue,
				Token: uint64(w.storage.Highest), Value: w.storage.Values[k]}
			w.expect(w.stamp(&e), w.guard.Step(&e))
		}
	}
}

// expect judges the answer in e by what the specification wants.
func (w *World) expect(e *model.Event, want model.Answer) {
	if got := model.AnswerOf(e); got != want {
		w.mismatch = Mismatch{Event: *e, Got: got, Want: want}
		if w.violated == 0 {
			w.first = model.Violation{Invariant: model.Lockstep, At: e.At, Action: e.Action, Node: e.Node, Token: e.Token}
		}
		w.violated |= model.SetOf(model.Lockstep)
	}
}
