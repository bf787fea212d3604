package livetest

import (
	"errors"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
)

// rule is a trial of one rule.
type rule struct {
	name string
	of   model.Rule
	try  func(*trial)
}

var rules = []rule{
	{"first-token", model.RuleAcquireFree, (*trial).firstToken},
	{"next-token", model.RuleTokenNext, (*trial).nextToken},
	{"acquire-held-is-refused", model.RuleAcquireHeld, (*trial).acquireHeld},
	{"acquire-again-keeps-the-token", model.RuleAcquireAgain, (*trial).acquireAgain},
	{"renew-prolongs", model.RuleRenewProlongs, (*trial).renewProlongs},
	{"renew-with-a-shorter-ttl-never-shortens", model.RuleNeverShortens, (*trial).neverShortens},
	{"renew-only-by-the-holder", model.RuleRenewHolder, (*trial).renewOnlyByHolder},
	{"renew-after-a-release", model.RuleRenewHeld, (*trial).renewAfterRelease},
	{"renew-after-a-lapse", model.RuleRenewHeld, (*trial).renewAfterLapse},
	{"release-frees-at-once", model.RuleReleaseFrees, (*trial).releaseFrees},
	{"release-only-by-the-holder", model.RuleReleaseHolder, (*trial).releaseOnlyByHolder},
	{"late-release", model.RuleReleaseToken, (*trial).lateRelease},
	{"late-copies", model.RuleAcquireAgain, (*trial).lateCopies},
	{"lapse", model.RuleOnTime, (*trial).lapse},
	{"takeover", model.RuleTokenNext, (*trial).takeover},
	{"get", model.RuleGet, (*trial).getTells},
	{"malformed", model.RuleMalformed, (*trial).malformed},
	{"ended-contexts", model.RuleAnswers, (*trial).endedContexts},
}

// mustAcquire is an acquire of a lease that nobody holds.
func (c *candidate) mustAcquire(ttl time.Duration) answer {
	a := c.acquire(ttl)
	c.t.want(a.code == lease.CodeGranted, model.RuleAcquireFree, "granted: nobody holds it")
	return a
}

func (c *candidate) mustRenew(a answer, ttl time.Duration) answer {
	r := c.renew(a.grant.Token, ttl)
	c.t.want(r.code == lease.CodeGranted, model.RuleRenewGranted, "granted: %s holds it under token %d", named(c.holder), a.grant.Token)
	return r
}

func (c *candidate) mustRelease(a answer) answer {
	r := c.release(a.grant.Token)
	c.t.want(r.code == lease.CodeReleased, model.RuleReleaseFrees, "released: %s holds it under token %d", named(c.holder), a.grant.Token)
	return r
}

// mustBeHeld is an acquire by somebody who does not hold it, of a lease that by
// still holds as a says.
func (c *candidate) mustBeHeld(by *candidate, a answer, rule model.Rule) answer {
	r := c.acquire(c.t.ttl)
	c.t.want(r.code == lease.CodeHeld, rule, "refused: held by %s under token %d", named(by.holder), a.grant.Token)
	held, ok := errors.AsType[*lease.HeldError](r.err)
	if !ok || c.t.o.Terse {
		return r
	}
	c.t.want(held.Holder == by.holder, model.RuleNamesHolder, "it names %s", named(by.holder))
	if held.Token != 0 && held.Token != a.grant.Token {
		c.t.convict(model.RuleNamesHolder, "it names the token of the holder that it names")
	}
	// That it is less than is left wastes calls, and is true where it is not known.
	if most := c.t.over(a) - r.call; held.Remaining > most {
		c.t.tell(r.call, "how long that refusal says that it will stand", held.Remaining.String())
		c.t.convict(model.RuleRemaining, "no more than "+most.Round(time.Millisecond).String()+", which is left of the tenure")
	}
	return r
}

// mustLapse waits for the end of what by holds as a says, asking all the while,
// and has the lease from then on.
func (c *candidate) mustLapse(by *candidate, a answer) answer {
	t := c.t
	end := t.over(a) + t.o.LockDelay + t.o.LockDelay/500
	pace := max(a.grant.TTL/20, 5*time.Millisecond)
	for {
		late := t.w.clk.Now() >= end
		r := c.acquire(t.ttl)
		switch {
		case r.code == lease.CodeGranted:
			t.want(r.ret >= a.call+a.grant.TTL-a.grant.TTL/500, model.RuleNotEarly, "refused: %s holds it under token %d for %v since it asked", named(by.holder), a.grant.Token, a.grant.TTL)
			t.want(r.grant.Token > a.grant.Token, model.RuleTokenNext, "a token above %d", a.grant.Token)
			return r
		case late:
			t.want(false, model.RuleOnTime, "granted: %s's tenure is over", named(by.holder))
		case r.is(lease.CodeHeld, lease.CodeDelayed):
		default:
			t.want(false, model.RuleAcquireHeld, "refused as held, or granted")
		}
		// Often around the instants that matter.
		next := t.w.clk.Now() + pace
		for _, at := range [...]time.Duration{a.call + a.grant.TTL - pace/4, end} {
			if now := t.w.clk.Now(); now < at && at < next {
				next = at
			}
		}
		t.until(next)
	}
}

func (t *trial) firstToken() {
	t.candidate("a", 0).mustAcquire(t.ttl)
}

func (t *trial) nextToken() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	last := a.mustAcquire(t.ttl)
	a.mustRelease(last)
	for _, c := range []*candidate{b, a.next(), b, a} {
		next := c.mustAcquire(t.ttl)
		if t.o.Tokens == model.TokensNext {
			t.want(next.grant.Token == last.grant.Token+1, model.RuleTokenNext, "token %d", last.grant.Token+1)
		}
		t.want(next.grant.Token > last.grant.Token, model.RuleTokenNext, "a token above %d", last.grant.Token)
		c.mustRelease(next)
		last = next
	}
}

func (t *trial) acquireHeld() {
	a, b, c := t.candidate("a", 0), t.candidate("b", 1), t.candidate("c", 0)
	held := a.mustAcquire(t.ttl)
	b.mustBeHeld(a, held, model.RuleAcquireHeld)
	c.mustBeHeld(a, held, model.RuleAcquireHeld)
	a.next().mustBeHeld(a, held, model.RuleAcquireHeld)
	a.mustRenew(held, t.ttl)
}

func (t *trial) acquireAgain() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	first := a.mustAcquire(t.ttl)
	t.prolonged(b, a, first, func() answer {
		again := a.at(1).acquire(t.ttl)
		t.want(again.code == lease.CodeGranted, model.RuleAcquireAgain, "granted again: a holds it under token %d", first.grant.Token)
		t.want(again.grant.Token == first.grant.Token, model.RuleAcquireAgain, "token %d", first.grant.Token)
		return again
	})
}

func (t *trial) renewProlongs() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	first := a.mustAcquire(t.ttl)
	t.prolonged(b, a, first, func() answer { return a.at(1).mustRenew(first, t.ttl) })
}

// prolonged has a tenure that began as first says prolonged half-way, and asks
// when it would be over but for that.
func (t *trial) prolonged(other, holder *candidate, first answer, prolong func() answer) {
	t.until(first.ret + t.ttl/2)
	again := prolong()
	t.until(first.ret + first.grant.TTL + t.ttl/8)
	other.mustBeHeld(holder, again, model.RuleRenewProlongs)
	holder.mustRelease(first)
}

func (t *trial) neverShortens() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	long := a.mustAcquire(3 * t.ttl)
	short := a.mustRenew(long, t.ttl)
	again := a.acquire(t.ttl)
	t.want(again.code == lease.CodeGranted, model.RuleAcquireAgain, "granted again: a holds it under token %d", long.grant.Token)
	t.until(again.ret + short.grant.TTL + short.grant.TTL/2)
	b.mustBeHeld(a, long, model.RuleNeverShortens)
	a.mustRenew(long, t.ttl)
}

func (t *trial) renewOnlyByHolder() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(t.ttl)
	refused := func(c *candidate, token lease.Token, rule model.Rule) {
		r := c.renew(token, 2*t.ttl)
		t.want(r.notHeld(), rule, "refused as lost: a holds it under token %d", held.grant.Token)
	}
	refused(b, held.grant.Token, model.RuleRenewHolder)
	refused(a.next(), held.grant.Token, model.RuleRenewHolder)
	refused(a, held.grant.Token+1, model.RuleRenewToken)
	a.mustRenew(held, t.ttl)
}

func (t *trial) renewAfterRelease() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(t.ttl)
	a.mustRelease(held)
	r := a.renew(held.grant.Token, t.ttl)
	t.want(r.notHeld(), model.RuleRenewHeld, "refused as lost: a released it")
	r = a.at(1).release(held.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseHeld, "refused as lost: a released it")
	next := b.mustAcquire(t.ttl)
	r = a.renew(held.grant.Token, t.ttl)
	t.want(r.notHeld(), model.RuleRenewHolder, "refused as lost: b holds it under token %d", next.grant.Token)
	b.mustRenew(next, t.ttl)
}

func (t *trial) renewAfterLapse() {
	a, b := t.candidate("a", 0), t.candidate("b", 1)
	held := a.mustAcquire(t.ttl)
	t.until(t.over(held))
	r := a.renew(held.grant.Token, t.ttl)
	if t.o.RenewAfterLapse && r.code == lease.CodeGranted {
		b.mustBeHeld(a, answer{call: r.call, ret: r.ret, grant: r.grant}, model.RuleAcquireHeld)
		a.mustRelease(held)
		return
	}
	t.want(r.notHeld(), model.RuleRenewHeld, "refused as lapsed")
	r = a.release(held.grant.Token)
	t.want(r.notHeld(), model.RuleReleaseHeld, "refused as lapsed")
	b.mustLapse(a, held)
}
