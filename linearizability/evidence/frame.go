package evidence

import (
	"strconv"
	"strings"
)

// overview draws all of the extent in little.
func (d *drawing) overview() {
	all := scale{zero: d.zero, from: since(d.extent.From, d.zero), to: since(d.extent.To, d.zero), left: 0, right: 1000}
	o := overview{Y: d.y, High: overHigh}
	part := func(s Span) stretch {
		x0, x1 := min(max(all.x(s.From), 0), 1000), min(max(all.x(s.To), 0), 1000)
		return stretch{X: tenth(x0), Width: max(tenth(x1-x0), 2)}
	}
	high := float64(overHigh-4) / float64(max(d.rows, 1))
	var b strings.Builder
	for i := range d.p.Sections {
		for _, m := range d.p.Sections[i].Ops {
			end := m.done
			if infinite(end) {
				end = m.call
			}
			s := part(Span{m.call, end})
			y := 2 + high*float64(m.Row)
			b.WriteString("M" + decimal(s.X) + " " + decimal(y) + "h" + decimal(s.Width) + "v" + decimal(max(high*.7, 1)) + "h-" + decimal(s.Width) + "z")
		}
	}
	o.Path = b.String()
	for _, f := range d.faults {
		o.Faults = append(o.Faults, part(f.Span))
	}
	for i := range d.Findings {
		if f := &d.Findings[i]; f.Violates {
			if h := d.where(f); h.any {
				o.Spans = append(o.Spans, part(h.Span))
			}
		}
	}
	if len(o.Spans) == 0 && d.focus.any {
		o.Spans = append(o.Spans, part(d.focus.Span))
	}
	view := part(d.view)
	o.X, o.Width = view.X, view.Width
	d.p.Overview = o
	d.y += overHigh + 10
}

func decimal(x float64) string { return strconv.FormatFloat(tenth(x), 'f', -1, 64) }

// keys of the legend, in order.
var keys = []key{
	{Kind: "must", Text: "lease: held for certain"},
	{Kind: "may", Text: "lease: may have been held"},
	{Kind: "believes", Text: "belief, as recorded"},
	{Kind: "derived", Text: "belief, derived"},
	{Kind: "waived", Text: "overlap waived"},
	{Kind: "ok", Text: "operation, ok"},
	{Kind: "fail", Text: "refused"},
	{Kind: "info", Text: "outcome unknown"},
	{Kind: "violates", Text: "violates"},
	{Kind: "evidence", Text: "minimal evidence"},
	{Kind: "stairs", Text: "highest token"},
	{Kind: "landed", Text: "write landed"},
	{Kind: "refused", Text: "write refused"},
	{Kind: "order", Text: "linearization"},
	{Kind: "stuck", Text: "nothing can come next"},
	{Kind: "fault", Text: "fault"},
}

// legend explains what occurs. On a page it is HTML, so that it wraps.
func (d *drawing) legend(alone bool) {
	x, y := 20.0, d.y+14
	for _, k := range keys {
		if !d.used[k.Kind] {
			continue
		}
		width := 34 + textWidth(k.Text, fontSize) + 18
		if x+width > pictureWidth-10 && x > 20 {
			x, y = 20, y+24
		}
		k.X, k.Y = tenth(x), y
		d.p.Legend = append(d.p.Legend, k)
		x += width
	}
	d.p.Note = d.note()
	if !alone {
		return
	}
	if len(d.p.Legend) > 0 {
		d.y = y + 20
	}
	if d.p.Note != "" {
		d.p.NoteY = d.y + 14
		d.y += 26
	}
}

// note says what is left out, and how to read the axis.
func (d *drawing) note() string {
	var all []string
	if d.Unit == Order {
		all = append(all, "The history has no times: the axis counts its events.")
	}
	if d.zero != 0 {
		all = append(all, "The axis counts from "+instant(d.zero, d.Unit)+" of the history.")
	}
	if d.omitted > 0 {
		all = append(all, "Left out: "+plural(d.omitted, "operation")+", those farthest from what is shown.")
	}
	if d.others > 0 {
		all = append(all, "Left out: "+plural(d.others, "resource")+".")
	}
	if d.trimmed {
		all = append(all, "Left out: tenures, beliefs, faults or tokens, those farthest from what is shown.")
	}
	return strings.Join(all, " ")
}
