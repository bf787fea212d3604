package evidence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operations draws a row for each process, and the order over them.
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
	if len(r.Order.Placed) > 0 || r.Order.Partial {
		pitch += dotLane
	}
	s := d.current()
	at := make(map[int]int, len(r.Operations)) // the mark of each operation
	for i := range r.Operations {
		op := &r.Operations[i]
		m := d.mark(op, d.y+lane[i]*pitch+(opRow-opHigh)/2)
		m.Row = d.rows + lane[i]
		at[op.ID] = i
		d.lookup[op.ID] = op
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
	m.Words = words{Full: op.said(), Short: firstWord(op.said()), Y: m.Middle + 4}
	m.About = d.tell(op)
	return m
}

// tell is an operation in words.
func (d *drawing) tell(op *Operation) string {
	return join(name(op.Process)+": "+op.said(), outcome(op), during(Span{op.Call, op.Return}, d.Unit), lines(op.Lines), prose(op.Details))
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
			long := x0 + fade
			if !infinite(m.done) {
				long = max(long, s.x(m.done))
			}
			x1 = max(x0+shortFade, min(long, room-14))
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
		o.Why = "no operation can come next"
		for _, a := range r.Order.Tried[:min(len(r.Order.Tried), 5)] {
			if op := d.lookup[a.Op]; op != nil {
				o.Why += "; not " + name(op.Process) + ": " + op.said() + ", " + prose(a.Why)
			}
		}
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
