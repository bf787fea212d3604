package linearizability

import (
	"slices"
	"strings"
)

// queenLeaseReading says in a verdict how QueenLease understood a history.
const queenLeaseReading = "Queen lease: what an answer says of its request was asked, each renewal draws a token, the tokens of all slots rise, late unbounded"

// isQueenLease reports whether h has acquires that say whether they found an
// earlier grant, and name their owner only when they return: those of Queen's
// lease workload.
func isQueenLease(h *History) bool {
	says := false
	for i := range h.Events {
		e := &h.Events[i]
		switch {
		case e.F != "acquire" || e.Process == NoProcess:
		case e.Type == Invoke && e.Has("owner"):
			return false
		case e.Has("already") || e.Has("already?"):
			says = true
		}
	}
	return says
}

// QueenLease reads a history of the lease workload of Queen's Jepsen tests, in
// either of its spellings, as one of a lease with slots, in the vocabulary of
// this package. A lease has one slot, unless h.Meta.Slots says more. So:
//
//   - what was asked is on the line of the answer: owner, TTL, token, slot, id
//   - :value is the lease, and the TTL is in seconds, where there is no key
//   - already says that an acquire found an earlier grant of its owner
//   - a renewal replaces the token from by token, and the running TTL by its own
//   - a step is a write that the lease itself carries: one that it refused says
//     nothing of the tokens that the storage has seen
//   - a final-read lists what landed
func QueenLease(h History) History {
	r := queenReader{h: &h, name: make(map[int64]Value)}
	h.Meta.Tokens, h.Meta.First, h.Meta.Late, h.Meta.Slots = TokensRising, 0, Unbounded, max(h.Meta.Slots, 1)
	h.Events = slices.Clone(h.Events)
	for i := range h.Events {
		e := &h.Events[i]
		key := e.Field("key")
		if key.IsNil() {
			key = e.Field("value")
		}
		if e.F == "acquire" && !r.named(key) {
			r.keys = append(r.keys, key)
		}
	}
	for _, op := range h.Ops() {
		r.operation(op)
	}
	return h
}

// queenReader translates the operations of one history.
type queenReader struct {
	h    *History
	keys []Value         // of the leases
	name map[int64]Value // of the last owner, by process
}

func (r *queenReader) named(key Value) bool {
	return key.IsNil() || slices.ContainsFunc(r.keys, key.Equal)
}

func (r *queenReader) operation(op Op) {
	called := &r.h.Events[op.Call]
	var ended *Event
	if op.Return >= 0 {
		ended = &r.h.Events[op.Return]
	}
	seconds := !called.Has("key")
	asked := queenFields(called, seconds)
	var told []Field
	if ended != nil {
		told = queenFields(ended, seconds)
	}
	f := called.F
	switch f {
	case "step":
		f = "write"
	case "final-read":
		f = "landed"
	}
	for _, n := range told {
		moves := n.Name == "owner" || n.Name == "ttl" || n.Name == "slot" && f != "acquire" ||
			n.Name == "id" || n.Name == "from" || n.Name == "token" && (f == "write" || f == "release")
		if moves && !slices.ContainsFunc(asked, func(a Field) bool { return a.Name == n.Name }) && f != "get" && f != "landed" {
			asked = append(asked, n)
		}
		if n.Name == "owner" && f != "get" {
			r.name[called.Process] = n.Value
		}
	}
	switch f {
	case "acquire", "renew", "release":
		if owner, known := r.name[called.Process]; known && !slices.ContainsFunc(asked, func(a Field) bool { return a.Name == "owner" }) {
			asked = append(asked, Field{"owner", owner})
		}
	case "write":
		id := fieldOf(asked, "id")
		if id.IsNil() {
			asked = append(asked, Field{"token", Int(0)}) // it was never sent
		}
		asked = append(asked, Field{"k", String("records")}, Field{"v", id})
	case "landed":
		told = r.landed(told)
	}
	called.F, called.Fields = f, asked
	if ended == nil {
		return
	}
	ended.F = f
	if ended.Type == Fail {
		told = queenError(f, told)
	}
	ended.Fields = told
}

func fieldOf(fs []Field, name string) Value {
	for _, f := range fs {
		if f.Name == name {
			return f.Value
		}
	}
	return Value{}
}

// queenFields spells the fields of an event as this package does.
func queenFields(e *Event, seconds bool) []Field {
	out := make([]Field, 0, len(e.Fields))
	for _, f := range e.Fields {
		switch {
		case f.Name == "already?":
			f.Name = "already"
		case f.Name == "value" && seconds && e.F != "final-read":
			f.Name = "key"
		case f.Name == "ttl" && seconds:
			if n, ok := f.Value.Int(); ok && n <= maxInstant/1_000_000_000 {
				f.Value = Int(n * 1e9)
			}
		}
		out = append(out, f)
	}
	return out
}

// queenError gives a failure a word of this package's.
func queenError(f string, fields []Field) []Field {
	var says string
	if e := fieldOf(fields, "error"); !e.IsNil() {
		says = e.String()
	}
	word := notSent
	switch {
	case strings.Contains(says, "not-held"):
	case f == "acquire" && strings.Contains(says, "held"):
		word = "held"
	case f == "renew" || f == "release":
		word = "lost"
	case f == "write":
		word = notCarried
	}
	fields = slices.DeleteFunc(fields, func(f Field) bool { return f.Name == "error" })
	return append(fields, Field{"error", Keyword(word)})
}

// landed makes one list of the lists of all leases: a map of a lease, or of the
// number in its name, to its records in order.
func (r *queenReader) landed(fields []Field) []Field {
	var records []Value
	lists := fieldOf(fields, "value")
	for i := 0; lists.kind == KindMap && i+1 < len(lists.list); i += 2 {
		key := r.lease(lists.list[i])
		for _, record := range lists.list[i+1].Elems() {
			list := []Value{Keyword("key"), key}
			if record.kind == KindMap {
				list = append(list, record.list...)
			}
			records = append(records, listValue(KindMap, list))
		}
	}
	fields = slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return f.Name == "value" })
	return append(fields, Field{"records", Vector(records...)})
}

// lease is the key that a list of records is of.
func (r *queenReader) lease(short Value) Value {
	text, _ := short.identity()
	for _, key := range r.keys {
		if name, _ := key.identity(); name == text || strings.TrimRight(name, "0123456789")+text == name {
			return key
		}
	}
	return short
}
