package model

// blame is the rule that a broke which contradicts the state: of all that
// might be said against it, what tells the author of the store what to mend.
func (c *Contract) blame(q *Ask, a *Said) Rule {
	switch q.Op {
	case OpAcquire:
		return c.blameAcquire(q, a)
	case OpRenew:
		return c.blameUse(q, a, CodeGranted, RuleRenewHolder, RuleRenewToken, RuleRenewHeld, RuleRenewGranted)
	case OpRelease:
		return c.blameUse(q, a, CodeReleased, RuleReleaseHolder, RuleReleaseToken, RuleReleaseHeld, RuleReleaseFrees)
	case OpGet:
		return c.blameGet(q, a)
	}
	return RuleMalformed
}

func (c *Contract) blameAcquire(q *Ask, a *Said) Rule {
	t := q.At
	same := c.phase == tenured && q.Owner == c.owner
	rule := RuleAcquireHeld
	if same {
		rule = RuleAcquireAgain
	}
	switch a.Code {
	case CodeGranted:
		switch {
		case c.mustHold(t) && same && (!c.follows(a.Token) || c.blameEarly(t, rule) == RuleNotEarly):
			return RuleAcquireAgain
		case c.mustHold(t):
			return c.blameEarly(t, rule)
		case c.follows(a.Token):
			return c.blameDelay()
		case a.Token <= c.token && c.upheaval == restart:
			return RuleRestartCounter
		case a.Token <= c.token && c.upheaval == deletion:
			return RuleDeleteCounter
		}
		return RuleTokenNext
	case CodeHeld:
		in := *c
		switch {
		case same && c.canHold(t):
			return RuleAcquireAgain
		case a.Holder == Owner{} && in.inDelay(t):
			return RuleLockDelay
		case c.phase == tenured && a.Holder != (Owner{}) && a.Holder != c.owner:
			return RuleNamesHolder
		}
		return c.blameHeld(RuleAcquireFree, RuleReleaseFrees, RuleOnTime)
	case CodeDelayed:
		if c.mustHold(t) {
			return c.blameEarly(t, rule)
		}
		return c.blameDelayed(RuleAcquireFree)
	}
	if c.mustHold(t) {
		return rule
	}
	return RuleAcquireFree
}

// blameUse is for a renewal or a release, of which done is the code of success
// and which is refused to all but the holder, under its token, while held, and
// granted to it.
func (c *Contract) blameUse(q *Ask, a *Said, done Code, holder, token, held, granted Rule) Rule {
	t := q.At
	switch {
	case c.isTenure(q.Owner, q.Token) && c.mustHold(t):
		if a.Code == CodeLapsed || a.Code == CodeLost {
			return c.blameEarly(t, granted)
		}
		return granted
	case c.phase == neverHeld || q.Owner != c.owner:
		return holder
	case q.Token != c.token:
		return token
	case a.Code != done || c.runs:
		return held
	case c.phase == tenured && !c.restarted && t >= c.may:
		return held // that the lapse was told as well says less than that it is long past
	}
	return c.blameHeld(held, held, held)
}

func (c *Contract) blameGet(q *Ask, a *Said) Rule {
	t := q.At
	switch a.Code {
	case CodeHeld:
		return c.blameHeld(RuleGet, RuleGet, RuleGet)
	case CodeFree, CodeDelayed:
		if c.mustHold(t) {
			return c.blameEarly(t, RuleGet)
		}
		return c.blameDelayed(RuleGet)
	}
	return RuleGet
}

// blameHeld is for an answer that takes the lease for held when it is not. The
// rules are for what is wrong without a restart, a deletion or a lapse that was
// told: nobody had it yet, it was released, it ran out.
func (c *Contract) blameHeld(free, givenBack, ranOut Rule) Rule {
	switch c.phase {
	case neverHeld:
		return free
	case released:
		if c.restarted {
			return RuleRestartRelease
		}
		return givenBack
	case deleted:
		return RuleDeleteFrees
	}
	switch {
	case c.runs && c.restarted:
		return RuleRestartEnds
	case c.runs:
		return ranOut
	case c.restarted:
		return RuleRestartLapse
	}
	return RuleLapseFinal
}

// blameDelay is for a grant within the lock delay.
func (c *Contract) blameDelay() Rule {
	if !c.runs && c.restarted {
		return RuleRestartLapse
	}
	return RuleLockDelay
}

// blameDelayed is for an answer that takes the lock delay to run when it does
// not.
func (c *Contract) blameDelayed(free Rule) Rule {
	switch {
	case c.phase == neverHeld:
		return free
	case c.phase == released && c.restarted:
		return RuleRestartRelease
	case c.phase == tenured:
		return RuleLockDelay
	}
	return RuleNoLockDelay
}

// blameEarly is for an answer at t that takes the lease for lapsed while it is
// held; otherwise is the rule if that does not seem to come from the time.
func (c *Contract) blameEarly(t int64, otherwise Rule) Rule {
	switch {
	case c.restarted:
		return RuleRestartTenure
	case t >= c.promised:
		return RuleNeverShortens
	case c.before > c.began && t >= c.before:
		return RuleRenewProlongs
	case t-c.began >= (c.promised-c.began)/2 && t > c.began:
		// A store that does not look is found out at once; one that looks, and
		// lapses in this half of a TTL, has rounded it or measured it wrongly.
		return RuleNotEarly
	}
	return otherwise
}

// blameRemaining is for an answer by which a tenure ends at another instant
// than it does. The store is going to act by it, so that the rule is the one
// that it will break then, where the instant tells which.
func (c *Contract) blameRemaining(end int64) Rule {
	switch {
	case c.restarted && end > c.may:
		return RuleRestartEnds
	case c.restarted:
		return RuleRestartTenure
	case end < c.sure && end == c.promised:
		return RuleNeverShortens
	case end < c.sure && end == c.before && c.before > c.began:
		return RuleRenewProlongs
	}
	return RuleRemaining
}
