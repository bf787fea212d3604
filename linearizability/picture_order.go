package linearizability

import (
	"context"
	"slices"

	"fencepost/linearizability/evidence"
)

// drawOrder is how many operations a partition may have for its order to be
// searched for again.
const drawOrder = 50_000

// order adds the linearization of a partition or, where it is violated, one of
// what came before the return that nothing explains.
func (d *drawing) order(ctx context.Context, i int) {
	p, judged, r := &d.v.digest.parts[i], &d.v.Partitions[i], &d.page.Resources[i]
	if judged.Result == Unknown || p.operations > drawOrder || len(r.Operations) == 0 {
		return
	}
	target := *p.load()
	defer p.unload()
	if p.stuck != nil {
		var err error
		if target, err = p.compile(p.stuck.ret - 1); err != nil {
			return
		}
	}
	e := p.explain(ctx, d.meta, d.v.digest.options.Memory)
	at := make(map[int]*action, len(target.actions))
	for k := range target.actions {
		at[target.actions[k].Call] = &target.actions[k]
	}
	m := &target.machine
	state, placed := m.init, make(map[int]bool)
	var out evidence.Linearization
	for _, call := range e.order {
		next, ok := m.step(state, at[call])
		if !ok {
			return // placed where it was needed, not where it happened
		}
		id, drawn := d.ids[drawnOp{i, call}]
		if drawn && len(out.Placed) == 0 {
			out.Start = m.show(state)
		}
		if state = next; drawn {
			out.Placed = append(out.Placed, evidence.Placed{Op: id, State: m.show(state)})
		}
		placed[call] = true
	}
	if stuck, drawn := d.ids[drawnOp{i, judged.stuck.Call}]; p.stuck != nil && drawn && len(e.order) > 0 {
		out.Partial, out.Stuck = true, stuck
		if whole, err := p.compile(p.stuck.ret); err == nil {
			for k := range whole.actions {
				a := &whole.actions[k]
				id, drawn := d.ids[drawnOp{i, a.Call}]
				if !drawn || placed[a.Call] || a.unknown && a.Call != p.stuck.Call {
					continue
				}
				if _, ok := whole.machine.step(state, a); !ok {
					out.Tried = append(out.Tried, evidence.Attempt{Op: id, Why: "not possible when " + m.show(state)})
				}
			}
		}
	}
	r.Order = out
}

// reduceEvents is how long a history may be for its minimal failing part to be
// looked for.
const reduceEvents = 20_000

// fewOperations can be taken in at a glance; more of them show nothing.
const fewOperations = 12

// minimal marks the fewest operations that cannot be explained.
func (d *drawing) minimal(ctx context.Context) {
	d.reduced = slices.IndexFunc(d.v.Partitions, func(p Partition) bool { return p.Result == Violated })
	if d.reduced < 0 || d.v.digest.events > reduceEvents {
		return
	}
	h, held := d.v.source.(*History)
	if !held {
		h = &History{Name: d.v.File, Meta: *d.meta}
		if d.v.source.events(func(_ int, e *Event) bool { h.Events = append(h.Events, *e.clone()); return true }) != nil {
			return
		}
	}
	small, err := Reduce(ctx, *h, d.v.digest.options)
	if err != nil || len(small.Ops()) > fewOperations {
		return
	}
	d.fewest = &small
	fewest := make(map[int]bool)
	for i := range small.Events {
		for _, id := range d.byLine[small.Events[i].Index] {
			fewest[id] = true
		}
	}
	for i := range d.page.Resources {
		for j := range d.page.Resources[i].Operations {
			o := &d.page.Resources[i].Operations[j]
			o.Evidence = fewest[o.ID]
		}
	}
}
