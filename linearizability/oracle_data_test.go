package linearizability

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

func value(v Value) []Field { return []Field{{"value", v}} }

// registerRule is that of a register with values as they are spelled.
func registerRule(first string) func(h *History, flaw string) rule {
	return func(_ *History, flaw string) rule {
		return func(state any, op *oracleOp) []any {
			switch v := op.call.Field("value"); op.f {
			case "read":
				got := op.told("value").String()
				silent := op.ret == nil || got == "nil" && first != "nil" && flaw != "nil is a value"
				return one(state, silent || got == state || flaw == "reads find anything")
			case "write":
				if flaw == "writes are lost" {
					return one(state, true)
				}
				return one(v.String(), true)
			default:
				old, new := v.Elems()[0], v.Elems()[1]
				ok := state == old.String() || flaw == "cas does not compare"
				if flaw == "cas does not set" {
					return one(state, ok)
				}
				return one(new.String(), ok)
			}
		}
	}
}

func registerOracle(model, first string, draw func(rng *rand.Rand) Value, flaws []string, ops ...string) oracle {
	return oracle{
		model: model, start: startIn(first), rule: registerRule(first),
		flaws: append(flaws, "reads find anything", "writes are lost"),
		call: func(rng *rand.Rand, _ int, _ int64) (string, []Field) {
			switch f := pick(rng, ops...); f {
			case "read":
				return f, value(Value{})
			case "write":
				return f, value(draw(rng))
			default:
				return f, value(Vector(draw(rng), draw(rng)))
			}
		},
		answer: func(rng *rand.Rand, _ int, _ int64, f string, call []Field) (Type, []Field) {
			if f == "read" {
				return okOrFail(rng), value(pick(rng, draw(rng), draw(rng), draw(rng), Value{}))
			}
			return okOrFail(rng), call
		},
	}
}

func kvOracle() oracle {
	text := func(rng *rand.Rand) Value { return String(pick(rng, "a", "b")) }
	return oracle{
		model: "kv", start: startIn(""),
		flaws: []string{"gets find a part", "appends put", "puts append", "appends come first"},
		rule: func(_ *History, flaw string) rule {
			return func(state any, op *oracleOp) []any {
				s := state.(string)
				v, _ := op.call.Field("value").Word()
				switch op.f {
				case "get":
					got, _ := op.told("value").Word()
					return one(s, op.ret == nil || got == s || flaw == "gets find a part" && strings.Contains(s, got))
				case "put":
					if flaw == "puts append" {
						return one(s+v, true)
					}
					return one(v, true)
				}
				switch flaw {
				case "appends put":
					return one(v, true)
				case "appends come first":
					return one(v+s, true)
				}
				return one(s+v, true)
			}
		},
		call: func(rng *rand.Rand, _ int, _ int64) (string, []Field) {
			switch f := pick(rng, "get", "put", "append", "append"); f {
			case "get":
				return f, value(Value{})
			default:
				return f, value(text(rng))
			}
		},
		answer: func(rng *rand.Rand, _ int, _ int64, f string, _ []Field) (Type, []Field) {
			if f != "get" {
				return okOrFail(rng), nil
			}
			return okOrFail(rng), value(String(pick(rng, "", "a", "b", "ab", "ba", "aa", "bb", "aba", "bab")))
		},
	}
}

// multiRule runs the steps of a transaction one by one. A state is the values
// of two registers.
func multiRule(first string, flaw string) rule {
	return func(state any, op *oracleOp) []any {
		before := state.([2]string)
		s := before
		e := op.call
		if op.ret != nil {
			e = op.ret
		}
		v := e.Field("value")
		steps := v.Elems()
		if v.Kind() == KindMap {
			for i := 0; i < len(v.list); i += 2 {
				steps = append(steps, Vector(Keyword(op.f), v.list[i], v.list[i+1]))
			}
		}
		for i, step := range steps {
			k, _ := step.list[1].Int()
			what, _ := step.list[0].Word()
			got := step.list[2].String()
			if what[0] == 'w' {
				if flaw != "the first write wins" || s[k] == before[k] {
					s[k] = got
				}
				if flaw == "a transaction writes once" && i > 0 {
					return one(s, true)
				}
				continue
			}
			found := s[k]
			switch flaw {
			case "reads miss own writes":
				found = before[k]
			case "reads find any register":
				if slices.Contains(s[:], got) {
					found = got
				}
			case "the first read counts":
				if i > 0 {
					found = got
				}
			}
			if op.ret != nil && got != found && !(got == "nil" && first != "nil" && flaw != "nil is a value") {
				return nil
			}
		}
		return one(s, true)
	}
}

func multiOracle(model, first string, flaws ...string) oracle {
	number, key := func(rng *rand.Rand) Value { return Int(rng.Int64N(3)) }, func(rng *rand.Rand) Value { return Int(rng.Int64N(2)) }
	steps := func(rng *rand.Rand) (string, Value) {
		var list []Value
		switch f := pick(rng, "txn", "txn", "txn", "read", "write"); f {
		case "txn":
			for range 1 + rng.IntN(4) {
				if rng.IntN(2) == 0 {
					list = append(list, Vector(Keyword("r"), key(rng), Value{}))
				} else {
					list = append(list, Vector(Keyword("w"), key(rng), number(rng)))
				}
			}
			return f, Vector(list...)
		default:
			list := []Value{Int(0), Value{}, Int(1), Value{}}[:2+2*rng.IntN(2)]
			for i := 1; f == "write" && i < len(list); i += 2 {
				list[i] = number(rng)
			}
			return f, listValue(KindMap, list)
		}
	}
	return oracle{
		model: model, start: startIn([2]string{first, first}),
		flaws: append(flaws, "reads miss own writes", "the first read counts", "the first write wins", "a transaction writes once", "reads find any register"),
		rule:  func(_ *History, flaw string) rule { return multiRule(first, flaw) },
		call: func(rng *rand.Rand, _ int, _ int64) (string, []Field) {
			f, v := steps(rng)
			return f, value(v)
		},
		answer: func(rng *rand.Rand, _ int, _ int64, f string, call []Field) (Type, []Field) {
			found := func() Value { return pick(rng, number(rng), number(rng), Value{}) }
			v := call[0].Value
			list := slices.Clone(v.list)
			for i := range list {
				if step := list[i]; f == "txn" && step.list[2].IsNil() {
					list[i] = Vector(step.list[0], step.list[1], found())
				} else if f == "read" && i%2 == 1 {
					list[i] = found()
				}
			}
			v = listValue(v.kind, list)
			return okOrFail(rng), value(v)
		},
	}
}

type oracleStore struct {
	highest int64
	k       [2]string
}

func storageRule(flaw string) rule {
	return func(state any, op *oracleOp) []any {
		s := state.(oracleStore)
		k, _ := op.call.Field("k").Int()
		if op.f == "read" {
			return one(s, op.ret == nil || op.told("v").String() == s.k[k] || flaw == "reads find anything")
		}
		token, _ := op.call.Field("token").Int()
		if op.failed() {
			named, ok := op.told("highest").Int()
			switch flaw {
			case "equal tokens are stale":
				token--
			case "stale is two below":
				token++
			case "names one above":
				named--
			case "names one below":
				named++
			case "names any":
				ok = false
			case "refuses what it likes":
				return one(s, true)
			}
			return one(s, token < s.highest && (!ok || named == s.highest))
		}
		least := s.highest
		switch flaw {
		case "takes a token one below":
			least--
		case "takes only tokens above":
			least++
		}
		if token < least {
			return nil
		}
		if !(flaw == "a fence raises nothing" && op.f == "fence") {
			s.highest = token
		}
		if op.f == "write" {
			s.k[k] = op.call.Field("v").String()
		}
		return one(s, true)
	}
}

func storageOracle() oracle {
	return oracle{
		model: "storage", start: startIn(oracleStore{k: [2]string{"nil", "nil"}}),
		flaws: []string{"reads find anything", "equal tokens are stale", "stale is two below", "names one above", "names one below", "names any",
			"refuses what it likes", "takes a token one below", "takes only tokens above", "a fence raises nothing"},
		rule:    func(_ *History, flaw string) rule { return storageRule(flaw) },
		evident: evidentError,
		call: func(rng *rand.Rand, _ int, _ int64) (string, []Field) {
			k, token := Field{"k", Int(rng.Int64N(2))}, Field{"token", Int(1 + rng.Int64N(3))}
			switch f := pick(rng, "read", "fence", "write"); f {
			case "read":
				return f, []Field{k}
			case "fence":
				return f, []Field{token}
			default:
				return f, []Field{token, k, {"v", Int(rng.Int64N(2))}}
			}
		},
		answer: func(rng *rand.Rand, _ int, _ int64, f string, _ []Field) (Type, []Field) {
			if f == "read" {
				return OK, []Field{{"v", pick(rng, Value{}, Int(0), Int(1))}}
			}
			if rng.IntN(2) == 0 {
				return OK, nil
			}
			ret := []Field{{"error", Keyword("stale")}}
			if rng.IntN(2) == 0 {
				ret = append(ret, Field{"highest", Int(1 + rng.Int64N(3))})
			}
			return Fail, ret
		},
	}
}

// A cell of a compare-and-swap storage. The oracle tries every version up to
// one above which nothing can tell.
type oracleCell struct {
	value   string
	version int64
}

func casRule(flaw string) rule {
	const top = 14
	return func(state any, op *oracleOp) []any {
		cells := state.([2]oracleCell)
		k, _ := op.call.Field("k").Int()
		c := cells[k]
		version, told := op.told("version").Int()
		from, versions := op.call.Field("from").Int()
		switch flaw {
		case "from one above":
			from--
		case "from one below":
			from++
		case "from is not compared":
			versions = false
		}
		compares := op.call.Has("expect") && flaw != "expect is not compared"
		expected := !compares || op.call.Field("expect").String() == c.value
		versioned := !versions || from == c.version
		switch {
		case op.f == "read" && op.ret == nil:
			return one(cells, true)
		case op.f == "read":
			return one(cells, (op.told("v").String() == c.value || flaw == "reads find anything") &&
				(!told || version == c.version || flaw == "reads find any version"))
		case op.failed():
			mismatch := !expected || !versioned
			switch flaw {
			case "both must differ":
				mismatch = (!expected || !compares) && (!versioned || !versions)
			case "refuses what it likes":
				mismatch = true
			}
			return one(cells, mismatch && (!told || version == c.version || flaw == "refusals tell any version") &&
				(!op.ret.Has("v") || op.told("v").String() == c.value || flaw == "refusals tell any value"))
		case !expected || !versioned:
			return nil
		}
		var next []any
		least := c.version + 1
		switch flaw {
		case "a version may stay":
			least--
		case "a version rises by two":
			least++
		case "a version is any":
			least = 0
		}
		c.value = op.call.Field("v").String()
		for v := least; v <= top; v++ {
			if !told || v == version {
				cells[k] = oracleCell{c.value, v}
				next = append(next, cells)
			}
		}
		return next
	}
}

func casOracle() oracle {
	version := func(rng *rand.Rand) Value { return Int(rng.Int64N(6)) }
	v := func(rng *rand.Rand) Value { return pick(rng, Int(0), Int(1), Int(2), Value{}) }
	return oracle{
		model: "cas-storage", start: startIn([2]oracleCell{{"nil", 0}, {"nil", 0}}),
		flaws: []string{"from one above", "from one below", "from is not compared", "expect is not compared", "reads find anything",
			"reads find any version", "both must differ", "refuses what it likes", "refusals tell any version", "refusals tell any value",
			"a version may stay", "a version rises by two", "a version is any"},
		rule:    func(_ *History, flaw string) rule { return casRule(flaw) },
		evident: func(op *oracleOp) bool { return op.f == "write" && op.told("error").Equal(Keyword("mismatch")) },
		call: func(rng *rand.Rand, _ int, _ int64) (string, []Field) {
			k := Field{"k", Int(rng.Int64N(8) / 6)}
			if rng.IntN(3) == 0 {
				return "read", []Field{k}
			}
			fields := []Field{k, {"v", v(rng)}}
			if rng.IntN(2) == 0 {
				fields = append(fields, Field{"expect", v(rng)})
			}
			if rng.IntN(2) == 0 {
				fields = append(fields, Field{"from", version(rng)})
			}
			return "write", fields
		},
		answer: func(rng *rand.Rand, _ int, _ int64, f string, call []Field) (Type, []Field) {
			var fields []Field
			if rng.IntN(2) == 0 {
				fields = append(fields, Field{"version", version(rng)})
			}
			compares := len(call) > 2
			switch {
			case f == "read":
				return OK, append(fields, Field{"v", v(rng)})
			case compares && rng.IntN(2) == 0:
				if rng.IntN(2) == 0 {
					fields = append(fields, Field{"v", v(rng)})
				}
				return Fail, append(fields, Field{"error", Keyword("mismatch")})
			}
			return pick(rng, OK, OK, OK, Fail), fields
		},
	}
}

func oracles() []oracle {
	number := func(top int64) func(*rand.Rand) Value {
		return func(rng *rand.Rand) Value { return Int(rng.Int64N(top)) }
	}
	lock := []string{"one deeper", "one less deep", "released when free"}
	owned := append(slices.Clone(lock), "anybody releases")
	nested := append(slices.Clone(owned), "anybody nests", "a release undoes all")
	fenced := []string{"a fence as high as the last", "a fence two higher", "any fence", "a fence is always told", "a release forgets fences"}
	refenced := []string{"untold nests forget the fence", "nested fences are the next", "nested fences are the last", "nested fences are any", "nests do not tell the first fence"}
	permits := []string{"one permit more", "one permit less", "one permit each", "released when none is held"}
	return []oracle{
		registerOracle("register(nil)", "nil", number(2), nil, "read", "write"),
		registerOracle("register(1)", "1", number(3), []string{"nil is a value"}, "read", "read", "write"),
		registerOracle("cas-register(0)", "0", number(3), []string{"nil is a value", "cas does not compare", "cas does not set"}, "read", "write", "cas"),
		multiOracle("multi-register(nil)", "nil"),
		multiOracle("multi-register(0)", "0", "nil is a value"),
		lockOracle("mutex", false, 1, false, lock...),
		lockOracle("owner-mutex", true, 1, false, owned...),
		lockOracle("reentrant-mutex(2)", true, 2, false, nested...),
		lockOracle("reentrant-mutex", true, math.MaxInt32, false, "anybody nests", "anybody releases", "a release undoes all", "released when free"),
		lockOracle("fenced-mutex", true, 1, true, slices.Concat(owned, fenced)...),
		lockOracle("reentrant-fenced-mutex(2)", true, 2, true, slices.Concat(nested, fenced, refenced[1:])...),
		lockOracle("reentrant-fenced-mutex", true, math.MaxInt32, true, slices.Concat(fenced, refenced)...),
		permitsOracle("permits(2)", 2, true, append(slices.Clone(permits), "anybody releases")...),
		permitsOracle("permits(2) of nobody", 2, false, "one permit more", "one permit less", "released when none is held"),
		kvOracle(),
		storageOracle(),
		casOracle(),
		leaseOracle(),
		fencepostOracle(),
	}
}
