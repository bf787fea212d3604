package model

import (
	"fmt"
	"iter"
	"strings"
)

// Rule is one line of what a lease store must do. Breaking any of them lets
// two candidates act as leader, lets a stale one write, or keeps a lease from
// whoever is next.
type Rule uint8

// The rules, in the order in which an author of a store would meet them.
const (
	// NoRule stands for "nothing was broken".
	NoRule Rule = iota

	RuleAcquireFree
	RuleAcquireHeld
	RuleNamesHolder
	RuleRemaining
	RuleAcquireAgain
	RuleTokenNext
	RuleGrantHolder
	RuleGrantTTL

	RuleNotEarly
	RuleOnTime
	RuleLapseFinal

	RuleRenewHolder
	RuleRenewToken
	RuleRenewHeld
	RuleRenewGranted
	RuleRenewKeepsToken
	RuleRenewProlongs
	RuleNeverShortens

	RuleReleaseHolder
	RuleReleaseToken
	RuleReleaseHeld
	RuleReleaseFrees

	RuleLockDelay
	RuleNoLockDelay

	RuleGet

	RuleRestartTenure
	RuleRestartCounter
	RuleRestartLapse
	RuleRestartRelease
	RuleRestartEnds

	RuleDeleteFrees
	RuleDeleteCounter

	RuleMalformed

	// RuleAnswers is for whoever asks to judge: a failure or a panic is no
	// answer that [Contract.Judge] could be given.
	RuleAnswers

	rules
)

var ruleTexts = [rules]struct{ name, says string }{
	NoRule: {"none", "Nothing was broken."},

	RuleAcquireFree: {"acquire-free",
		"Whoever asks for a lease that nobody holds is granted it. Else nobody ever leads."},
	RuleAcquireHeld: {"acquire-held-is-refused",
		"While one candidate holds the lease, an acquire by any other is refused as held. Look who holds it and take it in one atomic step: with a gap between the two, both get it and two leaders act at once."},
	RuleNamesHolder: {"refusal-names-the-holder",
		"A refusal as held says who holds the lease and under which token, and says it of nobody else. Candidates and operators steer by it."},
	RuleRemaining: {"remaining-is-true",
		"How long a refusal says that it will stand is what is left of the tenure or of the lock delay. Too short wastes calls, too long keeps candidates away from a free lease."},
	RuleAcquireAgain: {"acquire-again-keeps-the-token",
		"An acquire by whoever holds the lease already is a retry whose first answer was lost: it is granted, under the same token, and the tenure lasts for at least the TTL from then. A new token would make the first grant, if it arrives after all, a second one."},
	RuleTokenNext: {"token-next-at-new-ownership",
		"Each new ownership, also the return of the last holder after a lapse or release, gets a token above every earlier one: the next integer, unless tokens are promised only to rise. A storage tells a stale leader by its lower token; with a token twice, or a falling one, stale writes land."},
	RuleGrantHolder: {"grant-names-the-holder",
		"A grant says that it is for whoever asked. A candidate cannot lead under a grant that is not its own."},
	RuleGrantTTL: {"grant-says-how-long",
		"A grant says for how long the lease is sure to be held from then on: above zero, and no longer than the store keeps it. The holder believes in it for that long."},

	RuleNotEarly: {"lapses-not-early",
		"A tenure lasts until its whole TTL has passed on the store's clock since it was granted or renewed: not a unit less, so round fractions up, never down. The holder acts for as long as it was told; when the lease goes to another before, two act at once."},
	RuleOnTime: {"lapses-on-time",
		"At the instant at which its TTL has passed the tenure is over: held while now < expiry, and lapsed from now == expiry on. Judge both by the store's own clock, everywhere by the same comparison. Else a dead leader keeps the lease."},
	RuleLapseFinal: {"lapse-is-final",
		"Once anybody was told that the tenure lapsed, nothing but a new grant under a new token follows. A lease that is back under the old token makes whoever acted upon the lapse wrong."},

	RuleRenewHolder: {"renew-only-by-the-holder",
		"A renewal by anybody but the holder is refused as lost, and changes nothing. Compare the holder in the same atomic step that extends, or a former leader revives, or keeps alive, what is another's by now."},
	RuleRenewToken: {"renew-only-under-its-token",
		"A renewal under any token but that of the running tenure is refused as lost. One that was sent in an earlier tenure and arrives late is no consent to this one."},
	RuleRenewHeld: {"renew-only-while-held",
		"A renewal that comes when the tenure has lapsed, or was released, is refused as lapsed or lost. Check the expiry when renewing, not only when acquiring: the holder has stepped down by then, and another may have been told that the lease is free."},
	RuleRenewGranted: {"renew-is-granted-to-the-holder",
		"A renewal by the holder, under its token, while it holds the lease, is granted. A refusal ends the term of a good leader at once."},
	RuleRenewKeepsToken: {"renew-keeps-the-token",
		"A renewal is the same tenure under the same token. A token that changes at a renewal makes a leader's own writes stale, or gives a later holder the lower one."},
	RuleRenewProlongs: {"renew-prolongs",
		"A renewal, or an acquire by the holder, that was granted makes the tenure last for at least its TTL from then. The holder counts on it from the moment it asked; where the old expiry stays, the lease goes to another meanwhile."},
	RuleNeverShortens: {"never-shortens",
		"A renewal, or an acquire by the holder, never moves the expiry back: expiry = max(expiry, now + TTL). A shorter TTL, or a copy that the network delivers late, would end a tenure that the holder was promised."},

	RuleReleaseHolder: {"release-only-by-the-holder",
		"A release by anybody but the holder is refused as lost, and changes nothing. Deleting the lease without comparing the holder frees another's."},
	RuleReleaseToken: {"release-only-under-its-token",
		"A release under any token but that of the running tenure is refused as lost. One that arrives late would end a later tenure of the same holder."},
	RuleReleaseHeld: {"release-only-while-held",
		"A release that comes when the tenure has lapsed, or was released, is refused as lapsed or lost: there is nothing to give back."},
	RuleReleaseFrees: {"release-frees-at-once",
		"A release by the holder, under its token, while it holds the lease, is done, and the lease is free from then on. Whoever stands by takes over without waiting for the TTL."},

	RuleLockDelay: {"lock-delay-after-lapse",
		"After a lapse the lease is granted to nobody until the promised lock delay has passed since the expiry, and refused as delayed, not as held, until then and no longer. It protects storages that cannot check tokens."},
	RuleNoLockDelay: {"no-lock-delay-after-release",
		"After a release, or a deletion, there is no lock delay: the holder has stopped, and nothing is left to wait for."},

	RuleGet: {"get-tells-the-truth",
		"Get says who holds the lease now, under which token, and nobody once the tenure has lapsed or was released, whether or not a row or key is still there."},

	RuleRestartTenure: {"restart-keeps-the-tenure",
		"After a restart of the store a tenure that has not lapsed, and was not released, is held for its whole TTL, the largest granted in it, from then on. The new clock does not know how much has passed, and the holder, who knows of no restart, acts on."},
	RuleRestartCounter: {"restart-keeps-the-counter",
		"The last token is durable before it is granted: after a restart of the store the next ownership gets a higher one. Tokens that start again let stale writes land."},
	RuleRestartLapse: {"restart-keeps-the-lapse",
		"A lapse is durable before anybody is told of it, and after a restart of the store the tenure is not back. Its lock delay starts anew."},
	RuleRestartRelease: {"restart-keeps-the-release",
		"A release is durable before it is answered: after a restart of the store the lease is free."},
	RuleRestartEnds: {"tenure-ends-after-restart",
		"A tenure that a restart of the store has found ends when its TTL has passed on the new clock. An expiry written down as an instant of the old clock may never come."},

	RuleDeleteFrees: {"delete-frees",
		"A lease that an operator has deleted is free, at once, and its tenure is not held, renewed or released any more."},
	RuleDeleteCounter: {"delete-keeps-the-counter",
		"Deleting a lease keeps its last token: the next ownership gets a higher one. A counter that lives in the deleted row starts again, and stale writes land."},

	RuleMalformed: {"malformed-is-refused",
		"A request without a holder, with a TTL of zero or less, or with token 0 is refused as invalid, whatever the state, and changes nothing. A well-formed one is never called invalid."},

	RuleAnswers: {"answers-undisturbed",
		"While nothing fails around it, a store answers each request: with a grant, or with a refusal that says so. Any other error leaves open whether the request took effect, and a candidate must try again; a panic takes the process with it."},
}

func (r Rule) String() string {
	if r < rules {
		return ruleTexts[r].name
	}
	return fmt.Sprintf("rule(%d)", uint8(r))
}

// Says is the rule in a few sentences, for somebody who wrote a store: what it
// must do, and what breaks otherwise.
func (r Rule) Says() string {
	if r < rules {
		return ruleTexts[r].says
	}
	return ""
}

// steadySays is what is otherwise about a rule for a store whose clock goes on
// over restarts; empty where nothing is.
func steadySays(r Rule) string {
	switch r {
	case RuleRestartTenure:
		return "After a restart of the store an unreleased tenure is held until its TTL has run out, as if there had been none: the store's clock goes on, and the holder, who knows of no restart, acts on."
	case RuleRestartLapse:
		return "After a restart of the store a tenure that somebody was told has lapsed is not back. Its lock delay goes on."
	case RuleRestartEnds:
		return "A tenure that a restart of the store has found ends when its TTL has run out, as if there had been none: the store's clock goes on. One that starts its TTL anew keeps everybody else waiting."
	}
	return ""
}

// MarshalText gives the name used in files and reports.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a name back. The error lists the names there are.
func (r *Rule) UnmarshalText(b []byte) error {
	for i := range ruleTexts {
		if ruleTexts[i].name == string(b) {
			*r = Rule(i)
			return nil
		}
	}
	var names []string
	for v := range Rules() {
		names = append(names, v.String())
	}
	return fmt.Errorf("%q is no rule of lease stores; the rules are %s", b, strings.Join(names, ", "))
}

// Rules are all there are, in order.
func Rules() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for r := NoRule + 1; r < rules && yield(r); r++ {
		}
	}
}
