package atlas

import (
	"fmt"
	"math"

	"fencepost/model"
	"fencepost/props/explore"
	"fencepost/props/sim"
)

// chart is the charts that share the axis of depths, one below the other. All
// coordinates are pixels.
type chart struct {
	Width, Height int
	Left, Right   int // of the columns
	Columns       []column
	Linear, Log   panel
	Heat          heat
	Milestones    panel
	Flags         []flag
	Breaks        *mark
	Partial       bool // some level is known in part
	About         string
}

// column is one depth.
type column struct {
	Depth, X, Middle, Width int
	Label                   bool
}

// panel is the frame of one chart.
type panel struct {
	Top, Bottom int
	Grid        []gridLine
	Bars        []bar
}

type gridLine struct {
	Y     int
	Label string
}

type bar struct {
	X, Y, Width, Height int
	About               string
	Part                bool
}

type heat struct {
	Top, Bottom int
	Rows        []heatRow
	Legend      []cell
}

type heatRow struct {
	Name   string
	Y      int // of its middle
	Total  string
	Length int // of the bar for the total
	Cells  []cell
}

type cell struct {
	X, Y, Width, Height int
	Opacity             float64
	About, Label        string
}

// flag is a thing that must happen sometimes, planted where it first did.
type flag struct {
	X, Y, End  int
	Text       string
	TextX      int
	Before     bool // the text is left of the flag: there is no room on the right
	Never, Bad bool
}

type mark struct {
	X, Top, Bottom int
}

const (
	mapLeft     = 96
	mapRight    = 150
	mapColumns  = 760 // of all columns together, unless they get too narrow or wide
	mapLeast    = 600 // of the columns and the room after them: a flag has room on one side
	narrowest   = 11
	widest      = 64
	titleHeight = 44 // of a panel, and the gap above it
	linearDepth = 170
	logDepth    = 96
	rowHeight   = 24
	totalLength = 64
	letter      = 6 // the width of one, about
)

func newChart(r *explore.Report) chart {
	f := &r.Found
	depths := len(f.Levels)
	if f.Failed {
		depths = max(depths, f.FailDepth+1)
	}
	width := min(max(mapColumns/max(depths, 1), narrowest), widest)
	c := chart{Left: mapLeft, Partial: f.Bounded != ""}
	every := max(1, (3*letter+width-1)/width)
	if every > 2 {
		every = 5
	}
	for d := range depths {
		x := mapLeft + d*width
		c.Columns = append(c.Columns, column{Depth: d, X: x, Middle: x + width/2, Width: width - 1, Label: d%every == 0})
	}
	// Few levels make a narrow map, but the words need their room.
	c.Right = mapLeft + max(depths*width, mapLeast)
	c.Width = c.Right + mapRight

	y := c.linear(f, titleHeight)
	y = c.log(f, y+titleHeight)
	y = c.heat(f, y+titleHeight)
	y = c.flags(r, y+titleHeight)
	c.Height = y + 12
	if f.Failed {
		c.Breaks = &mark{X: c.Columns[f.FailDepth].Middle, Top: c.Linear.Top, Bottom: y}
	}
	top := 0
	for d, l := range f.Levels {
		if l.States > f.Levels[top].States {
			top = d
		}
	}
	if depths > 0 {
		c.About = fmt.Sprintf("%d depths; most states, %s, lie at depth %d; the numbers are in the table below", len(f.Levels), explore.Grouped(f.Levels[top].States), top)
	}
	return c
}

// part says whether level d is known in part only.
func part(f *model.Exploration, d int) bool { return f.Bounded != "" && d > f.Depth }

func (c *chart) bars(f *model.Exploration, p *panel, height func(states uint64) int) {
	for d := range f.Levels {
		n := f.Levels[d].States
		about := fmt.Sprintf("depth %d: %s states", d, explore.Grouped(n))
		if part(f, d) {
			about += " are known, not all"
		}
		h := 0
		if n > 0 {
			h = max(1, height(n))
		}
		col := &c.Columns[d]
		p.Bars = append(p.Bars, bar{X: col.X, Y: p.Bottom - h, Width: col.Width, Height: h, About: about, Part: part(f, d)})
	}
}

func (c *chart) linear(f *model.Exploration, top int) (bottom int) {
	p := &c.Linear
	p.Top, p.Bottom = top, top+linearDepth
	var most uint64 = 1
	for _, l := range f.Levels {
		most = max(most, l.States)
	}
	for n := niceStep(most); n <= most; n += niceStep(most) {
		p.Grid = append(p.Grid, gridLine{p.Bottom - int(n*linearDepth/most), short(n)})
	}
	c.bars(f, p, func(n uint64) int { return int(n * linearDepth / most) })
	return p.Bottom
}

func (c *chart) log(f *model.Exploration, top int) (bottom int) {
	p := &c.Log
	p.Top, p.Bottom = top, top+logDepth
	var most uint64 = 1
	for _, l := range f.Levels {
		most = max(most, l.States)
	}
	decades := math.Floor(math.Log10(float64(most))) + 1
	// One state has a bar too, so the axis begins half a decade below it.
	height := func(n uint64) int { return int((math.Log10(float64(n)) + 0.5) / (decades + 0.5) * logDepth) }
	for n, skip := uint64(1), 1+int(decades)/5; n <= most; {
		p.Grid = append(p.Grid, gridLine{p.Bottom - height(n), short(n)})
		for range skip {
			n *= 10
		}
	}
	c.bars(f, p, height)
	return p.Bottom
}

func (c *chart) heat(f *model.Exploration, top int) (bottom int) {
	h := &c.Heat
	h.Top = top
	total := f.Total()
	var most, mostTotal uint64 = 1, 1
	for _, l := range f.Levels {
		for _, n := range l.Steps {
			most = max(most, n)
		}
	}
	for _, n := range total {
		mostTotal = max(mostTotal, n)
	}
	shade := func(n uint64) float64 {
		return math.Round(100*(0.08+0.92*math.Log1p(float64(n))/math.Log1p(float64(most)))) / 100
	}
	y := top
	for _, k := range kindsOf(f) {
		row := heatRow{Name: k.String(), Y: y + rowHeight/2, Total: explore.Grouped(total[k]), Length: max(1, int(total[k]*totalLength/mostTotal))}
		for d := range f.Levels {
			n := stepsAt(f, d, k)
			if n == 0 {
				continue
			}
			col := &c.Columns[d]
			row.Cells = append(row.Cells, cell{X: col.X, Y: y + 1, Width: col.Width, Height: rowHeight - 2, Opacity: shade(n),
				About: fmt.Sprintf("depth %d: %s %s steps", d, explore.Grouped(n), k)})
		}
		h.Rows = append(h.Rows, row)
		y += rowHeight
	}
	h.Bottom = y
	const swatch = 34
	x := mapLeft
	y += 30
	for n := uint64(1); ; n *= 10 {
		h.Legend = append(h.Legend, cell{X: x, Y: y, Width: swatch, Height: 10, Opacity: shade(n), Label: short(n)})
		x += swatch
		if n > most/10 {
			break
		}
	}
	return y + 24
}

func (c *chart) flags(r *explore.Report, top int) (bottom int) {
	p := &c.Milestones
	p.Top = top
	y := top + rowHeight/2
	add := func(depth int, f flag) {
		f.Y, f.End = y, c.Right
		y += rowHeight
		if f.Never {
			f.X, f.TextX = mapLeft, mapLeft+10
		} else {
			f.X = c.Columns[min(depth, len(c.Columns)-1)].Middle
			f.TextX = f.X + 10
			if f.TextX+letter*len(f.Text) > c.Width {
				f.TextX, f.Before = f.X-10, true
			}
		}
		c.Flags = append(c.Flags, f)
	}
	for _, s := range r.Sometimes {
		if s.Steps == 0 {
			add(0, flag{Text: s.Name + ": never", Never: true})
		} else {
			add(s.Depth, flag{Text: fmt.Sprintf("%s (%s×)", s.Name, short(s.Steps))})
		}
	}
	if f := &r.Found; f.Failed {
		add(f.FailDepth, flag{Text: fmt.Sprintf("%v breaks", r.First.Invariant), Bad: true})
	}
	p.Bottom = y - rowHeight/2
	return p.Bottom
}

// kindsOf are the kinds of action that took a step, in the order of their
// declaration.
func kindsOf(f *model.Exploration) (kinds []sim.Kind) {
	for k, n := range f.Total() {
		if n > 0 {
			kinds = append(kinds, sim.Kind(k))
		}
	}
	return kinds
}

// stepsAt are the steps of kind k out of the states at one depth.
func stepsAt(f *model.Exploration, depth int, k sim.Kind) uint64 {
	if steps := f.Levels[depth].Steps; int(k) < len(steps) {
		return steps[k]
	}
	return 0
}

// niceStep is 1, 2 or 5 times a power of ten, so that most has at most five of
// it.
func niceStep(most uint64) uint64 {
	for step := uint64(1); ; step *= 10 {
		for _, n := range []uint64{step, 2 * step, 5 * step} {
			if most/n <= 5 {
				return n
			}
		}
	}
}

// short is n in at most five characters.
func short(n uint64) string {
	for _, u := range []struct {
		unit uint64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		switch {
		case n >= 10*u.unit, n >= u.unit && n%u.unit == 0:
			return fmt.Sprintf("%d%s", n/u.unit, u.name)
		case n >= u.unit:
			return fmt.Sprintf("%.1f%s", math.Floor(float64(n)/float64(u.unit)*10)/10, u.name)
		}
	}
	return fmt.Sprint(n)
}
