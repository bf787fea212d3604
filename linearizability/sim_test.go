package linearizability

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

func TestSimulatedHistoriesAreLegal(t *testing.T) {
	for seed := range uint64(1000) {
		s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 2 + int(seed%3), ops: 60, unknown: float64(seed%4) * 0.1, never: 0.5}
		h := s.history()
		start := time.Now()
		v, err := Check(context.Background(), h, Options{Model: Model{Name: ModelFencepost}})
		if err != nil || v.Result != Holds {
			h.WriteJSON(t.Output())
			t.Fatal(seed, v, err)
		}
		if d := time.Since(start); d > 20*time.Millisecond {
			t.Log(seed, d, v)
		}
	}
}

func BenchmarkLease(b *testing.B) {
	for _, unknown := range []float64{0, 0.02, 0.1} {
		b.Run("", func(b *testing.B) {
			s := simLease{rng: rand.New(rand.NewPCG(1, 1)), clients: 3, ops: 1000, leases: true, unknown: unknown, never: 0.5}
			h := s.history()
			b.ReportAllocs()
			for b.Loop() {
				v, err := Check(context.Background(), h, Options{Model: Model{Name: ModelLease}})
				if err != nil || v.Result != Holds {
					b.Fatal(v, err)
				}
			}
		})
	}
}

func TestSimulatedEarly(t *testing.T) {
	n := map[Result]int{}
	for seed := range uint64(300) {
		s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 2 + int(seed%3), ops: 1000, unknown: float64(seed%4) * 0.1, never: 0.5, early: simTTL / 3}
		h := s.history()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		v, err := Check(ctx, h, Options{Model: Model{Name: ModelFencepost}})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		n[v.Result]++
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Log(seed, d, v)
		}
	}
	t.Log(n)
}
