package linearizability_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	lin "fencepost/linearizability"
	"fencepost/linearizability/internal/lifelike"
)

// BenchmarkScale checks files of a lease service with 5 clients for each lease.
// Sizes from 100,000 operations on need FENCEPOST_LONG. It reports the time for
// each operation, which is to be the same at every size, and the most memory
// that the process had in use at once, in bytes, of which a few are the
// benchmark's own.
func BenchmarkScale(b *testing.B) {
	sizes := []int{10_000}
	if long() {
		sizes = []int{10_000, 100_000, 1_000_000}
	}
	for _, leases := range []int{1, 100} {
		for _, unknown := range []float64{0, 0.01, 0.05} {
			for _, operations := range sizes {
				b.Run(fmt.Sprintf("leases=%d/unknown=%g%%/operations=%d", leases, 100*unknown, operations), func(b *testing.B) {
					path := recordedFile(b, lifelike.Config{Seed: 1, First: 1, Leases: leases, Clients: 5, Operations: operations, Unknown: unknown})
					peak := watchMemory()
					b.ReportAllocs()
					for b.Loop() {
						v, err := lin.CheckFile(b.Context(), path, lin.Options{Model: lin.Model{Name: lin.ModelLease}})
						if err != nil || v.Result != lin.Holds {
							b.Fatal(v, err)
						}
					}
					b.ReportMetric(float64(peak()), "peak-B")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*operations), "ns/operation")
				})
			}
		}
	}
}

// recordedFile is a file with the history of a simulated service, which may be
// longer than memory: it is written in parts.
func recordedFile(tb testing.TB, c lifelike.Config) string {
	path := filepath.Join(tb.TempDir(), "history.jsonl")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	h := lin.History{Meta: c.Meta()}
	var text bytes.Buffer
	write := func() {
		begun := h.Events[0].Index > 0
		if err := h.WriteJSON(&text); err != nil {
			tb.Fatal(err)
		}
		if begun { // the line of its meta is there
			if _, err := text.ReadString('\n'); err != nil {
				tb.Fatal(err)
			}
		}
		if _, err := text.WriteTo(f); err != nil {
			tb.Fatal(err)
		}
		h.Events = h.Events[:0]
	}
	for e := range c.Events() {
		if h.Events = append(h.Events, e); len(h.Events) == 10_000 {
			write()
		}
	}
	if len(h.Events) > 0 {
		write()
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// watchMemory samples the memory in use until the function it returns is
// called, which gives the most that was seen.
func watchMemory() (peak func() uint64) {
	runtime.GC()
	var most atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.Sys-m.HeapReleased))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); <-stopped; return most.Load() }
}
