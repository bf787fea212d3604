package atlas

import (
	"testing"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// report is one of four levels, the numbers of which are easy to draw by hand.
func report() *explore.Report {
	steps := func(advance, tick uint64) []uint64 {
		s := make([]uint64, sim.Tick+1)
		s[sim.Advance], s[sim.Tick] = advance, tick
		return s
	}
	return &explore.Report{
		Found: model.Exploration{Complete: true, Depth: 3, Levels: []model.Level{
			{States: 1, Steps: steps(1, 0)}, {States: 10, Steps: steps(30, 10)}, {States: 1000, Steps: steps(9000, 90)}, {States: 500, Steps: nil},
		}},
		Sometimes: []explore.Reached{{Name: "early", Steps: 3, Depth: 1}, {Name: "not at all"}},
	}
}

func TestBarsAreToScale(t *testing.T) {
	c := newChart(report())
	var linear, log []int
	for i, b := range c.Linear.Bars {
		linear = append(linear, b.Height)
		log = append(log, c.Log.Bars[i].Height)
		if b.Y+b.Height != c.Linear.Bottom || b.X != c.Log.Bars[i].X || b.X != c.Columns[i].X {
			t.Errorf("bar %d stands elsewhere: %+v", i, b)
		}
	}
	// 170 pixels are 1000 states; what is there shows with 1 pixel at least.
	if want := [4]int{1, 1, 170, 85}; [4]int(linear) != want {
		t.Errorf("heights are %v, want %v", linear, want)
	}
	// 96 pixels are 4.5 decades, of which half a one is below 1 state.
	if want := [4]int{10, 32, 74, 68}; [4]int(log) != want {
		t.Errorf("heights on the logarithmic scale are %v, want %v", log, want)
	}
	for i, g := range c.Linear.Grid {
		if want := c.Linear.Bottom - 34*(i+1); g.Y != want {
			t.Errorf("the line of %s is at %d, want %d", g.Label, g.Y, want)
		}
	}
	if n := len(c.Linear.Grid); n != 5 || c.Linear.Grid[0].Label != "200" || c.Linear.Grid[4].Label != "1k" {
		t.Errorf("%d lines: %v", n, c.Linear.Grid)
	}
}

func TestMoreStepsMakeAStrongerCell(t *testing.T) {
	h := newChart(report()).Heat
	if len(h.Rows) != 2 || h.Rows[0].Name != "advance" || h.Rows[1].Name != "tick" || h.Rows[0].Total != "9,031" || h.Rows[0].Length != totalLength {
		t.Fatalf("rows: %+v", h.Rows)
	}
	advance, tick := h.Rows[0].Cells, h.Rows[1].Cells
	if len(advance) != 3 || len(tick) != 2 {
		t.Fatalf("%d and %d cells: a level without a step has none", len(advance), len(tick))
	}
	if !(0 < advance[0].Opacity && advance[0].Opacity < tick[0].Opacity && tick[0].Opacity < advance[1].Opacity && advance[1].Opacity < tick[1].Opacity && advance[2].Opacity == 1) {
		t.Errorf("1, 10, 30, 90 and 9000 steps are %v and %v", advance, tick)
	}
	if n := len(h.Legend); n != 4 || h.Legend[3].Label != "1k" {
		t.Errorf("the legend of up to 9000 steps is %v", h.Legend)
	}
}

func TestFlagsStandWhereItFirstHappened(t *testing.T) {
	r := report()
	c := newChart(r)
	if f := c.Flags; len(f) != 2 || f[0].X != c.Columns[1].Middle || f[0].Never || !f[1].Never || c.Breaks != nil {
		t.Errorf("flags %+v, breaks %+v", f, c.Breaks)
	}
	r.Found.Failed, r.Found.FailDepth, r.Found.Complete, r.First.Invariant = true, 5, false, model.BeliefSafety
	c = newChart(r)
	if f := c.Flags; len(f) != 3 || len(c.Columns) != 6 || !f[2].Bad || f[2].X != c.Columns[5].Middle || c.Breaks.X != f[2].X {
		t.Errorf("flags %+v, breaks %+v, %d columns", f, c.Breaks, len(c.Columns))
	}
}

// TestNothingLeavesTheMap: whatever the number of levels, all is inside.
func TestNothingLeavesTheMap(t *testing.T) {
	for levels := range 300 {
		r := &explore.Report{Sometimes: []explore.Reached{{Name: "a lease is granted while an older token is still about", Steps: 1 << 40, Depth: levels}}}
		for range levels {
			r.Found.Levels = append(r.Found.Levels, model.Level{States: 7, Steps: []uint64{0, 5}})
		}
		if levels == 0 {
			r.Sometimes = nil // nothing was reached where there is nothing
		}
		c := newChart(r)
		inside := func(what string, from, to int) {
			if from < 0 || to > c.Width {
				t.Errorf("%d levels: %s from %d to %d is outside of %d", levels, what, from, to, c.Width)
			}
		}
		for _, b := range c.Linear.Bars {
			inside("a bar", b.X, b.X+b.Width)
		}
		for _, f := range c.Flags {
			if n := letter * len(f.Text); f.Before {
				inside("a flag", f.TextX-n, f.TextX)
			} else {
				inside("a flag", f.TextX, f.TextX+n)
			}
		}
		for _, w := range c.Heat.Legend {
			inside("the legend", w.X, w.X+w.Width)
		}
	}
}

func TestNumbersAreShort(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1k", 1999: "1.9k", 12_345: "12k", 999_999: "999k", 1_500_000: "1.5M", 3e9: "3G", 7e12: "7T"} {
		if got := short(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestAnAxisHasFewLines(t *testing.T) {
	for most := uint64(1); most < 1e15; most += most/3 + 1 {
		if lines := most / niceStep(most); lines < 1 || lines > 5 {
			t.Errorf("an axis up to %d has %d lines", most, lines)
		}
	}
}
