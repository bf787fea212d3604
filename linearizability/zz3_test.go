package linearizability_test

import (
	"bufio"
	"os"
	"testing"
	"time"

	lin "fencepost/linearizability"
	"fencepost/linearizability/internal/lifelike"
)

func TestZZGen(t *testing.T) {
	f := os.Getenv("ZZG")
	if f == "" {
		t.Skip()
	}
	c := lifelike.Config{Seed: 1, Operations: 1_000_000, Leases: 100, Clients: 200, TTLs: []time.Duration{time.Second}, Storage: true, Drift: 100_000}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	h := c.History()
	o, _ := os.Create(f)
	w := bufio.NewWriter(o)
	h.WriteJSON(w)
	w.Flush()
	o.Close()
	_ = lin.Holds
}
