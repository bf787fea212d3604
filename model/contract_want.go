package model

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// breach is the answer a to q that breaks rule, in the state before it.
func (c *Contract) breach(rule Rule, q Ask, a Said) Breach {
	want := c.want(&q)
	switch rule {
	case RuleGrantTTL:
		if most := c.longest(&q); most > 0 {
			want += fmt.Sprintf("; the grant says a TTL above zero and up to %v", time.Duration(most))
		}
	case RuleGrantHolder:
		want += "; the grant names who asked"
	}
	if q.Op == OpGet && (a.Code == CodeDelayed || a.Code == CodeFree) && a.Remaining != 0 {
		// To whoever filled it in it is no lock delay.
		if in := *c; !in.inDelay(q.At) {
			want += "; Remaining is 0 where nobody holds the lease and no lock delay runs"
		}
	}
	b := Breach{Rule: rule, pattern: want, holder: c.owner, asker: q.Owner, SteadyClock: c.Promise.SteadyClock}
	b.Want = b.Named(plainName)
	return b
}

// plainName is the name of o in scripts.
func plainName(o Owner) string {
	switch {
	case o == Owner{}:
		return "nobody"
	case o.Seq <= 1 && o.Boot == 0:
		return plainNode(o.Node)
	case o.Boot == 0:
		return fmt.Sprintf("%s.%d", plainNode(o.Node), o.Seq)
	}
	return fmt.Sprintf("%s.%d.%d", plainNode(o.Node), o.Boot, o.Seq)
}

func plainNode(n Node) string {
	if n == 0 || n > 26 {
		return fmt.Sprintf("node %d", n)
	}
	return string(rune('a' + n - 1))
}

// want is what a correct store answers to q, and why.
func (c *Contract) want(q *Ask) string {
	if q.malformed() {
		return "refused as invalid: " + q.flaw()
	}
	t := q.At
	held, over := c.canHold(t), c.over(t)
	var or []string
	if q.Op == OpRenew || q.Op == OpRelease {
		or, held, over = c.wantUse(q, held, over), false, ""
	}
	if held {
		switch {
		case q.Op == OpGet:
			or = append(or, "held: "+c.whoHolds(t))
		case q.Owner == c.owner:
			or = append(or, "granted again: "+c.whoHolds(t))
		default:
			or = append(or, "refused as held: "+c.whoHolds(t))
		}
	}
	if over != "" {
		in := *c
		if in.inDelay(t) {
			lo, hi := in.delayLeft(t)
			how := "refused as delayed"
			if q.Op == OpGet {
				how = "nobody has it, lock delay"
			}
			or = append(or, fmt.Sprintf("%s: %s, and the lock delay runs for another %s", how, over, between(lo, hi)))
		}
		in = *c
		if c.phase == tenured {
			in.lapsed(t)
		}
		switch {
		case c.phase == tenured && !in.delayOver(t):
		case q.Op == OpGet:
			or = append(or, "nobody has it: "+over)
		case c.token == math.MaxUint64:
			or = append(or, "refused as invalid: no token is left")
		case c.Promise.Tokens == TokensRising:
			or = append(or, fmt.Sprintf("granted under a token above %d: %s", c.token, over))
		default:
			or = append(or, fmt.Sprintf("granted under token %d: %s", c.token+1, over))
		}
	}
	if (q.Op == OpAcquire || q.Op == OpRenew) && q.TTL < c.Promise.MinTTL {
		or = append(or, fmt.Sprintf("refused as invalid: its TTL is below %v", time.Duration(c.Promise.MinTTL)))
	}
	return strings.Join(or, "; or ")
}

// flaw is what makes a malformed q malformed.
func (q *Ask) flaw() string {
	switch {
	case q.Op < OpAcquire || q.Op > OpGet:
		return "a lease store knows no such request"
	case q.Owner == Owner{}:
		return "it names no holder"
	case q.Op != OpRelease && q.TTL <= 0:
		return "its TTL is not above zero"
	}
	return "0 is no token"
}

// wantUse is the answers to a renewal or release that a correct store may give:
// held says that the lease may be held, and over why it may not.
func (c *Contract) wantUse(q *Ask, held bool, over string) (or []string) {
	if !c.isTenure(q.Owner, q.Token) {
		why := over
		switch {
		case held:
			why = c.whoHolds(q.At)
		case c.phase == neverHeld || q.Owner == c.owner && q.Token == c.token:
			return []string{"refused as lost: " + over}
		}
		return []string{fmt.Sprintf("refused as lost: %s, and this is %s's request under token %d", why, askerMark, q.Token)}
	}
	if held {
		done := "granted: "
		if q.Op == OpRelease {
			done = "released: "
		}
		or = append(or, done+c.whoHolds(q.At))
	}
	if over != "" {
		how := "refused as lapsed: "
		if q.Op == OpRenew && c.Promise.RenewAfterLapse {
			how = "granted, or refused as lapsed: "
		}
		or = append(or, how+over)
	}
	return or
}

// whoHolds says who holds the lease at t, and for how long.
func (c *Contract) whoHolds(t int64) string {
	s := fmt.Sprintf("%s holds it under token %d for another %s", ownerMark, c.token, between(max(c.sure-t, 0), c.may-t))
	switch {
	case c.restarted && c.Promise.SteadyClock:
		s += ", as before the restart"
	case c.restarted:
		s += ", its whole TTL since the restart"
	case c.promised < c.sure && t >= c.promised:
		s += ", as granted before the shorter TTL"
	case c.before > c.began && t >= c.before:
		s += ", since it was extended"
	}
	return s
}

// over says why nobody holds the lease at t; it is empty if somebody must.
func (c *Contract) over(t int64) string {
	switch {
	case c.phase == neverHeld:
		return "nobody ever held it"
	case c.phase == released:
		return ownerMark + " released it"
	case c.phase == deleted:
		return "it was deleted"
	case !c.canLapse(t):
		return ""
	case !c.runs && c.restarted:
		return fmt.Sprintf("the lapse of %s's tenure was told before the restart", ownerMark)
	case !c.runs:
		return fmt.Sprintf("%s's tenure has lapsed, as was told", ownerMark)
	case t < c.sure:
		return fmt.Sprintf("the lapse of %s's tenure may have been on record at the restart", ownerMark)
	case c.sure == c.may && t == c.sure:
		return fmt.Sprintf("%s's tenure lapsed just now", ownerMark)
	}
	lo, hi := max(t-c.may, 0), t-c.sure
	return fmt.Sprintf("%s's tenure lapsed %s ago", ownerMark, between(lo, hi))
}

// between is a duration from lo to hi.
func between(lo, hi int64) string {
	if lo == hi {
		return time.Duration(lo).String()
	}
	return fmt.Sprintf("%v to %v", time.Duration(lo), time.Duration(hi))
}
