package evidence

import (
	"fmt"
	"strconv"
	"strings"
)

// draw makes the picture of a page. One that stands alone has a heading and a
// legend, and only what is seen.
func (p *Page) draw(alone bool) (*picture, *drawing) {
	d := &drawing{window: p.window(), hues: make(map[string]int), used: make(map[string]bool), lookup: make(map[int]*Operation), placed: make(map[int]point)}
	d.scale = scale{left: leftMargin, right: pictureWidth - rightMargin}
	if span := since(d.extent.To, d.extent.From); since(d.extent.From, 0) > 100*span {
		d.zero = d.extent.From
	}
	d.from, d.to = since(d.view.From, d.zero), since(d.view.To, d.zero)
	d.p = &picture{
		Width: pictureWidth, Left: d.left, Right: d.right, Unit: p.Unit, Whole: d.view == d.extent,
		From: d.number(d.extent.From), To: d.number(d.extent.To), First: d.number(d.view.From), Last: d.number(d.view.To),
		About: d.about(), Ticks: d.ticks(p.Unit), Style: pictureStyle(),
	}
	if d.focus.any {
		d.p.FocusA, d.p.FocusB = d.number(d.focus.From), d.number(d.focus.To)
	}
	for i := range hues {
		d.p.Hues = append(d.p.Hues, strconv.Itoa(i))
	}
	d.p.Hues = append(d.p.Hues, "n")
	if alone {
		d.head()
	}
	d.p.Axis = d.y + 18
	d.y += axisHeight
	d.p.Top = d.y - 4
	flags := d.y
	if len(p.Findings) > 0 {
		d.y += flagHeight
	}
	d.drawFaults()
	for i := range d.resources {
		d.section(&d.resources[i])
	}
	d.p.Bottom = d.y + 6
	for i := range d.p.Faults {
		d.p.Faults[i].Down = d.p.Bottom - d.p.Faults[i].Y
	}
	d.p.Spot = (d.used["evidence"] || d.used["violates"]) && len(d.lookup) > fewOperations
	d.flags(flags)
	d.y += 12
	if !alone || !d.p.Whole {
		d.overview()
	}
	d.legend(alone)
	d.p.Height = d.y
	return d.p, d
}

// counts says how much is drawn.
func (d *drawing) counts() string {
	n := 0
	for i := range d.resources {
		n += len(d.resources[i].Operations)
	}
	return plural(n, "operation") + " on " + plural(len(d.resources), "resource")
}

// about is the picture in one sentence, for who cannot see it.
func (d *drawing) about() string {
	s := fmt.Sprintf("%s: %s. %s over time", headline(d.Title), d.Verdict, d.counts())
	if d.Reason != "" {
		s += ". " + prose(d.Reason)
	}
	return s
}

// head is what a slide says above the picture.
func (d *drawing) head() {
	h := &heading{Verdict: string(d.Verdict)}
	var facts []string
	if d.Model != "" {
		facts = append(facts, "model "+name(d.Model))
	}
	if d.Blame != Nobody {
		facts = append(facts, "blame the "+name(string(d.Blame)))
	}
	h.ChipWidth = textWidth(h.Verdict, 15) + 24
	h.Title = shorten(headline(d.Title), 22, pictureWidth-rightMargin-h.TitleX())
	d.y = 66
	for _, line := range wrap(prose(d.Reason), 14, pictureWidth-40, 3) {
		h.Lines = append(h.Lines, headLine{d.y, line})
		d.y += 20
	}
	h.FactsY = d.y
	h.Facts = strings.Join(append(facts, d.counts()), " · ")
	d.y += 14
	d.p.Head = h
}

// drawFaults draws what was done to the system, above all else.
func (d *drawing) drawFaults() {
	spans := make([]Span, len(d.faults))
	for i, f := range d.faults {
		spans[i] = f.Span
	}
	lane, n := lanes(spans)
	for i, f := range d.faults {
		d.used["fault"] = true
		b := fault{Point: f.From == f.To, About: join("fault: "+name(f.Name), during(f.Span, d.Unit), prose(f.Details), lines(f.Lines))}
		b.stretch = d.stretch(f.Span, d.y+lane[i]*faultRow+2, faultHigh)
		b.Words = d.inside(b.stretch, name(f.Name), firstWord(name(f.Name)))
		if b.Point {
			b.Words.X, b.Words.Shown = b.X+8, name(f.Name)
		}
		d.p.Faults = append(d.p.Faults, b)
	}
	if n > 0 {
		d.p.FaultNames = append(d.p.FaultNames, d.rowName("faults", d.y+2+faultHigh/2, false))
		d.y += n*faultRow + 2
	}
}

// flags draws where the findings are, over the whole height.
func (d *drawing) flags(y int) {
	d.p.FlagY = y + 11
	for i := range d.Findings {
		f := &d.Findings[i]
		spans := f.Spans
		if len(spans) == 0 {
			if h := d.where(f); h.any {
				spans = []Span{h.Span}
			}
		}
		b := flag{Number: i + 1, Class: "notes", First: true, About: fmt.Sprintf("finding %d: %s: %s", i+1, name(f.Check), prose(f.Text))}
		if f.Violates {
			b.Class = "breaks"
		}
		for _, s := range spans[:min(len(spans), mostFlags-len(d.p.Flags))] {
			b.stretch = d.stretch(s, d.p.FlagY+12, d.p.Bottom-d.p.FlagY-12)
			b.Width = max(b.Width, 2)
			b.Words = words{Full: name(f.Check), Short: "", X: b.X + 14, Y: d.p.FlagY + 4}
			d.p.Flags = append(d.p.Flags, b)
			b.First = false
		}
	}
	// A name has the room up to the next flag.
	all := d.p.Flags
	for i := range all {
		room := d.right - all[i].Words.X
		for j := range all {
			if j != i && !all[j].Hidden && all[j].X >= all[i].X {
				room = min(room, all[j].X-12-all[i].Words.X)
			}
		}
		all[i].Words.Shown = fitting(room, all[i].Words.Full)
	}
}

// section draws a resource.
func (d *drawing) section(r *Resource) {
	s := section{Name: name(r.Name), Model: name(r.Model), Verdict: string(r.Verdict), Y: d.y}
	s.ModelX = 8 + textWidth(s.Name, 15) + 10
	s.ChipX = s.ModelX
	if s.Model != "" {
		s.ChipX += textWidth(s.Model, 12) + 14
	}
	s.ChipWidth = textWidth(s.Verdict, 11) + 16
	if r.Reason != d.Reason {
		s.Reason = prose(r.Reason)
		s.ReasonX = s.ChipX
		if s.Verdict != "" {
			s.ReasonX += s.ChipWidth + 12
		}
		s.Brief = shorten(s.Reason, 12, d.right-s.ReasonX)
	}
	d.p.Sections = append(d.p.Sections, s)
	d.y += headHeight
	d.tenures(r)
	d.beliefs(r)
	d.operations(r)
	d.storage(r)
	d.y += 6
}

// current is the section being drawn.
func (d *drawing) current() *section { return &d.p.Sections[len(d.p.Sections)-1] }
