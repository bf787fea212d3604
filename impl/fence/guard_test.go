package fence_test

import (
	"iter"
	"math"
	"slices"
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// sequences yields every sequence of exactly n elements of alphabet. The slice
// is reused.
func sequences[E any](alphabet []E, n int) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		seq := make([]E, n)
		var fill func(i int) bool
		fill = func(i int) bool {
			if i == n {
				return yield(seq)
			}
			for _, e := range alphabet {
				if seq[i] = e; !fill(i + 1) {
					return false
				}
			}
			return true
		}
		fill(0)
	}
}

// A token is admitted iff it is one, and no higher one came before it. Stated
// over the whole past, not over a highest.
func TestGuardAdmitsNothingLowerThanWhatItProcessed(t *testing.T) {
	tokens := []lease.Token{0, 1, 2, 3, math.MaxUint64}
	admitted, refused := 0, 0
	for seq := range sequences(tokens, 6) {
		var g fence.Guard
		for i, token := range seq {
			past := seq[:i]
			want := token != 0 && !slices.ContainsFunc(past, func(p lease.Token) bool { return p > token })
			before := g
			var got bool
			if g, got = g.Admit(token); got != want {
				t.Fatalf("token %d after %v: admitted %v, want %v", token, past, got, want)
			}
			if !got && g != before {
				t.Fatalf("token %d after %v was refused, and changed the guard from %v to %v", token, past, before, g)
			}
			if g.Highest != slices.Max(seq[:i+1]) {
				t.Fatalf("after %v the highest is %d", seq[:i+1], g.Highest)
			}
			if got {
				admitted++
			} else {
				refused++
			}
		}
	}
	if admitted == 0 || refused == 0 {
		t.Errorf("%d admitted, %d refused: nothing was compared", admitted, refused)
	}
}

func TestGuardAdmitsAnEqualToken(t *testing.T) {
	if _, ok := (fence.Guard{Highest: 34}).Admit(34); !ok {
		t.Error("a leader's second write was refused")
	}
}

func TestGuardNeverAdmitsTokenZero(t *testing.T) {
	if g, ok := (fence.Guard{}).Admit(0); ok || g.Highest != 0 {
		t.Errorf("token 0, which is none: admitted %v by %v", ok, g)
	}
}
