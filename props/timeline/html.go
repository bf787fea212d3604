package timeline

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"

	"fencepost/model"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// HTML writes the timeline as one page that needs nothing else: time flows to
// the right, a lane per node, and below the picture the sentence of each
// moment. It takes o.Title, o.Violation and o.MaxRows. The error is w's, or
// names an event that no run emits.
func HTML(w io.Writer, events []model.Event, names *model.Names, o Options) error {
	if err := check(events); err != nil {
		return err
	}
	if names == nil {
		names = &model.Names{}
	}
	moments, nodes := tell(events, names, &o)
	d := drawing{names: names, nodes: nodes, moments: moments, clock: clockFor(moments, 12)}
	return pageTemplate.Execute(w, d.page(&o))
}

// page is what the template draws. All coordinates are pixels.
type page struct {
	Title         string
	Broken        *broken
	Width, Height int
	Top, Bottom   int // of the lanes, Depth from one to the other
	Depth         int
	Lanes         []pageLane
	Moments       []pageMoment
	Bars          []pageBar
	Arrows        []pageArrow
}

type broken struct {
	Invariant, At, Text string
	X                   int
}

type pageLane struct {
	Name string
	Y    int
}

type pageMoment struct {
	Number, X, From, Width int
	Time                   string // "" where the moment before has the same
	At, Text               string
	Violated, Folded       bool
	Class                  string
}

// pageBar is a stretch of a lane. Class says what it is, Hue whose.
type pageBar struct {
	X, Y, Width, Height int
	Class, Hue          string
	Label, About        string
	Middle              int
}

// pageArrow is a message, from its sending to its end.
type pageArrow struct {
	X1, Y1, X2, Y2 int
	Class          string
	Tip            string // points of the arrowhead; none where it does not arrive
	Cross          bool   // at its end
	Note           string // what it carries, written at NoteX, NoteY
	NoteX, NoteY   int
}

const (
	pageLeft    = 96 // room for the names of lanes
	pageRight   = 40
	pageTop     = 56 // room for the axis
	laneHeight  = 62
	barHeight   = 22
	momentWidth = 34
	gapWidth    = 90 // at most, for time that passes between two moments
	noteWidth   = 7  // of one character of a note
)

// drawing places moments on a page. Distances are not to scale: every moment
// has room, and time between two adds some, the more the longer.
type drawing struct {
	names   *model.Names
	nodes   []model.Node
	moments []moment
	clock   clock
	x       []int
}

func (d *drawing) page(o *Options) *page {
	d.place()
	p := &page{Title: o.Title, Top: pageTop, Depth: laneHeight * len(d.nodes)}
	p.Bottom = p.Top + p.Depth
	if p.Title == "" {
		p.Title = "Timeline"
	}
	p.Width, p.Height = pageLeft+pageRight, p.Bottom+34
	if len(d.x) > 0 {
		p.Width += d.x[len(d.x)-1] - pageLeft + momentWidth
	}
	if v := &o.Violation; v.Invariant != model.NoInvariant {
		p.Broken = &broken{Invariant: fmt.Sprint(v.Invariant), At: duration(v.At), Text: v.Describe(d.names)}
	}
	for i, n := range d.nodes {
		p.Lanes = append(p.Lanes, pageLane{Name: nameOf(d.names, n), Y: d.y(i)})
		p.Bars = append(p.Bars, d.bars(i, n)...)
	}
	for i := range d.moments {
		m := &d.moments[i]
		row := pageMoment{Number: i + 1, X: d.x[i], From: d.x[i] - momentWidth/2, Width: momentWidth, At: d.clock.format(m.at),
			Text: m.text, Violated: m.violated, Folded: m.folded}
		if i == 0 || m.at != d.moments[i-1].until {
			row.Time = row.At
		}
		switch {
		case m.violated:
			row.Class = "violated"
			p.Broken.X = d.x[i]
		case m.stroke == strokeRefused || m.stroke == strokeLost:
			row.Class = "warning"
		case m.folded:
			row.Class = "folded"
		}
		p.Moments = append(p.Moments, row)
		p.Arrows = append(p.Arrows, d.arrows(i)...)
	}
	return p
}

func (d *drawing) place() {
	var longest int64
	for i := 1; i < len(d.moments); i++ {
		longest = max(longest, d.moments[i].at-d.moments[i-1].until)
	}
	x := pageLeft + momentWidth/2
	for i := range d.moments {
		x += d.extra(i) / 2
		if i > 0 {
			x += momentWidth + d.extra(i-1)/2
			if gap := d.moments[i].at - d.moments[i-1].until; gap > 0 {
				x += int(math.Sqrt(float64(gap)/float64(longest)) * gapWidth)
			}
		}
		d.x = append(d.x, x)
	}
}

// extra is by how much a moment's note is wider than a moment.
func (d *drawing) extra(i int) int {
	return max(noteWidth*len(d.moments[i].note)-momentWidth+noteWidth, 0)
}

// when is the place of an instant at or before moment i.
func (d *drawing) when(at int64, i int) int {
	if at >= d.moments[i].at {
		return d.x[i]
	}
	j, _ := slices.BinarySearchFunc(d.moments[:i+1], at, func(m moment, at int64) int {
		if m.until > at {
			return 1
		}
		return -1
	})
	if j == 0 {
		return d.x[0]
	}
	before, after := &d.moments[j-1], &d.moments[j]
	if at == before.until || after.at <= before.until {
		return d.x[j-1]
	}
	part := float64(at-before.until) / float64(after.at-before.until)
	return d.x[j-1] + int(part*float64(d.x[j]-d.x[j-1]))
}

func (d *drawing) y(lane int) int { return pageTop + laneHeight*lane + laneHeight/2 }

// bars are the stretches of one lane: tenures and terms, and over them where
// the node stood still or was down.
func (d *drawing) bars(i int, n model.Node) (bars []pageBar) {
	end := len(d.moments)
	edge := func(k int) int {
		if k == end {
			return d.x[end-1] + momentWidth
		}
		return d.x[k]
	}
	span := func(from int, same func(a, b *lane) bool) (to int) {
		for to = from + 1; to < end && same(&d.moments[to].lanes[n], &d.moments[from].lanes[n]); to++ {
		}
		return to
	}
	about := func(what string, from, to int) string {
		text := nameOf(d.names, n) + " " + what + " from " + d.clock.format(d.moments[from].at)
		if to < end {
			text += " to " + d.clock.format(d.moments[to].at)
		}
		return text
	}
	for k := 0; k < end; {
		l := &d.moments[k].lanes[n]
		to := span(k, func(a, b *lane) bool { return a.bar == b.bar && a.token == b.token && a.owner == b.owner })
		b := pageBar{X: edge(k), Y: d.y(i) - barHeight/2, Width: edge(to) - edge(k), Height: barHeight, Hue: hue(l.owner.Node)}
		switch l.bar {
		case barTenure:
			b.Class, b.Label = "tenure", fmt.Sprintf("%d %s", l.token, nameOf(d.names, l.owner.Node))
			b.About = about(fmt.Sprintf("lets %s have %d", nameOf(d.names, l.owner.Node), l.token), k, to)
		case barLeading:
			b.Class, b.Label = "leads", strconv.FormatUint(l.token, 10)
			b.About = about(fmt.Sprintf("leads under %d", l.token), k, to)
		case barFencing:
			b.Class = "fencing"
			b.About = about(fmt.Sprintf("holds %d and waits for the barrier", l.token), k, to)
		}
		if 8*len(b.Label)+6 > b.Width {
			b.Label = ""
		}
		b.Middle = b.Y + barHeight/2
		if b.Class != "" {
			bars = append(bars, b)
		}
		k = to
	}
	for k := 0; k < end; {
		to := span(k, func(a, b *lane) bool { return a.mode == b.mode })
		b := pageBar{X: edge(k), Y: d.y(i) - barHeight/2, Width: edge(to) - edge(k), Height: barHeight}
		switch d.moments[k].lanes[n].mode {
		case asleep:
			b.Class, b.About = "asleep", about("stands still", k, to)
		case down:
			b.Class, b.About = "down", about("is down", k, to)
		}
		if b.Class != "" {
			bars = append(bars, b)
		}
		k = to
	}
	return bars
}

func hue(n model.Node) string { return "hue" + strconv.Itoa(int(n)%4) }

// arrows are the messages of moment i. One that arrived in the instant it was
// sent leans a little, so that it reads in the direction of time.
func (d *drawing) arrows(i int) []pageArrow {
	m := &d.moments[i]
	from, to := slices.Index(d.nodes, m.from), slices.Index(d.nodes, m.to)
	if m.stroke == noStroke || from < 0 || to < 0 || from == to {
		return nil
	}
	const lean = 6
	x := d.x[i]
	dir := 1
	if to < from {
		dir = -1
	}
	y1, y2 := d.edge(i, from, dir), d.edge(i, to, -dir)
	request := pageArrow{X1: x - lean, Y1: y1, X2: x, Y2: y2, Class: "message", Note: m.note, NoteX: x, NoteY: d.y(to) - 8}
	if m.sent < m.at {
		request.X1 = d.when(m.sent, i)
	}
	switch m.stroke {
	case strokeArrives:
		request.tip()
	case strokeBoth:
		request.tip()
		back := pageArrow{X1: x, Y1: y2, X2: x + lean, Y2: y1, Class: "message"}
		back.tip()
		return []pageArrow{request, back}
	case strokeRefused:
		request.Class, request.Cross = "message warning", true
	case strokeLost:
		request.Class, request.Cross = "message warning", true
		request.X2, request.Y2 = x, y1+dir*laneHeight/2
	case strokeSent: // drawn from here where it arrives
		return nil
	case strokeNever:
		request.X1, request.X2, request.Y2 = x, x+lean, y1+dir*laneHeight/3
		request.tip()
	case strokeCut:
		request.X1, request.Class, request.Cross = x, "cut", true
		request.X2, request.Y2 = x, (y1+y2)/2
		rest := pageArrow{X1: x, Y1: request.Y2, X2: x, Y2: y2, Class: "cut"}
		return []pageArrow{request, rest}
	}
	return []pageArrow{request}
}

// edge is where a message from or to lane touches it, on its upper or lower
// side: at the bar, where there is one.
func (d *drawing) edge(i, lane, side int) int {
	l := &d.moments[i].lanes[d.nodes[lane]]
	if l.bar == noBar && l.mode == running {
		return d.y(lane) + side
	}
	return d.y(lane) + side*(barHeight/2+1)
}

// tip puts an arrowhead at the end.
func (a *pageArrow) tip() {
	dx, dy := float64(a.X2-a.X1), float64(a.Y2-a.Y1)
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	dx, dy = dx/length*8, dy/length*8
	x, y := float64(a.X2), float64(a.Y2)
	a.Tip = fmt.Sprintf("%.0f,%.0f %.0f,%.0f %.0f,%.0f", x, y, x-dx-dy/2, y-dy+dx/2, x-dx+dy/2, y-dy-dx/2)
}
