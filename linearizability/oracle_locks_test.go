package linearizability

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// oracleOwners finds by whom each operation may be: the owner that it names, or
// else its process names; or the process where nobody is named; or anybody.
func oracleOwners(h *History, ops []oracleOp) {
	name := func(e *Event) string {
		if e == nil {
			return ""
		}
		if s, ok := e.Field("owner").Word(); ok {
			return s
		}
		if v := e.Field("value"); v.Kind() == KindMap {
			for i, entry := range v.list {
				if word, _ := entry.Word(); word == "client" {
					s, _ := v.list[i+1].Word()
					return s
				}
			}
		}
		return ""
	}
	const several = "?"
	named := make(map[int64]string)
	for i := range h.Events {
		p := h.Events[i].Process
		if s := name(&h.Events[i]); s != "" {
			if was := named[p]; was != "" && was != s {
				s = several
			}
			named[p] = s
		}
	}
	for i := range ops {
		op := &ops[i]
		own := name(op.call)
		if op.end >= 0 && op.end < len(h.Events) && own == "" && op.ret == nil {
			own = name(&h.Events[op.end]) // even of an unknown outcome
		}
		if own == "" {
			own = name(op.ret)
		}
		switch {
		case own != "":
			op.owners = []string{own}
		case named[op.process] != "" && named[op.process] != several:
			op.owners = []string{named[op.process]}
		case len(named) == 0:
			op.owners = []string{fmt.Sprint(op.process)}
		default:
			op.owners = []string{"a", "b", "somebody of whom nobody heard"}
		}
	}
}

type oracleLock struct {
	holder         string
	depth          int
	fence, highest int64
}

func lockRule(owned bool, depth int, fenced bool, flaw string) rule {
	switch flaw {
	case "one deeper":
		depth++
	case "one less deep":
		depth--
	case "anybody releases":
		owned = false
	}
	return func(state any, op *oracleOp) []any {
		var next []any
		for _, owner := range op.owners {
			s := state.(oracleLock)
			if op.f == "release" {
				if s.depth == 0 && flaw != "released when free" || s.depth > 0 && owned && s.holder != owner {
					continue
				}
				if s.depth = max(s.depth-1, 0); s.depth == 0 || flaw == "a release undoes all" {
					s.holder, s.depth, s.fence = "", 0, 0
				}
				if flaw == "a release forgets fences" {
					s.highest = 0
				}
				next = append(next, s)
				continue
			}
			if s.depth >= depth || s.depth > 0 && s.holder != owner && owned && flaw != "anybody nests" {
				continue
			}
			first := s.depth == 0
			s.holder = owner
			s.depth++
			fence, told := oracleFence(op)
			least := s.highest + 1
			switch flaw {
			case "a fence as high as the last":
				least--
			case "a fence two higher":
				least++
			case "any fence":
				least = 0
			}
			switch {
			case !fenced:
			case fence == 0:
				if told && flaw == "a fence is always told" {
					continue
				}
				if flaw == "untold nests forget the fence" {
					s.fence = 0
				}
			case s.fence != 0 && !first:
				same := s.fence
				switch flaw {
				case "nested fences are the next":
					same++
				case "nested fences are the last":
					same--
				case "nested fences are any":
					same = fence
				}
				if fence != same {
					continue
				}
			case fence < least, flaw == "nests do not tell the first fence" && !first:
				continue
			default:
				s.fence, s.highest = fence, fence
			}
			next = append(next, s)
		}
		return next
	}
}

// oracleFence is what an acquire was told: 0 for nothing.
func oracleFence(op *oracleOp) (fence int64, told bool) {
	if op.ret == nil {
		return 0, false
	}
	for _, v := range []Value{op.told("fence"), op.told("token"), op.told("value").entry("fence")} {
		if n, ok := v.Int(); ok {
			return n, true
		}
	}
	return 0, true
}

// lockOracle draws owners in four styles: by process, in the field owner, as
// client in the value of what returned, and without a name now and then.
func lockOracle(model string, owned bool, depth int, fenced bool, flaws ...string) oracle {
	return oracle{
		model: model, start: startIn(oracleLock{}), flaws: flaws, styles: 4,
		rule: func(_ *History, flaw string) rule { return lockRule(owned, depth, fenced, flaw) },
		call: func(rng *rand.Rand, style int, p int64) (string, []Field) {
			f := pick(rng, "acquire", "acquire", "acquire", "release", "release")
			if style == 1 && owned || style == 3 && owned && rng.IntN(2) == 0 {
				return f, []Field{{"owner", String(oracleOwner(rng, p))}}
			}
			return f, nil
		},
		answer: func(rng *rand.Rand, style int, p int64, f string, call []Field) (Type, []Field) {
			end := okOrFail(rng)
			if end == Fail || !owned {
				return end, nil
			}
			fence := pick(rng, 0, 1, 2, 3, 4, 5, rng.Int64N(9))
			switch {
			case style == 2:
				entries := []Value{Keyword("client"), String(oracleOwner(rng, p)), Keyword("fence"), Int(fence)}
				return end, []Field{{"value", listValue(KindMap, entries)}}
			case !fenced || f != "acquire":
				return end, nil
			}
			return end, []Field{{pick(rng, "fence", "token"), Int(fence)}}
		},
	}
}

// oracleOwner is mostly the one owner for whom a process asks.
func oracleOwner(rng *rand.Rand, p int64) string {
	if rng.IntN(6) == 0 {
		p++
	}
	return []string{"a", "b"}[p%5/3]
}

// permitsRule counts the permits of each owner. Where owners are not all known,
// they are all one.
func permitsRule(n int, known bool, flaw string) rule {
	switch flaw {
	case "one permit more":
		n++
	case "one permit less":
		n--
	case "anybody releases":
		known = false
	}
	owners := []string{"a", "b"}
	return func(state any, op *oracleOp) []any {
		s := state.([2]int)
		who := 0
		if known {
			// Nobody else has a permit while the history is being made.
			who = max(slices.Index(owners, op.owners[0]), 0)
		}
		total := s[0] + s[1]
		switch {
		case op.f == "acquire" && (total >= n || flaw == "one permit each" && s[who] > 0):
			return nil
		case op.f == "acquire":
			s[who]++
		case s[who] > 0:
			s[who]--
		case flaw != "released when none is held" || total > 0:
			return nil
		}
		return []any{s}
	}
}

func permitsOracle(model string, n int, named bool, flaws ...string) oracle {
	o := lockOracle(model, named, n, false, flaws...)
	o.start = startIn([2]int{})
	o.rule = func(h *History, flaw string) rule {
		known := named
		for _, op := range h.Ops() {
			x := []oracleOp{{process: h.Events[op.Call].Process, call: &h.Events[op.Call], end: op.Return}}
			oracleOwners(h, x)
			known = known && (op.Type == Fail || len(x[0].owners) == 1 && len(x[0].owners[0]) == 1 && x[0].owners[0] >= "a")
		}
		return permitsRule(n, known, flaw)
	}
	if !named {
		o.styles = 1
		o.answer = func(rng *rand.Rand, _ int, _ int64, _ string, _ []Field) (Type, []Field) {
			return pick(rng, OK, OK, OK, OK, OK, OK, Fail), nil
		}
		return o
	}
	call := o.call
	o.styles = 2
	o.call = func(rng *rand.Rand, style int, p int64) (string, []Field) { return call(rng, 1+2*style, p) }
	return o
}
