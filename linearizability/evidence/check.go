package evidence

import (
	"errors"
	"fmt"
)

// check finds what cannot be drawn: a slip of the caller, never of the history.
func (p *Page) check() error {
	if !known(p.Verdict) {
		return fmt.Errorf("evidence: the page has the verdict %q; want %s, %s or %s", p.Verdict, Holds, Violated, Unknown)
	}
	if p.Unit != Nanoseconds && p.Unit != Order {
		return fmt.Errorf("evidence: the page has unit %d; want Nanoseconds or Order", p.Unit)
	}
	all := make(map[int]bool)
	for i := range p.Resources {
		r := &p.Resources[i]
		if r.Verdict != "" && !known(r.Verdict) {
			return fmt.Errorf("evidence: resource %q has the verdict %q; want %s, %s, %s or none", r.Name, r.Verdict, Holds, Violated, Unknown)
		}
		for j := range r.Operations {
			op := &r.Operations[j]
			switch {
			case all[op.ID]:
				return fmt.Errorf("evidence: resource %q: operation %d is there twice; give each its own ID", r.Name, op.ID)
			case op.Return < op.Call:
				return fmt.Errorf("evidence: resource %q: operation %d returns at %d, before its call at %d", r.Name, op.ID, op.Return, op.Call)
			case op.Outcome > Info:
				return fmt.Errorf("evidence: resource %q: operation %d has outcome %d; want OK, Fail or Info", r.Name, op.ID, op.Outcome)
			case op.Outcome != Info && op.Return >= Unbounded:
				return fmt.Errorf("evidence: resource %q: operation %d has an outcome but no return; want Info", r.Name, op.ID)
			case op.Call <= -Unbounded || op.Call >= Unbounded:
				return fmt.Errorf("evidence: resource %q: operation %d has no call", r.Name, op.ID)
			}
			all[op.ID] = true
		}
	}
	for _, f := range p.Findings {
		for _, id := range f.Ops {
			if !all[id] {
				return fmt.Errorf("evidence: finding %q names operation %d, which no resource has", f.Check, id)
			}
		}
	}
	for i := range p.Resources {
		if err := p.Resources[i].check(); err != nil {
			return fmt.Errorf("evidence: resource %q: %w", p.Resources[i].Name, err)
		}
	}
	return nil
}

func known(v Verdict) bool { return v == Holds || v == Violated || v == Unknown }

var errOrder = errors.New("the steps of its highest token are not in order of time")

// check finds references to operations that r does not have.
func (r *Resource) check() error {
	own := make(map[int]bool, len(r.Operations))
	for i := range r.Operations {
		own[r.Operations[i].ID] = true
	}
	for _, w := range r.Writes {
		if !own[w.Op] {
			return fmt.Errorf("a write names operation %d, which it does not have", w.Op)
		}
	}
	for i := range r.Highest {
		if i > 0 && r.Highest[i].At < r.Highest[i-1].At {
			return errOrder
		}
	}
	placed := make(map[int]bool, len(r.Order.Placed))
	for _, o := range r.Order.Placed {
		if !own[o.Op] {
			return fmt.Errorf("its order has operation %d, which it does not have", o.Op)
		}
		if placed[o.Op] {
			return fmt.Errorf("its order has operation %d twice", o.Op)
		}
		placed[o.Op] = true
	}
	if !r.Order.Partial {
		return nil
	}
	if !own[r.Order.Stuck] {
		return fmt.Errorf("its order is stuck at operation %d, which it does not have", r.Order.Stuck)
	}
	for _, a := range r.Order.Tried {
		if !own[a.Op] {
			return fmt.Errorf("operation %d was tried, which it does not have", a.Op)
		}
	}
	return nil
}
