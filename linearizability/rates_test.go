package linearizability

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// TestUnknownOutcomesHideNoBug plants bugs in a store under 5 clients, who do
// 500 operations and do not learn the outcome of 5% of them. At least 99% of the
// histories that show the bug are to be called violated within 2 s, and less
// than 1% unknown.
//
// A history shows the bug if no order explains it, which is what an exact check
// without any limit finds. Few do not: those in which what was wrong fell among
// what nobody learned. A history that even this check leaves open counts as one
// that shows it.
func TestUnknownOutcomesHideNoBug(t *testing.T) {
	seeds := uint64(8)
	if long() {
		seeds = 300
	}
	for _, c := range []struct {
		name  string
		early int64
		bug   simBug
	}{
		{"correct", 0, 0},
		{"lapse early by a twentieth of the TTL", simTTL / 20, 0},
		{"lapse early by a third of the TTL", simTTL / 3, 0},
		{"token reused", 0, bugTokenReused},
		{"renewal ignored", 0, bugRenewIgnored},
		{"release ignored", 0, bugReleaseIgnored},
		{"stale write lands", 0, bugStaleWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, found, unknown := 0, 0, 0
			var total, longest time.Duration
			for seed := range seeds {
				s := simLease{rng: rand.New(rand.NewPCG(seed, 1)), clients: 5, ops: 500, unknown: 0.05, never: 0.5, early: c.early, bug: c.bug}
				h := s.history()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				start := time.Now()
				v, err := Check(ctx, h, Options{Model: Model{Name: ModelFencepost}})
				took := time.Since(start)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				total, longest = total+took, max(longest, took)
				if shows(t, &h) {
					shown++
					if v.Linearizable() == Violated {
						found++
					}
				} else if v.Linearizable() == Violated {
					t.Errorf("seed %d: %s, but an order explains it", seed, v)
				}
				if v.Linearizable() == Unknown {
					unknown++
				}
			}
			t.Logf("%d histories: %d show the bug, %d found, %d unknown; mean %v, longest %v", seeds, shown, found, unknown, total/time.Duration(seeds), longest)
			if found*100 < shown*99 || unknown*100 >= int(seeds) && unknown > 0 {
				t.Errorf("%d found of %d, %d unknown", found, shown, unknown)
			}
			if correct := c.early == 0 && c.bug == 0; correct && shown > 0 || !correct && shown == 0 && long() {
				t.Errorf("%d histories show the bug", shown)
			}
		})
	}
}

// shows reports whether no order explains a history, however long that takes to
// tell.
func shows(t *testing.T, h *History) bool {
	d, err := digestOf(h, Options{Model: Model{Name: ModelFencepost}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.parts {
		if newFrontier(t.Context(), &h.Meta, d.parts[i].load(), 4*DefaultMemory, 1<<40).run() != porcupine.Ok {
			return true
		}
	}
	return false
}
