package lifelike

import (
	"fmt"
	"slices"

	"fencepost/linearizability"
)

// Proof says by which few events the history cannot have come from a correct
// service, or "" if no such events are found. Each proof follows from the rules
// by itself, whatever happened besides, so that it is never wrong; but it does
// not see what takes more than a few events to show. A planted bug with a Proof
// is one that a checker must find.
func Proof(h linearizability.History) string {
	p := newProver(h)
	granted := func(o *seen) bool { return o.is("acquire") }
	running := func(o *seen) bool { return o.is("acquire", "renew") }
	for _, find := range [...]struct {
		first func(a *seen) bool    // may be the first of a pair
		pair  func(a, b *seen) bool // of one lease or storage
		claim string
	}{
		{granted, p.pastTenure, "a tenure is over before"},
		{granted, p.twoOwners, "two owners have the token of"},
		{(*seen).shows, p.skipped, "nobody can have had a token between"},
		{running, p.endedEarly, "the TTL of the first has not run out at the second"},
		{(*seen).over, p.revived, "a lapse is told before the lease is held again"},
		{running, p.endless, "the lease must have lapsed before"},
		{(*seen).onStorage, p.staleWrite, "a higher token is seen before"},
		{(*seen).onStorage, p.lostWrite, "what was written last is not read"},
		{(*seen).leads, p.twoLeaders, "two lead at once"},
		{granted, p.unheld, "one has the token, the other leads under it"},
	} {
		for _, ops := range p.byKey {
			if a, b := pair(*ops, find.first, find.pair); a != nil {
				return fmt.Sprintf("%s: %s, %s", find.claim, a, b)
			}
		}
	}
	// What joins a lease and its storage, of which a history does not say which
	// belong together unless there is one of each.
	if p.leases == 1 {
		if a, b := pair(p.ops, granted, p.borrowed); a != nil {
			return fmt.Sprintf("a write lands under the token of another: %s, %s", a, b)
		}
		if a, b := pair(p.ops, (*seen).leads, p.pastBarrier); a != nil {
			return fmt.Sprintf("a write lands after a later leader began: %s, %s", a, b)
		}
	}
	return ""
}

// pair returns the first two operations that match.
func pair(ops []*seen, first func(*seen) bool, match func(a, b *seen) bool) (a, b *seen) {
	for _, a := range ops {
		if !first(a) {
			continue
		}
		for _, b := range ops {
			if a != b && match(a, b) {
				return a, b
			}
		}
	}
	return nil, nil
}

// seen is an operation as it is on record. Its instants are widened by the
// error of the time stamps.
type seen struct {
	f, owner   string // the owner is who asks, or of a get, who is named
	holder     string // named by a refusal
	token      uint64
	highest    uint64 // named by a refusal
	ttl        int64
	k          string
	v          int64
	typ        linearizability.Type
	word       string // the error
	call, ret  int64  // ret is Unbounded of what did not return
	begin, end int64  // places in the history
	process    int64
	peers      *[]*seen // the operations on the same lease or storage
}

func (o *seen) String() string { return fmt.Sprintf("%s of event %d", o.f, o.begin) }

// is reports whether o is one of the given operations, and succeeded.
func (o *seen) is(fs ...string) bool {
	for _, f := range fs {
		if o.f == f && o.typ == linearizability.OK {
			return true
		}
	}
	return false
}

// may reports whether o is such an operation and can have had an effect.
func (o *seen) may(f string) bool { return o.f == f && o.typ != linearizability.Fail }

// refused reports whether o was told that its owner does not hold the lease.
func (o *seen) refused() bool {
	return o.typ == linearizability.Fail && (o.word == "lapsed" || o.word == "lost")
}

// over reports whether o was told that a tenure is over which may have been its
// own: that the owner does not hold the lease, that nobody does, or that it has
// lapsed and is in the lock delay.
func (o *seen) over() bool {
	return o.refused() || o.is("get") && o.owner == "" || o.f == "acquire" && o.word == "delay"
}

func (o *seen) leads() bool     { return o.f == "lead" }
func (o *seen) onStorage() bool { return o.is("write", "fence") || o.word == "stale" }

type prover struct {
	meta     linearizability.Meta
	tokens   bool
	ops      []*seen
	byKey    []*[]*seen // those of each lease and of each storage
	restarts []*seen    // are of all leases
	leases   int
	longest  int64 // TTL asked for
}

func newProver(h linearizability.History) *prover {
	p := &prover{meta: h.Meta, tokens: h.Meta.Tokens != linearizability.TokensNone}
	open := make(map[int64]*seen)
	keys := make(map[string]*[]*seen)
	for i := range h.Events {
		e := &h.Events[i]
		switch {
		case e.Process == linearizability.NoProcess:
			continue
		case e.Type == linearizability.Invoke:
			o := &seen{f: e.F, typ: linearizability.Info, process: e.Process, call: e.Time - h.Meta.Eps, begin: int64(i),
				ret: linearizability.Unbounded, end: linearizability.Unbounded}
			open[e.Process] = o
			p.ops = append(p.ops, o)
		case e.Type != linearizability.Info:
			o := open[e.Process]
			o.typ, o.ret, o.end = e.Type, e.Time+h.Meta.Eps, int64(i)
		}
		o := open[e.Process]
		for _, f := range e.Fields {
			o.set(f)
		}
		if e.Type != linearizability.Invoke {
			continue
		}
		if o.f == "restart" {
			p.restarts = append(p.restarts, o)
			continue
		}
		p.longest = max(p.longest, o.ttl)
		key, _ := e.Field("key").Word()
		peers, known := keys[key]
		if !known {
			peers = new([]*seen)
			keys[key] = peers
			p.byKey = append(p.byKey, peers)
			if o.f != "write" && o.f != "fence" && o.f != "read" {
				p.leases++
			}
		}
		*peers = append(*peers, o)
		o.peers = peers
	}
	return p
}

func (o *seen) set(f linearizability.Field) {
	switch f.Name {
	case "owner":
		o.owner, _ = f.Value.Word()
	case "holder":
		o.holder, _ = f.Value.Word()
	case "token":
		o.token, _ = f.Value.Uint()
	case "highest":
		o.highest, _ = f.Value.Uint()
	case "ttl":
		o.ttl, _ = f.Value.Int()
	case "k":
		o.k, _ = f.Value.Word()
	case "v":
		o.v, _ = f.Value.Int()
	case "error":
		o.word, _ = f.Value.Word()
	}
}

// before reports whether a had returned when b was called.
func (p *prover) before(a, b *seen) bool {
	if p.meta.Eps == 0 || a.process == b.process {
		return a.end < b.begin
	}
	return a.ret < b.call
}

// shows reports whether the answer to o shows its owner to hold the lease under
// its token.
func (o *seen) shows() bool {
	return o.is("acquire", "renew", "release") || o.is("get") && o.owner != ""
}

// sameTenure reports whether a and b are of one owner under one token.
func (p *prover) sameTenure(a, b *seen) bool {
	return a.owner == b.owner && a.token == b.token
}

// any reports whether some operation on the lease of o is as described.
func (o *seen) any(match func(*seen) bool) bool {
	return slices.ContainsFunc(*o.peers, match)
}

// pastTenure: once a higher token was granted, nobody holds the lease under a.
func (p *prover) pastTenure(a, b *seen) bool {
	return p.tokens && a.is("acquire") && b.shows() && b.token < a.token && p.before(a, b)
}

func (p *prover) twoOwners(a, b *seen) bool {
	return p.tokens && a.is("acquire") && b.shows() && a.token == b.token && a.owner != b.owner
}

// skipped: a and b are grants two tokens apart or more, and no acquire of
// unknown outcome was called early enough to have got one between, or the time
// between is too short for the TTL of one that did.
func (p *prover) skipped(a, b *seen) bool {
	if p.meta.Tokens != linearizability.TokensNext || !a.shows() || !b.is("acquire") || b.token < a.token+2 ||
		a.any(func(x *seen) bool {
			return x.shows() && a.token < x.token && x.token < b.token
		}) {
		return false
	}
	unknown := a.any(func(x *seen) bool { return x.f == "acquire" && x.typ == linearizability.Info && x.call <= b.ret })
	if !unknown {
		return true
	}
	shortest := p.longest
	for _, x := range p.ops {
		if x.f == "acquire" {
			shortest = min(shortest, x.ttl)
		}
	}
	return b.ret-a.call < fastest(shortest, p.meta.Drift)-p.meta.Early && !a.any(func(x *seen) bool {
		return x.call <= b.ret && (x.may("delete") || x.may("release") && a.token < x.token && x.token < b.token)
	})
}

// endedEarly: a was granted or renewed, and b shows that the tenure is over, but
// a's TTL cannot have run out, nor its lock delay, and nobody gave up the lease.
func (p *prover) endedEarly(a, b *seen) bool {
	if !a.is("acquire", "renew") || b.ret-a.call >= a.ttl+p.meta.LockDelay {
		return false
	}
	least := fastest(a.ttl, p.meta.Drift) - p.meta.Early
	switch another := b.is("acquire") && (b.owner != a.owner || b.token != a.token); {
	case another && p.tokens && b.token > a.token, another && b.owner != a.owner && p.before(a, b):
		if p.meta.LockDelay > 0 {
			least += fastest(p.meta.LockDelay, p.meta.Drift) - 1
		}
	case b.is("get") && b.owner == "" && p.before(a, b):
	case b.refused() && p.sameTenure(a, b) && p.before(a, b):
	default:
		return false
	}
	return b.ret-a.call < least && !a.any(func(x *seen) bool {
		return x.call <= b.ret && (x.may("delete") || x.may("release") && p.sameTenure(a, x))
	})
}

// revived: a tells that a tenure is over, which b shows to go on.
func (p *prover) revived(a, b *seen) bool {
	if p.meta.RenewAfterLapse || !p.tokens || !a.over() || !p.before(a, b) {
		return false
	}
	owner, token := b.owner, b.token
	switch {
	case b.f == "acquire" && b.word == "held" && b.holder != "":
		// It names no token: the holder must have had one grant only.
		owner, token = b.holder, 0
	case !b.shows():
		return false
	}
	began := false // before a told so
	if b.any(func(x *seen) bool {
		if x.f != "acquire" || x.owner != owner || x.typ == linearizability.Fail {
			return false
		}
		if token == 0 {
			token = x.token
		}
		began = began || x.is("acquire") && p.before(x, a) && x.token == token
		return x.typ != linearizability.OK || x.token != token
	}) || !began {
		return false
	}
	return !a.refused() || a.owner == owner && a.token == token
}

// endless: b shows somebody to hold the lease whose last TTL must have run out.
// Of all its grants a is the last.
func (p *prover) endless(a, b *seen) bool {
	owner := b.owner
	if b.f == "acquire" && b.word == "held" && b.holder != "" {
		owner = b.holder
	} else if !b.is("renew", "release") && !(b.is("get") && b.owner != "") {
		return false
	}
	if p.meta.Late == linearizability.Unbounded || !a.is("acquire", "renew") || a.owner != owner || p.meta.RenewAfterLapse ||
		a.ret+slowest(a.ttl, p.meta.Drift)+p.meta.Late >= b.call {
		return false
	}
	must := func(x *seen) bool {
		return x.typ == linearizability.OK && x.ret+slowest(max(x.ttl, a.ttl), p.meta.Drift)+p.meta.Late < b.call
	}
	for _, r := range p.restarts {
		if r.call <= b.ret && (r.typ != linearizability.OK || r.ret+slowest(p.longest, p.meta.Drift)+p.meta.Late >= b.call) {
			return false
		}
	}
	return !b.any(func(x *seen) bool {
		return x != b && (x.may("acquire") || x.may("renew")) && x.owner == owner && !must(x)
	})
}

// staleWrite: b lands though a shows that the storage has seen a higher token.
func (p *prover) staleWrite(a, b *seen) bool {
	if !b.is("write", "fence") || !p.before(a, b) {
		return false
	}
	return a.is("write", "fence") && a.token > b.token || a.word == "stale" && max(a.highest, a.token+1) > b.token
}

// lostWrite: b reads something else than a wrote, which was not written since.
func (p *prover) lostWrite(a, b *seen) bool {
	if !a.is("write") || !b.is("read") || a.k != b.k || a.v == b.v || !p.before(a, b) {
		return false
	}
	return !a.any(func(x *seen) bool { return x.may("write") && x.k == b.k && x.v == b.v && !p.before(x, a) })
}

// twoLeaders: two beliefs with a known end overlap by more than the stamps may
// err.
func (p *prover) twoLeaders(a, b *seen) bool {
	if !a.is("lead") || !b.is("lead") || p.sameTenure(a, b) {
		return false
	}
	// The widened overlap is 2 eps longer than the one on record.
	return min(a.ret, b.ret)-max(a.call, b.call) > 4*p.meta.Eps &&
		!a.any(func(x *seen) bool { return x.f == "delete" })
}

// unheld: a was granted the token under which b, somebody else, leads.
func (p *prover) unheld(a, b *seen) bool {
	return p.tokens && a.is("acquire") && b.f == "lead" && a.token == b.token && a.owner != b.owner
}

// borrowed: a was granted the token under which b, somebody else, writes.
func (p *prover) borrowed(a, b *seen) bool {
	return a.is("acquire") && b.is("write") && a.token == b.token && a.owner != b.owner
}

// pastBarrier: a leads, having fenced its storage, before b writes to it under
// a lower token.
func (p *prover) pastBarrier(a, b *seen) bool {
	if !p.meta.Barrier || a.f != "lead" || !b.is("write") || b.token >= a.token {
		return false
	}
	return a.begin < b.begin && (p.meta.Eps == 0 || a.call+2*p.meta.Eps < b.call)
}
