package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fencepost/model"
)

// Render writes the timeline as text: time flows downward, a column per node,
// and beside each moment a sentence. No line takes more columns than o.Width.
// The same arguments give the same bytes. The error is w's, or names an event
// that no run emits.
func Render(w io.Writer, events []model.Event, names *model.Names, o Options) error {
	if err := check(events); err != nil {
		return err
	}
	if names == nil {
		names = &model.Names{}
	}
	moments, nodes := tell(events, names, &o)
	p := printer{w: bufio.NewWriter(w), o: &o, g: &unicodeGlyphs, names: names, nodes: nodes}
	if o.ASCII {
		p.g = &asciiGlyphs
	}
	p.layOut(moments)
	p.print(moments)
	return p.w.Flush()
}

type cell struct {
	r     rune
	style style
}

// printer draws moments. Columns: a mark, the time, the lanes, the sentence.
type printer struct {
	w     *bufio.Writer
	o     *Options
	g     *glyphs
	names *model.Names
	nodes []model.Node

	clock clock
	lanes int // the column where lanes begin
	step  int // columns of a lane
	prose int // the column where sentences begin

	row  []cell
	used usage
}

// usage notes which symbols the legend has to explain.
type usage struct {
	tenure, tenureFrom, tenureTo, belief, beliefFrom, beliefTo bool
	fencing, paused, pausedBelief, crash, refused, lost, mark  bool

	token string // one that was written beside a lane
}

// Lanes are as wide as they may be while a sentence keeps wantProse columns,
// as wide as still reads well while it keeps leastProse, and no narrower than
// an arrow unless nearly nothing would be left.
const (
	wantProse  = 52
	leastProse = 46
)

func (p *printer) layOut(moments []moment) {
	p.clock = clockFor(moments, 12)
	p.lanes = 2 + max(p.clock.width, 4) + 1
	n := max(len(p.nodes), 1)
	room := p.o.width() - p.lanes - 2
	p.step = min(max((room-wantProse)/n, min((room-leastProse)/n, 6), 4), 11)
	if room-n*p.step < 16 {
		p.step = 3
	}
	p.prose = p.lanes + n*p.step + 2
	p.row = make([]cell, p.o.width())
}

// at is the column of lane i.
func (p *printer) at(i int) int { return p.lanes + i*p.step + p.step/2 }

func (p *printer) lane(n model.Node) int {
	for i, m := range p.nodes {
		if m == n {
			return i
		}
	}
	return -1
}

func (p *printer) print(moments []moment) {
	if p.o.Title != "" {
		for _, line := range wrap(clean(p.o.Title), p.o.width(), 0) {
			p.put(0, line, strong)
			p.flush()
		}
		p.flush()
	}
	if len(moments) == 0 {
		p.put(0, "Nothing happened: the trace has no events to show.", plain)
		p.flush()
		if p.o.Violation.Invariant != model.NoInvariant {
			p.violation(false)
		}
		return
	}
	p.header()
	var before [model.MaxNodes]lane
	for i := range moments {
		m := &moments[i]
		newTime := i == 0 || m.at != moments[i-1].until
		p.moment(m, &before, newTime)
		if m.violated {
			p.violation(i+1 < len(moments))
		}
		before = m.lanes
	}
	if len(moments) > 40 {
		p.header()
	}
	p.legend()
}

// header names the lanes, on two lines in turn where names need the room.
func (p *printer) header() {
	stagger := false
	for _, n := range p.nodes {
		stagger = stagger || width(nameOf(p.names, n)) > p.step-1
	}
	rows, room := 1, p.step-1
	if stagger {
		rows, room = 2, 2*p.step-1
	}
	for r := range rows {
		if r == rows-1 {
			p.put(2, fmt.Sprintf("%*s", p.lanes-3, "time"), dim)
		}
		for i := range p.nodes {
			if i%rows != r {
				if r > 0 {
					p.set(p.at(i), p.g.life, dim)
				}
				continue
			}
			name := short(nameOf(p.names, p.nodes[i]), room, p.g.more)
			from := p.at(i) - (width(name)-1)/2
			p.put(max(from, 0), name, strong)
		}
		p.flush()
	}
}

// moment draws one row, and more where the sentence needs them.
func (p *printer) moment(m *moment, before *[model.MaxNodes]lane, newTime bool) {
	usual := plain
	switch {
	case m.violated:
		usual = alarm
		p.set(0, p.g.mark, alarm)
		p.used.mark = true
	case m.stroke == strokeRefused || m.stroke == strokeLost:
		usual = warning
	case m.folded:
		usual = dim
	}
	if newTime {
		p.put(2, fmt.Sprintf("%*s", p.lanes-3, p.clock.format(m.at)), dim)
	}
	for i, n := range p.nodes {
		p.glyph(i, &m.lanes[n], &before[n], m)
	}
	p.arrow(m, usual)
	for i, n := range p.nodes {
		p.label(i, n, &m.lanes[n], &before[n])
	}
	text := m.text
	if m.folded {
		text = "... " + text
	}
	lines := wrap(text, p.o.width()-p.prose, 2)
	p.put(p.prose, lines[0], usual)
	p.flush()
	for _, line := range lines[1:] {
		for i, n := range p.nodes {
			p.glyph(i, &m.lanes[n], &m.lanes[n], m)
		}
		p.put(p.prose+2, line, usual)
		p.flush()
	}
}

// glyph draws lane i as it stands, or as it begins or ends in this row.
func (p *printer) glyph(i int, now, before *lane, m *moment) {
	g, r, st := p.g, p.g.life, dim
	begins := now.bar != before.bar || now.token != before.token
	switch {
	case m.folded && now.bar == noBar && now.mode == running:
		r = g.skip
	case now.mode == down && before.mode != down:
		r, st = g.crash, warning
		p.used.crash = true
	case now.mode == down:
		r = ' '
	case now.bar == barTenure:
		r, st = g.tenure, nodeStyle(now.owner.Node)
		if begins && !m.folded {
			r = g.tenureFrom
			p.used.tenureFrom = true
		}
		p.used.tenure = true
	case before.bar == barTenure:
		r, st = g.tenureTo, nodeStyle(before.owner.Node)
		p.used.tenure, p.used.tenureTo = true, true
	case now.bar == barLeading && now.mode == asleep:
		r, st = g.pausedBelief, nodeStyle(now.owner.Node)
		p.used.pausedBelief = true
	case now.bar == barLeading:
		r, st = g.belief, nodeStyle(now.owner.Node)
		if begins && !m.folded {
			r = g.beliefFrom
			p.used.beliefFrom = true
		}
		p.used.belief = true
	case now.bar == barFencing && now.mode == running:
		r, st = g.fencing, nodeStyle(now.owner.Node)
		p.used.fencing = true
	case before.bar == barLeading:
		r, st = g.beliefTo, nodeStyle(before.owner.Node)
		p.used.belief, p.used.beliefTo = true, true
	case now.mode == asleep:
		r = g.paused
		p.used.paused = true
	}
	p.set(p.at(i), r, st)
}

// arrow draws the message between its lanes. Lanes on its way stay whole.
func (p *printer) arrow(m *moment, st style) {
	from, to := p.lane(m.from), p.lane(m.to)
	if m.stroke == noStroke || from < 0 || to < 0 || from == to {
		return
	}
	if st == plain {
		st = nodeStyle(m.from)
		if p.names[m.from].Role == model.RoleStore || p.names[m.from].Role == model.RoleStorage {
			st = nodeStyle(m.to)
		}
	}
	g := p.g
	a, b := p.at(from), p.at(to)
	dir, head, tail, leave, arrive := 1, g.right, g.left, g.outEast, g.outWest
	if b < a {
		dir, head, tail, leave, arrive = -1, g.left, g.right, g.outWest, g.outEast
	}
	line, end := g.line, b
	switch m.stroke {
	case strokeLost, strokeSent, strokeNever:
		// It does not get there, at least not in this row.
		end = a + dir*max(p.step/2, 1)
	case strokeCut:
		line = g.dash
	}
	for x := a + dir; x != end; x += dir {
		switch p.row[x].r {
		case 0, ' ':
			p.set(x, line, st)
		case g.life, g.skip:
			p.set(x, g.cross, dim)
		case g.tenure:
			p.set(x, g.crossTenure, p.row[x].style)
		}
	}
	if p.row[a].r == g.life {
		p.set(a, leave, dim)
	}
	if m.stroke == strokeCut && p.row[b].r == g.life {
		p.set(b, arrive, dim)
	}
	switch m.stroke {
	case strokeArrives, strokeBoth:
		p.set(end-dir, head, st)
	case strokeRefused:
		p.set(end-dir, g.refused, st)
		p.used.refused = true
	case strokeLost:
		p.set(end, g.lost, st)
		p.used.lost = true
	case strokeSent, strokeNever:
		p.set(end, head, st)
	case strokeCut:
		p.set((a+b)/2, g.lost, warning)
	}
	if m.stroke == strokeBoth && end-dir != a+dir {
		p.set(a+dir, tail, st)
	}
}

// label puts the token of a bar that begins beside it: at the left of store
// and storage, where no arrow ends, and at the right of clients.
func (p *printer) label(i int, n model.Node, now, before *lane) {
	if now.token == 0 || now.token == before.token && now.bar == before.bar {
		return
	}
	text := strconv.FormatUint(now.token, 10)
	st := nodeStyle(now.owner.Node)
	if now.bar == noBar {
		st = dim
	}
	left, right := p.step/2, p.step-p.step/2-1
	x := p.at(i)
	switch p.names[n].Role {
	case model.RoleStore, model.RoleStorage:
		right = 0
		x -= min(len(text)+1, left)
	default:
		left = 0
		x += 1 + min(1, right-len(text))
	}
	if len(text) > max(left, right) {
		return
	}
	for k := range len(text) {
		if r := p.row[x+k].r; r != 0 && r != ' ' {
			return
		}
	}
	p.put(x, text, st)
	p.used.token = cmp.Or(p.used.token, text)
}

// violation says what broke, under the moment that broke it.
func (p *printer) violation(more bool) {
	v := &p.o.Violation
	w := p.o.width()
	// The rule stays one line: where the title has no room in it, its end goes below.
	title := wrap(fmt.Sprintf("VIOLATED: %v at %s", v.Invariant, duration(v.At)), w-5, 0)
	for x := range w {
		p.set(x, p.g.rule, alarm)
	}
	p.put(3, " "+title[0]+" ", alarm)
	p.flush()
	for _, line := range title[1:] {
		p.put(4, line, alarm)
		p.flush()
	}
	for _, line := range wrap(clean(v.Describe(p.names)), w-4, 0) {
		p.put(4, line, alarm)
		p.flush()
	}
	if more {
		p.put(0, strings.Repeat(string(p.g.rule), w), alarm)
		p.flush()
	}
}

// legend explains the symbols that were used.
func (p *printer) legend() {
	g, u := p.g, &p.used
	var items []string
	for _, i := range []struct {
		used   bool
		symbol rune
		what   string
	}{
		{u.tenure, g.tenure, "tenure in the store" + ends(u.tenureFrom, g.tenureFrom, u.tenureTo, g.tenureTo)},
		{u.fencing, g.fencing, "waits for the barrier"},
		{u.belief, g.belief, "leads" + ends(u.beliefFrom, g.beliefFrom, u.beliefTo, g.beliefTo)},
		{u.pausedBelief, g.pausedBelief, "leads, standing still"},
		{u.paused, g.paused, "stands still"},
		{u.crash, g.crash, "crashes"},
		{u.refused, g.refused, "refused"},
		{u.lost, g.lost, "lost"},
	} {
		last := len(items) - 1
		switch {
		case !i.used:
		case last >= 0 && strings.HasPrefix(items[last], string(i.symbol)):
			items[last] += ", " + i.what
		default:
			items = append(items, string(i.symbol)+" "+i.what)
		}
	}
	if u.token != "" {
		items = append(items, u.token+" token")
	}
	if u.mark { // by its place: the heads of arrows look the same
		items = append(items, string(g.mark)+" at the left: the violation")
	}
	if len(items) == 0 {
		return
	}
	p.flush()
	x := 2
	for _, item := range items {
		if w := width(item); x > 2 && x+w > len(p.row) {
			p.flush()
			x = 2
		}
		p.put(x, item, dim)
		x += width(item) + 3
	}
	p.flush()
}

// ends explains how a bar begins and ends, as far as it did.
func ends(begins bool, from rune, stops bool, to rune) string {
	switch {
	case begins && stops:
		return fmt.Sprintf(" (%c begins, %c ends)", from, to)
	case begins:
		return fmt.Sprintf(" (%c begins)", from)
	case stops:
		return fmt.Sprintf(" (%c ends)", to)
	}
	return ""
}

func (p *printer) set(x int, r rune, st style) {
	if x >= 0 && x < len(p.row) {
		p.row[x] = cell{r, st}
	}
}

// put writes s from column x on, as far as the row goes.
func (p *printer) put(x int, s string, st style) {
	for _, r := range s {
		if p.o.ASCII && r > '~' {
			r = '?'
		}
		w := cells(r)
		if x+w > len(p.row) {
			return
		}
		p.set(x, r, st)
		for k := 1; k < w; k++ {
			p.set(x+k, covered, st)
		}
		x += w
	}
}

// covered marks a column that the rune before it takes too.
const covered = -1

// flush writes the row without what is blank at its end, and clears it.
func (p *printer) flush() {
	end := len(p.row)
	for end > 0 && (p.row[end-1].r == 0 || p.row[end-1].r == ' ') {
		end--
	}
	current := plain
	for _, c := range p.row[:end] {
		if c.r == 0 {
			c = cell{' ', plain}
		}
		if p.o.Color && c.style != current && c.r != ' ' {
			p.w.WriteString("\x1b[0;" + sgr[c.style] + "m")
			current = c.style
		}
		if c.r != covered {
			p.w.WriteRune(c.r)
		}
	}
	if current != plain {
		p.w.WriteString("\x1b[0m")
	}
	p.w.WriteByte('\n')
	clear(p.row)
}
