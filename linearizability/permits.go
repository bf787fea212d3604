package linearizability

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
)

// permitsCompiler makes a machine of a semaphore: at most n permits are held at
// once, and who releases one must hold one. Where no operation names its owner,
// whoever releases will do; likewise where the owner of some operation cannot
// be told. A failed operation did not happen and is no evidence.
type permitsCompiler struct {
	n      int
	owners claimants
	ops    []action
}

func newPermits(_ *Meta, m Model) compiler { return &permitsCompiler{n: m.N} }

func (c *permitsCompiler) add(o *operation) error {
	a := action{span: o.span}
	if o.invoked.F == "release" {
		a.kind = lockRelease
	}
	a.a = c.owners.add(o)
	c.ops = append(c.ops, a)
	return nil
}

// owned reports whether the owner of every operation is known.
func (c *permitsCompiler) owned() bool {
	if !c.owners.named() {
		return false
	}
	for _, o := range c.ops {
		if o.Type != Fail && c.owners.owner(o.a, o.process) == anybody {
			return false
		}
	}
	return true
}

func (c *permitsCompiler) compile(until int64) (partition, error) {
	owned := c.owned()
	var actions []action
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Fail {
			continue
		}
		a := newAction(s, o.class)
		if a.a = 1; owned {
			a.a = c.owners.owner(o.a, o.process)
		}
		actions = append(actions, a)
	}
	seed := maphash.MakeSeed()
	return partition{
		actions: usefulClaims(actions),
		machine: machine{
			init: "",
			step: func(state any, a *action) (any, bool) {
				next, ok := stepPermits(state.(string), c.n, a)
				return next, ok
			},
			hash: func(s any) uint64 { return maphash.String(seed, s.(string)) },
			show: func(s any) string { return c.show(s.(string), owned) },
			// A holder is 8 bytes, and there are few of them at once.
			bytes: 8 * min(c.n, 64),
		},
	}, nil
}

// stepPermits runs one operation. A state is the owners who hold permits and
// how many each, by number: a string, because that is compared and shared for
// free.
func stepPermits(s string, n int, a *action) (string, bool) {
	at, held, total := 0, 0, 0
	for i := 0; i < len(s); i += 8 {
		owner, k := stateInt32(s[i:]), int(stateInt32(s[i+4:]))
		total += k
		switch {
		case owner < a.a:
			at = i + 8
		case owner == a.a:
			held = k
		}
	}
	rest := s[at:]
	if held > 0 {
		rest = rest[8:]
	}
	if a.kind == lockAcquire {
		if total >= n {
			return "", false
		}
		held++
	} else {
		if held == 0 {
			return "", false
		}
		held--
	}
	b := make([]byte, 0, len(s)+8)
	b = append(b, s[:at]...)
	if held > 0 {
		b = binary.LittleEndian.AppendUint32(b, uint32(a.a))
		b = binary.LittleEndian.AppendUint32(b, uint32(held))
	}
	return string(append(b, rest...)), true
}

func (c *permitsCompiler) show(s string, owned bool) string {
	total, holders := 0, ""
	for ; s != ""; s = s[8:] {
		k := int(stateInt32(s[4:]))
		total += k
		holders += fmt.Sprintf(", %d by %s", k, c.owners.show(stateInt32(s)))
	}
	if !owned {
		holders = ""
	}
	return fmt.Sprintf("%d of %d permits held%s", total, c.n, holders)
}
