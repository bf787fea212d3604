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
	v.Partitions = make([]Partition, len(v.digest.parts))
	workers := min(runtime.GOMAXPROCS(0), len(v.digest.parts))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(v.digest.parts); i = next.Add(1) - 1 {
				v.Partitions[i] = v.digest.parts[i].decide(ctx, v.digest.meta, v.digest.options.Memory/int64(workers), effects)
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
func look(ctx context.Context, meta *Meta, p *partition, memory int64, moves int) (*search, porcupine.CheckResult) {
	plain := newSearch(ctx, meta, p, memory)
	plain.limit = plainMoves * (100 + len(p.actions))
	if result := plain.run(); result != porcupine.Unknown {
		return plain, result
	}
	patient := newSearch(ctx, meta, p, memory)
	patient.limit, patient.eager, patient.patient = min(moves, lookMoves), true, true
	if result := patient.run(); result == porcupine.Ok {
		return patient, result
	}
	eager := newSearch(ctx, meta, p, memory)
	eager.limit, eager.eager = moves, true
	return eager, eager.run()
}

// decide judges one partition. Where it is wrong, the search soonest fails on
// the shortest beginning of the history that has no explanation, because the
// least is to be tried there. So a partition that a look leaves undecided is
// judged by that.
func (p *part) decide(ctx context.Context, meta *Meta, memory int64, effects []int) Partition {
	out := Partition{Model: p.family.name, Key: p.key, Result: Holds, Operations: p.operations, Unknown: p.unknown}
	if p.p.explained(effects) {
		return out
	}
	s, result := look(ctx, meta, &p.p, memory, lookMoves)
	if result == porcupine.Ok {
		return out
	}
	first, window, found := p.beginning(ctx, meta, memory, s)
	if result == porcupine.Unknown && !found {
		if s, result = look(ctx, meta, &p.p, memory, lastMoves); result == porcupine.Illegal {
			first, window, found = p.beginning(ctx, meta, memory, s)
		}
	}
	switch {
	case found:
		out.Result, out.stuck = Violated, first.Op
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
func (p *part) beginning(ctx context.Context, meta *Meta, memory int64, failed *search) (span, *search, bool) {
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
		cut, err := p.compile(returns[i].ret)
		if err != nil {
			return failed, porcupine.Unknown
		}
		return look(ctx, meta, &cut, memory, moves)
	}
	i := sort.Search(len(returns)-1, func(i int) bool {
		_, result := try(i, lookMoves)
		return result != porcupine.Ok
	})
	s, result := try(i, lastMoves)
	return returns[i], s, result == porcupine.Illegal
}
