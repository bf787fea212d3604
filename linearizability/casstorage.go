package linearizability

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
)

const (
	casWrite uint8 = iota
	casMismatch
	casRead
)

// casCompiler makes a machine of one key of a storage without fencing tokens
// that compares instead: a write may carry the value that it replaces (expect,
// null for none), or the version of that value (from, 0 for none), and lands
// only where the key has it. Versions are whatever integers the storage gives
// the values of a key, each above the last: a counter, or the revision of a
// whole database. A write's return may tell the version that it made, and a
// read's the one that it found.
//
// The same write lands at most once under one version, whoever believes to
// lead: that, not the order of tokens, is what such a storage promises.
type casCompiler struct {
	values names
	ops    []casOp
}

// casOp is an operation as it is known at the end.
type casOp struct {
	span
	kind  uint8
	value int32 // written or found, 0: nil
	told  bool  // of a mismatch: value is what was found

	compares bool  // expect is the value that it replaces
	expect   int32 //
	versions bool  // from is the version that it replaces
	from     uint64

	made    bool // version is the one that it made or found
	version uint64
}

func newCASStorage(*Meta, Model) compiler { return &casCompiler{} }

// byStorageKey partitions by storage and key: each key is compared by itself.
func byStorageKey(o *operation) string {
	k, _ := o.invoked.Field("k").identity()
	return strings.NewReplacer(`\`, `\\`, "/", `\/`).Replace(byKey(o)) + "/" + k
}

func (c *casCompiler) number(v Value) int32 {
	if v.IsNil() {
		return 0
	}
	return c.values.of(v.canonical())
}

func (c *casCompiler) add(o *operation) error {
	f := o.invoked.F
	if name, ok := o.invoked.Field("k").identity(); !ok || name == "" {
		return o.invokedError("k", "missing or no name: a %s names the key inside the storage (\"key\" is the storage)", f)
	}
	op := casOp{span: o.span}
	if f == "read" {
		if o.Type != OK {
			return nil // it tells nothing
		}
		op.kind, op.value = casRead, c.number(o.ended.Field("v"))
	} else {
		op.value = c.number(o.invoked.Field("v"))
		if op.compares = o.invoked.Has("expect"); op.compares {
			op.expect = c.number(o.invoked.Field("expect"))
		}
		if v := o.invoked.Field("from"); !v.IsNil() {
			if op.from, op.versions = v.Uint(); !op.versions {
				return o.invokedError("from", "want a version, an integer from 0, not %s", quote(v.String()))
			}
		}
	}
	if o.Type == Fail {
		switch word := o.errorWord(); {
		case word == "" || word == notSent || word == invalid || word == notCarried:
			return nil
		case word != "mismatch":
			return o.endedError("error", "want mismatch, not-carried, invalid or not-sent, not %s", quote(word))
		case !op.compares && !op.versions:
			return o.endedError("error", "mismatch of a write that carries neither expect nor from")
		}
		op.kind, op.told = casMismatch, o.ended.Has("v")
		op.value = c.number(o.ended.Field("v"))
	}
	if o.Type != Info {
		if v := o.ended.Field("version"); !v.IsNil() {
			if op.version, op.made = v.Uint(); !op.made {
				return o.endedError("version", "want an integer from 0, not %s", quote(v.String()))
			}
		}
	}
	c.ops = append(c.ops, op)
	return nil
}

func (c *casCompiler) compile(until int64) (partition, error) {
	var actions []action
	// Equal operations share a number, and that is all that tells them apart.
	ops := []casOp{}
	number := make(map[casOp]int32)
	for _, op := range c.ops {
		s, ok := op.by(until)
		if !ok || s.Type == Info && op.kind == casRead {
			continue
		}
		if s.Type == Info && op.kind == casMismatch {
			continue // it certainly had no effect, and why is not known yet
		}
		if s.Type == Info {
			op.made, op.version = false, 0
		}
		op.span = span{}
		i, ok := number[op]
		if !ok {
			i = int32(len(ops))
			ops, number[op] = append(ops, op), i
		}
		a := newAction(s, class{kind: op.kind, a: i})
		// A read that tells the version may settle it.
		a.answer = op.kind != casWrite
		actions = append(actions, a)
	}
	seed := maphash.MakeSeed()
	return partition{
		actions: usefulSwaps(actions, ops),
		machine: machine{
			init: casState{exact: true},
			step: func(state any, a *action) (any, bool) {
				next, ok := state.(casState).step(&ops[a.a])
				return next, ok
			},
			hash: func(state any) uint64 {
				s := state.(casState)
				return mix(uint64(s.value)<<1^mix(s.version)) ^ maphash.String(seed, s.not)
			},
			show:  func(state any) string { return c.show(state.(casState)) },
			bytes: 40,
		},
	}, nil
}

// casState is what a key has. Its version is known exactly, or known to be any
// from version on but those in not: the versions that were refused, each 8 bytes
// and in order.
type casState struct {
	value   int32
	exact   bool
	version uint64
	not     string
}

func (s casState) step(op *casOp) (casState, bool) {
	ok := true
	switch op.kind {
	case casRead:
		if s.value != op.value {
			return s, false
		}
		if op.made {
			s, ok = s.is(op.version)
		}
		return s, ok
	case casMismatch:
		if op.told && s.value != op.value {
			return s, false
		}
		if op.made {
			if s, ok = s.is(op.version); !ok {
				return s, false
			}
		}
		if op.compares && s.value != op.expect {
			return s, true
		}
		if !op.versions {
			return s, false
		}
		return s.isNot(op.from)
	}
	if op.compares && s.value != op.expect {
		return s, false
	}
	if op.versions {
		if s, ok = s.is(op.from); !ok {
			return s, false
		}
	}
	if s.version == math.MaxUint64 {
		return s, false // no version is left
	}
	next := casState{value: op.value, exact: op.made, version: s.version + 1}
	if op.made {
		next.version = op.version
		ok = op.version > s.version
	}
	return next, ok
}

// is settles the version.
func (s casState) is(version uint64) (casState, bool) {
	if s.exact || version <= s.version {
		ok := version == s.version
		s.exact, s.not = true, ""
		return s, ok
	}
	for not := s.not; not != ""; not = not[8:] {
		if stateUint64(not) == version {
			return s, false
		}
	}
	return casState{value: s.value, exact: true, version: version}, true
}

// isNot excludes a version. The least that is left stays the first, so that
// states are equal if they mean the same.
func (s casState) isNot(version uint64) (casState, bool) {
	switch {
	case s.exact:
		return s, version != s.version
	case version < s.version:
		return s, true
	case version > s.version:
		at := 0
		for at < len(s.not) && stateUint64(s.not[at:]) < version {
			at += 8
		}
		if at == len(s.not) || stateUint64(s.not[at:]) != version {
			s.not = s.not[:at] + versionText(version) + s.not[at:]
		}
		return s, true
	}
	if version == math.MaxUint64 {
		return s, false
	}
	s.version++
	for s.not != "" && stateUint64(s.not) == s.version {
		if s.version == math.MaxUint64 {
			return s, false
		}
		s.not = s.not[8:]
		s.version++
	}
	return s, true
}

func versionText(v uint64) string {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return string(b)
}

// usefulSwaps drops the unknown writes that explain nothing: no later operation
// finds or expects their value, nor may depend on there having been a write.
func usefulSwaps(actions []action, ops []casOp) []action {
	found := make(map[int32]int64) // by value: until when it may be needed
	var any int64                  // that anything was written
	need := func(a *action) bool {
		op := &ops[a.a]
		was := any
		switch {
		case op.kind == casRead, op.kind == casWrite && op.compares:
			value := op.expect
			if op.kind == casRead {
				value = op.value
			}
			if a.ret <= found[value] {
				return false
			}
			found[value] = a.ret
			return true
		case op.kind == casMismatch, op.versions:
			any = max(any, a.ret)
		}
		return any > was
	}
	useful := func(a action) bool { return !a.unknown || a.call < max(any, found[ops[a.a].value]) }
	for changed := true; changed; {
		changed = false
		for i := range actions {
			if useful(actions[i]) && need(&actions[i]) {
				changed = true
			}
		}
	}
	return slices.DeleteFunc(actions, func(a action) bool { return !useful(a) })
}

func (c *casCompiler) show(s casState) string {
	text := c.values.show(s.value)
	if !s.exact {
		return fmt.Sprintf("%s at version %d or above", text, s.version)
	}
	if s.version > 0 {
		text += fmt.Sprintf(" at version %d", s.version)
	}
	return text
}
