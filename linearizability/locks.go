package linearizability

import (
	"fmt"
	"math"
)

const (
	lockAcquire uint8 = iota
	lockRelease
)

// lockRules say what a lock is. Of every kind, acquiring needs it free and
// releasing needs it held; beyond that the rules are those of the public Jepsen
// test of Hazelcast's locks.
type lockRules struct {
	owned bool  // only who holds it releases
	depth int32 // how often its holder may hold it at once; each release undoes one
	// fenced: each tenure has a fence above all fences seen before, which an
	// acquire tells, or not (0). Nested acquires tell the fence of their tenure.
	fenced bool
}

// lockCompiler makes a machine of a lock. A failed operation did not happen,
// and is no evidence whatever its error says: a client that gave up waiting and
// one that was refused tell the same story, and not-lock-owner is as often the
// client's own bookkeeping as the lock's.
type lockCompiler struct {
	rules  lockRules
	owners claimants
	ops    []action
}

func newLock(_ *Meta, m Model) compiler {
	r := lockRules{owned: m.Name != ModelMutex, depth: 1}
	switch m.Name {
	case ModelReentrantMutex, ModelReentrantFencedMutex:
		r.depth = math.MaxInt32
		if m.N > 0 {
			r.depth = int32(m.N)
		}
	}
	r.fenced = m.Name == ModelFencedMutex || m.Name == ModelReentrantFencedMutex
	return &lockCompiler{rules: r}
}

func (c *lockCompiler) add(o *operation) error {
	a := action{span: o.span}
	switch {
	case o.invoked.F == "release":
		a.kind = lockRelease
	case c.rules.fenced && o.Type == OK:
		fence, field := o.fence()
		n, ok := fence.Uint()
		if !ok && !fence.IsNil() {
			return o.endedError(field, "want a fence, an integer from 0 to 2^64-1, not %s", quote(fence.String()))
		}
		a.token = n
	}
	if c.rules.owned {
		a.a = c.owners.add(o)
	}
	c.ops = append(c.ops, a)
	return nil
}

// fence returns what an acquire that succeeded was told, and in which field:
// fence, token, fence in a map that is the value, or a value where the call had
// none. It is nil if it was told nothing.
func (o *operation) fence() (v Value, field string) {
	for _, field := range []string{"fence", "token"} {
		if v := o.ended.Field(field); !v.IsNil() {
			return v, field
		}
	}
	v = o.ended.Field("value")
	if v.kind == KindMap {
		return v.entry("fence"), "value"
	}
	if v.kind == KindInt && o.invoked.Field("value").IsNil() {
		return v, "value"
	}
	return Value{}, ""
}

func (c *lockCompiler) compile(until int64) (partition, error) {
	var actions []action
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Fail {
			continue
		}
		a := newAction(s, o.class)
		a.a = 1
		if c.rules.owned {
			a.a = c.owners.owner(o.a, o.process)
		}
		if a.unknown {
			a.token = 0
		}
		actions = append(actions, a)
	}
	rules := c.rules
	return partition{
		actions: usefulClaims(actions),
		machine: machine{
			init: lockState{},
			step: func(state any, a *action) (any, bool) {
				next, ok := rules.step(state.(lockState), a)
				return next, ok
			},
			hash: func(state any) uint64 {
				s := state.(lockState)
				return mix(uint64(s.holder)<<32 | uint64(s.depth) ^ mix(s.fence^mix(s.highest)))
			},
			show:  func(state any) string { return c.show(state.(lockState)) },
			bytes: 24,
		},
	}, nil
}

// lockState is who holds a lock and how often.
type lockState struct {
	holder         int32  // 0: nobody; anybody: somebody who has not shown his name yet
	depth          int32  // how often he holds it
	fence, highest uint64 // of his tenure, 0: not known; and of all
}

func (r lockRules) step(s lockState, a *action) (lockState, bool) {
	switch {
	case s.depth == 0:
		s.holder = a.a
	case s.holder == anybody:
		s.holder = a.a
	case a.a != anybody && a.a != s.holder:
		return s, false
	}
	if a.kind == lockRelease {
		if s.depth == 0 {
			return s, false
		}
		if s.depth--; s.depth == 0 {
			s.holder, s.fence = 0, 0
		}
		return s, true
	}
	if s.depth == r.depth {
		return s, false
	}
	s.depth++
	switch {
	case !r.fenced || a.token == 0 || a.token == s.fence:
		return s, true
	case s.fence != 0 || a.token <= s.highest:
		return s, false
	}
	s.fence, s.highest = a.token, a.token
	return s, true
}

func (c *lockCompiler) show(s lockState) string {
	text := "free"
	switch {
	case s.depth > 0 && !c.rules.owned:
		text = "held"
	case s.depth > 0:
		text = "held by " + c.owners.show(s.holder)
	}
	if s.depth > 1 {
		text += fmt.Sprintf(" %d times", s.depth)
	}
	if s.fence > 0 {
		text += fmt.Sprintf(" under fence %d", s.fence)
	}
	if s.highest > s.fence {
		text += fmt.Sprintf(", highest fence %d", s.highest)
	}
	return text
}
