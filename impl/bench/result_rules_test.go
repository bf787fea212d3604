package bench

import (
	"testing"
	"time"
)

func TestQuantilesAreOfWhatWasMeasured(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, c := range []struct {
		all  []time.Duration
		q    float64
		want time.Duration
	}{{nil, 0.5, 0}, {[]time.Duration{7}, 0.5, 7}, {[]time.Duration{7}, 0.99, 7}, {[]time.Duration{3, 1, 2}, 0.5, 2}, {hundred, 0.5, 50}, {hundred, 0.99, 99}} {
		if got := quantile(c.all, c.q); got != c.want {
			t.Errorf("quantile %v of %v: %d, want %d", c.q, c.all, got, c.want)
		}
	}
}

func TestBeliefsThatMeetDoNotOverlap(t *testing.T) {
	for _, c := range []struct {
		all  []interval
		want int
	}{
		{nil, 0},
		{[]interval{{0, 5}, {5, 9}, {12, 13}}, 0},
		{[]interval{{5, 9}, {0, 6}}, 1},
		{[]interval{{0, 9}, {1, 2}, {3, 4}, {9, 10}}, 2},
	} {
		if got := overlaps(c.all); got != c.want {
			t.Errorf("overlaps of %v: %d, want %d", c.all, got, c.want)
		}
	}
}
