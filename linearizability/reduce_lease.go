package linearizability

import (
	"math"
	"time"
)

// A grant leaves a lease behind that its owner holds under its token, for its
// TTL from that instant; so does a renewal that succeeded, which is possible at
// first only as a grant. An earlier TTL of the same owner goes on running, but
// ends no later, provided that it was no longer: only then is it an anchor.
//
// An unknown operation can explain no more than that
//
//   - its owner holds the lease: an acquire, a renewal. Wanted if an answer
//     shows that he did, or that somebody did.
//   - a token was taken: an acquire. Wanted if a token is missing.
//   - the lease is free: a release, a deletion. Wanted if an answer shows that.
//
// and one that is wanted may need others: an acquire, that the lease be free; a
// renewal, that it be held. A release needs nothing: had the lease lapsed
// meanwhile, it were as free, but for a lock delay. A restart may need whatever
// was put on record before it, and keeps everything.
//
// A renewal or release under a token below the anchor's has no effect any more.
var leaseRules = rules{
	reads:    []string{"get"},
	refusals: true,
	anchor: func(r *reducer, x *reducible) bool {
		if x.f != "acquire" && x.f != "renew" {
			return false
		}
		owner, ttl := r.h.op(x.Op).name("owner"), r.ttl(x)
		if r.longest == nil {
			r.longest = make(map[string]time.Duration)
			for i := range r.ops {
				y := &r.ops[i]
				who := r.h.op(y.Op).name("owner")
				r.longest[who] = max(r.longest[who], r.ttl(y))
			}
		}
		if r.longest[owner] <= ttl {
			return true
		}
		for i := range r.ops {
			y := &r.ops[i]
			if (y.f == "acquire" || y.f == "renew") && y.effect && r.ttl(y) > ttl && r.h.op(y.Op).name("owner") == owner && !r.precedes(x, y) {
				return false
			}
		}
		return true
	},
	recast: func(r *reducer, x *reducible, call, ret *Event) {
		if x.f != "renew" {
			return
		}
		call.F, ret.F = "acquire", "acquire"
		fields := call.Fields
		call.Fields = nil
		for _, f := range fields {
			if f.Name != "token" {
				call.Fields = append(call.Fields, f)
			}
		}
		call.Fields = append(call.Fields, was(call, "renew"))
		ret.Fields = nil
		if token := r.h.op(x.Op).field("token"); !token.IsNil() {
			ret.Fields = []Field{{"token", token}}
		}
	},
	wanted: wantedOfLease,
}

// ttl is the TTL that x asks for.
func (r *reducer) ttl(x *reducible) time.Duration {
	if n, ok := r.h.op(x.Op).field("ttl").Int(); ok {
		return time.Duration(n)
	}
	return r.o.TTL
}

func wantedOfLease(c *candidate) map[int]bool {
	h := &c.r.h
	tokens := h.Meta.Tokens != TokensNone
	name := func(i int, field string) string { return h.op(c.r.ops[i].Op).name(field) }
	token := func(i int) uint64 { n, _ := h.op(c.r.ops[i].Op).field("token").Uint(); return n }

	held := make(map[string]bool) // by owner, that he held the lease may be missing
	var anyHeld, free, restarts bool
	granted := make(map[uint64]bool)
	asked := make(map[string]bool) // who was granted the lease on record
	shown := make(map[uint64]bool)
	for _, i := range c.known {
		x := &c.r.ops[i]
		switch {
		case x.f == "restart":
			restarts = true
		case x.f == "delete":
		case x.f == "acquire" && x.Type == OK, i == c.anchor:
			// Who is granted the lease once more may have held it all along.
			owner := name(i, "owner")
			held[owner] = held[owner] || asked[owner]
			asked[owner] = true
			granted[token(i)], shown[token(i)] = true, true
			free = free || i != c.anchor
		case x.f == "acquire":
			holder := name(i, "holder")
			held[holder] = true
			// Whose lapse began a lock delay is not what its refusal says.
			anyHeld = anyHeld || holder == "" || h.op(x.Op).errorWord() != "held"
		case x.Type == Fail:
			free = true
		case x.f == "get" && name(i, "owner") == "":
			free = true
		default: // get, renew, release: somebody holds it
			held[name(i, "owner")] = true
			shown[token(i)] = true
		}
	}
	missing := tokens && h.Meta.Tokens == TokensNext && missesToken(c, shown, granted)

	return c.closure(func(i int) bool {
		x := &c.r.ops[i]
		past := tokens && c.anchor != none && token(i) < token(c.anchor)
		switch {
		case x.f == "renew":
			return !past && (restarts || anyHeld || held[name(i, "owner")])
		case x.f == "release":
			return !past && (restarts || free)
		case x.f == "acquire":
			return restarts || missing || anyHeld || held[name(i, "owner")]
		case x.f == "delete":
			return restarts || free
		}
		return restarts || anyHeld || len(held) > 0
	}, func(i int) {
		switch c.r.ops[i].f {
		case "acquire":
			free = true
		case "renew":
			held[name(i, "owner")] = true
		case "release":
			if h.Meta.LockDelay > 0 {
				held[name(i, "owner")] = true
			}
		case "restart":
			restarts = true
		}
	})
}

// missesToken reports whether a token up to the highest that was shown is not
// known to have been granted. Of those up to the anchor's none matters: whoever
// shows one after the anchor cannot be explained, whatever else happened.
func missesToken(c *candidate, shown, granted map[uint64]bool) bool {
	first, high := uint64(math.MaxUint64), uint64(0)
	for n := range shown {
		if n > 0 { // 0: not said
			first, high = min(first, n), max(high, n)
		}
	}
	switch meta := c.r.h.Meta.First; {
	case c.anchor != none:
		token, _ := c.r.h.op(c.r.ops[c.anchor].Op).field("token").Uint()
		first = token + 1
	case meta > 0:
		first = meta
	}
	n := uint64(0)
	for token := range granted {
		if first <= token {
			n++
		}
	}
	return high >= first && high-first >= n
}
