package evidence

import (
	"fmt"
	"slices"
)

// tenures draws when each holder must and may have held the lease.
func (d *drawing) tenures(r *Resource) {
	spans := make([]Span, len(r.Tenures))
	for i, t := range r.Tenures {
		spans[i] = t.May
	}
	lane, n := lanes(spans)
	for i, t := range r.Tenures {
		y := d.y + lane[i]*barRow + (barRow-barHigh)/2
		b := bar{Class: "tenure " + d.hue(t.Who), Kind: "may" + d.hue(t.Who)[1:]}
		b.stretch = d.stretch(t.May, y, barHigh)
		d.used["may"] = true
		b.Words = d.inside(b.stretch, holder(t.Who, t.Token), token(t.Token))
		about := join(fmt.Sprintf("lease of %s", holder(t.Who, t.Token)), "may have held "+during(t.May, d.Unit))
		if t.Must.From <= t.Must.To {
			d.used["must"] = true
			must := d.stretch(t.Must, y, barHigh)
			b.Must = &must
			b.Words = d.inside(must, b.Words.Full, b.Words.Short)
			about = join(about, "must have held "+during(t.Must, d.Unit))
		} else {
			b.Class += " never"
		}
		if t.Violates {
			b.Violates = true
			b.Class += " violates"
			about = join("violates", about)
			d.used["violates"] = true
		}
		b.About = about
		s := d.current()
		s.Bars = append(s.Bars, b)
	}
	for i := range n {
		title := ""
		if i == 0 {
			title = "lease"
		}
		d.row(title, d.y+i*barRow+barRow/2, true)
	}
	d.y += n * barRow
}

// manyRows of one kind are packed into as few as it takes.
const (
	manyHolders   = 6
	manyProcesses = 16
)

// beliefs draws who believed to lead, in a row for each.
func (d *drawing) beliefs(r *Resource) {
	names := distinct(r.Beliefs, func(b Belief) string { return b.Who })
	groups := [][]Belief{r.Beliefs}
	if len(names) <= manyHolders {
		groups = make([][]Belief, len(names))
		for _, b := range r.Beliefs {
			i := slices.Index(names, b.Who)
			groups[i] = append(groups[i], b)
		}
	}
	for g, group := range groups {
		spans := make([]Span, len(group))
		for i, b := range group {
			spans[i] = b.Span
		}
		lane, n := lanes(spans)
		for i, b := range group {
			d.belief(b, d.y+lane[i]*barRow+(barRow-barHigh)/2)
		}
		for i := range n {
			title := ""
			switch {
			case i > 0:
			case len(groups) == len(names):
				title = name(names[g]) + " believes"
			default:
				title = "beliefs"
			}
			d.row(title, d.y+i*barRow+barRow/2, true)
		}
		d.y += n * barRow
	}
}

func (d *drawing) belief(b Belief, y int) {
	m := bar{Class: "belief " + d.hue(b.Who)}
	m.stretch = d.stretch(b.Span, y, barHigh)
	source, kind := "as recorded", "believes"
	if b.Derived {
		source, kind = "as a correct client may have believed", "derived"
		m.Class += " derived"
	}
	d.used[kind] = true
	full := holder(b.Who, b.Token)
	m.About = join(full+" believes to lead "+during(b.Span, d.Unit), source)
	if b.Waived != "" {
		m.Class += " waived"
		full += " (waived)"
		m.About = join(m.About, "waived: "+prose(b.Waived))
		d.used["waived"] = true
	}
	if b.Violates {
		m.Violates = true
		m.Class += " violates"
		m.About = join("violates", m.About)
		d.used["violates"] = true
	}
	m.Words = d.inside(m.stretch, full, token(b.Token))
	s := d.current()
	s.Bars = append(s.Bars, m)
}

// manyTokens of a storage do not get a level each.
const manyTokens = 8

// storage draws the highest token over time, and what the storage let land.
func (d *drawing) storage(r *Resource) {
	if len(r.Highest) == 0 && len(r.Writes) == 0 {
		return
	}
	var tokens []uint64
	for _, s := range r.Highest {
		tokens = append(tokens, s.Token)
	}
	for _, w := range r.Writes {
		tokens = append(tokens, w.Token)
	}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	high := stepHigh * min(len(tokens), manyTokens)
	base := d.y + 10 + high
	height := func(token uint64) int {
		i, _ := slices.BinarySearch(tokens, token)
		return base - high*(2*i+1)/(2*len(tokens))
	}
	st := &stairs{}
	step := 1 + (len(tokens)-1)/manyTokens
	for i := 0; i < len(tokens); i += step {
		st.Levels = append(st.Levels, level{height(tokens[i]), tokens[i]})
	}
	var line []corner
	for i, s := range r.Highest {
		if i > 0 {
			line = append(line, corner{s.At, height(r.Highest[i-1].Token)})
		}
		line = append(line, corner{s.At, height(s.Token)})
	}
	if n := len(line); n > 0 {
		d.used["stairs"] = true
		line = append(line, corner{d.extent.To, line[n-1].y})
		st.Line, st.LineData = d.path(line)
		area := append([]corner{{line[0].at, base}}, line...)
		st.Area, st.AreaData = d.path(append(area, corner{d.extent.To, base}))
	}
	for _, w := range r.Writes {
		op := d.lookup[w.Op]
		at := op.Return
		if infinite(at) {
			at = op.Call
		}
		x := d.x(at)
		l := landing{A: d.number(at), X: tenth(d.clip(at)), Y: height(w.Token), ID: w.Op, Landed: w.Landed, Violates: op.Violates, Class: "landed " + d.hue(op.Who), Hidden: !d.sees(x-8, x+8)}
		l.About = fmt.Sprintf("write under token %d landed", w.Token)
		kind := "landed"
		if !w.Landed {
			l.Class, l.About, kind = "refused "+d.hue(op.Who), fmt.Sprintf("write under token %d was refused", w.Token), "refused"
		}
		d.used[kind] = true
		if op.Violates {
			l.Class += " violates"
		}
		st.Writes = append(st.Writes, l)
	}
	d.current().Stairs = st
	d.row("highest token", d.y+10+high/2, false)
	d.y = base + 6
}
