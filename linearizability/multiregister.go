package linearizability

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
)

const (
	multiRead uint8 = iota // writes nothing
	multiWrite
)

// multiCompiler makes a machine of registers that transactions read and write
// together: each takes effect as a whole, at one instant. That is Jepsen's
// multi-register; a transaction is the value, a list of [f k v] with f r (read)
// or w (write), of which the return tells what the reads found. A read or write
// may also have a map of keys to values. As in a register, a read of nil found
// a register unset where it starts from nil, and else did not tell. A failed
// transaction did not happen and is no evidence.
//
// The registers are one partition: a transaction may span any of them.
type multiCompiler struct {
	init         Value
	keys, values names
	txns         []txn
	index        map[string]int32 // of txns, by content
	ops          []multiOp
}

// multiOp is an operation as two transactions: what it did, and what it did if
// nobody was told what it found.
type multiOp struct {
	span
	known, blind int32
}

// txn is what a transaction needs, and what it leaves.
type txn struct {
	reads, writes []cell // of different keys each
	never         bool   // it contradicts itself
}

type cell struct{ key, value int32 } // keys from 1

func newMultiRegister(_ *Meta, m Model) compiler {
	return &multiCompiler{init: m.Init, index: make(map[string]int32)}
}

func (c *multiCompiler) add(o *operation) error {
	called, err := c.read(o, o.invoked, o.invokedError)
	if err != nil {
		return err
	}
	op := multiOp{span: o.span, blind: c.txn(called, false)}
	op.known = op.blind
	if o.Type == OK && o.ended.Has("value") {
		told, err := c.read(o, o.ended, o.endedError)
		if err != nil {
			return err
		}
		op.known, op.blind = c.txn(told, true), c.txn(told, false)
	}
	c.ops = append(c.ops, op)
	return nil
}

// micro is one step of a transaction.
type micro struct {
	cell
	write bool
}

// read reads the value of an event of o.
func (c *multiCompiler) read(o *operation, e *Event, fail func(field, format string, args ...any) error) ([]micro, error) {
	v := e.Field("value")
	f := o.invoked.F
	var ms []micro
	switch {
	case v.kind == KindMap && f != "txn":
		for i := 0; i+1 < len(v.list); i += 2 {
			ms = append(ms, micro{c.cell(v.list[i], v.list[i+1]), f == "write"})
		}
		return ms, nil
	case v.IsNil() && f == "read":
		return nil, nil // of what, the return says
	case v.kind != KindVector && v.kind != KindList:
		want := "a transaction, as [[:r 1 nil] [:w 2 5]]"
		if f != "txn" {
			want += ", or a map of keys to values"
		}
		return nil, fail("value", "want %s, not %s", want, quote(v.String()))
	}
	for _, m := range v.list {
		var word string
		if (m.kind == KindVector || m.kind == KindList) && len(m.list) == 3 {
			word, _ = m.list[0].Word()
		}
		write := word == "w" || word == "write"
		if !write && word != "r" && word != "read" || f == "read" && write || f == "write" && !write {
			want := map[string]string{"read": "[:r key value]", "write": "[:w key value]", "txn": "[:r key value] or [:w key value]"}[f]
			return nil, fail("value", "want each step of a %s as %s, not %s", f, want, quote(m.String()))
		}
		ms = append(ms, micro{c.cell(m.list[1], m.list[2]), write})
	}
	return ms, nil
}

func (c *multiCompiler) cell(k, v Value) cell {
	out := cell{key: c.keys.of(k.canonical())}
	if !v.IsNil() {
		out.value = c.values.of(v.canonical())
	}
	return out
}

// txn returns the number of a transaction; told if its reads tell what they
// found.
func (c *multiCompiler) txn(ms []micro, told bool) int32 {
	var t txn
	for _, m := range ms {
		own := slices.IndexFunc(t.writes, func(w cell) bool { return w.key == m.key })
		seen := slices.IndexFunc(t.reads, func(r cell) bool { return r.key == m.key })
		switch {
		case m.write && own >= 0:
			t.writes[own] = m.cell
		case m.write:
			t.writes = append(t.writes, m.cell)
		case !told || m.value == 0 && !c.init.IsNil():
		case own >= 0:
			t.never = t.never || t.writes[own] != m.cell
		case seen >= 0:
			t.never = t.never || t.reads[seen] != m.cell
		default:
			t.reads = append(t.reads, m.cell)
		}
	}
	byKey := func(a, b cell) int { return int(a.key - b.key) }
	slices.SortFunc(t.reads, byKey)
	slices.SortFunc(t.writes, byKey)
	content := fmt.Sprint(t)
	i, ok := c.index[content]
	if !ok {
		i = int32(len(c.txns))
		c.txns, c.index[content] = append(c.txns, t), i
	}
	return i
}

func (c *multiCompiler) compile(until int64) (partition, error) {
	var actions []action
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Fail {
			continue
		}
		a := newAction(s, class{kind: multiWrite, a: o.known})
		if a.unknown {
			a.a = o.blind
		}
		if t := c.txns[a.a]; len(t.writes) == 0 {
			a.kind, a.answer = multiRead, true
		}
		actions = append(actions, a)
	}
	seed := maphash.MakeSeed()
	return partition{
		actions: c.useful(actions),
		machine: machine{
			init:  c.start(),
			step:  func(state any, a *action) (any, bool) { return c.txns[a.a].step(state) },
			hash:  func(s any) uint64 { return maphash.String(seed, s.(string)) },
			show:  func(s any) string { return c.show(s.(string)) },
			bytes: 4 * len(c.keys.text),
		},
	}, nil
}

// start is the first state. A state is the number of each register's value, as
// a string, because that is compared and shared for free.
func (c *multiCompiler) start() string {
	var first int32
	if !c.init.IsNil() {
		first = c.values.of(c.init.canonical())
	}
	var b []byte
	for range c.keys.text {
		b = binary.LittleEndian.AppendUint32(b, uint32(first))
	}
	return string(b)
}

func (t *txn) step(state any) (any, bool) {
	s := state.(string)
	if t.never {
		return nil, false
	}
	holds := func(c cell) bool { return stateInt32(s[4*(c.key-1):]) == c.value }
	for _, r := range t.reads {
		if !holds(r) {
			return nil, false
		}
	}
	if !slices.ContainsFunc(t.writes, func(w cell) bool { return !holds(w) }) {
		return state, true
	}
	b := []byte(s)
	for _, w := range t.writes {
		binary.LittleEndian.PutUint32(b[4*(w.key-1):], uint32(w.value))
	}
	return string(b), true
}

// useful drops the unknown transactions that explain nothing: no later read
// finds what they wrote.
func (c *multiCompiler) useful(actions []action) []action {
	last := make(map[cell]int64) // until when it is found
	for i := range actions {
		if a := &actions[i]; !a.unknown {
			for _, r := range c.txns[a.a].reads {
				last[r] = max(last[r], a.ret)
			}
		}
	}
	return slices.DeleteFunc(actions, func(a action) bool {
		return a.unknown && !slices.ContainsFunc(c.txns[a.a].writes, func(w cell) bool { return a.call < last[w] })
	})
}

func (c *multiCompiler) show(s string) string {
	text := ""
	for i, key := range c.keys.text {
		if v := stateInt32(s[4*i:]); v != 0 {
			text += fmt.Sprintf(", %s=%s", key, c.values.show(v))
		}
	}
	if text == "" {
		return "nothing set"
	}
	return text[2:]
}
