package linearizability

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultMemory bounds, about, what the searches of one Check may hold.
const DefaultMemory = 1 << 30

// Options say what a history is checked against.
type Options struct {
	Model Model
	// TTL of a lease whose acquire or renew events carry none; 0: they must.
	TTL time.Duration
	// Drift overrides the history's own bound on the rate error of the store's
	// clock, in parts per billion, unless it is 0.
	Drift int64
	// Ignore names operations to leave out. Any other operation that the model
	// does not know is an error: a verdict that overlooks an effect is worth
	// nothing.
	Ignore []string
	// AtLeast makes the verdict unknown where less happened, however legal.
	AtLeast Activity
	// Memory in bytes, about, that the searches may hold together; 0:
	// DefaultMemory. Above it the verdict is unknown.
	Memory int64
}

// Check decides whether the model explains the history. An error means that
// the question makes no sense: the history is malformed (*SyntaxError), or does
// not say what the model needs. When ctx ends, what is not decided is unknown.
func Check(ctx context.Context, h History, o Options) (Verdict, error) {
	v := Verdict{File: h.Name, Model: o.Model.String(), h: &h}
	if o.Drift > 0 {
		h.Meta.Drift = o.Drift
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	if err := h.Validate(); err != nil {
		return Verdict{}, err
	}
	fams := families(o.Model)
	if fams == nil {
		return Verdict{}, fmt.Errorf("no model %s: ParseModel lists them", quote(o.Model.Name))
	}
	if o.Model.Name == ModelLease && isJepsenLock(&h) {
		v.Reading = jepsenLockReading
		var err error
		if h, err = JepsenLock(h, o.TTL); err != nil {
			return Verdict{}, err
		}
	}
	leases := o.Model.Name == ModelLease || o.Model.Name == ModelFencepost
	if leases && o.TTL > 0 {
		h = withTTL(h, int64(o.TTL))
	}
	spans := h.spans()
	for _, f := range fams {
		parts, err := divide(&h, f, o, spans)
		if err != nil {
			return Verdict{}, err
		}
		v.parts = append(v.parts, parts...)
	}
	v.decide(ctx, o)
	v.Activity = activity(&h, v.parts, spans)
	if leases {
		v.beliefs = terms(&h, spans)
		v.Findings = findings(&h, spans, v.beliefs)
	}
	v.sum(o)
	v.note(leases)
	return v, nil
}

// part is a partition under check.
type part struct {
	family family
	model  Model
	key    string
	spans  []span
	p      partition
	// window, if it is violated, is the search that failed on as little of the
	// history as has no explanation.
	window *search
	// stuck, if it is violated, is the first operation whose return nothing
	// explains; nil if that could not be told.
	stuck *span
}

// divide sorts the operations into partitions and compiles them.
func divide(h *History, f family, o Options, spans []span) ([]part, error) {
	var parts []part
	var everywhere []span
	index := make(map[string]int)
	for _, s := range spans {
		name := h.Events[s.Call].F
		checked, known := f.ops[name]
		if slices.Contains(o.Ignore, name) || known && !checked {
			continue
		}
		if !known {
			return nil, h.errorAt(s.Call, "f", "the model %s has no operation %s: want %s, or have it ignored", o.Model, quote(name), listOps(families(o.Model)))
		}
		if name == f.everywhere {
			everywhere = append(everywhere, s)
			continue
		}
		key := f.key(h, s.Op)
		i, ok := index[key]
		if !ok {
			i = len(parts)
			index[key] = i
			parts = append(parts, part{family: f, model: o.Model, key: key})
		}
		parts[i].spans = append(parts[i].spans, s)
	}
	for i := range parts {
		if len(everywhere) > 0 {
			parts[i].spans = append(parts[i].spans, everywhere...)
			slices.SortFunc(parts[i].spans, func(a, b span) int { return cmp.Compare(a.call, b.call) })
		}
		var err error
		if parts[i].p, err = f.compile(h, o.Model, parts[i].spans); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// listOps names the operations of a model.
func listOps(fams []family) string {
	var names []string
	for _, f := range fams {
		for name, checked := range f.ops {
			if checked {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// place says where an operation is and what it was.
func place(h *History, op Op) string {
	e := &h.Events[op.Call]
	if op.Return >= 0 {
		e = &h.Events[op.Return]
	}
	where := fmt.Sprintf("event %d", e.Index)
	if e.Line > 0 {
		where = fmt.Sprintf("line %d", e.Line)
	}
	return fmt.Sprintf("%s: process %d: %s", where, e.Process, describeOp(h, op))
}

// sum draws the verdict on the whole from those on its parts.
func (v *Verdict) sum(o Options) {
	v.Result = Holds
	unknown := 0
	for _, p := range v.Partitions {
		if p.Result == Unknown {
			unknown++
		}
	}
	p := slices.IndexFunc(v.Partitions, func(p Partition) bool { return p.Result == Violated })
	f := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Violates })
	switch {
	case p >= 0:
		v.Result, v.Reason = Violated, v.Partitions[p].name()+": "+v.Partitions[p].Reason
	case f >= 0:
		v.Result, v.Reason = Violated, v.Findings[f].String()
	case unknown > 0:
		v.Result, v.Reason = Unknown, fmt.Sprintf("%d of %d partitions undecided", unknown, len(v.Partitions))
	case v.Activity.lacks(o.AtLeast) != "":
		v.Result, v.Reason = Unknown, "too little happened: "+v.Activity.lacks(o.AtLeast)
	case v.Activity.Operations == 0:
		v.Reason = "no operation that the model checks: nothing was shown"
		if len(v.h.Events) == 0 {
			// Nothing was asked of the service, or nothing recorded it.
			v.Result, v.Reason = Unknown, "no event at all: nothing was recorded"
		}
	}
}

// note says what weakens the verdict without its being wrong: a name in meta
// that means nothing here, such as a misspelt one, and a promise not made.
func (v *Verdict) note(leases bool) {
	for _, f := range v.h.Meta.Extra {
		v.Notes = append(v.Notes, fmt.Sprintf("meta has no field %s: it was ignored", quote(f.Name)))
	}
	if leases && v.h.Meta.Late == Unbounded && v.Result == Holds && v.Reading == "" {
		v.Notes = append(v.Notes, "meta gives no \"late\": a lease that never lapses would not be noticed")
	}
}
