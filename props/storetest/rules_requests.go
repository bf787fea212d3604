package storetest

import (
	"strings"

	"fencepost/model"
)

// manyTurns tell a number from its digits: a store that finds its highest token
// by the order of text takes 9 for more than 10, and 99 for more than 100. And
// they are more than a byte can count.
const manyTurns = 260

// requestRules are those of a store that stays up. The first is the one that
// nothing else is worth without.
var requestRules = []rule{
	{"rules/a-free-lease-is-granted", []model.Rule{model.RuleAcquireFree, model.RuleGrantTTL, model.RuleGrantHolder}, 0, `
		acquire a {T}`},
	{"rules/every-request-is-answered", []model.Rule{model.RuleAnswers, model.RuleMalformed}, 0, `
		acquire a {T}
		acquire b {T}
		renew a {T}
		release a
		renew a {T}
		release a`},

	// While it is held.
	{"rules/acquire-while-held-is-refused", []model.Rule{model.RuleAcquireHeld}, 0, `
		acquire a {T}
		acquire b {T}`},
	{"rules/acquire-by-the-next-incarnation-of-the-node-is-refused", []model.Rule{model.RuleAcquireHeld}, 0, `
		acquire a {T}
		acquire a.2 {T}`},
	{"rules/the-refusal-names-the-holder", []model.Rule{model.RuleNamesHolder}, 0, `
		acquire a {T}
		release a
		acquire b {T}
		acquire a {T}
		renew b {T}
		acquire c {T}`},
	{"rules/the-refusal-says-for-how-long", []model.Rule{model.RuleRemaining}, 0, `
		acquire a {T}
		advance {short}
		acquire b {T}
		renew a {T}
		acquire b {T}`},
	{"rules/retry-of-an-acquire-keeps-the-token", []model.Rule{model.RuleAcquireAgain}, 0, `
		acquire a {T}
		acquire a {T}
		advance {short}
		acquire a {T}`},
	{"rules/retry-never-shortens", []model.Rule{model.RuleNeverShortens}, 0, `
		acquire a {long}
		acquire a {T}
		advance {long-1ns}
		acquire b {T}`},
	{"rules/retry-extends", []model.Rule{model.RuleRenewProlongs}, 0, `
		acquire a {T}
		advance {short}
		acquire a {T}
		advance {T-1ns}
		acquire b {T}`},

	// Tokens.
	{"rules/next-token-after-release", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		release a
		acquire b {T}
		release b
		acquire c {T}`},
	{"rules/next-token-after-lapse", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		advance {free}
		acquire b {T}`},
	{"rules/next-token-for-the-same-holder", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		release a
		acquire a {T}`},
	{"rules/next-token-for-the-same-holder-after-lapse", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		advance {free}
		acquire a {T}`},
	{"rules/next-token-long-after-release", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		release a
		advance {hour}
		acquire b {T}
		release b
		advance {day}
		acquire c {T}
		release c
		advance {year}
		acquire a {T}`},
	{"rules/next-token-long-after-lapse", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		advance {free+hour}
		acquire b {T}
		advance {free+day}
		acquire c {T}
		advance {free+year}
		acquire a {T}`},
	{"rules/next-token-whoever-was-refused-meanwhile", []model.Rule{model.RuleTokenNext}, 0, `
		acquire a {T}
		acquire b {T}
		acquire c {T}
		acquire a {T}
		renew a {T}
		release a
		acquire b {T}`},

	{"rules/next-token-over-many-turns", []model.Rule{model.RuleTokenNext}, 0, strings.Repeat(`
		acquire a {T}
		release a`, manyTurns)},

	// Time: held on [granted, granted + TTL), to the nanosecond.
	{"rules/held-until-the-last-nanosecond", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {T}
		advance {T-1ns}
		acquire b {T}`},
	{"rules/held-until-the-last-nanosecond-of-a-tenth", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {tenths}
		advance {tenths.end-1ns}
		acquire b {T}`},
	{"rules/held-until-the-last-nanosecond-of-a-fraction-of-a-millisecond", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {micros}
		advance {micros.end-1ns}
		acquire b {T}`},
	{"rules/held-until-the-last-nanosecond-of-a-fraction-of-a-microsecond", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {nanos}
		advance {nanos.end-1ns}
		acquire b {T}`},
	{"rules/held-until-the-last-nanosecond-of-minutes", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {minutes}
		advance {minutes.end-1ns}
		acquire b {T}`},
	{"rules/held-until-the-last-nanosecond-of-hours", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {hours}
		advance {hours.end-1ns}
		acquire b {T}`},
	{"rules/held-until-the-last-nanosecond-of-weeks", []model.Rule{model.RuleNotEarly}, 0, `
		acquire a {weeks}
		advance {weeks.end-1ns}
		acquire b {T}`},
	{"rules/granted-at-any-instant-held-until-the-last-nanosecond", []model.Rule{model.RuleNotEarly}, 0, `
		advance 999999999ns
		acquire a {T}
		advance {T-1ns}
		acquire b {T}`},
	{"rules/lapses-at-the-instant", []model.Rule{model.RuleOnTime, model.RuleLockDelay}, 0, `
		acquire a {T}
		advance {free}
		acquire b {T}`},
	{"rules/the-ttl-of-a-released-tenure-does-not-count", []model.Rule{model.RuleOnTime}, 0, `
		acquire a {long}
		release a
		acquire b {T}
		advance {free}
		acquire c {T}`},
	{"rules/the-ttl-of-a-lapsed-tenure-does-not-count", []model.Rule{model.RuleOnTime}, 0, `
		acquire a {long}
		advance {long+late+delay}
		acquire b {T}
		advance {free}
		acquire c {T}`},
	{"rules/lapses-once-and-for-all", []model.Rule{model.RuleLapseFinal, model.RuleRenewHeld}, noRenewal, `
		acquire a {T}
		advance {gone}
		renew a {T}
		renew a {T}
		advance {delay}
		acquire b {T}`},

	// Renewals.
	{"rules/renew-is-granted-to-the-holder", []model.Rule{model.RuleRenewGranted, model.RuleRenewKeepsToken}, 0, `
		acquire a {T}
		renew a {T}
		advance {T-1ns}
		renew a {T}
		renew a {T}`},
	{"rules/renew-extends", []model.Rule{model.RuleRenewProlongs}, 0, `
		acquire a {T}
		advance {short}
		renew a {T}
		advance {T-1ns}
		acquire b {T}`},
	{"rules/renew-extends-by-fractions", []model.Rule{model.RuleRenewProlongs}, 0, `
		acquire a {tenths}
		renew a {micros}
		advance {micros.end-1ns}
		acquire b {T}`},
	{"rules/renew-extends-from-now-and-no-further", []model.Rule{model.RuleOnTime}, 0, `
		acquire a {T}
		advance {short}
		renew a {T}
		advance {free}
		acquire b {T}`},
	{"rules/renew-with-a-shorter-ttl-never-shortens", []model.Rule{model.RuleNeverShortens}, 0, `
		acquire a {long}
		renew a {T}
		advance {long-1ns}
		acquire b {T}`},
	{"rules/late-copy-of-a-renewal-never-shortens", []model.Rule{model.RuleNeverShortens}, 0, `
		acquire a {T}
		renew a {long}
		renew a {T}
		advance {long-1ns}
		renew a {T}`},
	{"rules/renew-by-another-is-refused", []model.Rule{model.RuleRenewHolder}, 0, `
		acquire a {T}
		renew b of a {T}`},
	{"rules/renew-by-the-next-incarnation-of-the-node-is-refused", []model.Rule{model.RuleRenewHolder}, 0, `
		acquire a {T}
		renew a.2 of a {T}`},
	{"rules/renew-under-an-old-token-is-refused", []model.Rule{model.RuleRenewToken}, 0, `
		acquire a {T}
		release a
		acquire a {T}
		renew a of last-1 {T}`},
	{"rules/renew-under-a-token-never-granted-is-refused", []model.Rule{model.RuleRenewToken}, 0, `
		acquire a {T}
		renew a of last+1 {T}`},
	{"rules/renew-after-lapse-is-refused", []model.Rule{model.RuleRenewHeld, model.RuleOnTime}, noRenewal, `
		acquire a {T}
		advance {gone}
		renew a {T}`},
	{"rules/renew-long-after-lapse-is-refused", []model.Rule{model.RuleRenewHeld, model.RuleOnTime}, noRenewal, `
		acquire a {T}
		advance {gone+year}
		renew a {T}`},
	{"rules/renew-after-release-is-refused", []model.Rule{model.RuleRenewHeld}, 0, `
		acquire a {T}
		release a
		renew a {T}`},
	{"rules/renew-after-takeover-is-refused", []model.Rule{model.RuleRenewHolder, model.RuleRenewHeld}, 0, `
		acquire a {T}
		advance {free}
		acquire b {T}
		renew a {T}`},
	{"rules/a-refused-renewal-changes-nothing", nil, 0, `
		acquire a {T}
		renew b of a {long}
		renew a of last+1 {long}
		advance {free}
		acquire b {T}`},

	// Releases.
	{"rules/release-frees-at-once", []model.Rule{model.RuleReleaseFrees, model.RuleNoLockDelay}, 0, `
		acquire a {T}
		release a
		acquire b {T}`},
	{"rules/release-by-another-is-refused", []model.Rule{model.RuleReleaseHolder}, 0, `
		acquire a {T}
		release b of a
		acquire c {T}`},
	{"rules/release-by-the-next-incarnation-of-the-node-is-refused", []model.Rule{model.RuleReleaseHolder}, 0, `
		acquire a {T}
		release a.2 of a
		acquire c {T}`},
	{"rules/release-under-an-old-token-is-refused", []model.Rule{model.RuleReleaseToken}, 0, `
		acquire a {T}
		release a
		acquire a {T}
		release a of last-1
		acquire b {T}`},
	{"rules/release-under-a-token-never-granted-is-refused", []model.Rule{model.RuleReleaseToken}, 0, `
		acquire a {T}
		release a of last+1
		acquire b {T}`},
	{"rules/release-of-a-lapsed-lease-is-refused", []model.Rule{model.RuleReleaseHeld, model.RuleOnTime}, 0, `
		acquire a {T}
		advance {gone}
		release a`},
	{"rules/release-long-after-lapse-is-refused", []model.Rule{model.RuleReleaseHeld, model.RuleOnTime}, 0, `
		acquire a {T}
		advance {gone+year}
		release a`},
	{"rules/release-twice-is-refused", []model.Rule{model.RuleReleaseHeld}, 0, `
		acquire a {T}
		release a
		release a`},
	{"rules/late-release-of-an-earlier-tenure-frees-nothing", []model.Rule{model.RuleReleaseHolder, model.RuleReleaseHeld}, 0, `
		acquire a {T}
		advance {free}
		acquire b {T}
		release a
		acquire c {T}`},

	// The lock delay.
	{"rules/lock-delay-after-a-lapse", []model.Rule{model.RuleLockDelay}, aDelay, `
		acquire a {T}
		advance {T+delay-1ns}
		acquire b {T}`},
	{"rules/lock-delay-is-for-the-last-holder-too", []model.Rule{model.RuleLockDelay}, aDelay, `
		acquire a {T}
		advance {T+delay-1ns}
		acquire a {T}`},
	{"rules/lock-delay-ends", []model.Rule{model.RuleOnTime, model.RuleAcquireFree}, aDelay, `
		acquire a {T}
		advance {gone}
		acquire b {T}
		advance {delay}
		acquire b {T}`},
	{"rules/no-lock-delay-after-a-release", []model.Rule{model.RuleNoLockDelay}, aDelay, `
		acquire a {T}
		release a
		acquire b {T}`},

	// Reads.
	{"rules/get-of-a-lease-nobody-ever-held", []model.Rule{model.RuleGet}, 0, `
		get
		acquire a {T}`},
	{"rules/get-names-the-holder", []model.Rule{model.RuleGet, model.RuleRemaining}, 0, `
		acquire a {T}
		get
		advance {T-1ns}
		get
		renew a {long}
		get`},
	{"rules/get-after-release-names-nobody", []model.Rule{model.RuleGet}, 0, `
		acquire a {T}
		release a
		get`},
	{"rules/get-after-lapse-names-nobody", []model.Rule{model.RuleGet, model.RuleOnTime}, 0, `
		acquire a {T}
		advance {gone}
		get`},
	{"rules/get-after-takeover-names-the-successor", []model.Rule{model.RuleGet}, 0, `
		acquire a {T}
		release a
		acquire b {T}
		get`},
	{"rules/get-changes-nothing", nil, 0, `
		acquire a {T}
		advance {short}
		get
		renew a {T}
		get
		release a
		get
		acquire b {T}`},
	{"rules/what-get-called-lapsed-stays-lapsed", []model.Rule{model.RuleLapseFinal, model.RuleRenewHeld}, noRenewal, `
		acquire a {T}
		advance {gone}
		get
		renew a {T}`},

	// Two leases.
	{"rules/leases-are-apart", nil, 0, `
		acquire a {T}
		acquire b {T} on q
		renew a {T}
		release a
		renew b {T} on q
		acquire b {T}
		renew b {T}`},
	{"rules/leases-lapse-apart", nil, 0, `
		acquire a {T}
		acquire a {free+T} on q
		advance {free}
		acquire b {T}
		renew a {T} on q`},
	{"rules/each-lease-has-its-own-tokens", nil, 0, `
		acquire a {T}
		acquire a {T} on q
		release a
		release a on q
		acquire b {T}
		acquire b {T} on q`},
}
