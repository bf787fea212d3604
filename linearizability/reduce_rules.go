package linearizability

import (
	"slices"
	"strings"
)

// rules are what Reduce knows of a model. The zero value knows nothing, and lets
// only answers be forgotten.
type rules struct {
	reads    []string // operations without any effect
	refusals bool     // a failure says something of the state
	owned    bool     // who asks matters, even where it does not say
	frees    bool     // a lock that is free may be so at first
	// anchor reports whether a history may begin with x: see reducer.
	anchor func(r *reducer, x *reducible) bool
	// fits, if set, says whose answers may be kept after an anchor.
	fits func(r *reducer, anchor, x *reducible) bool
	// recast makes of an anchor an operation that is possible at first.
	recast func(r *reducer, x *reducible, call, ret *Event)
	// wanted says which operations with unknown outcome may explain something;
	// nil: all. Of the others all go at once.
	wanted func(c *candidate) map[int]bool
}

// rulesOf returns the rules of the model of a partition.
func rulesOf(partition string) rules {
	name, _, _ := strings.Cut(partition, "(")
	switch name {
	case ModelRegister, ModelCASRegister:
		return registerRules
	case ModelMutex, ModelOwnerMutex:
		u := mutexRules
		u.owned = name == ModelOwnerMutex
		return u
	case ModelReentrantMutex, ModelFencedMutex, ModelReentrantFencedMutex, ModelPermits:
		return rules{owned: name != ModelPermits, frees: true}
	case ModelKV:
		return kvRules
	case ModelStorage:
		return storageRules
	case ModelLease:
		return leaseRules
	}
	return rules{}
}

// was marks a recast operation.
func was(call *Event, f string) Field { return Field{"was", String(f)} }

// A write leaves its value behind, whatever was there. So do a read that found
// it and a cas that set it, which are possible at first only as writes. An
// unknown write is wanted if a read found its value, or a cas expected it: else
// nothing happens until the next write that could tell. So with an unknown cas,
// if it was wanted, the value that it expects is.
var registerRules = rules{
	reads: []string{"read"},
	anchor: func(r *reducer, x *reducible) bool {
		return x.f != "read" || !r.h.Events[x.Return].Field("value").IsNil()
	},
	recast: func(r *reducer, x *reducible, call, ret *Event) {
		value := ret.Field("value")
		switch x.f {
		case "write":
			return
		case "cas":
			value = call.Field("value").Elems()[1]
		}
		call.F, ret.F = "write", "write"
		call.Fields = []Field{{"value", value}, was(call, x.f)}
		if key := r.h.op(x.Op).field("key"); !key.IsNil() {
			call.Fields = append(call.Fields, Field{"key", key})
		}
		ret.Fields = nil
	},
	wanted: func(c *candidate) map[int]bool {
		need := make(map[string]bool)
		expects := func(i int) {
			x := &c.r.ops[i]
			if v := c.r.h.Events[x.Call].Field("value"); x.f == "cas" && len(v.Elems()) == 2 {
				need[v.Elems()[0].canonical()] = true
			}
		}
		for _, i := range c.known {
			if i == c.anchor {
				continue
			}
			if x := &c.r.ops[i]; x.f == "read" {
				need[c.r.h.Events[x.Return].Field("value").canonical()] = true
			}
			expects(i)
		}
		return c.closure(func(i int) bool {
			x := &c.r.ops[i]
			v := c.r.h.Events[x.Call].Field("value")
			if x.f == "cas" && len(v.Elems()) == 2 {
				v = v.Elems()[1]
			}
			return need[v.canonical()]
		}, expects)
	},
}

// closure returns the unsure operations that are wanted: those that is says so
// of, after then has been told of each of them.
func (c *candidate) closure(is func(i int) bool, then func(i int)) map[int]bool {
	wanted := make(map[int]bool)
	for changed := true; changed; {
		changed = false
		for _, i := range c.unsure {
			if !wanted[i] && is(i) {
				wanted[i], changed = true, true
				then(i)
			}
		}
	}
	return wanted
}

// Whoever acquires a mutex found it free, as it is at first, and holds it then.
// Acquires and releases take turns. So an unknown acquire may as well not have
// happened, together with the release after it, unless that is known; and an
// unknown release, together with the acquire after it, unless that is known or
// wanted. Where only the owner releases, both are of the same owner.
var mutexRules = rules{
	anchor: func(_ *reducer, x *reducible) bool { return x.f == "acquire" },
	wanted: func(c *candidate) map[int]bool {
		owner := func(i int) string {
			if !c.r.rules.owned {
				return ""
			}
			return c.r.h.op(c.r.ops[i].Op).name("owner")
		}
		released := make(map[string]bool) // by owner, on record
		acquires := false                 // on record, besides the anchor
		for _, i := range c.known {
			if c.r.ops[i].f == "release" {
				released[owner(i)] = true
			} else if i != c.anchor {
				acquires = true
			}
		}
		// Nobody releases what they cannot have acquired.
		acquired := func(who string) bool {
			has := func(i int) bool { return c.r.ops[i].f == "acquire" && owner(i) == who }
			return slices.ContainsFunc(c.known, has) || released[who] && slices.ContainsFunc(c.unsure, has)
		}
		return c.closure(func(i int) bool {
			if c.r.ops[i].f == "acquire" {
				return released[owner(i)]
			}
			return acquires && acquired(owner(i))
		}, func(i int) {
			acquires = acquires || c.r.ops[i].f == "acquire"
		})
	},
}

// A put leaves its value behind, and so does a get that found it. Until the next
// put, every get finds a value that begins with that of the put, and contains
// what was appended: an operation for which no get does is not missed.
var kvRules = rules{
	reads:  []string{"get"},
	anchor: func(_ *reducer, x *reducible) bool { return x.f != "append" },
	recast: func(r *reducer, x *reducible, call, ret *Event) {
		if x.f != "get" {
			return
		}
		call.F, ret.F = "put", "put"
		text, _ := ret.Field("value").Word()
		call.Fields = []Field{{"key", r.h.op(x.Op).field("key")}, {"value", String(text)}, was(call, "get")}
		ret.Fields = nil
	},
	wanted: func(c *candidate) map[int]bool {
		var found []string
		for _, i := range c.known {
			if x := &c.r.ops[i]; x.f == "get" && i != c.anchor {
				text, _ := c.r.h.Events[x.Return].Field("value").Word()
				found = append(found, text)
			}
		}
		return c.closure(func(i int) bool {
			text, _ := c.r.h.Events[c.r.ops[i].Call].Field("value").Word()
			return slices.ContainsFunc(found, func(s string) bool {
				if c.r.ops[i].f == "put" {
					return strings.HasPrefix(s, text)
				}
				return strings.Contains(s, text)
			})
		}, func(int) {})
	},
}

// A write or fence that a storage accepts leaves its token behind as the
// highest, and a write its value under its key; of other keys it says nothing,
// so that no read of them is kept after it. A higher token makes only refusals
// possible. So an unknown write or fence is wanted if a read found its value, or
// a refusal needs its token; not if its token is below the anchor's, because it
// is refused from then on.
var storageRules = rules{
	reads:    []string{"read"},
	refusals: true,
	anchor:   func(_ *reducer, x *reducible) bool { return x.f != "read" },
	fits: func(r *reducer, anchor, x *reducible) bool {
		return x.f != "read" || anchor.f == "write" && r.h.Events[x.Call].Field("k").canonical() == r.h.Events[anchor.Call].Field("k").canonical()
	},
	wanted: func(c *candidate) map[int]bool {
		h := &c.r.h
		token := func(i int) uint64 { n, _ := h.Events[c.r.ops[i].Call].Field("token").Uint(); return n }
		return c.closure(func(u int) bool {
			call := &h.Events[c.r.ops[u].Call]
			if c.anchor != none && token(u) < token(c.anchor) {
				return false
			}
			return slices.ContainsFunc(c.known, func(i int) bool {
				x := &c.r.ops[i]
				switch {
				case x.f == "read":
					return call.F == "write" && h.Events[x.Call].Field("k").canonical() == call.Field("k").canonical() &&
						h.Events[x.Return].Field("v").canonical() == call.Field("v").canonical()
				case x.Type == Fail:
					highest, named := h.Events[x.Return].Field("highest").Uint()
					return token(i) < token(u) && (!named || highest == token(u))
				}
				return false
			})
		}, func(int) {})
	},
}
