package evidence

import (
	"math"
	"strconv"
)

// drawing makes a picture of a window.
type drawing struct {
	window
	scale
	p      *picture
	y      int                // where the next thing is drawn
	hues   map[string]int     // of everybody so far
	rows   int                // of operations, so far
	lookup map[int]*Operation // what is drawn, by ID
	placed map[int]point      // what has a place in an order, by ID
	used   map[string]bool    // kinds of marks, for the legend
}

// number writes an instant for page.js.
func (d *drawing) number(at int64) string {
	switch {
	case at >= Unbounded:
		return "Infinity"
	case at <= -Unbounded:
		return "-Infinity"
	}
	return strconv.FormatFloat(since(at, d.zero), 'f', -1, 64)
}

// hue is the class of the colour of one who holds or asks.
func (d *drawing) hue(who string) string {
	if who == "" {
		return "hn"
	}
	h, ok := d.hues[who]
	if !ok {
		h = len(d.hues) % hues
		d.hues[who] = h
	}
	return "h" + strconv.Itoa(h)
}

func (d *drawing) stretch(s Span, y, high int) stretch {
	x0, x1 := d.x(s.From), d.x(s.To)
	return stretch{
		A: d.number(s.From), B: d.number(s.To), X: tenth(d.clip(s.From)), Width: tenth(max(d.clip(s.To)-d.clip(s.From), 0)),
		Y: y, High: high, Hidden: !d.sees(x0, x1),
	}
}

// tenth rounds pixels: more digits only make the file longer.
func tenth(x float64) float64 { return math.Round(x*10) / 10 }

// inside places a label in a stretch, where it is seen.
func (d *drawing) inside(s stretch, full, short string) words {
	x := max(s.X, d.left) + 6
	return words{Full: full, Short: short, Shown: fitting(min(s.X+s.Width, d.right)-x-2, full, short), X: tenth(x), Y: s.Y + s.High/2 + 4}
}

func (d *drawing) row(name string, y int, life bool) {
	s := d.current()
	s.Rows = append(s.Rows, d.rowName(name, y, life))
}

func (d *drawing) rowName(name string, y int, life bool) rowName {
	return rowName{Y: y, Name: name, Short: shorten(name, fontSize, leftMargin-24), Brief: brief(name), Life: life}
}

// lanes spreads spans over as few rows as it takes that none overlap. They
// must be in order of From. What has no length takes one instant.
func lanes(spans []Span) (lane []int, n int) {
	var free []int64
	for _, s := range spans {
		at := -1
		for i := range free {
			if free[i] <= s.From {
				at = i
				break
			}
		}
		if at < 0 {
			at = len(free)
			free = append(free, 0)
		}
		free[at] = s.To
		if s.To <= s.From && s.From < Unbounded {
			free[at] = s.From + 1
		}
		lane = append(lane, at)
	}
	return lane, len(free)
}
