package linearizability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// drawSteps bounds the search that is made again for a picture: with all its
// partial orders kept, it could take any time.
const drawSteps = 200_000

// The colours of annotations.
const (
	beliefColor  = "#1b7837"
	faultColor   = "#8c510a"
	findingColor = "#b2182b"
	lightText    = "#ffffff"
)

// WriteHTML draws the part of the history that fails as a page for the
// browser: porcupine's picture of the operations and of how far any order of
// them gets, with the beliefs, faults and findings beside them. Places on its
// axis are those of the events in the order of the history; the tooltips have
// the times. Of a history that holds it draws the first partition. The page
// stands alone, but two drawings of one history may differ in the order in which
// porcupine lists equal partial orders.
func (v Verdict) WriteHTML(ctx context.Context, w io.Writer) error {
	if v.h == nil || len(v.parts) == 0 {
		return errors.New("nothing to draw: the verdict is on no operation")
	}
	p := v.failing()
	s := p.window
	if s == nil {
		s = newSearch(ctx, v.meta, &p.p, DefaultMemory)
	}
	if len(s.segments) == 0 {
		return fmt.Errorf("nothing to draw: no operation of %s has a known outcome", p.family.name)
	}
	d := drawing{h: v.h, ctx: ctx, search: s}
	model, info := d.run()
	info.AddAnnotations(d.annotations(v))
	var page bytes.Buffer
	if err := porcupine.Visualize(model, info, &page); err != nil {
		return fmt.Errorf("draw %s: %w", v.File, err)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("draw %s: %w", v.File, err)
	}
	return nil
}

// failing is the partition to draw.
func (v Verdict) failing() *part {
	for i := range v.parts {
		if v.parts[i].window != nil {
			return &v.parts[i]
		}
	}
	for _, f := range v.Findings {
		for i := range v.parts {
			if f.Violates && v.parts[i].key == f.Key {
				return &v.parts[i]
			}
		}
	}
	return &v.parts[0]
}

// drawing is one picture of one segment of a search.
type drawing struct {
	h           *History
	ctx         context.Context
	search      *search
	first, last int64 // places of what is drawn
}

// run searches the segment once more and keeps how far each order got.
func (d *drawing) run() (porcupine.Model, porcupine.LinearizationInfo) {
	s := d.search
	start := s.entry
	if start == nil {
		start = s.begin()
	}
	model, ops := s.porcupine(s.deepest, start)
	rows := make(map[int64]int)
	d.first = Unbounded
	for i := range ops {
		a := &s.actions[ops[i].Input.(int)]
		process := d.h.Events[a.Call].Process
		if _, ok := rows[process]; !ok {
			rows[process] = len(rows)
		}
		ops[i].ClientId, ops[i].Metadata = rows[process], ops[i].Input
		ops[i].Call, ops[i].Return = int64(a.Call)+1, Unbounded
		if a.Type != Info {
			ops[i].Return = int64(a.Return) + 1
			d.last = max(d.last, ops[i].Return)
		}
		d.first = min(d.first, ops[i].Call)
	}
	model.DescribeOperation = func(input, _ any) string { return describeOp(d.h, s.actions[input.(int)].Op) }
	model.DescribeOperationMetadata = func(input any) string { return d.where(s.actions[input.(int)].Op) }
	steps := 0
	limited := model
	limited.Step = func(state, input, output any) (bool, any) {
		if steps++; steps > drawSteps || steps&1023 == 0 && d.ctx.Err() != nil {
			steps = drawSteps
			return false, nil
		}
		return model.Step(state, input, output)
	}
	_, info := porcupine.CheckOperationsVerbose(limited, ops, 0)
	return model, info
}

// where says in which lines an operation is, and when it ran.
func (d *drawing) where(op Op) string {
	text := d.event(op.Call)
	if op.Return >= 0 {
		text += " to " + d.event(op.Return)
	}
	return text
}

func (d *drawing) event(pos int) string {
	e := &d.h.Events[pos]
	text := fmt.Sprintf("event %d", e.Index)
	if e.Line > 0 {
		text = fmt.Sprintf("line %d", e.Line)
	}
	if e.Time != NoTime {
		text += fmt.Sprintf(" (%v)", time.Duration(e.Time))
	}
	return text
}

// annotations are the beliefs, faults and findings within what is drawn.
func (d *drawing) annotations(v Verdict) []porcupine.Annotation {
	var all []porcupine.Annotation
	add := func(a porcupine.Annotation) {
		if a.Start <= d.last && a.End >= d.first {
			a.Start, a.End = max(a.Start, d.first), min(a.End, d.last)
			a.TextColor = lightText
			all = append(all, a)
		}
	}
	// Overlapping beliefs, which are what one looks for, get rows of their own.
	rows := make(map[string][]int64) // by lease, until when each row is taken
	for _, t := range v.beliefs {
		row := slices.IndexFunc(rows[t.key], func(until int64) bool { return until <= t.begin })
		if row < 0 {
			row = len(rows[t.key])
			rows[t.key] = append(rows[t.key], 0)
		}
		rows[t.key][row] = t.end
		source := "as a correct client may have believed"
		if t.led {
			source = "as recorded"
		}
		end := "the end of the history"
		if t.end < maxInstant {
			end = time.Duration(t.end).String()
		}
		add(porcupine.Annotation{
			Tag: fmt.Sprintf("leads %s %s", t.key, strings.Repeat("+", row)), Start: d.place(t.begin), End: d.place(t.end),
			Description: fmt.Sprintf("%s (token %d)", t.owner, t.token),
			Details:     fmt.Sprintf("%v to %s, %s", time.Duration(t.begin), end, source), BackgroundColor: beliefColor,
		})
	}
	for pos := range d.h.Faults() {
		e := &d.h.Events[pos]
		details := d.event(pos)
		for _, f := range e.Fields {
			details += " " + showField(f)
		}
		add(porcupine.Annotation{
			Tag: "faults", Start: int64(pos) + 1, End: int64(pos) + 1,
			Description: e.F, Details: details, BackgroundColor: faultColor,
		})
	}
	for _, f := range v.Findings {
		for _, index := range f.Indexes {
			pos, _ := slices.BinarySearchFunc(d.h.Events, index, func(e Event, index int64) int { return int(e.Index - index) })
			add(porcupine.Annotation{
				Tag: "findings", Start: int64(pos) + 1, End: int64(pos) + 1,
				Description: f.Invariant.String(), Details: f.String(), BackgroundColor: findingColor,
			})
		}
	}
	return all
}

// place is where an instant lies among the events.
func (d *drawing) place(at int64) int64 {
	pos, _ := slices.BinarySearchFunc(d.h.Events, at, func(e Event, at int64) int {
		if e.Time < at {
			return -1
		}
		return 1
	})
	return int64(pos) + 1
}
