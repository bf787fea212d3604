package linearizability

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
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
}

// divide sorts the operations into partitions and compiles them.
func divide(h *History, f family, o Options, spans []span) ([]part, error) {
	var parts []part
	index := make(map[string]int)
	for _, s := range spans {
		name := h.Events[s.Call].F
		checked, known := f.ops[name]
		if slices.Contains(o.Ignore, name) || known && !checked {
			continue
		}
		if !known {
			return nil, h.errorAt(s.Call, "f", "the model %s has no operation %s: want %s, or leave it out by Ignore", o.Model, quote(name), listOps(f))
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
		var err error
		if parts[i].p, err = f.compile(h, o.Model, parts[i].spans); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func listOps(f family) string {
	var names []string
	for name, checked := range f.ops {
		if checked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

// decide searches every partition, on as many processors as there are.
func (v *Verdict) decide(ctx context.Context, o Options) {
	v.Partitions = make([]Partition, len(v.parts))
	workers := min(runtime.GOMAXPROCS(0), len(v.parts))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(v.parts); i = next.Add(1) - 1 {
				v.Partitions[i] = v.parts[i].decide(ctx, v.h, o.Memory/int64(workers))
			}
		})
	}
	wg.Wait()
}

// decide judges one partition.
func (p *part) decide(ctx context.Context, h *History, memory int64) Partition {
	out := Partition{Model: p.family.name, Key: p.key, Result: Holds, Operations: len(p.spans)}
	for _, s := range p.spans {
		if s.Type == Info {
			out.Unknown++
		}
	}
	s := newSearch(ctx, h, &p.p, memory)
	switch s.run() {
	case porcupine.Unknown:
		out.Result, out.Reason = Unknown, s.stopped
	case porcupine.Illegal:
		out.Result = Violated
		out.Reason = "no order of the operations explains the answers"
		first, window, ok := p.explain(ctx, h, s)
		p.window = window
		if ok {
			e := &h.Events[first.Return]
			out.Line, out.Index = e.Line, e.Index
			out.Reason = fmt.Sprintf("no order of the operations explains %s", place(h, first.Op))
		}
	}
	return out
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

// explain finds the first return that makes the partition illegal: whatever
// comes before it can be explained, and it cannot. It also returns the search
// that failed on the operations up to there. It is false if it gave up.
func (p *part) explain(ctx context.Context, h *History, failed *search) (span, *search, bool) {
	// All segments before the deepest can be explained.
	var returns []span
	for _, i := range failed.segments[failed.deepest].known {
		returns = append(returns, failed.actions[i].span)
	}
	slices.SortFunc(returns, func(a, b span) int { return cmp.Compare(a.ret, b.ret) })
	decided := true
	i := sort.Search(len(returns)-1, func(i int) bool {
		if !decided {
			return true
		}
		cut, err := p.family.compile(h, p.model, before(p.spans, returns[i].ret))
		if err != nil {
			decided = false
			return true
		}
		s := newSearch(ctx, h, &cut, failed.memory)
		result := s.run()
		if result == porcupine.Illegal {
			failed = s
		}
		decided = result != porcupine.Unknown
		return result != porcupine.Ok
	})
	return returns[i], failed, decided
}

// sum draws the verdict on the whole from those on its parts.
func (v *Verdict) sum(o Options) {
	v.Result = Holds
	count := func(r Result) (n int) {
		for _, p := range v.Partitions {
			if p.Result == r {
				n++
			}
		}
		return n
	}
	failed := 0
	for _, f := range v.Findings {
		if f.Violates {
			failed++
		}
	}
	violated, unknown := count(Violated), count(Unknown)
	switch {
	case violated > 0 || failed > 0:
		v.Result = Violated
	case unknown > 0:
		v.Result, v.Reason = Unknown, fmt.Sprintf("%d of %d partitions undecided", unknown, len(v.Partitions))
	case v.Activity.Operations == 0:
		v.Reason = "no operation that the model checks: nothing was shown"
		fallthrough
	default:
		if short := v.Activity.lacks(o.AtLeast); short != "" {
			v.Result, v.Reason = Unknown, "too little happened: "+short
		}
	}
}
