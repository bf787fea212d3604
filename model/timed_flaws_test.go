package model

import (
	"os"
	"slices"
	"testing"
)

// timedFlaws are the guards of the timed specification, each weakened,
// strengthened or dropped: those with a number by one nanosecond, or one part
// per billion. A flaw changes the parameters, the operations, or a rule of the
// oracle.
var timedFlaws = []struct {
	name    string
	history int                                 // a random history that tells it
	with    func(p *TimedParams, ops []TimedOp) // nil: the oracle knows it by name
}{
	{"drift a unit more", 71, func(p *TimedParams, _ []TimedOp) { p.DriftPPB++ }},
	{"drift a unit less", 225, func(p *TimedParams, _ []TimedOp) { p.DriftPPB = max(p.DriftPPB-1, 0) }},
	{"early a unit more", 62, func(p *TimedParams, _ []TimedOp) { p.Early++ }},
	{"early a unit less", 193, func(p *TimedParams, _ []TimedOp) { p.Early = max(p.Early-1, 0) }},
	{"late a unit more", 71, func(p *TimedParams, _ []TimedOp) { p.Late = max(p.Late, p.Late+1) }},
	{"late a unit less", 660, func(p *TimedParams, _ []TimedOp) {
		if p.Late != Unbounded {
			p.Late = max(p.Late-1, 0)
		}
	}},
	{"late without a promise", 66, func(p *TimedParams, _ []TimedOp) { p.Late = Unbounded }},
	{"lock delay a unit more", 55, func(p *TimedParams, _ []TimedOp) { p.LockDelay++ }},
	{"lock delay a unit less", 62, func(p *TimedParams, _ []TimedOp) { p.LockDelay = max(p.LockDelay-1, 0) }},
	{"no lock delay", 56, func(p *TimedParams, _ []TimedOp) { p.LockDelay = 0 }},
	{"first token one more", 1, func(p *TimedParams, _ []TimedOp) { p.First += min(p.First, 1) }},
	{"any first token", 69, func(p *TimedParams, _ []TimedOp) { p.First = 0 }},
	{"tokens only rise", 27, func(p *TimedParams, _ []TimedOp) { p.Tokens = max(p.Tokens, TokensRising) }},
	{"tokens must be next", 4, func(p *TimedParams, _ []TimedOp) { p.Tokens = min(p.Tokens, TokensNext) }},
	{"anchored at the grant", 5966, func(p *TimedParams, _ []TimedOp) { p.Anchor = AnchorGrant }},
	{"anchored since the call", 297, func(p *TimedParams, _ []TimedOp) { p.Anchor = AnchorCall }},
	{"renewed after a lapse", 71, func(p *TimedParams, _ []TimedOp) { p.RenewAfterLapse = true }},
	{"not renewed after a lapse", 141, func(p *TimedParams, _ []TimedOp) { p.RenewAfterLapse = false }},
	{"TTL a unit more", 29, func(_ *TimedParams, ops []TimedOp) { eachTimed(ops, func(op *TimedOp) { op.TTL += min(op.TTL, 1) }) }},
	{"TTL a unit less", 35, func(_ *TimedParams, ops []TimedOp) {
		eachTimed(ops, func(op *TimedOp) { op.TTL = max(op.TTL-1, min(op.TTL, 1)) })
	}},
	{"calls a unit sooner", 38, func(_ *TimedParams, ops []TimedOp) { eachTimed(ops, func(op *TimedOp) { op.Call-- }) }},
	{"returns a unit later", 38, func(_ *TimedParams, ops []TimedOp) {
		eachTimed(ops, func(op *TimedOp) { op.Return = max(op.Return, op.Return+1) })
	}},
	{"the unknown did not happen", 0, func(_ *TimedParams, ops []TimedOp) {
		eachTimed(ops, func(op *TimedOp) {
			if op.Outcome == TimedUnknown {
				*op = TimedOp{Kind: TimedRenew, Outcome: TimedUnknown, Call: op.Call, Return: op.Return, Owner: 99, Token: 99, TTL: 1}
			}
		})
	}},
	{"held for ever", 66, nil},
	{"held when it lapses", 71, nil},
	{"lapsed at any time", 239, nil},
	{"lapsed only after it lapses", 29, nil},
	{"one TTL of many", 1865, nil},
	{"a lapse is forgotten", 1335, nil},
	{"delayed when the delay ends", 10007, nil},
	{"granted only after the delay", 487, nil},
	{"a renewal shortens", 228, nil},
	{"granted after it lapsed", 9389, nil},
	{"a token may come again", 69, nil},
	{"any owner", 17, nil},
	{"any token", 7, nil},
	{"no retry", 0, nil},
	{"a get names anybody", 14, nil},
	{"a get tells any token", 178, nil},
	{"a restart knows the last TTL only", 6127, nil},
	{"a restart restarts no TTL", 245, nil},
	{"a restart restarts no delay", 1335, nil},
	{"a lapse that was not told is not on record", 8358, nil},
	{"a restart may end any tenure", 245, nil},
	{"a deletion frees nothing", 43, nil},
	{"a release frees nothing", 136, nil},
	{"refused as held by himself", 91, nil},
	{"a refusal names anybody", 218, nil},
	{"refuses whom it likes", 206, nil},
}

func eachTimed(ops []TimedOp, change func(*TimedOp)) {
	for i := range ops {
		change(&ops[i])
	}
}

// timedTold reports whether the i-th random history tells a flaw.
func timedTold(flaw, i int) bool {
	f := timedFlaws[flaw]
	p, ops, _ := timedCase(i)
	want := timedSearch(p, ops)
	if f.with == nil {
		got, _ := oracleFlawed(p, ops, f.name)
		return got != want
	}
	ops = slices.Clone(ops)
	f.with(&p, ops)
	if p.Tokens == TokensNone {
		p.First = 0
	}
	return timedSearch(p, ops) != want
}

// TestTimedGuardsAreEachMet shows that the random histories on which Step and
// brute force agree tell the specification from one with any guard wrong.
// Looking for them takes a while, so each flaw names one; they are among the
// 20,000 of TestTimedAgreesWithBruteForce.
func TestTimedGuardsAreEachMet(t *testing.T) {
	for f, flaw := range timedFlaws {
		if timedTold(f, flaw.history) {
			continue
		}
		if os.Getenv("FENCEPOST_LONG") == "" {
			t.Errorf("%s: history %d does not tell the flawed rule from the real one; FENCEPOST_LONG=1 looks for another", flaw.name, flaw.history)
			continue
		}
		i := 0
		for i < 20_000 && !timedTold(f, i) {
			i++
		}
		t.Errorf("%s: history %d does not tell the flawed rule from the real one; the first that does is %d of 20000", flaw.name, flaw.history, i)
	}
}
