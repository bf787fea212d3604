package linearizability

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
)

const (
	storeWrite uint8 = iota // also a fence, which writes nothing
	storeStale
	storeRead
)

// The errors that every operation may fail with, and that are no evidence: the
// request never left its client, or is refused whatever the state. A storage
// that asks the lease itself refuses what the lease does not carry, which says
// nothing of the tokens it has seen.
const (
	notSent    = "not-sent"
	invalid    = "invalid"
	notCarried = "not-carried"
)

// storageCompiler makes a machine of one storage under fencing tokens
// (Kleppmann 2016): it accepts a write or fence whose token is at or above the
// highest it has accepted, and refuses the others as stale. One storage has one
// highest token for all its keys.
type storageCompiler struct {
	keys, values names
	ops          []action
}

func newStorage(*Meta, Model) compiler { return &storageCompiler{} }

func (c *storageCompiler) add(o *operation) error {
	f := o.invoked.F
	a := action{span: o.span}
	if f == "read" {
		if o.Type != OK {
			return nil // it tells nothing
		}
		a.kind = storeRead
		if v := o.ended.Field("v"); !v.IsNil() {
			a.b = c.values.of(v.canonical())
		}
	} else {
		token, ok := o.invoked.Field("token").Uint()
		if !ok {
			return o.invokedError("token", "missing: a %s carries a fencing token", f)
		}
		a.token = token
		if v := o.invoked.Field("v"); f == "write" && !v.IsNil() {
			a.b = c.values.of(v.canonical())
		}
	}
	if f != "fence" {
		if !o.invoked.Has("k") {
			return o.invokedError("k", "missing: a %s names the key inside the storage (\"key\" is the storage)", f)
		}
		a.a = c.keys.of(o.invoked.Field("k").canonical())
	}
	if o.Type == Fail {
		switch word := o.errorWord(); word {
		case "stale":
		case "", notSent, invalid, notCarried:
			return nil
		default:
			return o.endedError("error", "want stale, not-carried, invalid or not-sent, not %s", quote(word))
		}
		a.limit = math.MaxUint64
		if v := o.ended.Field("highest"); !v.IsNil() {
			a.limit, _ = v.Uint()
		}
	}
	c.ops = append(c.ops, a)
	return nil
}

func (c *storageCompiler) compile(until int64) (partition, error) {
	var actions []action
	for _, o := range c.ops {
		s, ok := o.by(until)
		if !ok || s.Type == Info && o.kind == storeRead {
			continue
		}
		a := newAction(s, o.class)
		switch {
		case s.Type == Fail:
			a.kind, a.answer = storeStale, true
		case a.kind == storeRead:
			a.answer = true
		default:
			a.limit = 0
		}
		actions = append(actions, a)
	}
	actions = usefulStores(actions)
	seed := maphash.MakeSeed()
	return partition{
		actions: actions,
		machine: machine{
			init:  string(make([]byte, 8+4*len(c.keys.text))),
			step:  stepStorage,
			hash:  func(s any) uint64 { return maphash.String(seed, s.(string)) },
			show:  func(s any) string { return showStorage(s.(string), c.keys, c.values) },
			bytes: 8 + 4*len(c.keys.text),
		},
	}, nil
}

// stepStorage runs one operation. A state is the highest token, then the number
// of each key's value: a string, because that is compared and shared for free.
func stepStorage(state any, a *action) (any, bool) {
	s := state.(string)
	highest := stateUint64(s)
	at := 8 + 4*(int(a.a)-1)
	switch a.kind {
	case storeRead:
		return state, stateInt32(s[at:]) == a.b
	case storeStale:
		// Token 0 is granted to nobody and may be refused always.
		return state, (a.token < highest || a.token == 0) && (a.limit == math.MaxUint64 || a.limit == highest)
	}
	if a.token < highest {
		return nil, false
	}
	if a.token == highest && (a.a == 0 || stateInt32(s[at:]) == a.b) {
		return state, true
	}
	b := []byte(s)
	binary.LittleEndian.PutUint64(b, a.token)
	if a.a > 0 {
		binary.LittleEndian.PutUint32(b[at:], uint32(a.b))
	}
	return string(b), true
}

func stateUint64(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func stateInt32(s string) int32 {
	return int32(s[0]) | int32(s[1])<<8 | int32(s[2])<<16 | int32(s[3])<<24
}

// usefulStores drops the unknown writes and fences that explain nothing: no
// later read finds the value, and no later refusal needs the token.
func usefulStores(actions []action) []action {
	type found struct{ key, value int32 }
	reads := make(map[found]int64) // until when
	var stale []action
	for _, a := range actions {
		switch a.kind {
		case storeRead:
			reads[found{a.a, a.b}] = max(reads[found{a.a, a.b}], a.ret)
		case storeStale:
			stale = append(stale, a)
		}
	}
	return slices.DeleteFunc(actions, func(u action) bool {
		if !u.unknown || u.call < reads[found{u.a, u.b}] {
			return false
		}
		return !slices.ContainsFunc(stale, func(a action) bool {
			return u.call < a.ret && a.token < u.token && (a.limit == math.MaxUint64 || a.limit == u.token)
		})
	})
}

func showStorage(s string, keys, values names) string {
	text := fmt.Sprintf("highest %d", stateUint64(s))
	for i, key := range keys.text {
		if v := stateInt32(s[8+4*i:]); v != 0 {
			text += fmt.Sprintf(", %s=%s", key, values.show(v))
		}
	}
	return text
}
