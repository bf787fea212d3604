package linearizability

import "slices"

const (
	mutexAcquire uint8 = iota
	mutexRelease
)

// mutexCompiler makes a machine of a lock that somebody, or nobody, holds. In
// an owner-mutex only the holder releases; the owner of an operation is its
// owner field, or its process where it has none. A failed operation did not
// happen.
type mutexCompiler struct {
	owned  bool
	owners names
	ops    []action
}

func newMutex(_ *Meta, m Model) compiler { return &mutexCompiler{owned: m.Name == ModelOwnerMutex} }

func (c *mutexCompiler) add(o *operation) error {
	a := action{span: o.span, class: class{a: 1}}
	if o.invoked.F == "release" {
		a.kind = mutexRelease
	}
	if c.owned {
		a.a = c.owners.of(o.holder())
	}
	c.ops = append(c.ops, a)
	return nil
}

// holder is who asks for a lock: the owner it names, or else its process.
func (o *operation) holder() string {
	if owner := o.name("owner"); owner != "" {
		return owner
	}
	return "process " + Int(o.invoked.Process).String()
}

func (c *mutexCompiler) compile(until int64) (partition, error) {
	var actions []action
	for _, o := range c.ops {
		if a, ok := o.by(until); ok && a.Type != Fail {
			actions = append(actions, newAction(a, o.class))
		}
	}
	if c.owned {
		actions = usefulAcquires(actions)
	}
	return partition{
		actions: actions,
		machine: machine{
			init: 0,
			step: func(state any, a *action) (any, bool) {
				if a.kind == mutexAcquire {
					return int(a.a), state.(int) == 0
				}
				return 0, state.(int) == int(a.a)
			},
			hash: func(s any) uint64 { return mix(uint64(s.(int))) },
			show: func(s any) string {
				switch {
				case s.(int) == 0:
					return "free"
				case !c.owned:
					return "held"
				}
				return "held by " + c.owners.show(int32(s.(int)))
			},
		},
	}, nil
}

// usefulAcquires drops the unknown acquires of owners who release no more: the
// lock would be stuck, so they explain nothing.
func usefulAcquires(actions []action) []action {
	return slices.DeleteFunc(actions, func(a action) bool {
		return a.unknown && a.kind == mutexAcquire && !slices.ContainsFunc(actions, func(r action) bool {
			return r.kind == mutexRelease && r.a == a.a && r.ret > a.call
		})
	})
}
