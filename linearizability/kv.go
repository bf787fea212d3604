package linearizability

import (
	"hash/maphash"
	"slices"
	"strings"
)

const (
	kvGet uint8 = iota
	kvPut
	kvAppend
)

// kvCompiler makes a machine of one key whose value is a string, at first
// empty.
type kvCompiler struct {
	ops    []action
	values []string // by action.a
}

func newKV(*Meta, Model) compiler { return &kvCompiler{} }

func (c *kvCompiler) add(o *operation) error {
	a := action{span: o.span, class: class{a: int32(len(c.values))}}
	v := o.invoked.Field("value")
	fail := o.invokedError
	switch o.invoked.F {
	case "get":
		if o.Type != OK {
			return nil
		}
		v, fail, a.kind = o.ended.Field("value"), o.endedError, kvGet
	case "put":
		a.kind = kvPut
	case "append":
		a.kind = kvAppend
	}
	text, ok := v.Word()
	if !ok && (a.kind != kvGet || !v.IsNil()) {
		return fail("value", "want a string, not %s", quote(v.String()))
	}
	c.values = append(c.values, text)
	c.ops = append(c.ops, a)
	return nil
}

func (c *kvCompiler) compile(until int64) (partition, error) {
	var actions []action
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Fail || s.Type == Info && o.kind == kvGet {
			continue
		}
		a := newAction(s, o.class)
		a.answer = a.kind == kvGet
		actions = append(actions, a)
	}
	actions = usefulPuts(actions, c.values)
	seed := maphash.MakeSeed()
	return partition{
		actions: actions,
		machine: machine{
			init: "",
			step: func(state any, a *action) (any, bool) {
				switch s, v := state.(string), c.values[a.a]; a.kind {
				case kvGet:
					return state, s == v
				case kvPut:
					return v, true
				default:
					return s + v, true
				}
			},
			hash: func(s any) uint64 { return maphash.String(seed, s.(string)) },
			show: func(s any) string { return quote(s.(string)) },
		},
	}, nil
}

// usefulPuts drops the unknown puts and appends whose text no later get finds
// in its answer: they explain nothing.
func usefulPuts(actions []action, values []string) []action {
	return slices.DeleteFunc(actions, func(a action) bool {
		return a.unknown && !slices.ContainsFunc(actions, func(get action) bool {
			return get.kind == kvGet && get.ret > a.call && strings.Contains(values[get.a], values[a.a])
		})
	})
}
