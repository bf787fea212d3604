package linearizability

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"
)

func TestDbg(t *testing.T) {
	seed := uint64(38)
	s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 2 + int(seed%3), ops: 1000, unknown: float64(seed%4) * 0.1, never: 0.5, early: simTTL / 3}
	h := s.history()
	v, err := Check(context.Background(), h, Options{Model: Model{Name: ModelFencepost}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := v.WriteHTML(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/x.html", b.Bytes(), 0o644)
	t.Log(b.Len())
}
