package lease

import (
	"testing"

	"fencepost/impl/clock"
)

// What a leader pays to look before it acts: the clock, and next to nothing.
func BenchmarkTermValid(b *testing.B) {
	benchmarkBelief(b, func(_ *Elector, t Term) bool { return t.Valid() })
}

func BenchmarkIsLeader(b *testing.B) {
	benchmarkBelief(b, func(e *Elector, _ Term) bool { return e.IsLeader() })
}

func benchmarkBelief(b *testing.B, believes func(*Elector, Term) bool) {
	for _, c := range []struct {
		name string
		clk  clock.Clock
	}{{"Manual", clock.NewManual(0)}, {"Monotonic", clock.Monotonic()}, {"Boot", clock.Boot()}} {
		b.Run(c.name, func(b *testing.B) {
			term := Term{Token: 1, belief: &belief{clk: c.clk, run: b.Context()}}
			term.belief.set(never)
			var e Elector
			e.term.Store(&term)
			for b.Loop() {
				if !believes(&e, term) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

// The clock's own share.
func BenchmarkClock(b *testing.B) {
	for name, clk := range map[string]clock.Clock{"Monotonic": clock.Monotonic(), "Boot": clock.Boot()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				clk.Now()
			}
		})
	}
}
