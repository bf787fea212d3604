package model

import "testing"

// The operations of the tables below: call, return, then what was asked.

func timedAcq(call, ret int64, owner int32, ttl int64, token uint64) TimedOp {
	return TimedOp{Kind: TimedAcquire, Call: call, Return: ret, Owner: owner, TTL: ttl, Token: token}
}

func timedHeldBy(call, ret int64, owner, holder int32) TimedOp {
	return TimedOp{Kind: TimedAcquire, Outcome: TimedHeld, Call: call, Return: ret, Owner: owner, TTL: 10, Holder: holder}
}

func timedDelayed(call, ret int64, owner int32) TimedOp {
	return TimedOp{Kind: TimedAcquire, Outcome: TimedDelay, Call: call, Return: ret, Owner: owner, TTL: 10}
}

func timedRen(call, ret int64, owner int32, token uint64, ttl int64) TimedOp {
	return TimedOp{Kind: TimedRenew, Call: call, Return: ret, Owner: owner, Token: token, TTL: ttl}
}

func timedRel(call, ret int64, owner int32, token uint64) TimedOp {
	return TimedOp{Kind: TimedRelease, Call: call, Return: ret, Owner: owner, Token: token}
}

func timedWr(call, ret int64, owner int32, token uint64) TimedOp {
	return TimedOp{Kind: TimedWrite, Call: call, Return: ret, Owner: owner, Token: token}
}

func timedSays(call, ret int64, holder int32, token uint64) TimedOp {
	return TimedOp{Kind: TimedGet, Call: call, Return: ret, Holder: holder, HolderToken: token}
}

func timedBack(call, ret int64) TimedOp { return TimedOp{Kind: TimedRestart, Call: call, Return: ret} }

func timedNo(op TimedOp) TimedOp { op.Outcome = TimedRefused; return op }

// timedLost is op without an answer.
func timedLost(op TimedOp) TimedOp {
	op.Outcome, op.Return = TimedUnknown, Unbounded
	if op.Kind == TimedAcquire {
		op.Token = 0
	}
	return op
}

type timedVerdicts []struct {
	rule  string
	legal bool
	ops   []TimedOp
}

// check has each history judged by Step and by brute force. The verdict
// expected was worked out by hand from the rules.
func (vs timedVerdicts) check(t *testing.T, p TimedParams) {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		if got := timedSearch(p, v.ops); got != v.legal {
			t.Errorf("%s: Step says legal=%v, want %v\n%s", v.rule, got, v.legal, timedStory(p, v.ops))
		}
		if got, _ := oracleLegal(p, v.ops); got != v.legal {
			t.Errorf("%s: brute force says legal=%v, want %v\n%s", v.rule, got, v.legal, timedStory(p, v.ops))
		}
	}
}

func TestTimedHeldEndsWhereLapsedBegins(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	timedVerdicts{
		{"held before the TTL is over", true, []TimedOp{grant, timedSays(9, 9, 1, 1)}},
		{"not held when it is over", false, []TimedOp{grant, timedSays(10, 10, 1, 1)}},
		{"not lapsed before", false, []TimedOp{grant, timedSays(9, 9, 0, 0)}},
		{"lapsed when it is over", true, []TimedOp{grant, timedSays(10, 10, 0, 0)}},
		{"renewed before", true, []TimedOp{grant, timedRen(9, 9, 1, 1, 10)}},
		{"not renewed after", false, []TimedOp{grant, timedRen(10, 10, 1, 1, 10)}},
		{"renewal not refused before", false, []TimedOp{grant, timedNo(timedRen(9, 9, 1, 1, 10))}},
		{"renewal refused after", true, []TimedOp{grant, timedNo(timedRen(10, 10, 1, 1, 10))}},
		{"released before", true, []TimedOp{grant, timedRel(9, 9, 1, 1)}},
		{"not released after", false, []TimedOp{grant, timedRel(10, 10, 1, 1)}},
		{"release not refused before", false, []TimedOp{grant, timedNo(timedRel(9, 9, 1, 1))}},
		{"release refused after", true, []TimedOp{grant, timedNo(timedRel(10, 10, 1, 1))}},
		{"written before", true, []TimedOp{grant, timedWr(9, 9, 1, 1)}},
		{"not written after", false, []TimedOp{grant, timedWr(10, 10, 1, 1)}},
		{"write not refused before", false, []TimedOp{grant, timedNo(timedWr(9, 9, 1, 1))}},
		{"write refused after", true, []TimedOp{grant, timedNo(timedWr(10, 10, 1, 1))}},
		{"refused as held before", true, []TimedOp{grant, timedHeldBy(9, 9, 2, 1)}},
		{"not refused as held after", false, []TimedOp{grant, timedHeldBy(10, 10, 2, 1)}},
		{"retried before", true, []TimedOp{grant, timedAcq(9, 9, 1, 10, 1)}},
		{"not retried after", false, []TimedOp{grant, timedAcq(10, 10, 1, 10, 1)}},
		{"granted to another not before", false, []TimedOp{grant, timedAcq(9, 9, 2, 10, 2)}},
		{"granted to another after", true, []TimedOp{grant, timedAcq(10, 10, 2, 10, 2)}},
		{"granted anew to the same not before", false, []TimedOp{grant, timedAcq(9, 9, 1, 10, 2)}},
		{"granted anew to the same after", true, []TimedOp{grant, timedAcq(10, 10, 1, 10, 2)}},
	}.check(t, TimedParams{First: 1})
}

func TestTimedInstantsAreRealNumbers(t *testing.T) {
	grant := timedAcq(0, 1, 1, 10, 1)
	timedVerdicts{
		{"held if granted late", true, []TimedOp{grant, timedSays(10, 10, 1, 1)}},
		{"lapsed if granted early", true, []TimedOp{grant, timedSays(10, 10, 0, 0)}},
		{"not both", false, []TimedOp{grant, timedSays(10, 10, 1, 1), timedSays(10, 10, 0, 0)}},
		{"held, then lapsed, between two ticks", true, []TimedOp{grant, timedSays(10, 11, 1, 1), timedSays(10, 11, 0, 0)}},
		{"held an instant before the last chance", false, []TimedOp{grant, timedSays(11, 11, 1, 1)}},
		{"granted in the middle of one tick, renewed in that of the next, and so on", true, []TimedOp{
			timedAcq(0, 1, 1, 1, 1), timedRen(1, 2, 1, 1, 1), timedRen(2, 3, 1, 1, 1), timedRen(3, 4, 1, 1, 1), timedSays(4, 4, 1, 1)}},
		{"but not for a whole tick longer", false, []TimedOp{
			timedAcq(0, 1, 1, 1, 1), timedRen(1, 2, 1, 1, 1), timedRen(2, 3, 1, 1, 1), timedRen(3, 4, 1, 1, 1), timedSays(5, 5, 1, 1)}},
	}.check(t, TimedParams{First: 1})
}

func TestTimedDriftBoundsAreExact(t *testing.T) {
	timedVerdicts{
		// At a tenth, 9 ns last 8 2/11 to 10 ns and 11 ns last 10 to 12 2/9.
		{"9 held at 9", true, []TimedOp{timedAcq(0, 0, 1, 9, 1), timedSays(9, 9, 1, 1)}},
		{"9 not held at 10", false, []TimedOp{timedAcq(0, 0, 1, 9, 1), timedSays(10, 10, 1, 1)}},
		{"9 not lapsed at 8", false, []TimedOp{timedAcq(0, 0, 1, 9, 1), timedSays(8, 8, 0, 0)}},
		{"9 lapsed at 9", true, []TimedOp{timedAcq(0, 0, 1, 9, 1), timedSays(9, 9, 0, 0)}},
		{"11 held at 12", true, []TimedOp{timedAcq(0, 0, 1, 11, 1), timedSays(12, 12, 1, 1)}},
		{"11 not held at 13", false, []TimedOp{timedAcq(0, 0, 1, 11, 1), timedSays(13, 13, 1, 1)}},
		{"11 not lapsed at 9", false, []TimedOp{timedAcq(0, 0, 1, 11, 1), timedSays(9, 9, 0, 0)}},
		{"11 lapsed at 10", true, []TimedOp{timedAcq(0, 0, 1, 11, 1), timedSays(10, 10, 0, 0)}},
		// 10 ns last up to 11 1/9: three in a row up to 33 1/3, which neither
		// rounding up (36) nor down (33, itself excluded) gives.
		{"fractions add up", true, []TimedOp{timedAcq(0, 0, 1, 10, 1),
			timedRen(0, 90, 1, 1, 10), timedRen(0, 90, 1, 1, 10), timedSays(33, 33, 1, 1)}},
		{"but no further", false, []TimedOp{timedAcq(0, 0, 1, 10, 1),
			timedRen(0, 90, 1, 1, 10), timedRen(0, 90, 1, 1, 10), timedSays(34, 34, 1, 1)}},
	}.check(t, TimedParams{First: 1, DriftPPB: 100_000_000})
}

func TestTimedEarlyAndLateWidenTheLapse(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	timedVerdicts{
		{"held before late is over", true, []TimedOp{grant, timedSays(12, 12, 1, 1)}},
		{"not when it is", false, []TimedOp{grant, timedSays(13, 13, 1, 1)}},
		{"not lapsed before early begins", false, []TimedOp{grant, timedSays(7, 7, 0, 0)}},
		{"lapsed from when it does", true, []TimedOp{grant, timedSays(8, 8, 0, 0)}},
	}.check(t, TimedParams{First: 1, Early: 2, Late: 3})
	timedVerdicts{
		{"without a promise it need never lapse", true, []TimedOp{grant, timedSays(1e15, 1e15, 1, 1)}},
		{"and yet may in time", true, []TimedOp{grant, timedSays(10, 10, 0, 0)}},
		{"but no sooner", false, []TimedOp{grant, timedSays(9, 9, 0, 0)}},
	}.check(t, TimedParams{First: 1, Late: Unbounded})
}

func TestTimedAnAnsweredLapseIsFinal(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	refused := timedNo(timedRen(12, 12, 1, 1, 10))
	verdicts := func(renewable bool) timedVerdicts {
		return timedVerdicts{
			{"refused as lapsed, then refused as held", false, []TimedOp{grant, refused, timedHeldBy(13, 13, 2, 1)}},
			{"refused as held, then as lapsed", true, []TimedOp{grant, timedHeldBy(12, 12, 2, 1), timedNo(timedRen(13, 13, 1, 1, 10))}},
			{"read as free, then as held", false, []TimedOp{grant, timedSays(12, 12, 0, 0), timedSays(13, 13, 1, 1)}},
			{"write refused, then accepted", false, []TimedOp{grant, timedNo(timedWr(12, 12, 1, 1)), timedWr(13, 13, 1, 1)}},
			{"refused, then renewed", renewable, []TimedOp{grant, refused, timedRen(13, 13, 1, 1, 10)}},
			{"refused, then acquired under the same token", renewable, []TimedOp{grant, refused, timedAcq(13, 13, 1, 10, 1)}},
			{"refused, then acquired under a new token", true, []TimedOp{grant, refused, timedAcq(13, 13, 1, 10, 2), timedSays(14, 14, 1, 2)}},
			{"refused twice", true, []TimedOp{grant, refused, timedNo(timedRel(13, 13, 1, 1)), timedSays(14, 14, 0, 0)}},
			{"nobody was told, so renewed in late", true, []TimedOp{grant, timedRen(14, 14, 1, 1, 10)}},
			{"renewed when nobody used the lapse", renewable, []TimedOp{grant, timedRen(15, 15, 1, 1, 10), timedSays(24, 24, 1, 1)}},
			{"renewed when somebody had", false, []TimedOp{grant, timedAcq(15, 15, 2, 10, 2), timedRen(30, 30, 1, 1, 10)}},
			{"renewed after a release", false, []TimedOp{grant, timedRel(5, 5, 1, 1), timedRen(6, 6, 1, 1, 10)}},
			{"released after the lapse", false, []TimedOp{grant, timedRel(15, 15, 1, 1)}},
		}
	}
	verdicts(false).check(t, TimedParams{First: 1, Late: 5})
	verdicts(true).check(t, TimedParams{First: 1, Late: 5, RenewAfterLapse: true})
}

func TestTimedRenewNeverShortens(t *testing.T) {
	grant, short := timedAcq(0, 0, 1, 10, 1), timedRen(1, 1, 1, 1, 3)
	timedVerdicts{
		{"held by the longer TTL", true, []TimedOp{grant, short, timedSays(9, 9, 1, 1)}},
		{"not beyond it", false, []TimedOp{grant, short, timedSays(10, 10, 1, 1)}},
		{"not lapsed with the shorter", false, []TimedOp{grant, short, timedAcq(5, 5, 2, 10, 2)}},
		{"lapsed with both", true, []TimedOp{grant, short, timedAcq(10, 10, 2, 10, 2)}},
		{"an acquire does not shorten either", false, []TimedOp{grant, timedAcq(1, 1, 1, 3, 1), timedSays(5, 5, 0, 0)}},
		{"the shorter may be the one that lasts", true, []TimedOp{grant, timedRen(9, 9, 1, 1, 3), timedSays(11, 11, 1, 1)}},
		{"until it lapses", true, []TimedOp{grant, timedRen(9, 9, 1, 1, 3), timedSays(12, 12, 0, 0)}},
		{"not before", false, []TimedOp{grant, timedRen(9, 9, 1, 1, 3), timedSays(11, 11, 0, 0)}},
		{"four TTLs run, the first is the last", true, []TimedOp{timedAcq(0, 0, 1, 90, 1), timedRen(1, 1, 1, 1, 60),
			timedRen(2, 2, 1, 1, 40), timedRen(3, 3, 1, 1, 20), timedSays(89, 89, 1, 1), timedSays(90, 90, 0, 0)}},
	}.check(t, TimedParams{First: 1})

	// At a tenth, 900 lapses in [818 2/11, 1000] and 500 from 400 in
	// [854 6/11, 955 5/9], so neither outlasts the other in every case, though
	// they are due at once or nearly.
	both := []TimedOp{timedAcq(0, 0, 1, 900, 1), timedRen(400, 400, 1, 1, 500)}
	timedVerdicts{
		{"lapsed when only the first can be", false, append(both, timedSays(854, 854, 0, 0))},
		{"lapsed when both can be", true, append(both, timedSays(855, 855, 0, 0))},
		{"held when only the first can be", true, append(both, timedSays(999, 999, 1, 1))},
		{"held when neither can be", false, append(both, timedSays(1000, 1000, 1, 1))},
	}.check(t, TimedParams{First: 1, DriftPPB: 100_000_000})
}

func TestTimedAcquireByTheHolderIsARetry(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	timedVerdicts{
		{"same token", true, []TimedOp{grant, timedAcq(5, 5, 1, 10, 1)}},
		{"no new token", false, []TimedOp{grant, timedAcq(5, 5, 1, 10, 2)}},
		{"it extends", true, []TimedOp{grant, timedAcq(5, 5, 1, 10, 1), timedSays(14, 14, 1, 1)}},
		{"it must extend", false, []TimedOp{grant, timedAcq(5, 5, 1, 10, 1), timedSays(10, 10, 0, 0)}},
		{"it is not refused as held", false, []TimedOp{grant, timedHeldBy(5, 5, 1, 0)}},
		{"not even naming the holder", false, []TimedOp{grant, timedHeldBy(5, 5, 1, 1)}},
		{"a refusal names who holds it", false, []TimedOp{grant, timedHeldBy(5, 5, 2, 3)}},
		{"or nobody", true, []TimedOp{grant, timedHeldBy(5, 5, 2, 0)}},
		{"after a release a new token", true, []TimedOp{grant, timedRel(5, 5, 1, 1), timedAcq(6, 6, 1, 10, 2)}},
		{"not the same", false, []TimedOp{grant, timedRel(5, 5, 1, 1), timedAcq(6, 6, 1, 10, 1)}},
		{"another's token renews nothing", true, []TimedOp{grant, timedNo(timedRen(5, 5, 1, 7, 10)), timedNo(timedRen(5, 5, 2, 1, 10)), timedSays(9, 9, 1, 1)}},
		{"another's renewal is not accepted", false, []TimedOp{grant, timedRen(5, 5, 2, 1, 10)}},
		{"nor one under another token", false, []TimedOp{grant, timedRen(5, 5, 1, 2, 10)}},
		{"a get names the token", false, []TimedOp{grant, timedSays(5, 5, 1, 2)}},
	}.check(t, TimedParams{First: 1})
}

func TestTimedTokens(t *testing.T) {
	first := func(token uint64) []TimedOp { return []TimedOp{timedAcq(0, 0, 1, 10, token)} }
	then := func(token uint64, between ...TimedOp) []TimedOp {
		return append(append(first(5), between...), timedAcq(40, 40, 3, 10, token))
	}
	maybe := timedLost(timedAcq(20, 0, 2, 10, 0))
	seen := timedSays(21, 21, 2, 0)
	tooLate := timedLost(timedAcq(41, 0, 2, 10, 0))
	timedVerdicts{
		{"the first is as said", true, first(5)},
		{"and no other", false, first(6)},
		{"the next is one more", true, then(6)},
		{"not two", false, then(7)},
		{"not the same", false, then(5)},
		{"an unknown acquire may have taken one", true, then(7, maybe)},
		{"or not", true, then(6, maybe)},
		{"but not two", false, then(8, maybe)},
		{"nor before its call", false, then(7, tooLate)},
		{"two may have taken two", true, then(8, maybe, timedLost(timedAcq(10, 0, 1, 5, 0)))},
		{"a get tells which it took", true, then(7, maybe, timedSays(21, 21, 2, 6))},
		{"and after that it did", false, then(6, maybe, timedSays(21, 21, 2, 6))},
	}.check(t, TimedParams{First: 5})
	timedVerdicts{
		{"rising: the first may be higher", true, first(6)},
		{"rising: not lower", false, first(4)},
		{"rising: gaps", true, then(70)},
		{"rising: not the same", false, then(5)},
		{"rising: not lower", false, then(4)},
		{"rising: an unknown acquire took some token", true, then(70, maybe, timedSays(21, 21, 2, 30))},
		{"rising: which is below the next", false, then(30, maybe, timedSays(21, 21, 2, 30))},
		{"rising: even if nobody saw it", false, then(6, maybe, seen)},
		{"rising: a refusal leaves both sides", true, then(70, maybe, seen, timedNo(timedWr(22, 22, 2, 30)), timedSays(23, 23, 2, 31))},
		{"rising: below", true, then(70, maybe, seen, timedNo(timedWr(22, 22, 2, 30)), timedSays(23, 23, 2, 29))},
		{"rising: but not itself", false, then(70, maybe, seen, timedNo(timedWr(22, 22, 2, 30)), timedSays(23, 23, 2, 30))},
	}.check(t, TimedParams{First: 5, Tokens: TokensRising})
	timedVerdicts{
		{"any: the first is any", true, first(70)},
		{"any: but not none", false, first(0)},
		{"any: the next is one more", true, then(6)},
		{"any: not two", false, then(7)},
		{"any: what an unknown acquire took is any", true, []TimedOp{timedLost(timedAcq(0, 0, 2, 10, 0)), timedSays(1, 1, 2, 9), timedAcq(40, 40, 1, 10, 10)}},
		{"any: once", false, []TimedOp{timedLost(timedAcq(0, 0, 2, 10, 0)), timedSays(1, 1, 2, 9), timedAcq(40, 40, 1, 10, 11)}},
	}.check(t, TimedParams{})
	timedVerdicts{
		{"none: tokens are not read", true, []TimedOp{timedAcq(0, 0, 1, 10, 0), timedRen(5, 5, 1, 0, 10), timedRel(6, 6, 1, 0), timedAcq(7, 7, 2, 10, 0)}},
		{"none: owners are", false, []TimedOp{timedAcq(0, 0, 1, 10, 0), timedRel(6, 6, 2, 0)}},
		{"none: and time", false, []TimedOp{timedAcq(0, 0, 1, 10, 0), timedAcq(9, 9, 2, 10, 0)}},
		{"none: the holder's acquire is a retry", true, []TimedOp{timedAcq(0, 0, 1, 10, 0), timedAcq(9, 9, 1, 10, 0), timedSays(18, 18, 1, 0)}},
		{"none: or a new tenure", true, []TimedOp{timedAcq(0, 0, 1, 10, 0), timedAcq(10, 10, 1, 10, 0)}},
	}.check(t, TimedParams{Tokens: TokensNone})
}

func TestTimedUnknownMayHaveHappenedOrNot(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	acq, ren := timedLost(timedAcq(11, 0, 2, 10, 0)), timedLost(timedRen(5, 0, 1, 1, 10))
	rel, wr := timedLost(timedRel(5, 0, 1, 1)), timedLost(timedWr(5, 0, 1, 1))
	timedVerdicts{
		{"acquire: it did", true, []TimedOp{grant, acq, timedHeldBy(12, 12, 3, 2)}},
		{"acquire: it did not", true, []TimedOp{grant, acq, timedAcq(12, 12, 3, 10, 2)}},
		{"acquire: it did later", true, []TimedOp{grant, acq, timedAcq(12, 12, 3, 10, 2), timedRel(13, 13, 3, 2), timedSays(14, 14, 2, 3)}},
		{"acquire: only one of the two", false, []TimedOp{grant, acq, timedHeldBy(12, 12, 3, 2), timedAcq(13, 13, 3, 10, 2)}},
		{"acquire: not before its call", false, []TimedOp{grant, acq, timedSays(10, 10, 2, 2)}},
		{"renew: it did", true, []TimedOp{grant, ren, timedSays(12, 12, 1, 1)}},
		{"renew: it did not", true, []TimedOp{grant, ren, timedSays(12, 12, 0, 0)}},
		{"renew: not after the lapse", false, []TimedOp{grant, timedSays(10, 10, 0, 0), ren, timedSays(12, 12, 1, 1)}},
		{"release: it did", true, []TimedOp{grant, rel, timedAcq(7, 7, 2, 10, 2)}},
		{"release: it did not", true, []TimedOp{grant, rel, timedSays(9, 9, 1, 1)}},
		{"release: not another's", false, []TimedOp{grant, timedLost(timedRel(5, 0, 2, 1)), timedAcq(7, 7, 2, 10, 2)}},
		{"write: it changes nothing", false, []TimedOp{grant, wr, timedAcq(7, 7, 2, 10, 2)}},
	}.check(t, TimedParams{First: 1})
}

func TestTimedAnchorCallStartsTheTTLBeforeTheTurn(t *testing.T) {
	// 2 waits from 0 and gets its turn at 29, when 1 was last seen to hold.
	waited := []TimedOp{timedAcq(0, 0, 1, 29, 1), timedSays(28, 28, 1, 1), timedAcq(0, 29, 2, 10, 2)}
	granted := func(ttl int64) []TimedOp { // to 1 at 6, not before
		return []TimedOp{timedAcq(0, 0, 3, 90, 1), timedRel(6, 6, 3, 1), timedAcq(6, 6, 1, ttl, 2)}
	}
	for _, c := range []struct {
		anchor Anchor
		early  bool
	}{{AnchorGrant, false}, {AnchorCall, true}} {
		timedVerdicts{
			{"lapses sooner", c.early, append(waited, timedSays(30, 30, 0, 0))},
			{"or as if it had not waited", true, append(waited, timedSays(38, 38, 2, 2))},
			{"but no later", false, append(waited, timedSays(39, 39, 2, 2))},
			{"its own lease must not have lapsed in the queue", false, append(waited, timedAcq(29, 29, 3, 10, 3))},
			{"a renewal runs from its effect", false, append(granted(2), timedRen(0, 9, 1, 2, 10), timedSays(15, 15, 0, 0))},
			{"a retry may run from its call", c.early, append(granted(2), timedAcq(0, 9, 1, 10, 2), timedSays(15, 15, 0, 0))},
			{"a retry shortens nothing", false, append(granted(10), timedAcq(0, 9, 1, 10, 2), timedSays(15, 15, 0, 0))},
			{"neither does one with a longer TTL", false, append(granted(10), timedAcq(0, 9, 1, 11, 2), timedSays(15, 15, 0, 0))},
		}.check(t, TimedParams{First: 1, Anchor: c.anchor})
	}
}

func TestTimedRestart(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	timedVerdicts{
		{"held for the whole TTL again", true, []TimedOp{grant, timedBack(9, 9), timedSays(18, 18, 1, 1)}},
		{"and no longer", false, []TimedOp{grant, timedBack(9, 9), timedSays(19, 19, 1, 1)}},
		{"not granted before", false, []TimedOp{grant, timedBack(9, 9), timedAcq(18, 18, 2, 10, 2)}},
		{"granted then", true, []TimedOp{grant, timedBack(9, 9), timedAcq(19, 19, 2, 10, 2)}},
		{"the instant is somewhere within", true, []TimedOp{grant, timedBack(8, 9), timedAcq(18, 18, 2, 10, 2)}},
		{"even if it had run out untold", true, []TimedOp{grant, timedBack(15, 15), timedSays(20, 20, 1, 1)}},
		{"unless the store had put that on record", true, []TimedOp{grant, timedBack(15, 15), timedAcq(15, 15, 2, 10, 2)}},
		{"at its expiry at the earliest", true, []TimedOp{grant, timedBack(10, 10), timedSays(10, 10, 0, 0)}},
		{"and no sooner", false, []TimedOp{grant, timedBack(9, 9), timedSays(10, 10, 0, 0)}},
		{"it may have come back at that instant", true, []TimedOp{grant, timedBack(9, 10), timedSays(10, 10, 0, 0)}},
		{"which is either of the two", false, []TimedOp{grant, timedBack(15, 15), timedSays(16, 16, 1, 1), timedAcq(17, 17, 2, 10, 2)}},
		{"and stays", false, []TimedOp{grant, timedBack(15, 15), timedSays(16, 16, 0, 0), timedBack(17, 17), timedSays(18, 18, 1, 1)}},
		{"a tenure held on may be on record at the next one", true, []TimedOp{grant, timedBack(15, 15), timedBack(25, 25), timedAcq(25, 25, 2, 10, 2)}},
		{"if it has run out again", false, []TimedOp{grant, timedBack(15, 15), timedSays(16, 16, 1, 1), timedBack(24, 24), timedAcq(24, 24, 2, 10, 2)}},
		{"all TTLs must have run out", false, []TimedOp{grant, timedRen(5, 5, 1, 1, 10), timedBack(14, 14), timedAcq(15, 15, 2, 10, 2)}},
		{"an answered lapse stays", false, []TimedOp{grant, timedSays(12, 12, 0, 0), timedBack(15, 15), timedSays(16, 16, 1, 1)}},
		{"and is granted at once", true, []TimedOp{grant, timedSays(12, 12, 0, 0), timedBack(15, 15), timedAcq(16, 16, 2, 10, 2)}},
		{"a release stays", true, []TimedOp{grant, timedRel(5, 5, 1, 1), timedBack(6, 6), timedAcq(7, 7, 2, 10, 2)}},
		{"the largest TTL counts", true, []TimedOp{grant, timedRen(8, 8, 1, 1, 4), timedBack(9, 9), timedSays(18, 18, 1, 1)}},
		{"all of it", false, []TimedOp{grant, timedRen(8, 8, 1, 1, 4), timedBack(9, 9), timedSays(18, 18, 0, 0)}},
		{"of this tenure only", true, []TimedOp{timedAcq(0, 0, 1, 90, 1), timedRel(1, 1, 1, 1), timedAcq(2, 2, 1, 10, 2), timedBack(3, 3), timedSays(13, 13, 0, 0)}},
		{"a renewal without answer may have raised it", true, []TimedOp{timedAcq(0, 0, 1, 5, 1), timedLost(timedRen(1, 0, 1, 1, 6)),
			timedRen(4, 4, 1, 1, 5), timedBack(8, 8), timedSays(13, 13, 1, 1)}},
		{"or not", true, []TimedOp{timedAcq(0, 0, 1, 5, 1), timedLost(timedRen(1, 0, 1, 1, 6)),
			timedRen(4, 4, 1, 1, 5), timedBack(8, 8), timedAcq(13, 13, 2, 5, 2)}},
		{"a get without answer may have put the lapse on record", true, []TimedOp{grant, timedLost(timedSays(11, 0, 0, 0)), timedBack(15, 15), timedAcq(16, 16, 2, 10, 2)}},
		{"if it was lapsed by then", false, []TimedOp{grant, timedLost(timedSays(9, 0, 0, 0)), timedBack(9, 9), timedAcq(10, 10, 2, 10, 2)}},
		{"and so may another's refusal", true, []TimedOp{grant, timedNo(timedRen(12, 12, 3, 9, 10)), timedBack(15, 15), timedAcq(16, 16, 2, 10, 2)}},
		{"or not", true, []TimedOp{grant, timedNo(timedRen(12, 12, 3, 9, 10)), timedBack(15, 15), timedSays(16, 16, 1, 1)}},
		{"an acquire would rather have been granted, but the lapse may be on record", true, []TimedOp{grant, timedLost(timedAcq(11, 0, 3, 10, 0)), timedBack(15, 15), timedAcq(16, 16, 2, 10, 2)}},
		{"twice", true, []TimedOp{grant, timedBack(5, 5), timedBack(14, 14), timedSays(23, 23, 1, 1)}},
		{"tokens go on", false, []TimedOp{grant, timedRel(5, 5, 1, 1), timedBack(6, 6), timedAcq(7, 7, 2, 10, 1)}},
	}.check(t, TimedParams{First: 1})

	if got := (TimedParams{NoRestarts: true}).Step(TimedParams{}.Init()[0], timedBack(0, 0)); len(got) > 0 {
		t.Errorf("NoRestarts: a restart leads to %v, want nothing", got)
	}
}

func TestTimedLockDelay(t *testing.T) {
	grant := timedAcq(0, 0, 1, 10, 1)
	p := TimedParams{First: 1, LockDelay: 5}
	timedVerdicts{
		{"not granted within", false, []TimedOp{grant, timedAcq(14, 14, 2, 10, 2)}},
		{"granted after", true, []TimedOp{grant, timedAcq(15, 15, 2, 10, 2)}},
		{"nor to the last owner", false, []TimedOp{grant, timedAcq(14, 14, 1, 10, 2)}},
		{"refused within", true, []TimedOp{grant, timedDelayed(14, 14, 2)}},
		{"the last owner too", true, []TimedOp{grant, timedDelayed(14, 14, 1)}},
		{"not after", false, []TimedOp{grant, timedDelayed(15, 15, 2)}},
		{"not while held", false, []TimedOp{grant, timedDelayed(9, 9, 2)}},
		{"an unnamed refusal means held or delay", true, []TimedOp{grant, timedHeldBy(14, 14, 2, 0)}},
		{"neither after", false, []TimedOp{grant, timedHeldBy(15, 15, 2, 0)}},
		{"a named one means held", false, []TimedOp{grant, timedHeldBy(14, 14, 2, 1)}},
		{"a refusal by delay is an answered lapse", false, []TimedOp{grant, timedDelayed(14, 14, 2), timedSays(14, 14, 1, 1)}},
		{"a get in the delay says nobody", true, []TimedOp{grant, timedSays(12, 12, 0, 0)}},
		{"which does not end it", false, []TimedOp{grant, timedSays(12, 12, 0, 0), timedAcq(14, 14, 2, 10, 2)}},
		{"none after a release", true, []TimedOp{grant, timedRel(5, 5, 1, 1), timedAcq(5, 5, 2, 10, 2)}},
		{"so none to refuse by", false, []TimedOp{grant, timedRel(5, 5, 1, 1), timedDelayed(6, 6, 2)}},
		{"none before the first grant", false, []TimedOp{timedDelayed(0, 0, 2)}},
		{"a restart starts the delay of an answered lapse anew", false, []TimedOp{grant, timedSays(12, 12, 0, 0), timedBack(15, 15), timedAcq(19, 19, 2, 10, 2)}},
		{"in whole", true, []TimedOp{grant, timedSays(12, 12, 0, 0), timedBack(15, 15), timedDelayed(19, 19, 2)}},
		{"and no more", true, []TimedOp{grant, timedSays(12, 12, 0, 0), timedBack(15, 15), timedAcq(20, 20, 2, 10, 2)}},
		{"an acquire without answer may have been refused by it", true, []TimedOp{grant, timedLost(timedAcq(11, 0, 2, 10, 0)), timedBack(14, 14), timedAcq(19, 19, 3, 10, 2)}},
		{"a lapse that nobody was told of may be on record too", true, []TimedOp{grant, timedBack(14, 14), timedAcq(19, 19, 3, 10, 2)}},
		{"and its delay starts anew", false, []TimedOp{grant, timedBack(14, 14), timedAcq(18, 18, 3, 10, 2)}},
		{"however long ago it was", false, []TimedOp{grant, timedBack(34, 34), timedAcq(38, 38, 3, 10, 2)}},
		{"and not before it came", false, []TimedOp{grant, timedBack(9, 9), timedDelayed(10, 10, 3)}},
	}.check(t, p)

	p.Late = 5
	timedVerdicts{
		{"it starts after the lease was last seen held", false, []TimedOp{grant, timedSays(12, 12, 1, 1), timedAcq(17, 17, 2, 10, 2)}},
		{"any time after", true, []TimedOp{grant, timedSays(12, 12, 1, 1), timedAcq(18, 18, 2, 10, 2)}},
		{"and not after the lateness", false, []TimedOp{grant, timedDelayed(20, 20, 2)}},
		{"up to it", true, []TimedOp{grant, timedDelayed(19, 19, 2)}},
		{"also where several TTLs ran", true, []TimedOp{grant, timedRen(1, 1, 1, 1, 3), timedDelayed(19, 19, 2)}},
		{"the last of them", false, []TimedOp{grant, timedRen(1, 1, 1, 1, 3), timedDelayed(20, 20, 2)}},
	}.check(t, p)

	// 9 ns lapse in [8 2/11, 10]; a delay of 11 ns lasts 10 to 12 2/9.
	grant.TTL = 9
	timedVerdicts{
		{"drift: granted at the earliest", true, []TimedOp{grant, timedAcq(19, 19, 2, 10, 2)}},
		{"drift: not before", false, []TimedOp{grant, timedAcq(18, 18, 2, 10, 2)}},
		{"drift: refused at the latest", true, []TimedOp{grant, timedDelayed(22, 22, 2)}},
		{"drift: not after", false, []TimedOp{grant, timedDelayed(23, 23, 2)}},
		{"drift: granted, so over", false, []TimedOp{grant, timedAcq(19, 19, 2, 10, 2), timedDelayed(20, 20, 3)}},
	}.check(t, TimedParams{First: 1, LockDelay: 11, DriftPPB: 100_000_000})

	timedVerdicts{
		{"an early lapse is not before the grant", false, []TimedOp{timedAcq(5, 5, 1, 4, 1), timedAcq(14, 14, 2, 4, 2)}},
		{"but may be right at it", true, []TimedOp{timedAcq(5, 5, 1, 4, 1), timedAcq(15, 15, 2, 4, 2)}},
	}.check(t, TimedParams{First: 1, LockDelay: 10, Early: 20})
}

func TestTimedDeleteFreesWithoutALapse(t *testing.T) {
	grant, gone := timedAcq(0, 0, 1, 10, 1), TimedOp{Kind: TimedDelete, Call: 5, Return: 5}
	timedVerdicts{
		{"free at once", true, []TimedOp{grant, gone, timedAcq(6, 6, 2, 10, 2)}},
		{"no longer the owner's", false, []TimedOp{grant, gone, timedRen(6, 6, 1, 1, 10)}},
		{"the counter stays", false, []TimedOp{grant, gone, timedAcq(6, 6, 2, 10, 1)}},
		{"not held", false, []TimedOp{grant, gone, timedSays(6, 6, 1, 1)}},
	}.check(t, TimedParams{First: 1, LockDelay: 5, RenewAfterLapse: true})
}

func TestTimedOrderIsFreeOnlyWhereIntervalsOverlap(t *testing.T) {
	timedVerdicts{
		{"a get during the acquire may come first", true, []TimedOp{timedAcq(0, 5, 1, 10, 1), timedSays(1, 2, 0, 0)}},
		{"or last", true, []TimedOp{timedAcq(0, 5, 1, 10, 1), timedSays(1, 2, 1, 1)}},
		{"one after it does not", false, []TimedOp{timedAcq(0, 5, 1, 10, 1), timedSays(6, 6, 0, 0)}},
		{"touching intervals overlap", true, []TimedOp{timedAcq(0, 5, 1, 10, 1), timedSays(5, 6, 0, 0)}},
		{"no order explains both", false, []TimedOp{timedAcq(0, 5, 1, 10, 1), timedAcq(0, 5, 2, 10, 2)}},
		{"call after return", false, []TimedOp{timedAcq(5, 4, 1, 10, 1)}},
	}.check(t, TimedParams{First: 1})
}
