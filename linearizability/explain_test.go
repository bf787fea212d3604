package linearizability

import (
	"math/rand/v2"
	"testing"
)

// replays reports whether a machine can run the calls in order, each by its own
// step, and none before one that returned before its call.
func replays(p *partition, calls []int) bool {
	at := make(map[int]*action)
	for i := range p.actions {
		at[p.actions[i].Call] = &p.actions[i]
	}
	state, called := p.machine.init, int64(0)
	for _, call := range calls {
		a := at[call]
		if called = max(called, a.call); called > a.ret {
			return false
		}
		var ok bool
		if state, ok = p.machine.step(state, a); !ok {
			return false
		}
	}
	return true
}

// TestExplanationReplays: the order that explains a history can be run, and so
// can the longest one of a history that nothing explains, which has all that
// returned before the operation that is blamed.
func TestExplanationReplays(t *testing.T) {
	complete, stuck, needed, late := 0, 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h := randomLease(rng, 10+rng.IntN(40), []float64{0, 0.1, 0.3}[rng.IntN(3)])
		if seed%3 == 0 {
			s := simLease{rng: rng, clients: 5, ops: 300, unknown: 0.1, never: 0.5, leases: true, early: []int64{0, simTTL / 3}[rng.IntN(2)]}
			h = s.history()
		}
		v, err := Check(t.Context(), h, Options{Model: Model{Name: ModelLease}})
		if err != nil || v.Partitions[0].Result == Unknown {
			t.Fatalf("seed %d: %v %v", seed, v, err)
		}
		p := &v.digest.parts[0]
		e := p.explain(t.Context(), &h.Meta, DefaultMemory)
		target := *p.load()
		if e.stuck != nil {
			if target, err = p.compile(e.stuck.ret - 1); err != nil {
				t.Fatal(err)
			}
		}
		in := make(map[int]bool)
		for _, call := range e.order {
			in[call] = true
		}
		if f := newFrontier(t.Context(), &h.Meta, &target, DefaultMemory, 1<<40); e.stuck == nil {
			f.run()
			late += f.late
		}
		if !replays(&target, e.order) || len(in) != len(e.order) {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: the order cannot be run: %v", seed, e.order)
		}
		until := int64(Unbounded)
		if e.stuck != nil {
			until = e.stuck.ret
			if in[e.stuck.Call] {
				needed++
			}
			if e.complete {
				t.Fatalf("seed %d: %+v explains %s", seed, e, h.operation(*e.stuck))
			}
			stuck++
		} else {
			if !e.complete {
				t.Fatalf("seed %d: holds, but no order has every operation: %+v", seed, e)
			}
			complete++
		}
		for i := range target.actions {
			if a := &target.actions[i]; !a.unknown && a.ret < until && !in[a.Call] {
				t.Fatalf("seed %d: %s returned before the end, and is not in the order", seed, h.operation(a.span))
			}
		}
	}
	t.Logf("%d complete, %d stuck, of which %d were seen by others, %d late", complete, stuck, needed, late)
	if complete < 100 || stuck < 100 || late < 50 || needed > stuck/5 {
		t.Errorf("%d complete, %d stuck, of which %d were seen by others, %d late: too few", complete, stuck, needed, late)
	}
}
