package linearizability

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// digest takes the operations of a history one by one, and keeps of each no
// more than the checks need: histories are longer than memory.
type digest struct {
	file     string
	meta     *Meta
	options  Options
	families []family
	leases   bool // of ours: their facts are judged beside the order

	parts []part
	index map[partName]int
	// Operations that are one of every partition of their family, which may
	// begin after them.
	everywhere []operation
	facts      facts
	events     int // so far, faults included
}

type partName struct{ family, key string }

// part is a partition under check.
type part struct {
	family     family
	key        string
	compiler   compiler
	operations int
	unknown    int   // of these, with unknown outcome
	called     int64 // place of the first call
	spans      []span
	p          partition // while it is loaded
	// stuck, if it is violated, is the first operation whose return nothing
	// explains; nil if that could not be told.
	stuck *span
}

// load makes the partition of everything. One takes more memory than its
// operations do here, so that those which nobody looks at are not kept.
func (p *part) load() *partition {
	if p.p.machine.step == nil {
		p.p, _ = p.compile(Unbounded) // digest.end has seen it compile
	}
	return &p.p
}

func (p *part) unload() { p.p = partition{} }

// compile makes the partition of what had been called before a place.
func (p *part) compile(until int64) (partition, error) {
	out, err := p.compiler.compile(until)
	slices.SortStableFunc(out.actions, func(a, b action) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.ret, b.ret))
	})
	return out, err
}

func newDigest(file string, meta *Meta, o Options) (*digest, error) {
	if o.Drift > 0 {
		meta.Drift = o.Drift
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	d := &digest{
		file: file, meta: meta, options: o, families: slotted(families(o.Model), meta), index: make(map[partName]int),
		leases: slices.Contains([]string{ModelLease, ModelStorage, ModelFencepost}, o.Model.Name),
		facts:  facts{meta: meta, storages: o.Model.Name == ModelStorage},
	}
	if d.families == nil {
		return nil, fmt.Errorf("no model %s: ParseModel lists them", quote(o.Model.Name))
	}
	return d, nil
}

// add takes an operation. They may come in any order.
func (d *digest) add(o *operation) error {
	o.file, o.meta, o.ttl = d.file, d.meta, int64(d.options.TTL)
	name := o.invoked.F
	if !slices.Contains(d.options.Ignore, name) {
		for i := range d.families {
			f := &d.families[i]
			switch checked, known := f.ops[name]; {
			case !known:
				return o.invokedError("f", "the model %s has no operation %s: want %s, or have it ignored", d.options.Model, quote(name), listOps(d.families))
			case !checked:
			case name == f.everywhere:
				d.everywhere = append(d.everywhere, *o.clone())
			default:
				if err := d.part(f, f.key(o)).add(o); err != nil {
					return err
				}
			}
		}
	}
	d.facts.add(o)
	return nil
}

// fault looks at a fault, which explains nothing, and must not be a client with
// a name in disguise.
func (d *digest) fault(e *Event, pos int) error {
	name, _ := e.Field("process").Word()
	if name == "" || !e.Has("type") {
		return nil
	}
	for i := range d.families {
		if d.families[i].ops[e.F] {
			o := operation{file: d.file}
			return o.errorAt(e, pos, "process", "%s calls %s like a client: want a number for each client; only what brings faults about has a name", quote(name), e.F)
		}
	}
	return nil
}

// part is the partition of a family with the given key.
func (d *digest) part(f *family, key string) *part {
	name := partName{f.name, key}
	i, ok := d.index[name]
	if !ok {
		i = len(d.parts)
		name.key = d.facts.text(key)
		d.index[name] = i
		d.parts = append(d.parts, part{family: *f, key: name.key, compiler: f.compiler(d.meta, d.options.Model)})
	}
	return &d.parts[i]
}

func (p *part) add(o *operation) error {
	if p.operations++; p.operations == 1 || o.call < p.called {
		p.called = o.call
	}
	p.spans = append(p.spans, o.span)
	if o.Type == Info {
		p.unknown++
	}
	return p.compiler.add(o)
}

// end makes the partitions, once all operations have been added.
func (d *digest) end() error {
	for i := range d.everywhere {
		o := &d.everywhere[i]
		for j := range d.parts {
			if p := &d.parts[j]; p.family.everywhere == o.invoked.F {
				if err := p.add(o); err != nil {
					return err
				}
			}
		}
	}
	byCall := func(a, b fact) int { return cmp.Compare(a.call, b.call) }
	if !slices.IsSortedFunc(d.facts.all, byCall) {
		slices.SortFunc(d.facts.all, byCall)
	}
	for i := range d.parts {
		// What is wrong with meta shows with no operation as well.
		if _, err := d.parts[i].compile(none); err != nil {
			var bad *SyntaxError
			if errors.As(err, &bad) && bad.File == "" {
				bad.File = d.file
			}
			return err
		}
	}
	slices.SortStableFunc(d.parts, func(a, b part) int { return cmp.Compare(a.called, b.called) })
	return nil
}
