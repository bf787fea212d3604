package linearizability

import (
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
	Model Model // ModelAuto: the one that Choose finds
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
	// Reader reads what CheckFile checks.
	Reader Reader
	// Memory in bytes, about, that the searches may hold together; 0:
	// DefaultMemory. Above it the verdict is unknown.
	Memory int64
}

// Check decides whether the model explains the history. An error means that
// the question makes no sense: the history is malformed (*SyntaxError), or does
// not say what the model needs. When ctx ends, what is not decided is unknown.
func Check(ctx context.Context, h History, o Options) (Verdict, error) {
	if err := h.Validate(); err != nil {
		return Verdict{}, err
	}
	v := Verdict{File: h.Name}
	if err := v.choose(&h, &o); err != nil {
		return Verdict{}, err
	}
	switch {
	case o.Model.Name == ModelLease && isJepsenLock(&h):
		v.Reading = jepsenLockReading
		var err error
		if h, err = JepsenLock(h, o.TTL); err != nil {
			return Verdict{}, err
		}
	case o.Model.Name == ModelFencepost && isQueenLease(&h):
		v.Reading = queenLeaseReading
		h = QueenLease(h)
	}
	v.Notes = append(v.Notes, h.Notes...)
	v.source = &h
	d, err := digestOf(&h, o)
	if err != nil {
		return Verdict{}, err
	}
	return v, v.decide(ctx, d, h.effects)
}

// choose settles on a model if it is to be found.
func (v *Verdict) choose(h *History, o *Options) error {
	if o.Model.Name == ModelAuto {
		var err error
		switch {
		case o.TTL > 0 && isJepsenLock(h):
			o.Model, v.Chosen = Model{Name: ModelLease}, "a lock of which a TTL is given"
		case isQueenLease(h):
			o.Model, v.Chosen = Model{Name: ModelFencepost}, "a lease and a storage in the words of another system"
		default:
			if o.Model, v.Chosen, err = Choose(h); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
	}
	if v.Chosen != "" && len(h.Events) >= chooseEvents && (o.Model.Name == ModelLease || o.Model.Name == ModelStorage) {
		// What comes later may be of the other, and must not go unchecked.
		v.Chosen = fmt.Sprintf("the first %d events are of %s; what follows may be of leases and storages: %s", chooseEvents, o.Model.Name, ModelFencepost)
		o.Model = Model{Name: ModelFencepost}
	}
	v.Model = o.Model.String()
	return nil
}

// digestOf digests a history in memory.
func digestOf(h *History, o Options) (*digest, error) {
	meta := h.Meta
	d, err := newDigest(h.Name, &meta, o)
	if err != nil {
		return nil, err
	}
	d.events = len(h.Events)
	for pos := range h.Faults() {
		if err := d.fault(&h.Events[pos], pos); err != nil {
			return nil, err
		}
	}
	for _, s := range h.spans() {
		if err := d.add(h.operation(s)); err != nil {
			return nil, err
		}
	}
	return d, d.end()
}

// operation is one of the history.
func (h *History) operation(s span) *operation {
	o := &operation{span: s, file: h.Name, meta: &h.Meta, invoked: &h.Events[s.Call]}
	if s.Return >= 0 {
		o.ended = &h.Events[s.Return]
	}
	return o
}

// decide judges what was digested.
func (v *Verdict) decide(ctx context.Context, d *digest, effects []int) error {
	v.digest = d
	v.search(ctx, effects)
	v.Activity = d.facts.activity()
	for i := range d.parts {
		v.Activity.Operations += d.parts[i].operations
	}
	if d.leases {
		v.beliefs, v.Findings = d.facts.judge()
	}
	if err := v.tell(); err != nil {
		return err
	}
	v.sum(d)
	return nil
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

// sum draws the verdict on the whole from those on its parts.
func (v *Verdict) sum(d *digest) {
	v.Result = Holds
	unknown := 0
	for _, p := range v.Partitions {
		if p.Result == Unknown {
			unknown++
		}
	}
	lacks := v.Activity.lacks(d.options.AtLeast)
	p := slices.IndexFunc(v.Partitions, func(p Partition) bool { return p.Result == Violated })
	f := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Violates })
	recorder := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Blame == BlameRecorder })
	switch {
	case p >= 0:
		v.Result, v.Reason = Violated, v.Partitions[p].name()+": "+v.Partitions[p].Reason
	case f >= 0:
		v.Result, v.Reason = Violated, v.Findings[f].String()
	case recorder >= 0:
		v.Result, v.Reason = Unknown, "the recording contradicts itself: "+v.Findings[recorder].String()
	case unknown > 0:
		v.Result, v.Reason = Unknown, fmt.Sprintf("%d of %d partitions undecided", unknown, len(v.Partitions))
	case lacks != "":
		v.Result, v.Reason = Unknown, "too little happened: "+lacks
	case d.events == 0:
		// Nothing was asked of the service, or nothing recorded it.
		v.Result, v.Reason = Unknown, "no event at all: nothing was recorded"
	case v.Activity.Operations == 0:
		// Of a register nobody can say less; a lease was at least believed in.
		if v.Reason = "no operation that the model checks: nothing was shown"; d.leases {
			v.Result = Unknown
		}
	}
	// What weakens the verdict without its being wrong: a name in meta that means
	// nothing here, such as a misspelt one, and a promise not made.
	for _, f := range d.meta.Extra {
		v.Notes = append(v.Notes, fmt.Sprintf("meta has no field %s: it was ignored", quote(f.Name)))
	}
	if d.leases && !d.facts.storages && d.meta.Late == Unbounded && v.Result == Holds && v.Reading == "" {
		v.Notes = append(v.Notes, "meta gives no \"late\": a lease that never lapses would not be noticed")
	}
}
