package linearizability

import "slices"

const (
	regRead uint8 = iota
	regWrite
	regCAS
)

// registerCompiler makes a machine of read, write and cas. A failed operation
// did not happen and is no evidence. Where the register starts from an integer,
// nil is no value, and a read of nil did not tell (Knossos); where it starts
// from nil, a read of nil found it unset.
type registerCompiler struct {
	init   Value
	values names
	ops    []action
}

func newRegister(_ *Meta, m Model) compiler { return &registerCompiler{init: m.Init} }

// number is that of a value; 0 is nil.
func (c *registerCompiler) number(v Value) int32 {
	if v.IsNil() {
		return 0
	}
	return c.values.of(v.canonical())
}

func (c *registerCompiler) add(o *operation) error {
	a := action{span: o.span}
	switch v := o.invoked.Field("value"); o.invoked.F {
	case "read":
		if o.Type != OK {
			return nil
		}
		v = o.ended.Field("value")
		if v.IsNil() && !c.init.IsNil() {
			return nil
		}
		a.kind, a.a = regRead, c.number(v)
	case "write":
		if !o.invoked.Has("value") {
			return o.invokedError("value", "missing: a write carries what it writes")
		}
		a.kind, a.b = regWrite, c.number(v)
	case "cas":
		if v.kind != KindVector && v.kind != KindList || len(v.list) != 2 {
			return o.invokedError("value", "want the old and the new value of a cas, as [1 2], not %s", quote(v.String()))
		}
		a.kind, a.a, a.b = regCAS, c.number(v.list[0]), c.number(v.list[1])
	}
	c.ops = append(c.ops, a)
	return nil
}

func (c *registerCompiler) compile(until int64) (partition, error) {
	var actions []action
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Fail || s.Type == Info && o.kind == regRead {
			continue
		}
		a := newAction(s, o.class)
		a.answer = a.kind == regRead
		actions = append(actions, a)
	}
	return partition{
		actions: usefulWrites(actions),
		machine: machine{
			init: int(c.number(c.init)) << 1,
			step: stepRegister,
			hash: func(s any) uint64 { return mix(uint64(s.(int))) },
			show: func(s any) string { return c.values.show(int32(s.(int) >> 1)) },
		},
	}, nil
}

// stepRegister runs one operation. The lowest bit of a state is set while an
// unknown operation has just written and nobody has seen it: such a write is
// placed right before the operation that needs it, or else it need not have
// happened at all.
func stepRegister(state any, a *action) (any, bool) {
	s := state.(int)
	holds := int32(s >> 1)
	switch {
	case a.kind == regWrite && s&1 != 0:
		return nil, false
	case a.unknown && a.b == holds:
		return nil, false // it changes nothing
	case a.kind != regWrite && holds != a.a:
		return nil, false
	case a.kind == regRead:
		return int(holds) << 1, true
	}
	next := int(a.b) << 1
	if a.unknown {
		next |= 1
	}
	return next, true
}

// usefulWrites drops the unknown operations that explain nothing: those whose
// value no later read finds and no later cas expects. An unknown operation may
// never have happened, so leaving it out is sound, and one that no other
// operation needs can always be left out.
func usefulWrites(actions []action) []action {
	last := make(map[int32]int64) // until when an operation may need a value
	need := func(a *action) bool {
		if a.kind == regWrite || a.ret <= last[a.a] {
			return false
		}
		last[a.a] = a.ret
		return true
	}
	useful := func(a action) bool { return !a.unknown || a.call < last[a.b] }
	for i := range actions {
		if !actions[i].unknown {
			need(&actions[i])
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range actions {
			if actions[i].unknown && useful(actions[i]) && need(&actions[i]) {
				changed = true
			}
		}
	}
	return slices.DeleteFunc(actions, func(a action) bool { return !useful(a) })
}

// mix spreads the bits of x (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
