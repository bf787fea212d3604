package linearizability

import "slices"

const (
	mutexAcquire uint8 = iota
	mutexRelease
)

// compileMutex makes a machine of a lock that somebody, or nobody, holds. In an
// owner-mutex only the holder releases; the owner of an operation is its owner
// field, or its process where it has none. A failed operation did not happen.
func compileMutex(h *History, m Model, ops []span) (partition, error) {
	owned := m.Name == ModelOwnerMutex
	var owners names
	var actions []action
	for _, op := range ops {
		if op.Type == Fail {
			continue
		}
		a := newAction(op)
		call := &h.Events[op.Call]
		if call.F == "release" {
			a.kind = mutexRelease
		}
		a.a = 1
		if owned {
			owner := h.name(op.Op, "owner")
			if owner == "" {
				owner = "process " + Int(call.Process).String()
			}
			a.a = owners.of(owner)
		}
		actions = append(actions, a)
	}
	if owned {
		actions = usefulAcquires(actions)
	}
	show := func(s any) string { return [...]string{"free", "held"}[s.(int)] }
	if owned {
		show = func(s any) string {
			if s.(int) == 0 {
				return "free"
			}
			return "held by " + owners.show(int32(s.(int)))
		}
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
			show: show,
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
