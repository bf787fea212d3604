package model

import (
	"strings"
	"testing"
	"time"
)

const second = int64(time.Second)

var (
	ownerA = Owner{Node: 1, Seq: 1}
	ownerB = Owner{Node: 2, Seq: 1}
)

// turn is a request at a time in seconds and its answer, or what happens to
// the store.
type turn struct {
	q       Ask
	a       Said
	restart bool
	deleted bool
	passed  bool
}

func acquire(at float64, o Owner, ttl float64, a Said) turn {
	return turn{q: Ask{Op: OpAcquire, Owner: o, TTL: seconds(ttl), At: seconds(at)}, a: a}
}

func renew(at float64, o Owner, token uint64, ttl float64, a Said) turn {
	return turn{q: Ask{Op: OpRenew, Owner: o, Token: token, TTL: seconds(ttl), At: seconds(at)}, a: a}
}

func release(at float64, o Owner, token uint64, a Said) turn {
	return turn{q: Ask{Op: OpRelease, Owner: o, Token: token, At: seconds(at)}, a: a}
}

func get(at float64, a Said) turn { return turn{q: Ask{Op: OpGet, At: seconds(at)}, a: a} }

// crash is a restart with a clock that reads at, after a crash at the instant of
// the request before, or of the last pass.
func crash(at float64) turn { return turn{restart: true, q: Ask{At: seconds(at)}} }

func pass(to float64) turn { return turn{passed: true, q: Ask{At: seconds(to)}} }

func remove() turn { return turn{deleted: true} }

func granted(o Owner, token uint64, ttl float64) Said {
	return Said{Code: CodeGranted, Token: token, Holder: o, TTL: seconds(ttl)}
}

func held(o Owner, token uint64, left float64) Said {
	return Said{Code: CodeHeld, Token: token, Holder: o, Remaining: seconds(left)}
}

func delayed(left float64) Said { return Said{Code: CodeDelayed, Remaining: seconds(left)} }

var (
	done    = Said{Code: CodeReleased}
	free    = Said{Code: CodeFree}
	lapsed  = Said{Code: CodeLapsed}
	lost    = Said{Code: CodeLost}
	invalid = Said{Code: CodeInvalid}
)

func seconds(s float64) int64 { return int64(s * float64(second)) }

// breaches are stores with one fault each: the last answer breaks the rule.
var breaches = []struct {
	rule    Rule
	promise Promise
	turns   []turn
	want    string
}{
	{RuleAcquireFree, Promise{}, []turn{
		acquire(0, ownerA, 10, held(ownerB, 1, 10)),
	}, "granted under token 1: nobody ever held it"},
	{RuleAcquireHeld, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 6s"},
	{RuleAcquireHeld, Promise{}, []turn{ // with the holder's token, too
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerB, 10, granted(ownerB, 1, 10)),
	}, "refused as held: a holds it under token 1 for another 6s"},
	{RuleAcquireHeld, Promise{}, []turn{ // at once, and be the TTL ever so short
		acquire(0, ownerA, 1e-9, granted(ownerA, 1, 1e-9)),
		acquire(0, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 1ns"},
	{RuleNamesHolder, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(12, ownerA, 10, held(ownerB, 1, 6)),
	}, "granted under token 2: a's tenure lapsed 2s ago"},
	{RuleNamesHolder, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerB, 10, held(Owner{}, 1, 6)),
	}, "refused as held: a holds it under token 1 for another 6s"},
	{RuleNamesHolder, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerB, 10, held(ownerB, 1, 6)),
	}, "refused as held: a holds it under token 1 for another 6s"},
	{RuleNamesHolder, Promise{Terse: true}, []turn{ // what is said must be true
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerB, 10, held(ownerB, 0, 0)),
	}, "refused as held: a holds it under token 1 for another 6s"},
	{RuleRemaining, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerB, 10, held(ownerA, 1, 10)),
	}, "refused as held: a holds it under token 1 for another 6s"},
	{RuleRemaining, Promise{Granularity: second}, []turn{
		acquire(0, ownerA, 9.5, granted(ownerA, 1, 9.5)),
		acquire(4, ownerB, 10, held(ownerA, 1, 7)),
	}, "refused as held: a holds it under token 1 for another 5.5s to 6s"},
	{RuleRemaining, Promise{Granularity: second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4.5, ownerB, 10, held(ownerA, 1, 4.5)),
	}, "refused as held: a holds it under token 1 for another 5.5s"},
	{RuleAcquireAgain, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerA, 10, granted(ownerA, 2, 10)),
	}, "granted again: a holds it under token 1 for another 6s"},
	{RuleAcquireAgain, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerA, 10, held(ownerA, 1, 6)),
	}, "granted again: a holds it under token 1 for another 6s"},
	{RuleAcquireAgain, Promise{}, []turn{ // late in the TTL, too
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(6, ownerA, 10, granted(ownerA, 2, 10)),
	}, "granted again: a holds it under token 1 for another 4s"},
	{RuleAcquireAgain, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(6, ownerA, 10, granted(ownerA, 3, 10)),
	}, "granted again: a holds it under token 1 for another 4s"},
	{RuleTokenNext, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(10, ownerB, 10, granted(ownerB, 3, 10)),
	}, "granted under token 2: a's tenure lapsed just now"},
	{RuleTokenNext, Promise{}, []turn{ // the last owner's return is a new ownership
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(10, ownerA, 10, granted(ownerA, 1, 10)),
	}, "granted under token 2: a's tenure lapsed just now"},
	{RuleTokenNext, Promise{Tokens: TokensRising}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 7, 10)),
		release(1, ownerA, 7, done),
		acquire(2, ownerB, 10, granted(ownerB, 7, 10)),
	}, "granted under a token above 7: a released it"},
	{RuleGrantHolder, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerB, 1, 10)),
	}, "granted under token 1: nobody ever held it; the grant names who asked"},
	{RuleGrantTTL, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 0)),
	}, "granted under token 1: nobody ever held it; the grant says a TTL above zero and up to 10s"},
	{RuleGrantTTL, Promise{MinTTL: 5 * second}, []turn{ // 5s is the most it keeps
		acquire(0, ownerA, 2, granted(ownerA, 1, 6)),
	}, "granted under token 1: nobody ever held it; or refused as invalid: its TTL is below 5s; the grant says a TTL above zero and up to 5s"},
	{RuleGrantTTL, Promise{}, []turn{ // 15s are left
		acquire(0, ownerA, 20, granted(ownerA, 1, 20)),
		renew(5, ownerA, 1, 10, granted(ownerA, 1, 16)),
	}, "granted: a holds it under token 1 for another 15s; the grant says a TTL above zero and up to 15s"},
	{RuleGrantTTL, Promise{}, []turn{ // no more than is left of the longer one
		acquire(0, ownerA, 20, granted(ownerA, 1, 20)),
		renew(4, ownerA, 1, 10, granted(ownerA, 1, 17)),
	}, "granted: a holds it under token 1 for another 16s; the grant says a TTL above zero and up to 16s"},
	{RuleGrantTTL, Promise{Late: 2 * second}, []turn{
		acquire(0, ownerA, 20, granted(ownerA, 1, 20)),
		acquire(4, ownerA, 10, granted(ownerA, 1, 19)),
	}, "granted again: a holds it under token 1 for another 16s to 18s; the grant says a TTL above zero and up to 18s"},
	{RuleNotEarly, Promise{Late: 2 * second}, []turn{ // a grant that counts on lateness is held to it
		acquire(0, ownerA, 10, granted(ownerA, 1, 11)),
		acquire(10.5, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 500ms to 1.5s"},
	{RuleRenewProlongs, Promise{Granularity: second}, []turn{ // what a renewal says is left is left
		acquire(0, ownerA, 19.5, granted(ownerA, 1, 19.5)),
		renew(4, ownerA, 1, 10, granted(ownerA, 1, 16)),
		acquire(19.7, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 300ms, since it was extended"},
	{RuleRestartTenure, Promise{}, []turn{ // it was not over at the crash, by a little
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		pass(9.999999999),
		crash(0),
		renew(1, ownerA, 1, 10, lapsed),
	}, "granted: a holds it under token 1 for another 9s, its whole TTL since the restart"},
	{RuleRestartTenure, Promise{}, []turn{ // seen held on, it stays so
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		pass(10),
		crash(0),
		get(0, held(ownerA, 1, 10)),
		acquire(1, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 9s, its whole TTL since the restart"},
	{RuleLapseFinal, Promise{}, []turn{ // and seen over, it is over
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		pass(10),
		crash(0),
		get(0, free),
		get(1, held(ownerA, 1, 9)),
	}, "nobody has it: a's tenure has lapsed, as was told"},
	{RuleLockDelay, Promise{LockDelay: 3 * second}, []turn{ // the delay of a lapse on record starts anew
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		pass(20),
		crash(0),
		acquire(2, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 8s, its whole TTL since the restart; or refused as delayed: the lapse of a's tenure may have been on record at the restart, and the lock delay runs for another 1s"},
	{RuleNotEarly, Promise{}, []turn{ // seconds truncated
		acquire(0, ownerA, 1.9, granted(ownerA, 1, 1.9)),
		acquire(1, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 900ms"},
	{RuleNotEarly, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(9.999999999, ownerA, 1, 10, lapsed),
	}, "granted: a holds it under token 1 for another 1ns"},
	{RuleNotEarly, Promise{Granularity: second}, []turn{ // rounded down, not up
		acquire(0, ownerA, 1.5, granted(ownerA, 1, 1.5)),
		get(1, free),
	}, "held: a holds it under token 1 for another 500ms to 1s"},
	{RuleOnTime, Promise{}, []turn{ // lapses at > in place of >=
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(10, ownerB, 10, Said{Code: CodeHeld, Token: 1, Holder: ownerA, Remaining: 0}),
	}, "granted under token 2: a's tenure lapsed just now"},
	{RuleOnTime, Promise{Late: second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(11.5, ownerB, 10, held(ownerA, 1, 1)),
	}, "granted under token 2: a's tenure lapsed 500ms to 1.5s ago"},
	{RuleLapseFinal, Promise{Late: 5 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, free),
		renew(12, ownerA, 1, 10, granted(ownerA, 1, 10)),
	}, "refused as lapsed: a's tenure has lapsed, as was told"},
	{RuleLapseFinal, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, free),
		acquire(12, ownerB, 10, held(ownerA, 1, 10)),
	}, "granted under token 2: a's tenure has lapsed, as was told"},
	{RuleLapseFinal, Promise{}, []turn{ // told after a restart, not before
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(0),
		get(11, free),
		get(12, held(ownerA, 1, 9)),
	}, "nobody has it: a's tenure has lapsed, as was told"},
	{RuleRenewHolder, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(4, ownerB, 1, 10, granted(ownerB, 1, 10)),
	}, "refused as lost: a holds it under token 1 for another 6s, and this is b's request under token 1"},
	{RuleRenewToken, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(1, ownerA, 1, done),
		acquire(2, ownerA, 10, granted(ownerA, 2, 10)),
		renew(3, ownerA, 1, 10, granted(ownerA, 1, 10)),
	}, "refused as lost: a holds it under token 2 for another 9s, and this is a's request under token 1"},
	{RuleRenewHeld, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(10, ownerA, 1, 10, granted(ownerA, 1, 10)),
	}, "refused as lapsed: a's tenure lapsed just now"},
	{RuleRenewHeld, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, free),
		renew(12, ownerA, 1, 10, granted(ownerA, 1, 10)),
	}, "refused as lapsed: a's tenure has lapsed, as was told"},
	{RuleRenewHeld, Promise{RenewAfterLapse: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(11, ownerA, 1, 10, granted(ownerA, 1, 10)),
		release(12, ownerA, 1, done),
		renew(13, ownerA, 1, 10, granted(ownerA, 1, 10)),
	}, "refused as lost: a released it"},
	{RuleRenewGranted, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(4, ownerA, 1, 10, lost),
	}, "granted: a holds it under token 1 for another 6s"},
	{RuleRenewKeepsToken, Promise{Tokens: TokensRising}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(4, ownerA, 1, 10, granted(ownerA, 2, 10)),
	}, "granted: a holds it under token 1 for another 6s"},
	{RuleRenewProlongs, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(4, ownerA, 1, 10, granted(ownerA, 1, 10)),
		acquire(10, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 4s, since it was extended"},
	{RuleRenewProlongs, Promise{}, []turn{ // a retry of the acquire prolongs too
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4, ownerA, 10, granted(ownerA, 1, 10)),
		get(12, free),
	}, "held: a holds it under token 1 for another 2s, since it was extended"},
	{RuleNeverShortens, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		acquire(3, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 7s, as granted before the shorter TTL"},
	{RuleRenewProlongs, Promise{}, []turn{ // a refusal that counts from the old expiry
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(4, ownerA, 1, 10, granted(ownerA, 1, 10)),
		acquire(5, ownerB, 10, held(ownerA, 1, 5)),
	}, "refused as held: a holds it under token 1 for another 9s"},
	{RuleNeverShortens, Promise{}, []turn{ // a refusal that counts to the new expiry
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		acquire(2, ownerB, 10, held(ownerA, 1, 1)),
	}, "refused as held: a holds it under token 1 for another 8s"},
	{RuleNeverShortens, Promise{}, []turn{ // the tenure outlived a restart before
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(0),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		get(4, free),
	}, "held: a holds it under token 1 for another 6s, as granted before the shorter TTL"},
	{RuleReleaseHolder, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(4, ownerB, 1, done),
	}, "refused as lost: a holds it under token 1 for another 6s, and this is b's request under token 1"},
	{RuleReleaseToken, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(4, ownerA, 2, done),
	}, "refused as lost: a holds it under token 1 for another 6s, and this is a's request under token 2"},
	{RuleReleaseHeld, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(10, ownerA, 1, done),
	}, "refused as lapsed: a's tenure lapsed just now"},
	{RuleReleaseHeld, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(4, ownerA, 1, done),
		release(5, ownerA, 1, done),
	}, "refused as lost: a released it"},
	{RuleReleaseFrees, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(4, ownerA, 1, done),
		acquire(5, ownerB, 10, held(ownerA, 1, 5)),
	}, "granted under token 2: a released it"},
	{RuleReleaseFrees, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(4, ownerA, 1, lost),
	}, "released: a holds it under token 1 for another 6s"},
	{RuleLockDelay, Promise{LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(12, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as delayed: a's tenure lapsed 2s ago, and the lock delay runs for another 1s"},
	{RuleLockDelay, Promise{LockDelay: 3 * second}, []turn{ // it ends, too
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(13, ownerB, 10, delayed(1)),
	}, "granted under token 2: a's tenure lapsed 3s ago"},
	{RuleLockDelay, Promise{}, []turn{ // none was promised
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(12, ownerB, 10, delayed(1)),
	}, "granted under token 2: a's tenure lapsed 2s ago"},
	{RuleNoLockDelay, Promise{LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(4, ownerA, 1, done),
		acquire(5, ownerB, 10, delayed(2)),
	}, "granted under token 2: a released it"},
	{RuleGet, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(4, free),
	}, "held: a holds it under token 1 for another 6s"},
	{RuleGet, Promise{}, []turn{ // the row is still there
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(10, held(ownerA, 1, 0)),
	}, "nobody has it: a's tenure lapsed just now"},
	{RuleRestartTenure, Promise{}, []turn{
		acquire(100, ownerA, 10, granted(ownerA, 1, 10)),
		crash(0),
		acquire(4, ownerB, 10, granted(ownerB, 1, 10)),
	}, "refused as held: a holds it under token 1 for another 6s, its whole TTL since the restart"},
	{RuleRestartTenure, Promise{}, []turn{ // the largest TTL, not the latest
		acquire(100, ownerA, 10, granted(ownerA, 1, 10)),
		renew(101, ownerA, 1, 2, granted(ownerA, 1, 2)),
		crash(0),
		get(4, free),
	}, "held: a holds it under token 1 for another 6s, its whole TTL since the restart"},
	{RuleRestartTenure, Promise{}, []turn{ // a refusal that counts to the old expiry
		acquire(100, ownerA, 10, granted(ownerA, 1, 10)),
		crash(105),
		acquire(105, ownerB, 10, held(ownerA, 1, 5)),
	}, "refused as held: a holds it under token 1 for another 10s, its whole TTL since the restart"},
	{RuleRestartCounter, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(1, ownerA, 1, done),
		crash(0),
		acquire(1, ownerB, 10, granted(ownerB, 1, 10)),
	}, "granted under token 2: a released it"},
	{RuleRestartLapse, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, free),
		crash(0),
		get(1, held(ownerA, 1, 9)),
	}, "nobody has it: the lapse of a's tenure was told before the restart"},
	{RuleRestartLapse, Promise{LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, delayed(2)),
		crash(0),
		acquire(2, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as delayed: the lapse of a's tenure was told before the restart, and the lock delay runs for another 1s"},
	{RuleRestartRelease, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(1, ownerA, 1, done),
		crash(0),
		acquire(1, ownerB, 10, held(ownerA, 1, 9)),
	}, "granted under token 2: a released it"},
	{RuleRestartRelease, Promise{LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(1, ownerA, 1, done),
		crash(0),
		acquire(1, ownerB, 10, delayed(2)),
	}, "granted under token 2: a released it"},
	{RuleRestartEnds, Promise{}, []turn{
		acquire(100, ownerA, 10, granted(ownerA, 1, 10)),
		crash(0),
		acquire(10, ownerB, 10, held(ownerA, 1, 100)),
	}, "granted under token 2: a's tenure lapsed just now"},
	{RuleRestartEnds, Promise{}, []turn{ // a refusal that counts to the old expiry
		acquire(100, ownerA, 10, granted(ownerA, 1, 10)),
		crash(0),
		acquire(4, ownerB, 10, held(ownerA, 1, 106)),
	}, "refused as held: a holds it under token 1 for another 6s, its whole TTL since the restart"},
	{RuleRestartTenure, Promise{SteadyClock: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(4),
		acquire(4, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as held: a holds it under token 1 for another 6s, as before the restart"},
	{RuleRestartTenure, Promise{SteadyClock: true}, []turn{ // a refusal that counts a new TTL, of the last renewal
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		crash(4),
		acquire(4, ownerB, 10, held(ownerA, 1, 2)),
	}, "refused as held: a holds it under token 1 for another 6s, as before the restart"},
	{RuleRestartEnds, Promise{SteadyClock: true}, []turn{ // the TTL starts anew
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(4),
		acquire(10, ownerB, 10, held(ownerA, 1, 4)),
	}, "granted under token 2: a's tenure lapsed just now"},
	{RuleRestartEnds, Promise{SteadyClock: true}, []turn{ // a refusal that says so beforehand
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(4),
		acquire(4, ownerB, 10, held(ownerA, 1, 10)),
	}, "refused as held: a holds it under token 1 for another 6s, as before the restart"},
	{RuleRestartCounter, Promise{SteadyClock: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(4),
		acquire(10, ownerB, 10, granted(ownerB, 1, 10)),
	}, "granted under token 2: a's tenure lapsed just now"},
	{RuleRestartLapse, Promise{SteadyClock: true, Late: 5 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, free),
		crash(12),
		get(12, held(ownerA, 1, 1)),
	}, "nobody has it: the lapse of a's tenure was told before the restart"},
	{RuleRestartLapse, Promise{SteadyClock: true, LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, delayed(2)),
		crash(12),
		acquire(12, ownerB, 10, granted(ownerB, 2, 10)),
	}, "refused as delayed: the lapse of a's tenure was told before the restart, and the lock delay runs for another 1s"},
	{RuleLockDelay, Promise{SteadyClock: true, LockDelay: 3 * second}, []turn{ // started anew
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, delayed(2)),
		crash(12),
		acquire(13, ownerB, 10, delayed(2)),
	}, "granted under token 2: the lapse of a's tenure was told before the restart"},
	{RuleRestartRelease, Promise{SteadyClock: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(1, ownerA, 1, done),
		crash(1),
		acquire(1, ownerB, 10, held(ownerA, 1, 9)),
	}, "granted under token 2: a released it"},
	{RuleDeleteFrees, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		remove(),
		acquire(1, ownerB, 10, held(ownerA, 1, 9)),
	}, "granted under token 2: it was deleted"},
	{RuleDeleteCounter, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		remove(),
		acquire(1, ownerB, 10, granted(ownerB, 1, 10)),
	}, "granted under token 2: it was deleted"},
	{RuleMalformed, Promise{}, []turn{
		acquire(0, ownerA, 0, granted(ownerA, 1, 10)),
	}, "refused as invalid: its TTL is not above zero"},
	{RuleMalformed, Promise{}, []turn{
		acquire(0, Owner{}, 10, granted(Owner{}, 1, 10)),
	}, "refused as invalid: it names no holder"},
	{RuleMalformed, Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		release(1, ownerA, 0, done),
	}, "refused as invalid: 0 is no token"},
	{RuleMalformed, Promise{MinTTL: 5 * second}, []turn{ // too short is invalid, 5s is not
		acquire(0, ownerA, 2, invalid),
		acquire(0, ownerA, 5, invalid),
	}, "granted under token 1: nobody ever held it"},
}

// happen lets turn i happen, if it is no request.
func (c *Contract) happen(turns []turn, i int) bool {
	switch turn := turns[i]; {
	case turn.restart:
		c.Restart(turns[i-1].q.At, turn.q.At)
	case turn.deleted:
		c.Delete()
	default:
		return turn.passed
	}
	return true
}

func TestEachRuleIsBrokenByAnAnswerOfItsOwn(t *testing.T) {
	broke := map[Rule]bool{}
	for _, row := range breaches {
		broke[row.rule] = true
		c := NewContract(row.promise)
		for i, turn := range row.turns {
			if c.happen(row.turns, i) {
				continue
			}
			b, broken := c.Judge(turn.q, turn.a)
			last := i == len(row.turns)-1
			switch {
			case broken && !last:
				t.Errorf("%v: turn %d breaks %v (want %s), before the last", row.rule, i, b.Rule, b.Want)
			case last && b.Rule != row.rule:
				t.Errorf("%v: the last of %+v breaks %v (%s)", row.rule, row.turns, b.Rule, b.Want)
			case last && b.Want != row.want:
				t.Errorf("%v: wanted is\n\t%s, and should be\n\t%s", row.rule, b.Want, row.want)
			}
		}
	}
	for r := range Rules() {
		if !broke[r] && r != RuleAnswers {
			t.Errorf("nothing breaks %v", r)
		}
	}
}

func TestWantNamesOwnersAsAsked(t *testing.T) {
	c := NewContract(Promise{})
	a, b := Owner{Node: 1, Seq: 1}, Owner{Node: 2, Boot: 1, Seq: 2}
	c.Judge(acquire(0, a, 10, Said{}).q, granted(a, 1, 10))
	broken, _ := c.Judge(renew(4, b, 1, 10, Said{}).q, granted(b, 1, 10))
	if want := "refused as lost: a holds it under token 1 for another 6s, and this is b.1.2's request under token 1"; broken.Want != want {
		t.Errorf("wanted is %q, and should be %q", broken.Want, want)
	}
	names := Names{1: {Name: "alice"}, 2: {Name: "bob"}}
	if got, want := broken.Named(names.Owner), "refused as lost: alice#1 holds it under token 1 for another 6s, and this is bob#2.1's request under token 1"; got != want {
		t.Errorf("wanted is %q, and should be %q", got, want)
	}
}

func TestRulesSayWhatTheyAreForTheStoresClock(t *testing.T) {
	for steady, want := range map[bool]string{false: "for its whole TTL", true: "as if there had been none"} {
		c := NewContract(Promise{SteadyClock: steady})
		c.Judge(acquire(0, ownerA, 10, Said{}).q, granted(ownerA, 1, 10))
		c.Restart(seconds(4), seconds(4))
		b, broken := c.Judge(get(4, free).q, free)
		if !broken || b.Rule != RuleRestartTenure || !strings.Contains(b.Says(), want) {
			t.Errorf("steady %t: broken %t, %v says %q: want %q in it", steady, broken, b.Rule, b.Says(), want)
		}
	}
}

func TestRulesHaveNamesAndTexts(t *testing.T) {
	seen := map[string]bool{}
	for r := range Rules() {
		text, err := r.MarshalText()
		if err != nil || seen[string(text)] || strings.Trim(string(text), "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("rule %d is called %q, %v: want a name of its own, in kebab case", r, text, err)
		}
		seen[string(text)] = true
		var back Rule
		if err := back.UnmarshalText(text); err != nil || back != r {
			t.Errorf("%q reads back as %v, %v", text, back, err)
		}
		for _, says := range []string{r.Says(), Breach{Rule: r, SteadyClock: true}.Says()} {
			if len(says) < 60 || len(says) > 400 || !strings.HasSuffix(says, ".") {
				t.Errorf("%v says %q: want a sentence or three", r, says)
			}
		}
	}
	if len(seen) != int(rules)-1 {
		t.Errorf("%d rules have names, of %d", len(seen), rules-1)
	}
	var r Rule
	if err := r.UnmarshalText([]byte("acquire")); err == nil || !strings.Contains(err.Error(), "acquire-free, acquire-held-is-refused") {
		t.Errorf("an unknown name gives %v: want the names there are", err)
	}
	if got := Rule(200).String(); got != "rule(200)" {
		t.Errorf("a rule that is none is called %q", got)
	}
}

func TestRemainingOfALeaseThatNobodyHolds(t *testing.T) {
	c := NewContract(Promise{})
	for _, x := range []turn{acquire(0, ownerA, 10, granted(ownerA, 1, 10)), release(0, ownerA, 1, Said{Code: CodeReleased})} {
		if b, broken := c.Judge(x.q, x.a); broken {
			t.Fatal(b.Want)
		}
	}
	b, _ := c.Judge(Ask{Op: OpGet}, Said{Code: CodeDelayed, Remaining: 10 * second})
	if want := "nobody has it: a released it; Remaining is 0 where nobody holds the lease and no lock delay runs"; b.Rule != RuleNoLockDelay || b.Want != want {
		t.Errorf("%v: wanted is %q, and should be %q", b.Rule, b.Want, want)
	}
}
