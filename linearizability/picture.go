package linearizability

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"fencepost/linearizability/evidence"
)

// A picture has this many events at most: so many before the first that is
// wrong, and so many after it.
const (
	drawBefore = 2_400
	drawAfter  = 1_600
)

// WriteHTML draws the history around what is wrong with it, or its beginning,
// as a page for the browser that stands alone.
func (v *Verdict) WriteHTML(ctx context.Context, w io.Writer) error {
	p, err := v.Page(ctx)
	if err != nil {
		return err
	}
	return evidence.WriteHTML(w, p)
}

// WriteSVG draws the same picture by itself.
func (v *Verdict) WriteSVG(ctx context.Context, w io.Writer) error {
	p, err := v.Page(ctx)
	if err != nil {
		return err
	}
	return evidence.WriteSVG(w, p)
}

// Page says what the picture shows. It reads the history again, and looks for
// the order of the operations in it until ctx ends.
func (v *Verdict) Page(ctx context.Context) (evidence.Page, error) {
	if v.digest == nil || len(v.digest.parts) == 0 {
		return evidence.Page{}, errors.New("nothing to draw: the verdict is on no operation")
	}
	d := drawing{v: v, meta: v.digest.meta, ids: make(map[drawnOp]int), at: make(map[partName]int)}
	d.page = evidence.Page{
		Title: cmp.Or(filepath.Base(v.File), "history"), Verdict: evidence.Verdict(v.Result), Model: v.Model, Reason: v.Reason, Notes: v.Notes,
		Command: fmt.Sprintf("fencepost check --model '%s' %s", v.Model, v.File),
	}
	if v.Reading != "" {
		d.page.Notes = append([]string{"read as a " + v.Reading}, d.page.Notes...)
	}
	if err := d.frame(); err != nil {
		return evidence.Page{}, err
	}
	for i := range v.digest.parts {
		d.resource(i)
	}
	if err := d.read(); err != nil {
		return evidence.Page{}, err
	}
	for i := range v.digest.parts {
		d.order(ctx, i)
	}
	d.minimal(ctx)
	d.findings()
	d.pairFaults()
	d.page.Resources = slices.DeleteFunc(d.page.Resources, func(r evidence.Resource) bool {
		return len(r.Operations) == 0 && len(r.Beliefs) == 0
	})
	// Where it is wrong comes first.
	slices.SortStableFunc(d.page.Resources, func(a, b evidence.Resource) int { return cmp.Compare(rank(a.Verdict), rank(b.Verdict)) })
	return d.page, nil
}

func rank(v evidence.Verdict) int {
	return slices.Index([]evidence.Verdict{evidence.Violated, evidence.Unknown, evidence.Holds}, v)
}

// drawnOp is an operation in one of the resources it belongs to.
type drawnOp struct{ resource, call int }

// drawing is one picture in the making.
type drawing struct {
	v           *Verdict
	meta        *Meta
	page        evidence.Page
	first, last int // positions of the events that are drawn
	from, to    int64
	ids         map[drawnOp]int
	at          map[partName]int
	faults      []Event
	lines       map[int64]evidence.Line // by index
	fewest      *History                // the minimal failing part, if it was found
	reduced     int                     // the partition that it is of
	byLine      map[int64][]int         // operations that an event belongs to, by its index
}

// frame chooses what is drawn.
func (d *drawing) frame() error {
	d.last = d.v.digest.events
	if d.last <= drawBefore+drawAfter {
		return nil
	}
	focus := drawBefore
	if i := slices.IndexFunc(d.v.Partitions, func(p Partition) bool { return p.Result == Violated }); i >= 0 && d.v.Partitions[i].stuck.Return > 0 {
		focus = d.v.Partitions[i].stuck.Return
	} else if i := slices.IndexFunc(d.v.Findings, func(f Finding) bool { return f.Violates && len(f.Indexes) > 0 }); i >= 0 {
		last := d.v.Findings[i].Indexes[len(d.v.Findings[i].Indexes)-1]
		err := d.v.source.events(func(pos int, e *Event) bool {
			focus = pos
			return e.Index < last
		})
		if err != nil {
			return err
		}
	}
	d.first = max(0, min(focus-drawBefore, d.last-drawBefore-drawAfter))
	d.last = d.first + drawBefore + drawAfter
	return nil
}

// resource begins the picture of one partition.
func (d *drawing) resource(i int) {
	p, judged := &d.v.digest.parts[i], d.v.Partitions[i]
	r := evidence.Resource{Name: p.key, Model: p.family.name, Verdict: evidence.Verdict(judged.Result), Reason: judged.Reason}
	d.at[partName{p.family.name, p.key}] = i
	d.page.Resources = append(d.page.Resources, r)
}

// read goes through the events once more and keeps the operations that are
// drawn.
func (d *drawing) read() error {
	wanted := make(map[int64]bool)
	for _, f := range d.v.Findings {
		for _, index := range f.Indexes {
			wanted[index] = true
		}
	}
	d.lines, d.byLine = make(map[int64]evidence.Line), make(map[int64][]int)
	d.from, d.to = Unbounded, -Unbounded
	open := make(map[int64]*operation)
	timed := false
	err := d.v.source.events(func(pos int, e *Event) bool {
		timed = e.Time != NoTime
		if wanted[e.Index] {
			d.lines[e.Index] = evidence.Line{Number: e.Line, Text: string(e.appendJSON(nil))}
		}
		if pos < d.first || pos >= d.last {
			return true
		}
		d.from, d.to = min(d.from, d.instant(pos, e)), max(d.to, d.instant(pos, e))
		switch {
		case e.Process == NoProcess:
			d.faults = append(d.faults, *e.clone())
			d.faults[len(d.faults)-1].Index = int64(pos)
		case e.Type == Invoke:
			open[e.Process] = &operation{span: span{Op: Op{pos, -1, Info}, process: e.Process}, invoked: e.clone(), meta: d.meta}
		case open[e.Process] != nil:
			o := open[e.Process]
			delete(open, e.Process)
			o.ended, o.Return, o.Type = e.clone(), pos, e.Type
			d.add(o)
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, o := range open {
		d.add(o)
	}
	if !timed {
		d.page.Unit = evidence.Order
	}
	facts, beliefs := make(map[string][]*fact), make(map[string][]term)
	for i := range d.v.digest.facts.all {
		f := &d.v.digest.facts.all[i]
		facts[f.key] = append(facts[f.key], f)
	}
	for _, t := range d.v.beliefs {
		beliefs[t.key] = append(beliefs[t.key], t)
	}
	for i := range d.page.Resources {
		r := &d.page.Resources[i]
		slices.SortFunc(r.Operations, func(a, b evidence.Operation) int { return cmp.Compare(a.ID, b.ID) })
		d.band(i, r, facts[r.Name], beliefs[r.Name])
	}
	total := 0
	for i := range d.v.digest.parts {
		total += d.v.digest.parts[i].operations
		total -= len(d.page.Resources[i].Operations)
	}
	d.page.Omitted = total
	return nil
}

// instant is when an event is drawn.
func (d *drawing) instant(pos int, e *Event) int64 {
	if e.Time == NoTime {
		return int64(pos)
	}
	return e.Time
}

// add draws an operation in each resource that it is one of.
func (d *drawing) add(o *operation) {
	for i := range d.v.digest.families {
		f := &d.v.digest.families[i]
		if !f.ops[o.invoked.F] || slices.Contains(d.v.digest.options.Ignore, o.invoked.F) {
			continue
		}
		if o.invoked.F != f.everywhere {
			d.draw(d.at[partName{f.name, f.key(o)}], o)
			continue
		}
		for j := range d.v.digest.parts {
			if d.v.digest.parts[j].family.name == f.name {
				d.draw(j, o)
			}
		}
	}
}

func (d *drawing) draw(resource int, o *operation) {
	r := &d.page.Resources[resource]
	id := o.Call*len(d.page.Resources) + resource
	d.ids[drawnOp{resource, o.Call}] = id
	op := evidence.Operation{
		ID: id, Process: fmt.Sprintf("process %d", o.process), Who: o.name("owner"), Call: d.instant(o.Call, o.invoked), Return: Unbounded,
		Outcome: evidence.Info, Label: o.label(), Details: o.String(),
	}
	ends := []*Event{o.invoked}
	if o.ended != nil {
		ends = append(ends, o.ended)
		if o.Type != Info {
			op.Return = max(op.Call, d.instant(o.Return, o.ended))
			op.Outcome = map[Type]evidence.Outcome{OK: evidence.OK, Fail: evidence.Fail}[o.Type]
		}
	}
	for _, e := range ends {
		d.byLine[e.Index] = append(d.byLine[e.Index], id)
		if e.Line > 0 {
			op.Lines = append(op.Lines, e.Line)
		}
	}
	judged := &d.v.Partitions[resource]
	op.Violates = judged.Result == Violated && judged.stuck.Return == o.Return && o.Return >= 0
	r.Operations = append(r.Operations, op)
}

// band adds what the facts of a lease or a storage say, and the beliefs.
func (d *drawing) band(i int, r *evidence.Resource, facts []*fact, beliefs []term) {
	p := &d.v.digest.parts[i]
	inside := func(s evidence.Span) bool { return s.To >= d.from && s.From <= d.to }
	switch p.family.name {
	case ModelLease:
		for _, t := range d.v.digest.facts.tenures(facts, len(d.v.digest.everywhere) > 0) {
			if inside(t.May) {
				r.Tenures = append(r.Tenures, t)
			}
		}
		for _, t := range beliefs {
			s := evidence.Span{From: t.begin, To: t.end}
			if s.To >= maxInstant {
				s.To = evidence.Unbounded
			}
			if inside(s) {
				r.Beliefs = append(r.Beliefs, evidence.Belief{Who: t.owner, Token: t.token, Span: s, Derived: !t.led, Waived: t.waived})
			}
		}
	case ModelStorage:
		highest := uint64(0)
		for _, f := range processed(facts) {
			if f.Type == OK && f.token > highest {
				highest = f.token
				r.Highest = append(r.Highest, evidence.Step{At: d.factInstant(f), Token: highest})
			}
			if id, ok := d.ids[drawnOp{i, f.Call}]; ok {
				r.Writes = append(r.Writes, evidence.Write{Op: id, Token: f.token, Landed: f.Type == OK})
			}
		}
	}
}

func (d *drawing) factInstant(f *fact) int64 {
	if f.to == NoTime {
		return int64(f.Return)
	}
	return f.to
}

// processed are the writes and fences that a storage answered, in the order of
// the answers.
func processed(facts []*fact) []*fact {
	list := slices.DeleteFunc(slices.Clone(facts), func(f *fact) bool {
		return f.kind != factWrite && f.kind != factFence || f.Return < 0 || f.Type != OK && !f.stale
	})
	slices.SortFunc(list, func(a, b *fact) int { return cmp.Compare(a.ret, b.ret) })
	return list
}

// findings adds what is wrong: first what has a name, then the partitions that
// no order explains, then what is only worth knowing.
func (d *drawing) findings() {
	var named, worth []evidence.Finding
	for _, found := range d.v.Findings {
		f := evidence.Finding{Check: found.Check, Text: found.Text, Blame: evidence.Blame(found.Blame), Violates: found.Violates}
		for _, index := range found.Indexes {
			f.Ops = append(f.Ops, d.byLine[index]...)
			if line, ok := d.lines[index]; ok {
				f.Lines = append(f.Lines, line)
			}
		}
		if !found.Violates {
			worth = append(worth, f)
			continue
		}
		named = append(named, f)
	}
	if len(named) > 0 {
		d.page.Reason, d.page.Blame = named[0].Text, named[0].Blame
	}
	for i, p := range d.v.Partitions {
		if p.Result == Violated {
			named = append(named, d.unexplained(i))
		}
	}
	d.page.Findings = append(named, worth...)
}

// unexplained is that no order explains a partition.
func (d *drawing) unexplained(i int) evidence.Finding {
	p := &d.v.Partitions[i]
	f := evidence.Finding{Check: "linearizability", Text: p.Reason, Violates: true}
	if id, ok := d.ids[drawnOp{i, p.stuck.Call}]; ok {
		f.Ops = []int{id}
	}
	if d.fewest == nil || i != d.reduced {
		return f
	}
	f.Text += fmt.Sprintf("; already %d operations cannot be explained", len(d.fewest.Ops()))
	for k := range d.fewest.Events {
		e := &d.fewest.Events[k]
		f.Ops = append(f.Ops, d.byLine[e.Index]...)
		f.Lines = append(f.Lines, evidence.Line{Number: e.Line, Text: string(e.appendJSON(nil))})
	}
	slices.Sort(f.Ops)
	f.Ops = slices.Compact(f.Ops)
	return f
}

// faultEnds are the names of faults that end what another began.
var faultEnds = map[string][]string{
	"resume": {"pause", "suspend", "freeze"}, "heal": {"cut", "partition"}, "restart": {"crash", "kill"},
}

// ends reports whether a fault ends what one of the other name began. Jepsen's
// nemeses start and stop, or start-x and stop-x.
func ends(name, began string) bool {
	what, stops := strings.CutPrefix(name, "stop")
	started, starts := strings.CutPrefix(began, "start")
	return slices.Contains(faultEnds[name], began) || stops && starts && what == started
}

// pairFaults draws what began and ended as one stretch. Jepsen writes a line when
// it begins to do something and another of the same name when that is done: they
// are one.
func (d *drawing) pairFaults() {
	type fault struct{ name, node string }
	open, ended := make(map[fault]int), make(map[fault]int) // positions in the page's
	for i := range d.faults {
		e := &d.faults[i]
		at := d.instant(int(e.Index), e)
		by := fault{e.F, ""}
		by.node, _ = e.Field("node").identity()
		details := e.F
		for _, x := range e.Fields {
			details += " " + showField(x)
		}
		n, again := open[by]
		if !again {
			n, again = ended[by]
		}
		if !again {
			n = none
			for other, m := range open {
				if other.node == by.node && ends(e.F, other.name) {
					n = max(n, m)
				}
			}
			if again = n != none; again {
				d.page.Faults[n].To = at
				delete(open, fault{d.page.Faults[n].Name, by.node})
				ended[by] = n
			}
		}
		if !again {
			n = len(d.page.Faults)
			open[by] = n
			d.page.Faults = append(d.page.Faults, evidence.Fault{Name: e.F, Span: evidence.Span{From: at, To: at}})
			for other := range ended {
				if other.node == by.node && ends(other.name, e.F) {
					delete(ended, other)
				}
			}
		}
		f := &d.page.Faults[n]
		if f.Details != "" {
			f.Details += "; "
		}
		f.Details += details
		if e.Line > 0 {
			f.Lines = append(f.Lines, e.Line)
		}
	}
}
