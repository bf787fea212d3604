package judge

import (
	"testing"

	"fencepost/props/sim"
)

func BenchmarkLin(b *testing.B) {
	var hs []sim.Trace
	var cfgs []sim.Config
	ops := 0
	for i := range 200 {
		src := Source(5, i)
		cfg := sim.RandomConfig(src)
		p := sim.Chaos()
		if i%2 == 1 {
			p = sim.Raw()
		}
		var tr sim.Trace
		w, _ := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Trace: &tr})
		sim.AppendGenerated(nil, src, &p, &w, 125, nil)
		hs = append(hs, tr)
		cfgs = append(cfgs, cfg)
		h := History("x", tr.Events, &cfg)
		ops += len(h.Ops())
	}
	b.ReportMetric(float64(ops)/200, "ops/history")
	i := 0
	for b.Loop() {
		Linearizable(hs[i%200].Events, &cfgs[i%200])
		i++
	}
}
func BenchmarkTrace(b *testing.B) {
	src := Source(5, 3)
	cfg := sim.RandomConfig(src)
	p := sim.Raw()
	var tr sim.Trace
	w, _ := sim.NewWorld(cfg, sim.Builtin(), sim.Options{Trace: &tr})
	sim.AppendGenerated(nil, src, &p, &w, 125, nil)
	for b.Loop() {
		History("x", tr.Events, &cfg)
	}
}
