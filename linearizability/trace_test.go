package linearizability_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost/linearizability"
	"fencepost/model"
	"fencepost/props/sim"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

func fencepost() linearizability.Options {
	return linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelFencepost}}
}

// TestRunsOfTheLibraryHold records runs of the real lease and storage under
// chaos, and beside parties that send what no client would.
func TestRunsOfTheLibraryHold(t *testing.T) {
	for seed := range uint64(500) {
		profile := sim.Chaos()
		if seed%2 == 1 {
			profile = sim.Raw()
		}
		h := simulate(t, seed, profile, 120)
		v, err := linearizability.Check(t.Context(), h, fencepost())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range v.Findings {
			// Whoever forges a token is found out.
			if f.Violates && (seed%2 == 0 || f.Invariant != model.Attribution) {
				t.Errorf("seed %d: %s", seed, f)
			}
		}
		if v.Linearizable() != linearizability.Holds {
			h.WriteJSON(t.Output())
			t.Fatalf("seed %d: %s", seed, v)
		}
	}
}

// TestRunsAreHistories: what a trace becomes can be written down and read.
func TestRunsAreHistories(t *testing.T) {
	for seed := range uint64(20) {
		h := simulate(t, seed, sim.Raw(), 120)
		if err := h.Validate(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := h.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		again, err := linearizability.Read(&b, "trace")
		if err != nil {
			t.Fatal(err)
		}
		for i := range again.Events {
			again.Events[i].Line = 0
		}
		if diff := cmp.Diff(h, again, cmpopts.IgnoreUnexported(linearizability.History{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("seed %d changes on the way (-want +got):\n%s", seed, diff)
		}
	}
}

// TestSameRunSameHistory: nothing in a history depends on chance.
func TestSameRunSameHistory(t *testing.T) {
	for seed := range uint64(20) {
		if diff := cmp.Diff(simulate(t, seed, sim.Chaos(), 120), simulate(t, seed, sim.Chaos(), 120), cmp.AllowUnexported(linearizability.History{})); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}

// BenchmarkCheckTrace checks a run of 120 actions whose order of effects is
// known.
func BenchmarkCheckTrace(b *testing.B) {
	p := sim.Chaos()
	h := simulate(b, 1, p, 120)
	b.ReportAllocs()
	for b.Loop() {
		if v, err := linearizability.Check(b.Context(), h, fencepost()); err != nil || v.Result != linearizability.Holds {
			b.Fatal(v, err)
		}
	}
}
