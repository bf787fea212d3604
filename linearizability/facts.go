package linearizability

import "hash/maphash"

// factKind says which operation a fact is of.
type factKind uint8

const (
	factAcquire factKind = iota
	factRenew
	factRelease
	factDelete
	factRestart
	factHolds // an answer that says who holds the lease: of a get, or of an acquire that was refused
	factLead
	factWrite
	factFence
	factRead
	factLanded // what landed in a storage, in order
)

var factKinds = map[string]factKind{
	"acquire": factAcquire, "renew": factRenew, "release": factRelease, "delete": factDelete, "restart": factRestart,
	"get": factHolds, "lead": factLead, "write": factWrite, "fence": factFence, "read": factRead, "landed": factLanded,
}

// fact is what is kept of an operation for the checks beside its order. There
// is one for each of a million operations: it has no more than they need.
type fact struct {
	span
	key, owner string // owner: for factHolds the one that holds, "" if unnamed
	from, to   int64  // times of its call and its return; NoTime if there is none
	token      uint64
	ttl        int64 // as asked and granted; 0 if there is none
	// number is what a kind has for itself: of a write or fence refused as stale
	// the highest token that it names; of a renewal that draws a token the one
	// that it replaces; of a write or read its value.
	number uint64
	called place // the events, for whoever wants to look
	cell   int32 // of a write or read: the key inside the storage
	slot   int16 // noSlot if it names none
	kind   factKind

	hasToken bool
	named    bool // a refusal as stale names the highest token
	stale    bool // refused as stale
	sent     bool // was not answered by not-sent
	lapsed   bool // refused as lapsed
	slow     bool // under a clock that broke its bound
	draws    bool // a renewal that draws a new token
	found    bool // an acquire that says it found an earlier grant
	fresh    bool // an acquire that says it found none
	renamed  bool // it returned under another owner than it was called with
	retoken  bool // it returned with another token than it was called with

	returned place
}

// place is where an event is in its file.
type place struct {
	index int64
	line  int32
}

func placeOf(e *Event) place { return place{e.Index, int32(e.Line)} }

// record is one write that landed, as a storage lists it.
type record struct {
	of       int64 // place of the call of the list
	position int   // in the list, from 0
	key      string
	owner    string
	token    uint64
	slot     int16
	id       string
}

// facts are the facts of a history.
type facts struct {
	meta     *Meta
	storages bool   // they are of storages alone: who was granted which token is not on record
	all      []fact // in the order of their calls, once all have come
	texts    map[string]string
	cells    names
	seed     maphash.Seed
	// records are those of all lists; ids are those of writes that have one, by
	// the place of their call. Both are empty where nothing lists what landed.
	records []record
	ids     map[int64]string
}

// text is one copy of a text that many operations share.
func (x *facts) text(s string) string {
	if t, ok := x.texts[s]; ok {
		return t
	}
	if x.texts == nil {
		x.texts = make(map[string]string)
	}
	x.texts[s] = s
	return s
}

// add keeps what matters of an operation.
func (x *facts) add(o *operation) {
	kind, ok := factKinds[o.invoked.F]
	if !ok {
		return
	}
	f := fact{
		span: o.span, kind: kind, key: x.text(o.name("key")), owner: x.text(o.name("owner")), slot: noSlot,
		sent: true, from: o.invoked.Time, to: NoTime, called: placeOf(o.invoked),
	}
	if slot, ok := slotOf(o); ok {
		f.slot = int16(slot)
	}
	if o.ended != nil {
		f.to, f.returned = o.ended.Time, placeOf(o.ended)
	}
	if o.Type == Fail {
		word := o.errorWord()
		f.sent, f.stale, f.lapsed = word != notSent, word == "stale", word == "lapsed"
		f.number, f.named = o.ended.Field("highest").Uint()
	}
	switch kind {
	case factWrite, factFence:
		// The token is the one that the request carried, whatever the answer says.
		v := o.invoked.Field("token")
		f.token, _ = v.Uint()
		f.hasToken = !v.IsNil()
		if kind == factWrite && o.Type != Fail {
			f.cell, f.number = x.cellOf(o), x.value(o.invoked.Field("v"))
		}
		if id := o.name("id"); id != "" {
			if x.ids == nil {
				x.ids = make(map[int64]string)
			}
			x.ids[f.call] = id
		}
	case factRead:
		if o.Type != OK {
			return // it tells nothing
		}
		f.cell, f.number = x.cellOf(o), x.value(o.ended.Field("v"))
	case factLanded:
		if o.Type != OK {
			return
		}
		x.list(o)
	case factHolds:
		x.holds(o, f)
		return
	case factAcquire:
		already, says := alreadyOf(o)
		f.found, f.fresh = says && already, says && !already
		if o.Type == Fail {
			if o.errorWord() == "held" {
				f.kind, f.owner = factHolds, x.text(o.name("holder"))
			}
			break
		}
		f.token, f.hasToken = o.field("token").Uint()
		f.ttl = o.leaseTTL()
	case factRenew:
		f.token, f.hasToken = o.field("token").Uint()
		f.ttl = o.leaseTTL()
		if f.number, f.draws = o.field("from").Uint(); f.draws && o.Type != OK {
			f.token = f.number
		}
	default:
		f.token, f.hasToken = o.field("token").Uint()
	}
	if kind == factLead {
		f.slow, _ = o.field("slow").Bool()
	}
	f.renamed = o.differs("owner")
	f.retoken = !f.draws && o.differs("token")
	x.all = append(x.all, f)
}

// differs reports whether call and return both have the field, and not alike.
func (o *operation) differs(field string) bool {
	if o.ended == nil {
		return false
	}
	a, b := o.invoked.Field(field), o.ended.Field(field)
	if a.IsNil() || b.IsNil() {
		return false
	}
	x, isName := a.identity()
	y, _ := b.identity()
	return isName && x != y || !isName && !a.Equal(b)
}

// cellOf numbers the key inside a storage that an operation is about.
func (x *facts) cellOf(o *operation) int32 {
	return x.cells.of(o.name("key") + "\x00" + o.invoked.Field("k").canonical())
}

// value is a hash of a value, 0 for none. Two values with one hash pass for the
// same: they can hide a lost write, and never make one up.
func (x *facts) value(v Value) uint64 {
	if v.IsNil() {
		return 0
	}
	if x.seed == (maphash.Seed{}) {
		x.seed = maphash.MakeSeed()
	}
	return max(maphash.String(x.seed, v.canonical()), 1)
}

// holds adds what a get says of each holder.
func (x *facts) holds(o *operation, f fact) {
	if o.Type != OK {
		return
	}
	if !o.ended.Has("holders") {
		if f.token, f.hasToken = o.ended.Field("token").Uint(); f.owner != "" {
			x.all = append(x.all, f)
		}
		return
	}
	for _, v := range o.ended.Field("holders").Elems() {
		owner, _ := v.entry("owner").identity()
		f.owner = x.text(owner)
		f.token, f.hasToken = v.entry("token").Uint()
		if n, ok := v.entry("slot").Int(); ok {
			f.slot = int16(max(noSlot, min(n, maxSlots)))
		}
		x.all = append(x.all, f)
	}
}

// list reads what a storage says has landed.
func (x *facts) list(o *operation) {
	for i, v := range o.ended.Field("records").Elems() {
		r := record{of: o.call, position: i, slot: noSlot}
		r.token, _ = v.entry("token").Uint()
		for _, f := range []struct {
			name string
			text *string
		}{{"key", &r.key}, {"owner", &r.owner}, {"id", &r.id}} {
			text, _ := v.entry(f.name).identity()
			*f.text = x.text(text)
		}
		if r.key == "" {
			r.key = x.text(o.name("key"))
		}
		if n, ok := v.entry("slot").Int(); ok {
			r.slot = int16(max(noSlot, min(n, maxSlots)))
		}
		x.records = append(x.records, r)
	}
}
