package linearizability

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// chooseEvents is how much of a history a choice looks at: what kind it is of
// shows soon, and histories are longer than memory.
const chooseEvents = 10_000

// An AmbiguousError says that a history may be of several models, or is of
// none.
type AmbiguousError struct {
	Why        string   // what leaves it open
	Candidates []string // models, as ParseModel reads them, each with what speaks for it; empty: none knows the operations
}

func (e *AmbiguousError) Error() string {
	if len(e.Candidates) == 0 {
		return "no model chosen: " + e.Why
	}
	return fmt.Sprintf("no model chosen: %s; name one: %s", e.Why, strings.Join(e.Candidates, ", or "))
}

// Choose finds the model of a history from its operations and their fields, and
// says in one sentence what it went by. See [ChooseFrom].
func Choose(h *History) (Model, string, error) {
	return ChooseFrom(func(yield func(*Event) bool) {
		for i := range h.Events {
			if !yield(&h.Events[i]) {
				return
			}
		}
	})
}

// ChooseFrom finds the model of a history from its first events, 10,000 at most,
// and says in one sentence what it went by. An event need be valid only while it
// is handed over.
//
// It takes no model merely because the history holds by it: two who hold a lock
// at once are a broken mutex until somebody says that it is a semaphore. What
// the operations and their fields leave open is an *[AmbiguousError].
func ChooseFrom(events iter.Seq[*Event]) (Model, string, error) {
	s := survey{ops: make(map[string]bool), calls: make(map[int64]call), written: make(map[registerValue]bool), over: make(map[string]bool), holds: make(map[string][]hold)}
	n := 0
	for e := range events {
		if e.Process != NoProcess {
			s.add(e)
		}
		if n++; n == chooseEvents {
			break
		}
	}
	return s.choose()
}

// survey is what a choice goes by.
type survey struct {
	ops   map[string]bool
	calls map[int64]call // under way, by process

	ttl     bool // an acquire asks for one
	places  bool // reads or writes name a place k in a storage
	tokens  bool // writes carry tokens
	compare bool // reads or writes have expect, from or version
	micros  bool // reads or writes are of several registers
	pairs   bool // reads or writes have values of two parts, as tuples of jepsen.independent do
	scalars bool // and of others
	owners  bool // a get tells the owner, and not a value
	values  bool // a get tells a value

	// Of locks:
	named   bool              // an acquire or release names its owner
	granted bool              // an acquire tells a token
	fenced  bool              // an acquire tells a fence, and calls it that
	holds   map[string][]hold // by key
	nested  bool              // an owner acquired what he held for sure
	same    bool              // and was told the fence that he had
	crowd   bool              // two held a lock at once for sure

	// Of registers:
	written map[registerValue]bool // somebody called a write of it
	over    map[string]bool        // by register: a write of it succeeded
	first   Value                  // an integer that was there though nobody had written it
}

// call is the call of an operation.
type call struct {
	key   string
	owner Value
	value Value
	over  map[string]bool // the registers that were no more as they had been at first
}

// operation is what a choice needs of the operation that returns with e.
func (c call) operation(e *Event) *operation {
	return &operation{invoked: &Event{Fields: []Field{{"owner", c.owner}, {"value", c.value}}}, ended: e}
}

type registerValue struct{ register, value string }

// hold is somebody who holds a lock for sure: his acquire returned, and no
// release of his was called since.
type hold struct {
	process int64
	owner   string
	fence   uint64
}

func (s *survey) add(e *Event) {
	s.ops[e.F] = true
	switch e.F {
	case "read", "write":
		s.places = s.places || e.Has("k")
		s.tokens = s.tokens || e.F == "write" && !e.Field("token").IsNil()
		s.compare = s.compare || e.Has("expect") || e.Has("from") || e.Has("version")
		v := e.Field("value")
		s.micros = s.micros || isTransaction(v)
		s.pairs = s.pairs || len(v.Elems()) == 2
		s.scalars = s.scalars || !v.IsNil() && len(v.Elems()) != 2
	case "get":
		s.owners = s.owners || e.Has("owner")
		s.values = s.values || e.Has("value")
	case "acquire":
		s.ttl = s.ttl || !e.Field("ttl").IsNil()
	}
	if e.Type == Invoke {
		s.called(e)
		return
	}
	c := s.calls[e.Process]
	delete(s.calls, e.Process)
	if e.Type == OK {
		s.returned(e, c)
	}
}

// isTransaction reports whether a value is one of several registers: a map, or
// a list of steps such as [:r 1 nil].
func isTransaction(v Value) bool {
	if v.kind == KindMap {
		return true
	}
	elems := v.Elems()
	return len(elems) > 0 && !slices.ContainsFunc(elems, func(m Value) bool {
		if len(m.Elems()) != 3 {
			return true
		}
		word, _ := m.Elems()[0].Word()
		return !slices.Contains([]string{"r", "w", "read", "write"}, word)
	})
}

func (s *survey) called(e *Event) {
	key, _ := e.Field("key").identity()
	c := call{key: key, owner: e.Field("owner"), value: e.Field("value")}
	for a := range accesses(e.F, key, c.value) {
		if a.write {
			s.written[registerValue{a.register, a.value.canonical()}] = true
		}
		if s.over[a.register] {
			if c.over == nil {
				c.over = make(map[string]bool)
			}
			c.over[a.register] = true
		}
	}
	s.calls[e.Process] = c
	if e.F == "release" {
		owner := s.owner(&operation{invoked: e})
		mine := func(h hold) bool { return h.process == e.Process || h.owner != "" && h.owner == owner }
		if !slices.ContainsFunc(s.holds[key], mine) {
			// Whose, only the return could tell.
			mine = func(hold) bool { return true }
		}
		s.holds[key] = slices.DeleteFunc(s.holds[key], mine)
	}
}

// access is one register of those that an operation reads or writes.
type access struct {
	register string
	write    bool
	value    Value
}

// accesses are the registers in the value of an event.
func accesses(f, key string, v Value) iter.Seq[access] {
	return func(yield func(access) bool) {
		switch elems := v.Elems(); {
		case f == "cas" && len(elems) == 2:
			_ = yield(access{key, false, elems[0]}) && yield(access{key, true, elems[1]})
		case f != "txn" && f != "read" && f != "write":
		case v.kind == KindMap:
			for i := 0; i+1 < len(v.list); i += 2 {
				if !yield(access{key + "/" + v.list[i].canonical(), f == "write", v.list[i+1]}) {
					return
				}
			}
		case isTransaction(v):
			for _, m := range elems {
				word, _ := m.list[0].Word()
				if !yield(access{key + "/" + m.list[1].canonical(), word[0] == 'w', m.list[2]}) {
					return
				}
			}
		case f != "txn":
			yield(access{key, f == "write", v})
		}
	}
}

// owner names who asks for a lock, "" if he does not say.
func (s *survey) owner(o *operation) string {
	name := o.claimant()
	s.named = s.named || name != ""
	return name
}

// returned notes what an operation that succeeded shows.
func (s *survey) returned(e *Event, c call) {
	switch e.F {
	case "acquire":
		s.acquired(e, c)
		return
	case "release":
		s.owner(c.operation(e))
		return
	}
	v := e.Field("value")
	if v.IsNil() || e.F == "cas" {
		v = c.value
	}
	for a := range accesses(e.F, c.key, v) {
		// Of a register that nobody had written, it found the first value.
		if !a.write && a.value.kind == KindInt && s.first.IsNil() && !c.over[a.register] && !s.written[registerValue{a.register, a.value.canonical()}] {
			s.first = a.value
		}
	}
	for a := range accesses(e.F, c.key, v) {
		s.over[a.register] = s.over[a.register] || a.write
	}
}

func (s *survey) acquired(e *Event, c call) {
	o := c.operation(e)
	fence, field := o.fence()
	s.granted = s.granted || field == "token"
	s.fenced = s.fenced || field == "fence" || field == "value" && !fence.IsNil()
	h := hold{process: e.Process, owner: s.owner(o)}
	h.fence, _ = fence.Uint()
	for _, other := range s.holds[c.key] {
		if other.process == h.process || h.owner != "" && h.owner == other.owner {
			s.nested = true
			s.same = s.same || h.fence != 0 && h.fence == other.fence
		} else {
			s.crowd = true
		}
	}
	s.holds[c.key] = append(s.holds[c.key], h)
}

// only reports whether there are no operations but the given ones.
func (s *survey) only(names ...string) bool {
	for op := range s.ops {
		if !slices.Contains(names, op) {
			return false
		}
	}
	return true
}

func (s *survey) any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s.ops[name] })
}

// list names the operations that there are.
func (s *survey) list() string {
	return strings.Join(slices.Sorted(maps.Keys(s.ops)), ", ")
}

func (s *survey) choose() (Model, string, error) {
	chosen := func(m Model, why string, args ...any) (Model, string, error) {
		return m, fmt.Sprintf(why, args...) + ": " + m.String(), nil
	}
	ofLease := s.any("renew", "lead", "delete", "restart") || s.ttl || s.ops["acquire"] && s.ops["get"]
	ofStorage := s.ops["fence"] || s.tokens
	switch {
	case len(s.ops) == 0:
		return Model{}, "", &AmbiguousError{Why: "the history has no operation"}
	case (ofLease || ofStorage) && s.only(append(append([]string{"lead"}, leaseOps...), storageOps...)...):
		switch {
		case !s.any("acquire", "renew", "release", "get", "delete", "lead"):
			return chosen(Model{Name: ModelStorage}, "%s under fencing tokens, and no lease", s.list())
		case !s.any(storageOps...):
			return chosen(Model{Name: ModelLease}, "%s of a lease, and no storage", s.list())
		}
		return chosen(Model{Name: ModelFencepost}, "%s: a lease and a storage under its tokens", s.list())
	case s.only("acquire", "release"):
		return s.lock()
	case s.only("read", "write") && s.places:
		how := "without fencing tokens"
		if s.compare {
			how = "with the version or value that they replace"
		}
		return chosen(Model{Name: ModelCASStorage}, "reads and writes of the keys of a storage %s", how)
	case s.ops["txn"] && s.only("txn", "read", "write"), s.only("read", "write") && s.micros:
		return s.register(ModelMultiRegister, "transactions of reads and writes")
	case s.only("read", "write", "cas") && s.pairs && !s.scalars:
		return Model{}, "", &AmbiguousError{Why: "every value is a pair", Candidates: []string{
			"read it as independent (--independent) if they are tuples [key value]", ModelRegister + " or " + ModelCASRegister + " if they are values",
		}}
	case s.ops["cas"] && s.only("read", "write", "cas"):
		return s.register(ModelCASRegister, s.list())
	case s.only("read", "write"):
		return s.register(ModelRegister, s.list())
	case s.only("get", "put", "append"):
		if s.owners && !s.values {
			return chosen(Model{Name: ModelLease}, "gets tell the owner")
		}
		return chosen(Model{Name: ModelKV}, "%s of strings", s.list())
	}
	return Model{}, "", s.unknown()
}

// register is a model of registers, with the value at first.
func (s *survey) register(name, what string) (Model, string, error) {
	m := Model{Name: name, Init: s.first}
	first := "nothing was found that nobody had written"
	if !s.first.IsNil() {
		first = s.first.String() + " was found before anybody had written it"
	}
	return m, fmt.Sprintf("%s, and %s: %s", what, first, m), nil
}

// lock chooses among the models of acquire and release without a TTL.
func (s *survey) lock() (Model, string, error) {
	name, why := ModelMutex, "acquire and release without owner, token or TTL"
	switch {
	case s.granted && !s.fenced:
		return Model{}, "", &AmbiguousError{Why: "acquires are granted tokens, and no TTL is given", Candidates: []string{
			"lease, with its TTL, if the lock lapses by itself", ModelFencedMutex + " if it does not"}}
	case s.fenced && s.same:
		return Model{Name: ModelReentrantFencedMutex}, "acquires tell fences, the same one where an owner acquires again: " + ModelReentrantFencedMutex, nil
	case s.nested && s.named:
		plain, again := ModelOwnerMutex, ModelReentrantMutex
		if s.fenced {
			plain, again = ModelFencedMutex, ModelReentrantFencedMutex
		}
		return Model{}, "", &AmbiguousError{Why: "an owner acquires what he holds already", Candidates: []string{
			again + "(N) if he may", plain + " if he may not", ModelPermits + "(N) if it is a semaphore"}}
	case s.fenced:
		name, why = ModelFencedMutex, "acquires tell fences"
	case s.named:
		name, why = ModelOwnerMutex, "acquire and release by named owners, without fence, token or TTL"
	}
	why += ": " + name
	if s.crowd || s.nested {
		why += " (it is held twice at once, which only " + ModelPermits + "(N) allows, or a lease that lapses)"
	}
	return Model{Name: name}, why, nil
}

// unknown says why no model fits.
func (s *survey) unknown() error {
	var strange []string
	fit := make(map[string][]string) // by model: what it does not know
	for _, m := range models {
		of := Model{Name: m.name}
		if m.takes == exactly {
			of.N = 1
		}
		for _, op := range slices.Sorted(maps.Keys(s.ops)) {
			known := false
			for _, f := range families(of) {
				_, ok := f.ops[op]
				known = known || ok
			}
			if !known {
				fit[m.name] = append(fit[m.name], op)
			}
		}
	}
	for op := range s.ops {
		everywhere := true
		for _, m := range models {
			everywhere = everywhere && slices.Contains(fit[m.name], op)
		}
		if everywhere {
			strange = append(strange, quote(op))
		}
	}
	if len(strange) > 0 {
		slices.Sort(strange)
		return &AmbiguousError{Why: fmt.Sprintf("no model has an operation %s: name a model, and have that operation ignored", strings.Join(strange, ", "))}
	}
	var candidates []string
	for _, m := range Models() {
		name, _, _ := strings.Cut(m, "(")
		if missing := fit[name]; len(missing) < len(s.ops) {
			how := m
			if len(missing) > 0 {
				how += ", with " + strings.Join(missing, " and ") + " ignored"
			}
			candidates = append(candidates, how)
		}
	}
	return &AmbiguousError{Why: "no model alone has " + s.list(), Candidates: candidates}
}
