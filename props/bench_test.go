package props_test

import (
	"testing"

	"fencepost/model"
	"fencepost/props"
	"fencepost/props/sim"
)

// BenchmarkRapid is whole checks: rapid draws, the world runs, the monitor
// judges. The metric is what one core does.
func BenchmarkRapid(b *testing.B) {
	p := props.For(model.BeliefSafety, sim.Builtin(), sim.Raw())
	actions := int64(0)
	p.Reached = func(c *sim.Counts) string {
		_, n := c.Actions()
		actions += n
		return ""
	}
	for b.Loop() {
		props.Check(silent{b}, p)
	}
	b.ReportMetric(float64(actions)/b.Elapsed().Seconds(), "actions/s")
}

// silent keeps the summary of each check out of the benchmark's output.
type silent struct{ *testing.B }

func (silent) Logf(string, ...any) {}
