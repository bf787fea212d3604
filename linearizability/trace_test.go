package linearizability_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/sim"
)

// metaOf is what the recording of a simulated run promises.
func metaOf(c *sim.Config, events []model.Event) linearizability.Meta {
	m := linearizability.DefaultMeta()
	rho := c.Lease.MaxDriftRate
	m.Drift = 1000 * int64(math.Floor(1e6*rho/(2-rho)))
	m.First = max(c.FirstToken, 1)
	m.LockDelay = int64(c.Lease.LockDelay)
	m.Barrier = c.Lease.Barrier
	if !slices.ContainsFunc(events, func(e model.Event) bool { return e.Kind == model.KindFreeze && e.Node == sim.StoreNode }) {
		m.Late = 0
	}
	return m
}

func simulate(t testing.TB, seed uint64, p sim.Profile, steps int) linearizability.History {
	src := rand.NewPCG(seed, 7)
	cfg := sim.RandomConfig(src)
	var trace sim.Trace
	w, err := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Trace: &trace})
	if err != nil {
		t.Fatal(err)
	}
	sim.Generate(src, &p, &w, steps, nil)
	return linearizability.FromTrace(trace.Events, sim.Names(), metaOf(&cfg, trace.Events))
}

func TestSimulatedRunsAreLinearizable(t *testing.T) {
	for seed := range uint64(2000) {
		profile := sim.Chaos()
		if seed%2 == 1 {
			profile = sim.Raw()
		}
		h := simulate(t, seed, profile, 120)
		v, err := linearizability.Check(t.Context(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}})
		if err != nil {
			t.Fatal(err)
		}
		if v.Linearizable() != linearizability.Holds {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: %v", seed, v)
		}
		for _, f := range v.Findings {
			if f.Violates && f.Invariant == model.BeliefSafety {
				h.WriteJSON(t.Output())
				t.Fatalf("seed %d: %v", seed, v)
			}
		}
		if v.Result != linearizability.Holds {
			t.Logf("seed %d: %v", seed, v)
		}
	}
}

func BenchmarkTrace(b *testing.B) {
	p := sim.Chaos()
	h := simulate(b, 1, p, 120)
	b.ReportAllocs()
	for b.Loop() {
		linearizability.Check(b.Context(), h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}})
	}
}
