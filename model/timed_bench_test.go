package model

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// timedDay is a legal sequential history of n operations on the clock of a
// perfect recorder: tenures of three renewals, every second one released.
func timedDay(n int, d int64) []TimedOp {
	const ttl, rtt = 9_000_000_000, 1_000_000
	var ops []TimedOp
	now, token := int64(0), uint64(0)
	add := func(op TimedOp) {
		op.Call, op.Return = now, now+rtt
		ops = append(ops, op)
		now += 2 * rtt
	}
	for len(ops) < n {
		token++
		me, other := int32(token%5)+1, int32((token+1)%5)+1
		add(TimedOp{Kind: TimedAcquire, Owner: me, Token: token, TTL: ttl})
		add(TimedOp{Kind: TimedAcquire, Outcome: TimedHeld, Owner: other, TTL: ttl, Holder: me})
		for range 3 {
			now += ttl / 3
			add(TimedOp{Kind: TimedRenew, Owner: me, Token: token, TTL: ttl})
			add(TimedOp{Kind: TimedGet, Holder: me, HolderToken: token})
		}
		if token%2 == 0 {
			add(TimedOp{Kind: TimedRelease, Owner: me, Token: token})
		} else {
			now += ttl + ttl/100 + d
			add(TimedOp{Kind: TimedRenew, Outcome: TimedRefused, Owner: me, Token: token, TTL: ttl})
		}
	}
	return ops[:n]
}

func timedRun(p TimedParams, ops []TimedOp) ([]TimedState, int) {
	states, next := p.Init(), []TimedState(nil)
	for i, op := range ops {
		next = next[:0]
		for _, s := range states {
			next = p.AppendStep(next, s, op)
		}
		if len(next) == 0 {
			return nil, i
		}
		states, next = next, states
	}
	return states, len(ops)
}

var timedBenchParams = []struct {
	name string
	p    TimedParams
}{
	{"exact", TimedParams{First: 1}},
	{"drift", TimedParams{First: 1, DriftPPB: 200_000, Late: 500_000_000}},
	{"no-restarts", TimedParams{First: 1, DriftPPB: 200_000, NoRestarts: true}},
	{"lock-delay", TimedParams{First: 1, DriftPPB: 200_000, LockDelay: 1_000_000_000}},
}

func BenchmarkTimedStep(b *testing.B) {
	for _, c := range timedBenchParams {
		b.Run(c.name, func(b *testing.B) {
			states, n := timedRun(c.p, timedDay(4, c.p.LockDelay*2))
			if n != 4 || len(states) != 1 {
				b.Fatal(n, states)
			}
			op := TimedOp{Kind: TimedRenew, Owner: 2, Token: 1, TTL: 9_000_000_000, Call: 4_000_000_000, Return: 4_001_000_000}
			dst := make([]TimedState, 0, 4)
			b.ReportAllocs()
			for b.Loop() {
				if dst = c.p.AppendStep(dst[:0], states[0], op); len(dst) != 1 {
					b.Fatal(dst)
				}
			}
		})
	}
}

func BenchmarkTimedHistory1000(b *testing.B) {
	for _, c := range timedBenchParams {
		b.Run(c.name, func(b *testing.B) {
			ops := timedDay(1000, c.p.LockDelay*2)
			b.ReportAllocs()
			for b.Loop() {
				if _, n := timedRun(c.p, ops); n != len(ops) {
					b.Fatalf("stuck at operation %d: %v", n, ops[n])
				}
			}
		})
	}
}

func BenchmarkTimedPorcupine1000(b *testing.B) {
	for _, c := range timedBenchParams {
		b.Run(c.name, func(b *testing.B) {
			model, history := timedPorcupine(c.p, timedDay(1000, c.p.LockDelay*2))
			b.ReportAllocs()
			for b.Loop() {
				if !porcupine.CheckOperations(model, history) {
					b.Fatal("a legal history is refused")
				}
			}
		})
	}
}
