package linearizability

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// search searches every partition, on as many processors as there are.
func (v *Verdict) search(ctx context.Context, effects []int) {
	d := v.digest
	v.Partitions = make([]Partition, len(d.parts))
	workers := min(runtime.GOMAXPROCS(0), len(d.parts))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(d.parts); i = next.Add(1) - 1 {
				v.Partitions[i] = d.parts[i].decide(ctx, d.meta, d.options.Memory/int64(workers), effects)
			}
		})
	}
	wg.Wait()
}

// Three searches, in this order, because each is good at what the one before is
// not:
//
// A plain search in depth needs one order only, and a service that is right
// explains itself almost without a wrong turn, however many operations overlap.
// So it gets a few moves an operation.
//
// A frontier shows that there is no order, and finds its way among unknown
// outcomes. Both cost it what there is to know at one place, not what has been
// chosen before. It explodes where many operations overlap that all change the
// state; so its steps are bounded, too.
//
// What is left are small partitions of many operations under way at once, for
// which a search in depth does as well as anything.
const (
	plainMoves  = 4          // an operation
	plainRecent = 256        // unknown operations that a segment tries
	walkSteps   = 2_000      // an operation
	walkLeast   = 5_000_000  // of all
	briskSteps  = 100        // an operation, of a walk that comes first
	lookMoves   = 100_000    // of the search that finds an order, or none though there is one
	lastMoves   = 10_000_000 // of the last one
)

// longPartition is how many actions a partition has that is walked through
// first: the plain search takes the unknown ones along from segment to segment.
const longPartition = 4 * segmentLen

// judgement is what the searches found of one partition.
type judgement struct {
	result  porcupine.CheckResult
	stopped string // why they gave up
	// explained is a place before which all that returned can be explained.
	explained int64
}

// judge searches for an order of the actions.
func judge(ctx context.Context, meta *Meta, p *partition, memory int64) judgement {
	if len(p.actions) > longPartition && slices.ContainsFunc(p.actions, func(a action) bool { return a.unknown }) {
		brisk := newFrontier(ctx, meta, p, memory, briskSteps*len(p.actions))
		if result := brisk.run(); result != porcupine.Unknown || ctx.Err() != nil {
			return judgement{result: result, stopped: brisk.stopped, explained: brisk.place}
		}
	}
	plain := newSearch(ctx, meta, p, memory)
	plain.limit, plain.recent = plainMoves*(100+len(p.actions)), plainRecent
	if plain.run() == porcupine.Ok {
		return judgement{result: porcupine.Ok}
	}
	walk := newFrontier(ctx, meta, p, memory, max(walkLeast, walkSteps*len(p.actions)))
	j := judgement{result: walk.run(), stopped: walk.stopped, explained: walk.place}
	if j.result != porcupine.Unknown || ctx.Err() != nil {
		return j
	}
	patient := newSearch(ctx, meta, p, memory)
	patient.limit, patient.eager, patient.patient = lookMoves, true, true
	if patient.run() == porcupine.Ok {
		return judgement{result: porcupine.Ok}
	}
	eager := newSearch(ctx, meta, p, memory)
	eager.limit, eager.eager = lastMoves, true
	if result := eager.run(); result != porcupine.Unknown {
		j.result = result
	}
	return j
}

// decide judges one partition.
func (p *part) decide(ctx context.Context, meta *Meta, memory int64, effects []int) Partition {
	out := Partition{Model: p.family.name, Key: p.key, Result: Holds, Operations: p.operations, Unknown: p.unknown}
	whole := p.load()
	defer p.unload()
	if whole.explained(effects) {
		return out
	}
	switch j := judge(ctx, meta, whole, memory); j.result {
	case porcupine.Unknown:
		out.Result, out.Reason = Unknown, j.stopped
	case porcupine.Illegal:
		out.Result = Violated
		if p.stuck = p.first(ctx, meta, memory, j.explained); p.stuck == nil {
			out.Reason = "no order of the operations explains the answers"
		} else {
			out.stuck = p.stuck.Op
		}
	}
	return out
}

// first looks for the first return that has no explanation: whatever comes
// before it can be explained, and with it nothing can. What returned before the
// given place can be. It is nil if the searches are too long to tell.
//
// The walk through the whole history knows more at each place than was known
// then: it may stop sooner, though seldom. So first looks there, and then on in
// longer and longer strides.
func (p *part) first(ctx context.Context, meta *Meta, memory int64, explained int64) *span {
	var returns []*span
	for i := range p.spans {
		if s := &p.spans[i]; s.ret >= explained && s.ret != Unbounded {
			returns = append(returns, s)
		}
	}
	slices.SortFunc(returns, func(a, b *span) int { return cmp.Compare(a.ret, b.ret) })
	results := make(map[int]porcupine.CheckResult)
	explains := func(i int) bool {
		// That another one failed is known only when that has returned: until then
		// it could have been the explanation.
		cut, err := p.compile(returns[i].ret)
		if err != nil {
			return false
		}
		results[i] = judge(ctx, meta, &cut, memory).result
		return results[i] == porcupine.Ok
	}
	low, high, stride := 0, 0, 1
	for high < len(returns) && explains(high) {
		low, high, stride = high+1, high+stride, 2*stride
	}
	high = min(high, len(returns)-1)
	i := low + sort.Search(high-low, func(i int) bool { return !explains(low + i) })
	if i < 0 || i >= len(returns) {
		return nil
	}
	if _, tried := results[i]; !tried {
		explains(i)
	}
	if results[i] != porcupine.Illegal {
		return nil
	}
	return returns[i]
}
