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

// compileKV makes a machine of one key whose value is a string, at first empty.
func compileKV(h *History, _ Model, ops []span) (partition, error) {
	var actions []action
	var values []string // of the actions, by action.a
	for _, op := range ops {
		if op.Type == Fail {
			continue
		}
		a := newAction(op)
		pos := op.Call
		switch h.Events[op.Call].F {
		case "get":
			if a.unknown {
				continue
			}
			pos, a.kind, a.answer = op.Return, kvGet, true
		case "put":
			a.kind = kvPut
		case "append":
			a.kind = kvAppend
		}
		v := h.Events[pos].Field("value")
		text, ok := v.Word()
		if !ok && (a.kind != kvGet || !v.IsNil()) {
			return partition{}, h.errorAt(pos, "value", "want a string, not %s", quote(v.String()))
		}
		a.a = int32(len(values))
		values = append(values, text)
		actions = append(actions, a)
	}
	actions = usefulPuts(actions, values)
	seed := maphash.MakeSeed()
	return partition{
		actions: actions,
		machine: machine{
			init: "",
			step: func(state any, a *action) (any, bool) {
				switch s, v := state.(string), values[a.a]; a.kind {
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
