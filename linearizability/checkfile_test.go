package linearizability

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestLongFilesAreJudgedAsShortOnes: whether events are held or read again makes
// no difference to a verdict and its picture.
func TestLongFilesAreJudgedAsShortOnes(t *testing.T) {
	for seed := range uint64(12) {
		s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 3, ops: 300, unknown: float64(seed%3) * 0.02, never: 0.5}
		if seed%2 == 1 {
			s.early = simTTL / 3
		}
		h := s.history()
		path := filepath.Join(t.TempDir(), "h.jsonl")
		var text bytes.Buffer
		if err := h.WriteJSON(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{Model: Model{Name: ModelFencepost}}
		held, err := checkFile(t.Context(), path, o, inMemory)
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := checkFile(t.Context(), path, o, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := streamed.source.(*fileSource); !ok || held.Result != map[bool]Result{true: Violated, false: Holds}[seed%2 == 1] {
			t.Fatalf("%T, %s", streamed.source, held)
		}
		if diff := cmp.Diff(held, streamed, cmpopts.IgnoreUnexported(Verdict{}, Partition{}, Finding{})); diff != "" {
			t.Errorf("seed %d: held (-) and streamed (+):\n%s", seed, diff)
		}
		a, err := held.Page(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := streamed.Page(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("seed %d: the picture of what was held (-) and streamed (+):\n%s", seed, diff)
		}
	}
}
