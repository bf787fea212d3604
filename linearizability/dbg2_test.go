package linearizability

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fencepost/model"
	"fencepost/props/sim"
)

func dbgHistory(seed uint64) History {
	profile := sim.Chaos()
	if seed%2 == 1 {
		profile = sim.Raw()
	}
	src := rand.NewPCG(seed, 7)
	cfg := sim.RandomConfig(src)
	var trace sim.Trace
	w, err := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Trace: &trace})
	if err != nil {
		panic(err)
	}
	sim.Generate(src, &profile, &w, 120, nil)
	m := DefaultMeta()
	rho := cfg.Lease.MaxDriftRate
	m.Drift = 1000 * int64(math.Floor(1e6*rho/(2-rho)))
	m.First = max(cfg.FirstToken, 1)
	m.LockDelay = int64(cfg.Lease.LockDelay)
	if !slices.ContainsFunc(trace.Events, func(e model.Event) bool { return e.Kind == model.KindFreeze && e.Node == sim.StoreNode }) {
		m.Late = 0
	}
	return FromTrace(trace.Events, sim.Names(), m)
}

func TestDbg2(t *testing.T) {
	n := 0
	var total time.Duration
	for seed := range uint64(400) {
		h := dbgHistory(seed)
		spans := h.spans()
		m := Model{Name: ModelLease}
		parts, _ := divide(&h, families(m)[0], Options{Model: m}, spans)
		if len(parts) == 0 {
			continue
		}
		p := parts[0].p
		kinds := map[string]int{}
		for _, a := range p.actions {
			kinds[fmt.Sprint(h.Events[a.Call].F, a.unknown)]++
		}
		start := time.Now()
		se, r := look(context.Background(), &h, &p, 1<<30, 20000)
		total += time.Since(start)
		if r != "Ok" {
			n++
			t.Log(seed, r, len(p.actions), kinds, se.steps, se.stopped, se.width)
		}
	}
	t.Log(n, total)
}
