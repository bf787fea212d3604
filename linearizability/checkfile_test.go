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

// TestWhatComesLateIsChecked: a model that was chosen by the beginning of a
// history does not overlook what comes after it.
func TestWhatComesLateIsChecked(t *testing.T) {
	var h History
	h.Meta = DefaultMeta()
	add := func(typ Type, f string, fields ...Field) {
		n := int64(len(h.Events))
		h.Events = append(h.Events, Event{Index: n, Time: n, Type: typ, F: f, Fields: fields})
	}
	key, owner := Field{"key", String("k")}, Field{"owner", String("a")}
	for n := range uint64(chooseEvents/4 + 1) {
		add(Invoke, "acquire", key, owner, Field{"ttl", Int(1000)})
		add(OK, "acquire", Field{"token", Uint(n + 1)})
		add(Invoke, "release", key, owner, Field{"token", Uint(n + 1)})
		add(OK, "release")
	}
	disk, k := Field{"key", String("disk")}, Field{"k", String("x")}
	add(Invoke, "write", disk, owner, Field{"token", Int(1)}, k, Field{"v", Int(1)})
	add(OK, "write")
	add(Invoke, "read", disk, k)
	add(OK, "read", Field{"v", Int(77)})
	var text bytes.Buffer
	if err := h.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "h.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, hold := range []int{chooseEvents, inMemory} {
		v, err := checkFile(t.Context(), path, Options{Model: Model{Name: ModelAuto}}, hold)
		if err != nil || v.Result != Violated || v.Partitions[len(v.Partitions)-1].Model != ModelStorage {
			t.Errorf("%d held: %v %v", hold, v, err)
		}
	}
}
