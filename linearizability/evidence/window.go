package evidence

import (
	"cmp"
	"math"
	"slices"
)

// How much is drawn. A browser lays out a few thousand operations in a blink,
// and nobody looks at more.
const (
	mostOperations = 2000
	mostOthers     = 1000 // tenures, beliefs, faults, writes, of each resource
	mostResources  = 24
	fewResources   = 4
	mostFlags      = 200 // stretches of findings
)

// infinite says whether an instant is none.
func infinite(at int64) bool { return at >= Unbounded || at <= -Unbounded }

// hull is the least span that has all finite instants it was shown.
type hull struct {
	Span
	any bool
}

func (h *hull) add(instants ...int64) {
	for _, at := range instants {
		switch {
		case infinite(at):
		case !h.any:
			h.Span, h.any = Span{at, at}, true
		default:
			h.From, h.To = min(h.From, at), max(h.To, at)
		}
	}
}

// where is where a finding is in time.
func (w *window) where(f *Finding) hull {
	var h hull
	for _, s := range f.Spans {
		h.add(s.From, s.To)
	}
	if h.any {
		return h
	}
	for _, id := range f.Ops {
		h.add(w.spans[id].From, w.spans[id].To)
	}
	return h
}

// focused is what a reader wants to see first.
func (w *window) focused() hull {
	for i := range w.Findings {
		if f := &w.Findings[i]; f.Violates {
			if h := w.where(f); h.any {
				return h
			}
		}
	}
	var h hull
	for i := range w.Resources {
		r := &w.Resources[i]
		for j := range r.Operations {
			if op := &r.Operations[j]; op.Violates || r.Order.Partial && op.ID == r.Order.Stuck {
				h.add(op.Call, op.Return)
			}
		}
	}
	return h
}

// distance is how far a span is from a focus.
func distance(s Span, focus hull) float64 {
	switch {
	case !focus.any:
		return float64(s.From)
	case s.To < focus.From:
		return float64(focus.From) - float64(s.To)
	case s.From > focus.To:
		return float64(s.From) - float64(focus.To)
	}
	return 0
}

// nearest keeps at most so many of all: what is nearest to the focus, in the
// order that it had.
func nearest[T any](all []T, most int, focus hull, span func(T) Span) []T {
	if len(all) <= most {
		return all
	}
	order := make([]int, len(all))
	far := make([]float64, len(all))
	for i := range order {
		order[i], far[i] = i, distance(span(all[i]), focus)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
	order = order[:most]
	slices.Sort(order)
	kept := make([]T, most)
	for i, at := range order {
		kept[i] = all[at]
	}
	return kept
}

// window is the part of a page that is drawn.
type window struct {
	*Page
	spans     map[int]Span // of all operations, by ID
	focus     hull         // what a reader wants to see first
	resources []Resource   // copies, with what is drawn of them
	faults    []Fault      // in order of time
	omitted   int          // operations left out, by whomever
	trimmed   bool         // so were tenures, beliefs, faults or tokens
	others    int          // resources left out
	extent    Span         // of all that is drawn
	view      Span         // of what is seen first
}

func (p *Page) window() window {
	w := window{Page: p, omitted: p.Omitted, spans: make(map[int]Span)}
	for i := range p.Resources {
		for j := range p.Resources[i].Operations {
			op := &p.Resources[i].Operations[j]
			w.spans[op.ID] = Span{op.Call, op.Return}
		}
	}
	w.focus = w.focused()
	flagged := make(map[int]bool)
	for _, f := range p.Findings {
		for _, id := range f.Ops {
			flagged[id] = true
		}
	}
	w.choose(flagged)

	type candidate struct {
		resource, op int
		Span
	}
	var keep, rest []candidate
	for i := range w.resources {
		r := &w.resources[i]
		for j := range r.Operations {
			op := &r.Operations[j]
			c := candidate{i, j, Span{op.Call, op.Return}}
			if op.Violates || op.Evidence || flagged[op.ID] || r.Order.Partial && op.ID == r.Order.Stuck {
				keep = append(keep, c)
			} else {
				rest = append(rest, c)
			}
		}
	}
	span := func(c candidate) Span { return c.Span }
	all := len(keep) + len(rest)
	keep = nearest(keep, mostOperations, w.focus, span)
	keep = append(keep, nearest(rest, mostOperations-len(keep), w.focus, span)...)
	cut := all > len(keep)
	w.omitted += all - len(keep)

	drawn := make([][]Operation, len(w.resources))
	var h hull
	for _, c := range keep {
		drawn[c.resource] = append(drawn[c.resource], w.resources[c.resource].Operations[c.op])
		h.add(c.From, c.To)
	}
	for i := range w.resources {
		w.trimmed = w.resources[i].narrow(drawn[i], w.focus) || w.trimmed
	}
	w.faults = slices.Clone(nearest(p.Faults, mostOthers, w.focus, func(f Fault) Span { return f.Span }))
	slices.SortStableFunc(w.faults, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	w.trimmed = w.trimmed || len(w.faults) < len(p.Faults)
	if !cut || !h.any {
		w.reach(&h)
	}
	w.extent = widen(h.Span, .02)
	w.view = w.first()
	return w
}

// choose copies the resources to draw. Where there are more than a few, those
// that matter come first.
func (w *window) choose(flagged map[int]bool) {
	rank := func(r *Resource) int {
		if r.Verdict == Violated || slices.ContainsFunc(r.Operations, func(op Operation) bool { return op.Violates || flagged[op.ID] }) {
			return 0
		}
		if r.Verdict == Unknown {
			return 1
		}
		return 2
	}
	order := make([]int, len(w.Resources))
	ranks := make([]int, len(w.Resources))
	for i := range order {
		order[i], ranks[i] = i, rank(&w.Resources[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranks[a], ranks[b]) })
	if len(order) > mostResources {
		for _, i := range order[mostResources:] {
			w.omitted += len(w.Resources[i].Operations)
		}
		w.others = len(order) - mostResources
		order = order[:mostResources]
	}
	if len(w.Resources) <= fewResources {
		slices.Sort(order)
	}
	for _, i := range order {
		w.resources = append(w.resources, w.Resources[i])
	}
}

// narrow leaves of r what is drawn beside the given operations, in order of
// time, and reports whether that is less than all.
func (r *Resource) narrow(ops []Operation, focus hull) bool {
	before := len(r.Tenures) + len(r.Beliefs) + len(r.Highest)
	slices.SortStableFunc(ops, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Return, b.Return), cmp.Compare(a.ID, b.ID))
	})
	r.Operations = ops
	has := make(map[int]bool, len(ops))
	for i := range ops {
		has[ops[i].ID] = true
	}
	r.Tenures = slices.Clone(nearest(r.Tenures, mostOthers, focus, func(t Tenure) Span { return t.May }))
	slices.SortStableFunc(r.Tenures, func(a, b Tenure) int { return cmp.Compare(a.May.From, b.May.From) })
	r.Beliefs = slices.Clone(nearest(r.Beliefs, mostOthers, focus, func(b Belief) Span { return b.Span }))
	slices.SortStableFunc(r.Beliefs, func(a, b Belief) int { return cmp.Compare(a.From, b.From) })
	r.Highest = nearest(r.Highest, mostOthers, focus, func(s Step) Span { return Span{s.At, s.At} })
	r.Writes = slices.DeleteFunc(slices.Clone(r.Writes), func(w Write) bool { return !has[w.Op] })
	return len(r.Tenures)+len(r.Beliefs)+len(r.Highest) < before
}

// reach adds all instants of what is drawn.
func (w *window) reach(h *hull) {
	for i := range w.resources {
		r := &w.resources[i]
		for _, t := range r.Tenures {
			h.add(t.May.From, t.May.To, t.Must.From, t.Must.To)
		}
		for _, b := range r.Beliefs {
			h.add(b.From, b.To)
		}
		for _, s := range r.Highest {
			h.add(s.At)
		}
	}
	for _, f := range w.faults {
		h.add(f.From, f.To)
	}
	for _, f := range w.Findings {
		for _, s := range f.Spans {
			h.add(s.From, s.To)
		}
	}
}

// widen leaves a part of the length on both sides; no span is empty.
func widen(s Span, part float64) Span {
	by := max(int64(math.Ceil((float64(s.To)-float64(s.From))*part)), 1)
	if s.From > by-Unbounded {
		s.From -= by
	}
	if s.To < Unbounded-by {
		s.To += by
	}
	return s
}

// fewOperations are few enough to read all at once.
const fewOperations = 40

// first is what is seen first: all, or what surrounds the focus.
func (w *window) first() Span {
	if !w.focus.any {
		return w.extent
	}
	within := func(s Span) (n int) {
		for i := range w.resources {
			for j := range w.resources[i].Operations {
				op := &w.resources[i].Operations[j]
				end := op.Return
				if infinite(end) {
					end = op.Call
				}
				if op.Call <= s.To && end >= s.From {
					n++
				}
			}
		}
		return n
	}
	if within(w.extent) <= fewOperations {
		return w.extent
	}
	view := widen(w.focus.Span, .4)
	for within(view) < fewOperations && (view.From > w.extent.From || view.To < w.extent.To) {
		view = widen(view, .1)
	}
	view.From, view.To = max(view.From, w.extent.From), min(view.To, w.extent.To)
	if view.From >= view.To {
		return w.extent
	}
	return view
}
