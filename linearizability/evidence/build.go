package evidence

import (
	"cmp"
	"fmt"
	"slices"
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
	if f := d.focus(); f.any {
		d.p.FocusA, d.p.FocusB = d.number(f.From), d.number(f.To)
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
	d.faults()
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

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// about is the picture in one sentence, for who cannot see it.
func (d *drawing) about() string {
	s := fmt.Sprintf("%s: %s. %s over time", name(d.Title), d.Verdict, d.counts())
	if d.Reason != "" {
		s += ". " + prose(d.Reason)
	}
	return s
}

// head is what a slide says above the picture.
func (d *drawing) head() {
	h := &heading{Title: name(d.Title), Verdict: string(d.Verdict)}
	var facts []string
	if d.Model != "" {
		facts = append(facts, "model "+name(d.Model))
	}
	if d.Blame != Nobody {
		facts = append(facts, "blame the "+name(string(d.Blame)))
	}
	h.ChipWidth = textWidth(h.Verdict, 15) + 24
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

// wrap breaks a text into at most so many lines.
func wrap(s string, size, width float64, most int) (lines []string) {
	words := strings.Fields(s)
	for len(words) > 0 {
		n := 1
		for n < len(words) && textWidth(strings.Join(words[:n+1], " "), size) <= width {
			n++
		}
		if len(lines) == most-1 {
			n = len(words)
		}
		lines = append(lines, shorten(strings.Join(words[:n], " "), size, width))
		words = words[n:]
	}
	return lines
}

func (d *drawing) faults() {
	faults := slices.Clone(nearest(d.Faults, mostOthers, d.focus(), func(f Fault) Span { return f.Span }))
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	spans := make([]Span, len(faults))
	for i, f := range faults {
		spans[i] = f.Span
	}
	lane, n := lanes(spans)
	for i, f := range faults {
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

func (d *drawing) flags(y int) {
	d.p.FlagY = y + 11
	for i := range d.Findings {
		f := &d.Findings[i]
		spans := f.Spans
		if len(spans) == 0 {
			if h := d.Page.place(f); h.any {
				spans = []Span{h.Span}
			}
		}
		b := flag{Number: i + 1, Class: "notes", First: true, About: fmt.Sprintf("finding %d: %s: %s", i+1, name(f.Check), prose(f.Text))}
		if f.Violates {
			b.Class = "breaks"
		}
		var ids []string
		for _, id := range f.Ops {
			ids = append(ids, strconv.Itoa(id))
		}
		b.Ops = strings.Join(ids, " ")
		for _, s := range spans[:min(len(spans), mostOthers)] {
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
	last := &d.p.Sections[len(d.p.Sections)-1]
	last.Height = d.y - last.Y
}

// current is the section being drawn.
func (d *drawing) current() *section { return &d.p.Sections[len(d.p.Sections)-1] }

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

func (d *drawing) operations(r *Resource) {
	names := distinct(r.Operations, func(op Operation) string { return op.Process })
	natural(names)
	var lane []int
	n := len(names)
	packed := n > manyProcesses
	if packed {
		spans := make([]Span, len(r.Operations))
		for i, op := range r.Operations {
			spans[i] = Span{op.Call, op.Return}
			if infinite(op.Return) {
				spans[i].To = op.Call
			}
		}
		lane, n = lanes(spans)
	} else {
		for _, op := range r.Operations {
			lane = append(lane, slices.Index(names, op.Process))
		}
	}
	pitch := opRow
	if len(r.Order.Placed) > 0 {
		pitch += dotLane
	}
	s := d.current()
	at := make(map[int]int, len(r.Operations)) // the mark of each operation
	for i := range r.Operations {
		op := &r.Operations[i]
		m := d.mark(op, d.y+lane[i]*pitch+(opRow-opHigh)/2)
		m.Row = d.rows + lane[i]
		at[op.ID] = i
		s.Ops = append(s.Ops, m)
	}
	for i := range n {
		title := ""
		switch {
		case !packed:
			title = name(names[i])
		case i == 0:
			title = fmt.Sprintf("%d processes", len(names))
		}
		d.row(title, d.y+i*pitch+opRow/2, true)
	}
	rowsOf(s.Ops, d.scale)
	for i := range s.Ops {
		d.lookup[s.Ops[i].ID] = &r.Operations[i]
	}
	d.order(r, s, at)
	d.rows += n
	d.y += n * pitch
}

// mark is an operation without what depends on others in its row.
func (d *drawing) mark(op *Operation, y int) mark {
	m := mark{ID: op.ID, Violates: op.Violates, Evidence: op.Evidence, call: op.Call, done: op.Return}
	m.stretch = stretch{A: d.number(op.Call), B: d.number(op.Return), Y: y, High: opHigh}
	m.Middle = y + opHigh/2
	hue := d.hue(op.Who)
	m.Class = [...]string{"ok", "fail", "info"}[op.Outcome] + " " + hue
	d.used[[...]string{"ok", "fail", "info"}[op.Outcome]] = true
	switch op.Outcome {
	case Fail:
		m.Glyph = "cross"
	case Info:
		m.Glyph, m.Fade = "doubt", "fade"+hue[1:]
	}
	if op.Violates {
		m.Class += " violates"
		d.used["violates"] = true
	}
	if op.Evidence {
		m.Class += " evidence"
		d.used["evidence"] = true
	}
	m.Words = words{Full: label(op.Label), Short: firstWord(label(op.Label)), Y: m.Middle + 4}
	m.About = d.tell(op)
	return m
}

// tell is an operation in words.
func (d *drawing) tell(op *Operation) string {
	return join(name(op.Process)+": "+label(op.Label), outcome(op), during(Span{op.Call, op.Return}, d.Unit), lines(op.Lines), prose(op.Details))
}

func outcome(op *Operation) string {
	s := [...]string{"ok", "refused", "outcome unknown"}[op.Outcome]
	switch {
	case op.Violates:
		s += ", violates"
	case op.Evidence:
		s += ", evidence"
	}
	return s
}

// rowsOf places marks that are in order of their calls, and their labels.
// page.js has the same rules.
func rowsOf(all []mark, s scale) {
	next := make(map[int]float64) // the call of the operation after, by row
	for i := range slices.Backward(all) {
		m := &all[i]
		room, ok := next[m.Row]
		x0 := s.x(m.call)
		if !ok {
			room = s.right + beyond
		}
		next[m.Row] = x0
		var x1 float64
		if m.Glyph == "doubt" {
			x1 = max(x0+shortFade, min(x0+fade, room-14))
		} else {
			x1 = max(x0+leastWidth, s.x(m.done))
		}
		m.Hidden = !s.sees(x0, x1+10)
		a, b := min(max(x0, s.left-beyond), s.right+beyond), min(max(x1, s.left-beyond), s.right+beyond)
		m.X, m.Width = tenth(a), tenth(max(b-a, 0))
		m.Ring = stretch{X: tenth(m.X - 3), Width: tenth(m.Width + 6), Y: m.Y - 3, High: m.High + 6}
		after := b + 5
		if m.Ringed() {
			b += 4
			after = b + 5
		}
		if m.Glyph != "" {
			m.GlyphX = tenth(b + 7)
			after = b + 14
		}
		in := max(a, s.left) + 6
		m.Inside = true
		m.Words.X = tenth(in)
		if m.Words.Shown = fitting(min(b, s.right)-in-4, m.Words.Full); m.Words.Shown != "" {
			continue
		}
		out := min(room-4, s.right) - after
		if m.Words.Shown = fitting(out, m.Words.Full); m.Words.Shown == "" {
			if m.Words.Shown = fitting(min(b, s.right)-in-4, m.Words.Short); m.Words.Shown != "" {
				continue
			}
			m.Words.Shown = fitting(out, m.Words.Short)
		}
		m.Inside, m.Words.X = false, tenth(after)
	}
}

// order draws the linearization of r over its marks.
func (d *drawing) order(r *Resource, s *section, at map[int]int) {
	points := r.points(d.extent.To)
	if len(points) == 0 && !r.Order.Partial {
		return
	}
	d.used["order"] = true
	o := &order{}
	lastX := make(map[int]float64)
	var line []corner
	for _, p := range points {
		m := &s.Ops[at[p.op.ID]]
		c := corner{p.at, m.Y + opHigh + dotLane/2 + 1}
		x := d.x(p.at)
		t := dot{A: d.number(p.at), X: tenth(d.clip(p.at)), Y: c.y, Number: p.number, ID: p.op.ID, Row: m.Row, Hidden: !d.sees(x-8, x+8)}
		if last, ok := lastX[m.Row]; ok && x-last < 16 {
			t.Small = true
		} else {
			lastX[m.Row] = x
		}
		o.Dots = append(o.Dots, t)
		line = append(line, c)
		d.placed[p.op.ID] = p
	}
	o.Line, o.LineData = d.path(line)
	if i, ok := at[r.Order.Stuck]; ok && r.Order.Partial {
		m := &s.Ops[i]
		where := m.call
		if len(line) > 0 {
			where = max(where, min(line[len(line)-1].at, m.done))
		}
		c := corner{where, m.Y + opHigh + dotLane/2 + 1}
		x := d.x(where)
		o.Stuck = &dot{A: d.number(where), X: tenth(d.clip(where)), Y: c.y, ID: m.ID, Hidden: !d.sees(x-8, x+8)}
		if len(line) > 0 {
			o.Break, o.BreakData = d.path([]corner{line[len(line)-1], c})
		}
		d.used["stuck"] = true
	}
	s.Order = o
}

// corner is a point of a line.
type corner struct {
	at int64
	y  int
}

// path is a line as points of SVG, and as instants. Its corners outside of
// the canvas stay where they are, so that it has its slope, up to where
// numbers get too large for renderers.
func (d *drawing) path(all []corner) (points, data string) {
	var p, q strings.Builder
	for i, c := range all {
		if i > 0 {
			p.WriteByte(' ')
			q.WriteByte(' ')
		}
		x := min(max(d.x(c.at), -1e5), 1e5)
		p.WriteString(strconv.FormatFloat(tenth(x), 'f', -1, 64) + "," + strconv.Itoa(c.y))
		q.WriteString(d.number(c.at) + "," + strconv.Itoa(c.y))
	}
	return p.String(), q.String()
}

// manyTokens of a storage do not get a level each.
const manyTokens = 8

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
	pitch := stepHigh
	if len(tokens) > manyTokens {
		pitch = max(manyTokens*stepHigh/len(tokens), 2)
	}
	base := d.y + 10 + pitch*len(tokens)
	height := func(token uint64) int { return base - pitch/2 - pitch*slices.Index(tokens, token) }
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
	d.row("highest token", d.y+10+pitch*len(tokens)/2, false)
	d.y = base + 6
}

// distinct are the names that occur, in order.
func distinct[T any](all []T, name func(T) string) (names []string) {
	for i := range all {
		if n := name(all[i]); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// natural puts names that differ only in a number in order of it.
func natural(names []string) {
	split := func(s string) (string, int, bool) {
		head := strings.TrimRight(s, "0123456789")
		n, err := strconv.Atoi(s[len(head):])
		return head, n, err == nil
	}
	for _, s := range names {
		head, _, ok := split(s)
		if first, _, _ := split(names[0]); !ok || head != first {
			return
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		_, m, _ := split(a)
		_, n, _ := split(b)
		return cmp.Compare(m, n)
	})
}

// join puts what is not empty behind each other.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// lines says in which lines of the file something is.
func lines(all []int) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("line")
	if len(all) > 1 {
		b.WriteByte('s')
	}
	for i, n := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", n)
	}
	return b.String()
}

func holder(who string, t uint64) string {
	if t == 0 {
		return name(who)
	}
	return name(who) + " · token " + strconv.FormatUint(t, 10)
}

func token(t uint64) string {
	if t == 0 {
		return ""
	}
	return strconv.FormatUint(t, 10)
}
