package linearizability

import (
	"fmt"
	"slices"
	"strings"

	"fencepost/model"
)

// maxSlots bounds the slots of one lease: a refused acquire asks all of them.
const maxSlots = 64

// slotted gives the families of a model what meta says of slots: a lease that
// several may hold at once, each in a slot of its own, and a storage that
// remembers the highest token of each slot. It also makes known what has no
// effect on the order of the answers and is judged beside it.
func slotted(fams []family, meta *Meta) []family {
	for i := range fams {
		f := &fams[i]
		if f.name != ModelLease && f.name != ModelStorage {
			continue
		}
		f.ops["landed"] = false
		if meta.Slots == 0 {
			continue
		}
		if f.name == ModelLease {
			f.compiler = newSlots
		} else if meta.Slots > 1 {
			f.key = func(o *operation) string {
				if slot, ok := o.field("slot").Int(); ok {
					return fmt.Sprintf("%s slot %d", byKey(o), slot)
				}
				return byKey(o)
			}
		}
	}
	return fams
}

// slotsCompiler makes a machine of a lease with slots. Each slot is a timed
// lease of its own; what ties them together is that an acquire is refused only
// while all are held, and that their tokens rise together.
//
// A renewal may draw a new token (it says which it had, by from). It is then a
// release and a grant to the same owner, so that its TTL counts from then on
// alone and may be shorter. The two are given instants of their own within the
// renewal: where meta bounds the lateness, one that came late by less than its
// own duration passes. The instants at which the slots of one refusal were held
// are likewise chosen for each slot by itself.
type slotsCompiler struct {
	meta   *Meta
	params model.TimedParams // of each slot
	owners names
	ops    []slotOp
}

// slotOp is a recorded operation of a lease with slots.
type slotOp struct {
	span
	op      model.TimedOp
	slot    int          // noSlot if it names none
	draws   bool         // a renewal that draws a new token
	drawn   uint64       // that token
	found   bool         // an acquire that found an earlier grant of its own
	fresh   bool         // an acquire that says that it did not
	holders []slotHolder // whom a get lists
}

type slotHolder struct {
	slot  int
	owner int32
	token uint64
}

const noSlot = -1

func newSlots(meta *Meta, _ Model) compiler {
	return &slotsCompiler{meta: meta, params: meta.timed()}
}

// add reads one operation with the eyes of a plain lease, and then what is
// particular to slots.
func (c *slotsCompiler) add(o *operation) error {
	if o.invoked.F == "get" && o.Type == Info {
		return nil
	}
	if o.invoked.F == "get" && o.Type == OK && o.ended.Has("holders") {
		holders, err := c.holders(o)
		if err != nil {
			return err
		}
		c.ops = append(c.ops, slotOp{span: o.span, slot: noSlot, holders: holders, op: model.TimedOp{
			Kind: model.TimedGet, Call: o.invoked.Time - c.meta.Eps, Return: o.ended.Time + c.meta.Eps,
		}})
		return nil
	}
	draws := o.invoked.F == "renew" && !o.field("from").IsNil()
	plain := leaseCompiler{meta: c.meta, params: c.params, owners: c.owners}
	asked := *o
	if draws {
		asked.invoked = o.invoked.clone()
		asked.invoked.Fields = append(asked.invoked.Fields, Field{"token", o.field("from")})
	}
	if err := plain.add(&asked); err != nil || len(plain.ops) == 0 {
		return err
	}
	c.owners = plain.owners
	s := slotOp{span: o.span, op: plain.ops[0].op, slot: noSlot, draws: draws}
	if slot, ok := slotOf(o); ok {
		s.slot = slot
	}
	if s.op.Kind == model.TimedGet && s.op.Holder != 0 {
		s.holders = []slotHolder{{max(s.slot, 0), s.op.Holder, s.op.HolderToken}}
	}
	if draws {
		from, ok := o.field("from").Uint()
		if !ok {
			return o.invokedError("from", "want the token that the renewal replaces, not %s", quote(o.field("from").String()))
		}
		s.op.Token = from
		if s.drawn, ok = o.field("token").Uint(); !ok && o.Type == OK && c.meta.Tokens != TokensNone {
			return o.endedError("token", "missing: a renewal of %d draws a new token", from)
		}
	}
	if v, ok := alreadyOf(o); ok && s.op.Kind == model.TimedAcquire && o.Type == OK {
		s.found, s.fresh = v, !v
	}
	c.ops = append(c.ops, s)
	return nil
}

// slotOf is the slot that an operation names.
func slotOf(o *operation) (int, bool) {
	n, ok := o.field("slot").Int()
	if !ok || n < 0 {
		return 0, false
	}
	return int(min(n, maxSlots)), true
}

// alreadyOf says whether an acquire found an earlier grant of its own; false if
// it does not say.
func alreadyOf(o *operation) (already, ok bool) { return o.field("already").Bool() }

// holders reads whom a get lists.
func (c *slotsCompiler) holders(o *operation) ([]slotHolder, error) {
	var out []slotHolder
	for i, v := range o.ended.Field("holders").Elems() {
		h := slotHolder{slot: i, owner: c.owner(v.entry("owner"))}
		if n, ok := v.entry("slot").Int(); ok && n >= 0 {
			h.slot = int(min(n, maxSlots))
		}
		if h.owner == 0 {
			return nil, o.endedError("holders", "want a list of {slot, owner, token}: number %d has no owner", i+1)
		}
		h.token, _ = v.entry("token").Uint()
		out = append(out, h)
	}
	if o.invoked.Time == NoTime {
		return nil, o.invokedError("time", "missing: whether a lease had lapsed is a matter of time")
	}
	return out, nil
}

func (c *slotsCompiler) owner(v Value) int32 {
	name, _ := v.identity()
	if name == "" {
		return 0
	}
	return c.owners.of(name)
}

func (c *slotsCompiler) compile(until int64) (partition, error) {
	err := c.params.Validate()
	if err == nil && c.meta.Slots > 1 && c.meta.Tokens == TokensNext {
		err = fmt.Errorf("a lease of %d slots has tokens rising or none: slots share one counter, so that none gets each next integer", c.meta.Slots)
	}
	if err != nil {
		return partition{}, &SyntaxError{Line: 1, Field: "meta", Msg: err.Error()}
	}
	m := slotsMachine{params: c.params, shared: c.meta.Slots > 1 && c.meta.Tokens == TokensRising, ops: make([]slotOp, 0, len(c.ops))}
	var actions []action
	restarts := false
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Info && o.op.Kind == model.TimedGet {
			continue
		}
		if o.span = s; s.Type == Info && o.op.Outcome != model.TimedUnknown {
			o.op.Outcome, o.op.Return, o.op.Holder, o.op.HolderToken = model.TimedUnknown, Unbounded, 0, 0
			o.slot, o.drawn, o.found, o.fresh = noSlot, 0, false, false
			if o.op.Kind == model.TimedAcquire {
				o.op.Token = 0
			}
		}
		a := newAction(s, leaseClass(o.op))
		// Slots and drawn tokens tell apart what one class takes for the same.
		a.since, a.until, a.timed, a.alone = o.op.Call, o.op.Return, len(m.ops), true
		restarts = restarts || o.op.Kind == model.TimedRestart
		m.ops, actions = append(m.ops, o), append(actions, a)
	}
	m.params.NoRestarts = !restarts
	start := slotsNow{slots: make([]model.TimedState, c.meta.Slots)}
	for i := range start.slots {
		start.slots[i] = m.params.Init()[0]
	}
	return partition{actions: actions, machine: machine{
		init:  slotsState{start},
		step:  func(state any, a *action) (any, bool) { return m.step(state.(slotsState), &m.ops[a.timed]) },
		maybe: func(state any, a *action) any { return m.after(state.(slotsState), &m.ops[a.timed]) },
		equal: func(a, b any) bool { return a.(slotsState).equal(b.(slotsState)) },
		hash:  func(s any) uint64 { return s.(slotsState).hash() },
		show:  func(s any) string { return s.(slotsState).show(c.owners) },
		bytes: 256 * c.meta.Slots,
	}}, nil
}

// slotsNow is what may be known of a lease with slots.
type slotsNow struct {
	slots []model.TimedState
	last  uint64 // the highest token that any slot is known to have given out; 0 where each counts by itself
}

func (s slotsNow) with(slot int, t model.TimedState, last uint64) slotsNow {
	slots := slices.Clone(s.slots)
	slots[slot] = t
	return slotsNow{slots, max(s.last, last)}
}

func (s slotsNow) equal(t slotsNow) bool { return s.last == t.last && slices.Equal(s.slots, t.slots) }

// slotsState is a set of them: all that what was linearized so far can have led
// to.
type slotsState []slotsNow

func (s slotsState) has(t slotsNow) bool { return slices.ContainsFunc(s, t.equal) }

func (s slotsState) add(ts ...slotsNow) slotsState {
	for _, t := range ts {
		if !s.has(t) {
			s = append(s, t)
		}
	}
	return s
}

func (s slotsState) equal(t slotsState) bool {
	return len(s) == len(t) && !slices.ContainsFunc(s, func(x slotsNow) bool { return !t.has(x) })
}

func (s slotsState) hash() uint64 {
	var sum uint64
	for _, x := range s {
		h := x.last
		for _, t := range x.slots {
			h = h*0x9e3779b97f4a7c15 + t.Hash()
		}
		sum ^= h // whatever the order
	}
	return sum
}

func (s slotsState) show(owners names) string {
	var ways []string
	for _, x := range s {
		var parts []string
		for i, t := range x.slots {
			one := leaseState{set: []model.TimedState{t}}
			parts = append(parts, fmt.Sprintf("slot %d: %s", i, one.show(owners)))
		}
		ways = append(ways, strings.Join(parts, ", "))
	}
	return strings.Join(ways, " or ")
}

// slotsMachine steps through the operations of a lease with slots.
type slotsMachine struct {
	params model.TimedParams
	shared bool // tokens rise over all slots
	ops    []slotOp
}

func (m *slotsMachine) step(s slotsState, o *slotOp) (any, bool) {
	next := m.after(s, o)
	if o.op.Outcome == model.TimedUnknown {
		// The search has its own way to say that it did not happen.
		next = slices.DeleteFunc(next, func(t slotsNow) bool { return s.has(t) })
	}
	return next, len(next) > 0
}

// after is what o may make of the set; if its outcome is unknown, the set is
// among it.
func (m *slotsMachine) after(s slotsState, o *slotOp) slotsState {
	var next slotsState
	for _, x := range s {
		if o.op.Outcome == model.TimedUnknown {
			next = next.add(x)
		}
		next = next.add(m.one(x, o)...)
	}
	return next
}

func (m *slotsMachine) one(x slotsNow, o *slotOp) []slotsNow {
	switch op := o.op; {
	case op.Kind == model.TimedGet:
		return m.get(x, o)
	case op.Outcome == model.TimedHeld, op.Outcome == model.TimedDelay:
		return m.refused(x, op)
	case op.Outcome == model.TimedRefused && o.slot == noSlot, op.Kind == model.TimedRestart, op.Kind == model.TimedDelete:
		return m.each(x, func(int) model.TimedOp { return op })
	}
	var next []slotsNow
	for slot := range x.slots {
		if o.slot == noSlot || o.slot == slot {
			next = append(next, m.at(x, slot, o)...)
		}
	}
	return next
}

// at lets o take effect in one slot.
func (m *slotsMachine) at(x slotsNow, slot int, o *slotOp) []slotsNow {
	op := o.op
	known := op.Outcome == model.TimedOK
	switch {
	case op.Kind == model.TimedAcquire && known:
		var next []slotsNow
		if !o.fresh {
			// It prolongs the lease as a renewal does, or tells no more than a get.
			retry := op
			retry.Kind = model.TimedRenew
			next = m.apply(x, slot, retry, op.Token)
			if o.found {
				next = append(next, m.apply(x, slot, model.TimedOp{
					Kind: model.TimedGet, Call: op.Call, Return: op.Return, Holder: op.Owner, HolderToken: op.Token,
				}, op.Token)...)
			}
		}
		if !o.found && (!m.shared || op.Token > x.last) {
			next = append(next, m.apply(x, slot, op, op.Token)...)
		}
		return next
	case op.Kind == model.TimedRenew && o.draws && op.Outcome != model.TimedRefused:
		if known && m.shared && o.drawn <= x.last {
			return nil
		}
		gives := op
		gives.Kind, gives.TTL, gives.Outcome = model.TimedRelease, 0, model.TimedOK
		takes := op
		takes.Kind, takes.Token = model.TimedAcquire, o.drawn
		var next []slotsNow
		for _, freed := range m.apply(x, slot, gives, op.Token) {
			next = append(next, m.apply(freed, slot, takes, o.drawn)...)
		}
		return next
	}
	return m.apply(x, slot, op, op.Token)
}

// apply steps one slot alone. An operation of unknown outcome took effect.
func (m *slotsMachine) apply(x slotsNow, slot int, op model.TimedOp, token uint64) []slotsNow {
	if !m.shared || op.Outcome != model.TimedOK {
		token = 0
	}
	var next []slotsNow
	for _, t := range m.params.Step(x.slots[slot], op) {
		if op.Outcome != model.TimedUnknown || t != x.slots[slot] {
			next = append(next, x.with(slot, t, token))
		}
	}
	return next
}

// each steps all slots.
func (m *slotsMachine) each(x slotsNow, op func(slot int) model.TimedOp) []slotsNow {
	set := []slotsNow{x}
	for slot := range x.slots {
		var next slotsState
		for _, y := range set {
			next = next.add(m.apply(y, slot, op(slot), 0)...)
		}
		set = next
	}
	return set
}

// refused is an acquire that found no slot: all are held, or in their lock
// delay. Whom it names holds one of them.
func (m *slotsMachine) refused(x slotsNow, op model.TimedOp) []slotsNow {
	held := op
	held.Outcome, held.Holder = model.TimedHeld, 0
	if op.Outcome == model.TimedHeld && op.Holder == 0 {
		return m.each(x, func(int) model.TimedOp { return held })
	}
	var next slotsState
	for named := range x.slots {
		next = next.add(m.each(x, func(slot int) model.TimedOp {
			if slot == named {
				return op
			}
			return held
		})...)
	}
	return next
}

// get is a list of all holders.
func (m *slotsMachine) get(x slotsNow, o *slotOp) []slotsNow {
	for _, h := range o.holders {
		if h.slot >= len(x.slots) {
			return nil
		}
	}
	return m.each(x, func(slot int) model.TimedOp {
		op := o.op
		op.Holder, op.HolderToken = 0, 0
		for _, h := range o.holders {
			if h.slot == slot {
				op.Holder, op.HolderToken = h.owner, h.token
			}
		}
		return op
	})
}
