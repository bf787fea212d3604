package model

import "math"

// anyRule says that an answer contradicts the state, and that the rule it
// breaks is for blame to find.
const anyRule = rules

// take takes the answer a to q into account. If that breaks a rule, what c is
// afterwards means nothing.
func (c *Contract) take(q *Ask, a *Said) Rule {
	if q.malformed() {
		return c.malformed(q, a)
	}
	if a.Code == CodeInvalid {
		return unless(c.mayBeInvalid(q), RuleMalformed)
	}
	switch q.Op {
	case OpAcquire:
		switch a.Code {
		case CodeGranted:
			return c.granted(q, a)
		case CodeHeld:
			return c.refusedHeld(q, a)
		case CodeDelayed:
			return c.refusedDelayed(q, a)
		}
	case OpRenew:
		switch a.Code {
		case CodeGranted:
			return c.renewed(q, a)
		case CodeLapsed, CodeLost:
			return c.refused(q, a)
		}
	case OpRelease:
		switch a.Code {
		case CodeReleased:
			return c.released(q, a)
		case CodeLapsed, CodeLost:
			return c.refused(q, a)
		}
	case OpGet:
		return c.get(q, a)
	}
	return anyRule
}

func unless(ok bool, r Rule) Rule {
	if ok {
		return NoRule
	}
	return r
}

func (q *Ask) malformed() bool {
	nobody := q.Owner == Owner{}
	switch q.Op {
	case OpAcquire:
		return nobody || q.TTL <= 0
	case OpRenew:
		return nobody || q.TTL <= 0 || q.Token == 0
	case OpRelease:
		return nobody || q.Token == 0
	case OpGet:
		return false
	}
	return true
}

// mayBeInvalid reports whether a well-formed q may be refused as invalid.
func (c *Contract) mayBeInvalid(q *Ask) bool {
	return (q.Op == OpAcquire || q.Op == OpRenew) && q.TTL < c.Promise.MinTTL ||
		q.Op == OpAcquire && c.token == math.MaxUint64 && !c.mustHold(q.At)
}

// malformed is a malformed request answered: beside "invalid" each refusal will
// do that would be true of somebody else.
func (c *Contract) malformed(q *Ask, a *Said) Rule {
	rule := RuleMalformed
	switch {
	case a.Code == CodeInvalid:
		rule = NoRule
	case q.Op == OpAcquire && a.Code == CodeHeld:
		rule = c.refusedHeld(q, a)
	case q.Op == OpAcquire && a.Code == CodeDelayed:
		rule = c.refusedDelayed(q, a)
	case (q.Op == OpRenew || q.Op == OpRelease) && (a.Code == CodeLapsed || a.Code == CodeLost):
		rule = c.refused(q, a)
	}
	return unless(rule == NoRule, RuleMalformed)
}

func (c *Contract) granted(q *Ask, a *Said) Rule {
	t := q.At
	switch {
	case c.isTenure(q.Owner, a.Token) && c.canProlong(t):
		return c.prolong(q, a)
	case !c.follows(a.Token):
		return anyRule
	case c.phase == tenured:
		if !c.canLapse(t) {
			return anyRule
		}
		if c.lapsed(t); !c.delayOver(t) {
			return anyRule
		}
	}
	*c = Contract{Promise: c.Promise, token: a.Token, phase: tenured, owner: q.Owner}
	return c.prolong(q, a)
}

// isTenure reports whether the last tenure is o's, under token, and neither
// released nor deleted.
func (c *Contract) isTenure(o Owner, token uint64) bool {
	return c.phase == tenured && o == c.owner && token == c.token
}

// follows reports whether token may be that of the next new ownership.
func (c *Contract) follows(token uint64) bool {
	return token > c.token && (c.Promise.Tokens == TokensRising || token-1 == c.token)
}

// canProlong reports whether the owner may extend the tenure at t.
func (c *Contract) canProlong(t int64) bool {
	return c.canHold(t) || c.Promise.RenewAfterLapse && c.canLapse(t)
}

// prolong is a tenure, new or not, that lasts on from now.
func (c *Contract) prolong(q *Ask, a *Said) Rule {
	t, keeps := q.At, c.Promise.keeps(q.TTL)
	switch {
	case a.Holder != q.Owner:
		return RuleGrantHolder
	case a.TTL <= 0 || a.TTL > c.longest(q):
		return RuleGrantTTL
	}
	sure, may := saturate(t, a.TTL), saturate(saturate(t, keeps), c.Promise.Late)
	c.before = t
	if c.canHold(t) {
		c.before, may = max(c.sure, t), max(c.may, may)
		if c.nlapses == 0 || !c.Promise.RenewAfterLapse {
			sure = max(c.sure, sure)
		}
	}
	c.runs, c.nlapses, c.restarted = true, 0, false
	c.sure, c.may = sure, may
	c.said, c.kept = max(c.said, a.TTL), max(c.kept, keeps)
	c.began, c.promised = t, saturate(t, a.TTL)
	return c.remaining(t, a, false)
}

// longest is what a grant to q may say: how long the store may keep what q asks
// for, or, where the holder asks, what may be left of more that it asked for
// before. Whatever a grant says is sure from then on.
func (c *Contract) longest(q *Ask) int64 {
	most := saturate(c.Promise.keeps(q.TTL), c.Promise.Late)
	if q.Owner == c.owner && c.canHold(q.At) {
		most = max(most, c.may-q.At)
	}
	return most
}

func (c *Contract) renewed(q *Ask, a *Said) Rule {
	switch {
	case !c.isTenure(q.Owner, q.Token) || !c.canProlong(q.At):
		return anyRule
	case a.Token != q.Token:
		return RuleRenewKeepsToken
	}
	return c.prolong(q, a)
}

func (c *Contract) released(q *Ask, a *Said) Rule {
	if !c.isTenure(q.Owner, q.Token) || !c.canHold(q.At) {
		return anyRule
	}
	c.free(released)
	if a.Holder != (Owner{}) || a.Remaining != 0 {
		return RuleReleaseFrees
	}
	return unless(a.Token == 0 || a.Token == c.token, RuleReleaseToken)
}

// refusedHeld is an acquire refused because another holds the lease.
func (c *Contract) refusedHeld(q *Ask, a *Said) Rule {
	t := q.At
	held := c.canHold(t) && (q.Owner != c.owner || q.malformed())
	if a.Holder == (Owner{}) && c.Promise.Terse {
		// Without a name it may also mean the lock delay.
		in := *c
		if in.phase == tenured && in.canLapse(t) {
			in.lapsed(t)
			if in.delays(t) {
				if held {
					c.holds(t)
					in.runs, in.sure, in.may = true, c.sure, c.may
				}
				*c = in
				return unless(a.Token == 0 || a.Token == c.token, RuleNamesHolder)
			}
		}
	}
	if !held {
		return anyRule
	}
	return c.held(t, a, RuleNamesHolder)
}

// held is an answer that says who holds the lease, judged by rule.
func (c *Contract) held(t int64, a *Said, rule Rule) Rule {
	terse := c.Promise.Terse
	if !(a.Holder == c.owner || terse && a.Holder == Owner{}) || !(a.Token == c.token || terse && a.Token == 0) {
		return rule
	}
	r := c.remaining(t, a, !terse)
	c.holds(t)
	return r
}

// remaining judges what is said to be left of a tenure that is held. A store
// that is late may have counted to zero and below.
func (c *Contract) remaining(t int64, a *Said, need bool) Rule {
	overdue := c.sure-t <= 1 && c.sure != c.may
	if a.Remaining == 0 && !need || overdue && a.Remaining <= c.may-t || c.Promise.rounds(c.sure-t, c.may-t, a.Remaining) {
		return NoRule
	}
	if a.Remaining == 0 {
		return RuleRemaining
	}
	return c.blameRemaining(saturate(t, a.Remaining))
}

// rounds reports whether left is from lo to hi, or rounded from there to a whole
// unit of TTLs next to it, up or down.
func (p *Promise) rounds(lo, hi, left int64) bool {
	unit := max(p.Granularity, 1)
	return left >= min(lo, max(lo-unit+1, 0)) && left <= saturate(hi, unit-1)
}

// refusedDelayed is an acquire refused because of the lock delay.
func (c *Contract) refusedDelayed(q *Ask, a *Said) Rule {
	if !c.inDelay(q.At) {
		return anyRule
	}
	if a.Holder != (Owner{}) || a.Token != 0 && a.Token != c.token {
		return RuleNamesHolder
	}
	return c.delayRemaining(q.At, a)
}

// inDelay makes it known that the lock delay runs at t, if it can.
func (c *Contract) inDelay(t int64) bool {
	if c.phase != tenured || !c.canLapse(t) {
		return false
	}
	c.lapsed(t)
	return c.delays(t)
}

func (c *Contract) delayRemaining(t int64, a *Said) Rule {
	if a.Remaining == 0 && c.Promise.Terse {
		return NoRule
	}
	lo, hi := c.delayLeft(t)
	return unless(c.Promise.rounds(lo, hi, a.Remaining), RuleRemaining)
}

// refused is a renewal or release refused as lapsed or lost, which are one
// evidence: its sender does not hold the lease under its token.
func (c *Contract) refused(q *Ask, a *Said) Rule {
	t := q.At
	mine := c.isTenure(q.Owner, q.Token)
	if mine && !c.canLapse(t) {
		return anyRule
	}
	if a.Holder != (Owner{}) {
		if mine || !c.canHold(t) || a.Holder != c.owner || !c.mayBeLatest(a.Token) {
			return RuleNamesHolder
		}
		r := c.remaining(t, a, false)
		c.holds(t)
		return r
	}
	switch {
	case !c.mayBeLatest(a.Token):
		return RuleNamesHolder
	case a.Remaining != 0:
		return RuleRemaining
	case mine:
		c.lapsed(t)
	}
	return NoRule
}

func (c *Contract) get(q *Ask, a *Said) Rule {
	t := q.At
	switch a.Code {
	case CodeHeld:
		if !c.canHold(t) {
			return anyRule
		}
		if a.Holder == (Owner{}) {
			return RuleGet
		}
		return c.held(t, a, RuleGet)
	case CodeFree:
		if c.phase == tenured {
			if !c.canLapse(t) {
				return anyRule
			}
			c.lapsed(t)
		}
		if a.Remaining != 0 {
			return RuleRemaining
		}
	case CodeDelayed:
		if !c.inDelay(t) {
			return anyRule
		}
		if r := c.delayRemaining(t, a); r != NoRule {
			return r
		}
	default:
		return anyRule
	}
	return unless(a.Holder == Owner{} && c.mayBeLatest(a.Token), RuleGet)
}

// mayBeLatest reports whether a store may say that token is the last one issued;
// 0 says nothing. Where tokens only rise they may
// be drawn from what other leases draw from too, and the last one be another's.
func (c *Contract) mayBeLatest(token uint64) bool {
	return token == 0 || token == c.token || c.Promise.Tokens == TokensRising && token > c.token
}
