package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fencepost/impl/lease"
	"fencepost/model"
)

const (
	readAcquire = "go doc fencepost/impl/lease Store.Acquire"
	readRenew   = "go doc fencepost/impl/lease Store.Renew"
	readRelease = "go doc fencepost/impl/lease Store.Release"
	readToken   = "go doc fencepost/impl/lease Token"
)

// games are the checks of concurrent calls.
var games = [...]game{
	{"one-of-many-acquires-wins",
		"Of candidates that acquire a free lease at the same time, the store grants it to exactly one. " +
			"To look whether it is free and to take it must be one step: a lock, a transaction, a conditional update.",
		readAcquire, (*hammer).oneOfMany, (*hammer).acquiresAtOnce},
	{"retry-in-flight-keeps-the-token",
		"A holder that acquires again while it holds the lease gets the token that it has, also when the first attempt is still under way: " +
			"a retry after a timeout is no new ownership.",
		readAcquire, (*hammer).retryInFlight, nil},
	{"renew-against-takeover",
		"A renewal and the acquires of others around the instant of the lapse: at most one of them gets the lease. " +
			"A tenure is held until its TTL has run out, and not at that instant any more. " +
			"Whoever takes a lease that had lapsed when it looked must make sure that it was not renewed since.",
		readRenew, (*hammer).renewAgainstTakeover, nil},
	{"release-against-acquire",
		"A release ends a tenure once, and whoever acquires while it is under way is refused or gets the lease under a new token.",
		readRelease, (*hammer).releaseAgainstAcquire, (*hammer).releasesAtOnce},
	{"release-is-final",
		"Once a release was answered the tenure is over, whatever renewal or retry of the same holder was under way: " +
			"none of them may bring it back.",
		readRelease, (*hammer).releaseIsFinal, (*hammer).renewalsAtOnce},
	{"tokens-rise",
		"While one has the lease nobody else is granted it, and a grant that was asked for after another was answered has the higher token.",
		readToken, (*hammer).tokensRise, nil},
	{"leases-are-apart",
		"Calls for different leases at the same time do not disturb each other.",
		readAcquire, (*hammer).leasesAreApart, nil},
}

// nodes name the candidates of a round.
var nodes = [...]string{"a", "b", "c", "d"}

// winner judges acquires of one lease that was free, all at one instant, with
// nobody to give it up again: exactly one candidate has it, under one token.
func (h *hammer) winner(calls []*call) (*call, *breach) {
	byReturn := slices.Clone(calls)
	slices.SortFunc(byReturn, func(a, b *call) int { return cmp.Compare(a.to, b.to) })
	var won *call
	for _, c := range byReturn {
		switch {
		case !c.ok():
		case won == nil:
			won = c
		case won.holder != c.holder:
			return nil, both(won, c)
		case won.grant.Token != c.grant.Token:
			return nil, c.breaks("%s asked twice for one lease, and got two tokens: %d and %d", c.who(), won.grant.Token, c.grant.Token)
		}
	}
	if unsure(calls) != nil {
		return nil, nil
	}
	if won == nil {
		return nil, byReturn[len(byReturn)-1].breaks("nobody was granted the lease, though nobody had it")
	}
	for _, c := range byReturn {
		var held *lease.HeldError
		switch {
		case c.ok():
		case c.holder == won.holder:
			return nil, c.breaks("%s was refused the lease that it was granted at the same time", c.who())
		case errors.As(c.err, &held) && !held.Holder.IsZero() && held.Holder != won.holder:
			return nil, c.breaks("%s was told that %s had the lease, which %s was granted", c.who(), named(held.Holder), won.who())
		case errors.As(c.err, &held) && held.Token != 0 && held.Token != won.grant.Token:
			return nil, c.breaks("%s was told that the lease was held under token %d, and it was granted under %d", c.who(), held.Token, won.grant.Token)
		}
	}
	return won, nil
}

// keeps asks whether the lease is still whose it must be.
func (h *hammer) keeps(won *call) *breach {
	if c := h.alone(h.renew(won)); c.refused() {
		return c.breaks("%s was granted the lease under token %d, and does not have it", won.who(), won.grant.Token)
	}
	return nil
}

// first grants a lease that nobody had, to begin with; nil without a breach if
// that is unsure.
func (h *hammer) first(resource string, holder lease.Holder) (*call, *breach) {
	c := h.alone(h.acquire(resource, holder))
	switch {
	case c.ok():
		return c, nil
	case c.refused():
		return nil, c.breaks("%s was refused a lease that nobody had", c.who())
	}
	return nil, nil
}

// after asks whether the lease is free, and whether the token then rises from
// before.
func (h *hammer) after(before *call, why string) *breach {
	c := h.alone(h.acquire(before.resource, h.candidate("d")))
	switch {
	case c.refused():
		return c.breaks("%s, and %s is refused the lease", why, c.who())
	case c.ok():
		return h.rises(before, c)
	}
	return nil
}

// rises judges the token of the ownership after another.
func (h *hammer) rises(before, c *call) *breach {
	if h.follows(before.grant.Token, c.grant.Token) {
		return nil
	}
	want := "a higher one"
	if h.o.Tokens == model.TokensNext {
		want = fmt.Sprintf("token %d", before.grant.Token+1)
	}
	return c.breaks("%s was granted the lease under token %d, after %s under token %d: it must get %s", c.who(), c.grant.Token, before.who(), before.grant.Token, want)
}

func (h *hammer) oneOfMany() *breach {
	lock := h.resource("p")
	calls := make([]*call, 2+h.round%3)
	for i := range calls {
		calls[i] = h.acquire(lock, h.candidate(nodes[i]))
	}
	h.race(calls...)
	won, b := h.winner(calls)
	if won == nil {
		return b
	}
	return h.keeps(won)
}

func (h *hammer) retryInFlight() *breach {
	lock := h.resource("p")
	var calls []*call
	for _, node := range strings.Split([]string{"a a", "a a a", "a b a", "a b b a"}[h.round/4%4], " ") {
		calls = append(calls, h.acquire(lock, h.candidate(node)))
	}
	h.race(calls...)
	won, b := h.winner(calls)
	if won == nil {
		return b
	}
	return h.keeps(won)
}

func (h *hammer) renewAgainstTakeover() *breach {
	a, b := h.first(h.resource("p"), h.candidate("a"))
	if a == nil {
		return b
	}
	// What a holder may count on is the lesser of what it asked for and was
	// granted; what the store may hold it for, all that it promises.
	sure := h.ttl
	if g := a.grant.TTL; g > 0 {
		sure = min(sure, g)
	}
	renewal := h.renew(a)
	acquires := []*call{h.acquire(a.resource, h.candidate("b"))}
	if h.round%2 == 0 {
		acquires = append(acquires, h.acquire(a.resource, h.candidate("c")))
	}
	lapsed := h.round/4%2 == 0
	switch rest := h.ttl - sure + 1 + h.o.Late + h.o.LockDelay; {
	case lapsed && h.round/8%2 == 0 && rest < sure:
		h.advance(sure-1, "a's tenure lapses in 1ns")
		h.raceOver(rest, "a's tenure has lapsed"+h.with(), append(acquires, renewal)...)
		if renewal.ok() && renewal.grant.TTL <= rest {
			return nil // which may have lapsed by now, too
		}
		return h.oneAtMost(a, renewal, acquires)
	case lapsed:
		h.advance(h.ttl+h.o.Late+h.o.LockDelay, "a's tenure has lapsed"+h.with())
	default:
		h.advance(sure-1, "a's tenure lapses in 1ns")
	}
	h.race(append(acquires, renewal)...)
	for _, c := range acquires {
		switch {
		case !c.ok():
		case !lapsed:
			return c.breaks("%s was granted the lease 1ns before the lapse of a's tenure", c.who())
		case renewal.ok():
			return c.breaks("at one instant a's tenure was renewed, and %s was granted the lease", c.who())
		}
	}
	switch {
	case !lapsed && renewal.refused():
		return renewal.breaks("a's renewal was refused 1ns before the lapse")
	case !lapsed:
		return nil
	case renewal.ok() && !h.o.RenewAfterLapse:
		return renewal.breaks("a's tenure was renewed after its lapse")
	case renewal.ok() || h.unsure() != nil:
		return nil
	}
	won, b := h.winner(acquires)
	if won == nil {
		return b
	}
	if b := h.rises(a, won); b != nil {
		return b
	}
	return h.keeps(won)
}

// oneAtMost judges calls of which the lapse of a's tenure came in the midst: each
// may be refused, and no two granted.
func (h *hammer) oneAtMost(a, renewal *call, acquires []*call) *breach {
	var won *call
	for _, c := range acquires {
		switch {
		case !c.ok():
		case won != nil:
			return both(won, c)
		case renewal.ok():
			return c.breaks("a's tenure was renewed, and %s was granted the lease", c.who())
		default:
			won = c
		}
	}
	switch {
	case won != nil:
		if b := h.rises(a, won); b != nil {
			return b
		}
		return h.keeps(won)
	case renewal.ok() && h.unsure() == nil:
		return h.keeps(a)
	}
	return nil
}

// with tells what else must have passed after a TTL.
func (h *hammer) with() string {
	var more []string
	if h.o.Late > 0 {
		more = append(more, fmt.Sprintf("at most %v late", h.o.Late))
	}
	if h.o.LockDelay > 0 {
		more = append(more, fmt.Sprintf("and its lock delay of %v is over", h.o.LockDelay))
	}
	if more == nil {
		return " just now"
	}
	return ", " + strings.Join(more, ", ")
}

func (h *hammer) releaseAgainstAcquire() *breach {
	a, b := h.first(h.resource("p"), h.candidate("a"))
	if a == nil {
		return b
	}
	releases := []*call{h.release(a)}
	acquires := []*call{h.acquire(a.resource, h.candidate("b"))}
	if h.round/4%2 == 0 {
		releases = append(releases, h.release(a))
	} else {
		acquires = append(acquires, h.acquire(a.resource, h.candidate("c")))
	}
	h.race(slices.Concat(acquires, releases)...)
	won, b := h.handedOver(a, releases, acquires)
	switch {
	case b != nil || h.unsure() != nil:
		return b
	case won == nil:
		return h.after(a, "a has released it")
	}
	return h.keeps(won)
}

// handedOver judges releases of a's tenure, and acquires by others at the same
// time, and says who has the lease now.
func (h *hammer) handedOver(a *call, releases, acquires []*call) (won *call, b *breach) {
	if unsure(releases) != nil || unsure(acquires) != nil {
		return nil, nil
	}
	var released *call
	for _, c := range releases {
		switch {
		case !c.ok():
		case released != nil:
			return nil, c.breaks("one tenure was released twice")
		default:
			released = c
		}
	}
	if released == nil {
		return nil, releases[0].breaks("a had the lease, and could not release it")
	}
	for _, c := range acquires {
		switch {
		case !c.ok():
		case won != nil:
			return nil, both(won, c)
		default:
			won = c
		}
	}
	if won != nil {
		b = h.rises(a, won)
	}
	return won, b
}

func (h *hammer) releaseIsFinal() *breach {
	a, b := h.first(h.resource("p"), h.candidate("a"))
	if a == nil {
		return b
	}
	release, other := h.release(a), h.renew(a)
	if h.round/4%2 == 0 {
		other = h.acquire(a.resource, a.holder)
	}
	h.race(other, release)
	if h.unsure() != nil {
		return nil
	}
	switch {
	case !release.ok():
		return release.breaks("a had the lease, and could not release it")
	case other.op == lease.OpAcquire && !other.ok():
		return other.breaks("a was refused a lease that nobody else had")
	case other.op == lease.OpAcquire && other.grant.Token != a.grant.Token:
		// It came after the release: a new ownership.
		if b := h.rises(a, other); b != nil {
			return b
		}
		return h.keeps(other)
	}
	return h.after(a, "a has released it")
}

func (h *hammer) tokensRise() *breach {
	const callers, times = 3, 3
	lock := h.resource("p")
	made := make([][]*call, callers)
	fs := make([]func(), callers)
	for i := range fs {
		fs[i] = func() {
			me := h.candidate(nodes[i])
			for range times {
				c := h.acquire(lock, me)
				made[i] = append(made[i], c)
				last := c
				if h.make(c); c.ok() {
					for range callers { // so that others ask while it has the lease
						h.gate.pass()
					}
					last = h.release(c)
					made[i] = append(made[i], last)
					h.make(last)
				}
				if last.unsure() {
					// It may have the lease, or lose it yet. As another incarnation
					// it is in no doubt about what is granted to it from now on.
					me = me.Next()
				}
			}
		}
	}
	h.chains = made
	h.together(fs...)
	h.chains = nil
	h.calls = append(h.calls, slices.Concat(made...)...)
	var grants []*call
	until := map[*call]*call{} // the release of a grant
	for _, calls := range made {
		for i, c := range calls {
			if c.op == lease.OpAcquire && c.ok() {
				grants = append(grants, c)
				until[c] = calls[i+1]
			}
		}
	}
	if b := h.turns(grants, until); b != nil {
		return b
	}
	h.judged = len(grants) > 1
	if h.unsure() != nil {
		return nil
	}
	if len(grants) == 0 {
		return h.calls[len(h.calls)-1].breaks("nobody was granted the lease, though nobody had it")
	}
	return nil
}

// turns judges tenures that were released, each with its release: whatever calls
// of unknown outcome there were besides, as these are of other candidates.
func (h *hammer) turns(grants []*call, until map[*call]*call) *breach {
	slices.SortFunc(grants, func(a, b *call) int { return cmp.Compare(a.to, b.to) })
	about := func(b *breach, grants ...*call) *breach {
		for _, c := range grants {
			b.with = append(b.with, c, until[c])
		}
		return b
	}
	for i, c := range grants {
		for _, d := range grants[:i] {
			if c.to < until[d].from {
				return about(c.breaks("%s was granted the lease under token %d while %s had it under token %d", c.who(), c.grant.Token, d.who(), d.grant.Token), c, d)
			}
		}
	}
	for _, c := range grants {
		if r := until[c]; r.refused() {
			return about(r.breaks("%s had the lease, and could not release it", r.who()), c)
		}
	}
	for i, c := range grants {
		for _, d := range grants[:i] {
			switch {
			case c.grant.Token == d.grant.Token:
				return about(c.breaks("token %d was granted twice: to %s and to %s", c.grant.Token, d.who(), c.who()), c, d)
			case c.grant.Token < d.grant.Token && d.to < c.from:
				return about(c.breaks("%s was granted token %d, after token %d had been granted to %s", c.who(), c.grant.Token, d.grant.Token, d.who()), c, d)
			}
		}
	}
	if h.unsure() != nil || h.o.Tokens != model.TokensNext {
		return nil // one of unknown outcome may have taken a token
	}
	byToken := slices.SortedFunc(slices.Values(grants), func(a, b *call) int { return cmp.Compare(a.grant.Token, b.grant.Token) })
	for i := 1; i < len(byToken); i++ {
		if b := h.rises(byToken[i-1], byToken[i]); b != nil {
			return about(b, byToken[i-1], byToken[i])
		}
	}
	return nil
}

func (h *hammer) leasesAreApart() *breach {
	grants := make([]*call, 2+h.round%3)
	for i := range grants {
		grants[i] = h.acquire(h.resource([]string{"p", "q", "r", "s"}[i]), h.candidate(nodes[i]))
	}
	h.race(grants...)
	if h.unsure() != nil {
		return nil
	}
	again := make([]*call, len(grants))
	for i, c := range grants {
		switch {
		case !c.ok():
			return c.breaks("%s was refused a lease that nobody had", c.who())
		case i%2 == 0:
			again[i] = h.renew(c)
		default:
			again[i] = h.release(c)
		}
	}
	h.race(again...)
	if h.unsure() != nil {
		return nil
	}
	for i, c := range again {
		if !c.ok() {
			return c.breaks("%s was granted this lease under token %d, and does not have it", c.who(), c.token)
		}
		b := h.keeps
		if i%2 == 1 {
			b = func(won *call) *breach { return h.after(won, won.who()+" has released it") }
		}
		if b := b(grants[i]); b != nil {
			return b
		}
	}
	return nil
}
