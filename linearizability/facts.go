package linearizability

// factKind says which operation a fact is of.
type factKind uint8

const (
	factAcquire factKind = iota
	factRenew
	factRelease
	factDelete
	factLead
	factWrite
	factFence
)

var factKinds = map[string]factKind{
	"acquire": factAcquire, "renew": factRenew, "release": factRelease, "delete": factDelete,
	"lead": factLead, "write": factWrite, "fence": factFence,
}

// fact is what is kept of an operation for the checks beside its order.
type fact struct {
	span
	kind       factKind
	key, owner string
	token      uint64
	hasToken   bool
	ttl        int64  // as asked and granted; 0 if there is none
	highest    uint64 // that a refusal as stale names
	named      bool   // one is named
	stale      bool   // refused as stale
	sent       bool   // was not answered by not-sent
	slow       bool   // under a clock that broke its bound
	from, to   int64  // times of its call and its return; NoTime if there is none
	called     place  // the events, for whoever wants to look
	returned   place
}

// place is where an event is in its file.
type place struct {
	index int64
	line  int32
}

func placeOf(e *Event) place { return place{e.Index, int32(e.Line)} }

// facts are the facts of a history.
type facts struct {
	meta  *Meta
	all   []fact // in the order of their calls, once all have come
	texts map[string]string
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
		span: o.span, kind: kind, key: x.text(o.name("key")), owner: x.text(o.name("owner")),
		sent: true, from: o.invoked.Time, to: NoTime, called: placeOf(o.invoked),
	}
	switch kind {
	case factWrite, factFence:
		// The token is the one that the request carried, whatever the answer says.
		v := o.invoked.Field("token")
		f.token, _ = v.Uint()
		f.hasToken = !v.IsNil()
	default:
		f.token, f.hasToken = o.field("token").Uint()
		f.ttl = o.leaseTTL()
	}
	if kind == factLead {
		f.slow, _ = o.field("slow").Bool()
	}
	if o.ended != nil {
		f.to, f.returned = o.ended.Time, placeOf(o.ended)
	}
	if o.Type == Fail {
		word := o.errorWord()
		f.sent, f.stale = word != notSent, word == "stale"
		f.highest, f.named = o.ended.Field("highest").Uint()
	}
	x.all = append(x.all, f)
}
