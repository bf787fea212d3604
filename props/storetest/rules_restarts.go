package storetest

import "fencepost/model"

// restartRules are those of a store that crashes and comes back from its
// durable state, with a clock that starts anew or, where a script needs a
// steadyClock, goes on. Most need neither: what they say holds with both.
var restartRules = []rule{
	{"restarts/a-tenure-is-held-on", []model.Rule{model.RuleRestartTenure}, restarts, `
		acquire a {T}
		restart
		acquire b {T}`},
	{"restarts/a-tenure-is-held-for-its-whole-ttl", []model.Rule{model.RuleRestartTenure}, restarts | newClock, `
		acquire a {T}
		advance {T-1ns}
		restart
		advance {T-1ns}
		acquire b {T}`},
	{"restarts/a-tenure-is-held-for-the-rest-of-its-ttl", []model.Rule{model.RuleRestartTenure}, restarts | steadyClock, `
		acquire a {T}
		advance {short}
		restart
		advance {T-short-1ns}
		acquire b {T}`},
	{"restarts/a-tenure-is-held-for-fractions-of-a-second", []model.Rule{model.RuleRestartTenure}, restarts, `
		acquire a {micros}
		restart
		advance {micros.end-1ns}
		acquire b {T}`},
	{"restarts/a-tenure-ends-after-its-ttl", []model.Rule{model.RuleRestartEnds}, restarts, `
		acquire a {T}
		advance {short}
		restart
		advance {free}
		acquire b {T}`},
	{"restarts/a-tenure-ends-as-if-there-had-been-none", []model.Rule{model.RuleRestartEnds}, restarts | steadyClock, `
		acquire a {T}
		advance {short}
		restart
		advance {free-short}
		acquire b {T}`},
	{"restarts/a-tenure-that-has-run-out-is-over", []model.Rule{model.RuleRestartEnds}, restarts | steadyClock, `
		acquire a {T}
		advance {free}
		restart
		acquire b {T}`},
	{"restarts/the-holder-renews-after-it", []model.Rule{model.RuleRenewGranted, model.RuleRestartTenure}, restarts, `
		acquire a {T}
		restart
		renew a {T}
		advance {T-1ns}
		renew a {T}`},
	{"restarts/retry-of-an-acquire-keeps-the-token", []model.Rule{model.RuleAcquireAgain, model.RuleRestartTenure}, restarts, `
		acquire a {T}
		restart
		acquire a {T}`},
	{"restarts/the-largest-ttl-of-the-tenure-counts", []model.Rule{model.RuleRestartTenure}, restarts, `
		acquire a {T}
		renew a {long}
		renew a {short}
		restart
		advance {long-1ns}
		acquire b {T}`},
	{"restarts/the-ttl-of-an-earlier-tenure-does-not-count", []model.Rule{model.RuleRestartEnds}, restarts, `
		acquire a {long}
		release a
		acquire b {T}
		restart
		advance {free}
		acquire c {T}`},
	{"restarts/a-takeover-stays", []model.Rule{model.RuleRestartTenure}, restarts, `
		acquire a {T}
		advance {free}
		acquire b {T}
		restart
		renew a {T}
		renew b {T}`},

	// The counter.
	{"restarts/the-counter-stays-after-a-release", []model.Rule{model.RuleRestartCounter}, restarts, `
		acquire a {T}
		release a
		restart
		acquire b {T}`},
	{"restarts/the-counter-stays-after-a-lapse", []model.Rule{model.RuleRestartCounter}, restarts, `
		acquire a {T}
		advance {gone}
		restart
		advance {free}
		acquire b {T}`},
	{"restarts/no-token-is-issued-twice", []model.Rule{model.RuleRestartCounter}, restarts, `
		acquire a {T}
		release a
		acquire b {T}
		release b
		restart
		acquire a {T}
		release a
		restart
		acquire b {T}`},

	// What was told or given up.
	{"restarts/a-release-stays", []model.Rule{model.RuleRestartRelease}, restarts, `
		acquire a {T}
		release a
		restart
		acquire b {T}`},
	{"restarts/a-released-lease-cannot-be-renewed", []model.Rule{model.RuleRestartRelease, model.RuleRenewHeld}, restarts, `
		acquire a {T}
		release a
		restart
		renew a {T}`},
	{"restarts/a-lapse-that-was-told-stays", []model.Rule{model.RuleRestartLapse}, restarts, `
		acquire a {T}
		advance {gone}
		release a
		restart
		advance {delay}
		acquire b {T}`},
	{"restarts/a-lapse-that-get-told-stays", []model.Rule{model.RuleRestartLapse}, restarts, `
		acquire a {T}
		advance {gone}
		get
		restart
		get`},
	{"restarts/a-lapsed-lease-cannot-be-renewed", []model.Rule{model.RuleRestartLapse, model.RuleLapseFinal}, restarts | noRenewal, `
		acquire a {T}
		advance {gone}
		renew a {T}
		restart
		renew a {T}`},
	{"restarts/a-lapse-that-was-told-starts-its-lock-delay-anew", []model.Rule{model.RuleRestartLapse, model.RuleLockDelay}, restarts | aDelay | newClock, `
		acquire a {T}
		advance {gone}
		release a
		restart
		advance {delay-1ns}
		acquire b {T}`},

	{"restarts/a-lock-delay-goes-on", []model.Rule{model.RuleRestartLapse, model.RuleLockDelay}, restarts | aDelay | steadyClock, `
		acquire a {T}
		advance {T}
		acquire b {T}
		restart
		advance {delay-1ns}
		acquire b {T}`},
	{"restarts/a-lock-delay-is-not-started-anew", []model.Rule{model.RuleLockDelay}, restarts | aDelay | steadyClock, `
		acquire a {T}
		advance {gone+delay-1ns}
		release a
		restart
		advance {1ns}
		acquire b {T}`},

	// Several in a row.
	{"restarts/two-in-a-row-start-the-ttl-twice", []model.Rule{model.RuleRestartTenure}, restarts | newClock, `
		acquire a {T}
		advance {T-1ns}
		restart
		advance {T-1ns}
		restart
		advance {T-1ns}
		acquire b {T}`},
	{"restarts/two-in-a-row-are-as-none", []model.Rule{model.RuleRestartTenure, model.RuleRestartEnds}, restarts | steadyClock, `
		acquire a {T}
		restart
		advance {short}
		restart
		advance {T-short-1ns}
		acquire b {T}
		advance {free-T+1ns}
		acquire b {T}`},
	{"restarts/a-lease-nobody-ever-held-is-free", nil, restarts, `
		acquire a {T}
		restart
		acquire b {T} on q`},
}

// deleteRules are those of an operator who deletes the lease.
var deleteRules = []rule{
	{"delete/frees-at-once", []model.Rule{model.RuleDeleteFrees, model.RuleNoLockDelay}, 0, `
		acquire a {T}
		delete
		acquire b {T}`},
	{"delete/next-token", []model.Rule{model.RuleDeleteCounter}, 0, `
		acquire a {T}
		delete
		acquire b {T}
		delete
		delete
		acquire b {T}`},
	{"delete/the-holder-cannot-renew", []model.Rule{model.RuleRenewHeld, model.RuleDeleteFrees}, 0, `
		acquire a {T}
		delete
		renew a {T}`},
	{"delete/late-release-of-what-was-deleted-frees-nothing", []model.Rule{model.RuleReleaseHolder, model.RuleReleaseHeld}, 0, `
		acquire a {T}
		delete
		acquire b {T}
		release a
		acquire c {T}`},
	{"delete/of-a-free-lease-changes-nothing", nil, 0, `
		delete
		acquire a {T}
		release a
		delete
		acquire b {T}`},
	{"delete/no-other-lease", nil, 0, `
		acquire a {T}
		acquire a {T} on q
		delete
		acquire b {T} on q`},
	{"delete/next-token-after-a-restart", []model.Rule{model.RuleDeleteCounter, model.RuleRestartCounter}, restarts, `
		acquire a {T}
		delete
		restart
		acquire b {T}`},
}
