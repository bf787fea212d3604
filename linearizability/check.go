package linearizability

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
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

// A service that is right explains itself quickly; one that is wrong makes the
// search try everything. So a look first tries plainly, for some moves an
// operation, and then cleverly, at more cost a move.
const (
	plainMoves = 50
	lookMoves  = 100_000
	lastMoves  = 10_000_000 // of the look after which there is no other
)

// look searches a partition, for the given number of moves where it has no
// answer sooner.
func look(ctx context.Context, h *History, p *partition, memory int64, moves int) (*search, porcupine.CheckResult) {
	plain := newSearch(ctx, h, p, memory)
	plain.limit = plainMoves * (100 + len(p.actions))
	if result := plain.run(); result != porcupine.Unknown {
		return plain, result
	}
	patient := newSearch(ctx, h, p, memory)
	patient.limit, patient.eager, patient.patient = min(moves, lookMoves), true, true
	if result := patient.run(); result == porcupine.Ok {
		return patient, result
	}
	eager := newSearch(ctx, h, p, memory)
	eager.limit, eager.eager = moves, true
	return eager, eager.run()
}

// decide judges one partition. Where it is wrong, the search soonest fails on
// the shortest beginning of the history that has no explanation, because the
// least is to be tried there. So a partition that a look leaves undecided is
// judged by that.
func (p *part) decide(ctx context.Context, h *History, memory int64) Partition {
	out := Partition{Model: p.family.name, Key: p.key, Result: Holds, Operations: len(p.spans)}
	for _, s := range p.spans {
		if s.Type == Info {
			out.Unknown++
		}
	}
	if p.p.explained(h.effects) {
		return out
	}
	s, result := look(ctx, h, &p.p, memory, lookMoves)
	if result == porcupine.Ok {
		return out
	}
	first, window, found := p.beginning(ctx, h, memory, s)
	if result == porcupine.Unknown && !found {
		if s, result = look(ctx, h, &p.p, memory, lastMoves); result == porcupine.Illegal {
			first, window, found = p.beginning(ctx, h, memory, s)
		}
	}
	switch {
	case found:
		e := &h.Events[first.Return]
		out.Result, out.Line, out.Index = Violated, e.Line, e.Index
		out.Reason = fmt.Sprintf("no order of the operations explains %s", place(h, first.Op))
		p.window = window
	case result == porcupine.Illegal:
		out.Result, out.Reason = Violated, "no order of the operations explains the answers"
		p.window = s
	case result == porcupine.Unknown:
		out.Result, out.Reason = Unknown, s.stopped
	}
	return out
}

// beginning looks for the first return that has no explanation: whatever comes
// before it can be explained, and with it nothing can. It also returns the
// search that failed. It is false if the searches are too long to tell.
func (p *part) beginning(ctx context.Context, h *History, memory int64, failed *search) (span, *search, bool) {
	// A search that failed for good explained all before its deepest segment.
	explained := int64(0)
	if failed.stopped == "" {
		before := make(map[int]bool) // by call
		for _, seg := range failed.segments[:failed.deepest] {
			for _, i := range seg.known {
				before[failed.actions[i].Call] = true
			}
		}
		for _, s := range p.spans {
			if before[s.Call] && s.ret != Unbounded {
				explained = max(explained, s.ret)
			}
		}
	}
	// That an operation failed is known when it returned: until then it could
	// have been the explanation.
	var returns []span
	for _, s := range p.spans {
		if explained < s.ret && s.ret != Unbounded {
			returns = append(returns, s)
		}
	}
	if len(returns) == 0 {
		return span{}, nil, false
	}
	slices.SortFunc(returns, func(a, b span) int { return cmp.Compare(a.ret, b.ret) })
	try := func(i, moves int) (*search, porcupine.CheckResult) {
		cut, err := p.family.compile(h, p.model, before(p.spans, returns[i].ret))
		if err != nil {
			return failed, porcupine.Unknown
		}
		return look(ctx, h, &cut, memory, moves)
	}
	i := sort.Search(len(returns)-1, func(i int) bool {
		_, result := try(i, lookMoves)
		return result != porcupine.Ok
	})
	s, result := try(i, lastMoves)
	return returns[i], s, result == porcupine.Illegal
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
