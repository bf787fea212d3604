package linearizability

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// BenchmarkCheckLease checks a lease under three clients that renew, release,
// fail and take over: 1,000 operations, of which a share has no known outcome.
func BenchmarkCheckLease(b *testing.B) {
	for _, c := range []struct {
		name    string
		unknown float64
	}{{"known", 0}, {"2%unknown", 0.02}, {"10%unknown", 0.1}} {
		b.Run(c.name, func(b *testing.B) {
			s := simLease{rng: rand.New(rand.NewPCG(1, 1)), clients: 3, ops: 1000, leases: true, unknown: c.unknown, never: 0.5}
			h := s.history()
			if n := len(h.Ops()); n != 1000 {
				b.Fatalf("%d operations", n)
			}
			b.ReportAllocs()
			for b.Loop() {
				if v, err := Check(b.Context(), h, Options{Model: Model{Name: ModelLease}}); err != nil || v.Result != Holds {
					b.Fatal(v, err)
				}
			}
		})
	}
}

// BenchmarkCheckLong checks one register of 20,000 operations.
func BenchmarkCheckLong(b *testing.B) {
	h := longRegister(20_000)
	b.ReportAllocs()
	for b.Loop() {
		if v, err := Check(b.Context(), h, Options{Model: Model{Name: ModelRegister, Init: Int(0)}}); err != nil || v.Result != Holds {
			b.Fatal(v, err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	s := simLease{rng: rand.New(rand.NewPCG(1, 1)), clients: 3, ops: 1000}
	h := s.history()
	var json, edn bytes.Buffer
	if err := h.WriteJSON(&json); err != nil {
		b.Fatal(err)
	}
	if err := h.WriteEDN(&edn); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string][]byte{"JSON": json.Bytes(), "EDN": edn.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(bytes.NewReader(text), "h"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	var now time.Duration
	r, err := NewRecorder(io.Discard, DefaultMeta(), func() time.Duration { now++; return now })
	if err != nil {
		b.Fatal(err)
	}
	key, owner, ttl := Field{"key", String("shard-1")}, Field{"owner", String("node-1#4")}, Field{"ttl", Int(2e9)}
	b.ReportAllocs()
	for b.Loop() {
		r.Invoke("acquire", key, owner, ttl).OK(Field{"token", Uint(7)})
	}
}

// BenchmarkFrontier walks through what five clients did to one lease, without
// any other search: 20,000 operations of known outcome, or 500 of which 5% are
// unknown.
func BenchmarkFrontier(b *testing.B) {
	for _, c := range []struct {
		name    string
		ops     int
		unknown float64
	}{{"20000known", 20_000, 0}, {"500of5%unknown", 500, 0.05}} {
		b.Run(c.name, func(b *testing.B) {
			s := simLease{rng: rand.New(rand.NewPCG(1, 1)), clients: 5, ops: c.ops, leases: true, unknown: c.unknown, never: 0.5}
			h := s.history()
			p := compiled(b, &h, ModelLease)
			b.ReportAllocs()
			for b.Loop() {
				if r := newFrontier(b.Context(), &h.Meta, p, DefaultMemory, 1<<40).run(); r != porcupine.Ok {
					b.Fatal(r)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.ops), "ns/operation")
		})
	}
}
