package linearizability

import "slices"

// anybody is an owner of whom nothing is known.
const anybody = -1

// claimants numbers those who ask for a lock. An operation names its owner in
// the field owner, or as client in a map that is its value: so does Jepsen's
// test of Hazelcast, which loses the name where the outcome is unknown. An
// operation without a name is by the owner whom its process names elsewhere, or
// else by anybody. Where no operation has a name, each process is an owner.
type claimants struct {
	names
	by map[int64]int32 // by process: its owner; anybody if it named several
}

// add returns the number of the owner that o names, 0 if none.
func (c *claimants) add(o *operation) int32 {
	name := o.claimant()
	if name == "" {
		return 0
	}
	owner := c.of(name)
	if c.by == nil {
		c.by = make(map[int64]int32)
	}
	if was, ok := c.by[o.process]; ok && was != owner {
		c.by[o.process] = anybody
	} else {
		c.by[o.process] = owner
	}
	return owner
}

// claimant returns the owner that o names, "" if none.
func (o *operation) claimant() string {
	if name := o.name("owner"); name != "" {
		return name
	}
	name, _ := o.valueField("client").identity()
	return name
}

// named reports whether any operation names its owner.
func (c *claimants) named() bool { return c.by != nil }

// owner returns who asked for an operation of a process, of which add returned
// owner.
func (c *claimants) owner(owner int32, process int64) int32 {
	if owner != 0 {
		return owner
	}
	if !c.named() {
		return c.of("process " + Int(process).String())
	}
	if owner, ok := c.by[process]; ok {
		return owner
	}
	return anybody
}

// show names an owner.
func (c *claimants) show(owner int32) string {
	if owner == anybody {
		return "somebody"
	}
	return c.names.show(owner)
}

// valueField returns an entry of the map that is the value of an operation: of
// its return if that has one, else of its call.
func (o *operation) valueField(name string) Value {
	if o.ended != nil {
		if v := o.ended.Field("value").entry(name); !v.IsNil() {
			return v
		}
	}
	return o.invoked.Field("value").entry(name)
}

// entry returns what a map has under a name, nil if v is no map or has nothing.
func (v Value) entry(name string) Value {
	if v.kind == KindMap {
		for i := 0; i+1 < len(v.list); i += 2 {
			if word, ok := v.list[i].Word(); ok && word == name {
				return v.list[i+1]
			}
		}
	}
	return Value{}
}

// usefulClaims drops the unknown operations on a lock that explain nothing. An
// acquire only lets its owner release later; with no such release to come, all
// that follows is as possible without it. A release only lets somebody acquire
// later.
func usefulClaims(actions []action) []action {
	for {
		var acquired, released int64        // until when anybody may
		releasedBy := make(map[int32]int64) // and who
		for i := range actions {
			switch a := &actions[i]; a.kind {
			case lockAcquire:
				acquired = max(acquired, a.ret)
			case lockRelease:
				released = max(released, a.ret)
				releasedBy[a.a] = max(releasedBy[a.a], a.ret)
			}
		}
		n := len(actions)
		actions = slices.DeleteFunc(actions, func(a action) bool {
			switch {
			case !a.unknown:
				return false
			case a.kind == lockRelease:
				return a.call >= acquired
			case a.a == anybody:
				return a.call >= released
			}
			return a.call >= max(releasedBy[a.a], releasedBy[anybody])
		})
		if len(actions) == n {
			return actions
		}
	}
}
