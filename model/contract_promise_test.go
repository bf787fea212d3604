package model

import (
	"math"
	"testing"
)

// tolerances are stores that differ from the strictest, and keep their promise.
var tolerances = []struct {
	name    string
	promise Promise
	turns   []turn
}{
	{"a TTL is rounded up", Promise{Granularity: second}, []turn{
		acquire(0, ownerA, 9.5, granted(ownerA, 1, 10)),
		renew(9.9, ownerA, 1, 1, granted(ownerA, 1, 1)),
		acquire(10.9, ownerB, 1, granted(ownerB, 2, 1)),
	}},
	{"a TTL is rounded up, and the grant does not say so", Promise{Granularity: second}, []turn{
		acquire(0, ownerA, 9.5, granted(ownerA, 1, 9.5)),
		acquire(9.5, ownerB, 1, held(ownerA, 1, 0.5)),
		acquire(10, ownerB, 1, granted(ownerB, 2, 1)),
	}},
	{"a short TTL is refused as invalid", Promise{MinTTL: 5 * second}, []turn{
		acquire(0, ownerA, 4, invalid),
		acquire(0, ownerA, 5, granted(ownerA, 1, 5)),
		renew(1, ownerA, 1, 4, invalid),
		get(4, held(ownerA, 1, 1)),
	}},
	{"a short TTL is raised", Promise{MinTTL: 5 * second}, []turn{
		acquire(0, ownerA, 2, granted(ownerA, 1, 5)),
		get(4, held(ownerA, 1, 1)),
		get(5, free),
	}},
	{"a TTL is capped, as the grant says", Promise{}, []turn{
		acquire(0, ownerA, 100, granted(ownerA, 1, 10)),
		acquire(10, ownerB, 100, granted(ownerB, 2, 10)),
	}},
	{"a grant says what is left of a tenure that has longer", Promise{}, []turn{
		acquire(0, ownerA, 20, granted(ownerA, 1, 20)),
		renew(5, ownerA, 1, 10, granted(ownerA, 1, 15)),
		acquire(6, ownerA, 10, granted(ownerA, 1, 14)),
		acquire(20, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"the last token issued is that of another lease", Promise{Tokens: TokensRising}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 3, 10)),
		release(1, ownerA, 3, done),
		renew(1, ownerA, 3, 10, Said{Code: CodeLost, Token: 7}),
		get(1, Said{Code: CodeFree, Token: 7}),
		acquire(2, ownerB, 10, granted(ownerB, 8, 10)),
	}},
	{"a sweep ends tenures late", Promise{Late: 2 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(11, ownerB, 10, Said{Code: CodeHeld, Token: 1, Holder: ownerA, Remaining: -second}),
		renew(11.5, ownerA, 1, 10, granted(ownerA, 1, 10)),
		get(22, held(ownerA, 1, 0)),
		get(22, free),
		acquire(22, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"refusals have no details", Promise{Terse: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(1, ownerB, 10, Said{Code: CodeHeld}),
		renew(1, ownerB, 1, 10, lost),
		get(1, Said{Code: CodeHeld, Holder: ownerA}),
		acquire(10, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"the lock delay is called held, without a name", Promise{Terse: true, LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(10, ownerA, 10, Said{Code: CodeHeld}),
		acquire(13, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"the last owner renews what lapsed", Promise{RenewAfterLapse: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, free),
		renew(12, ownerA, 1, 10, granted(ownerA, 1, 10)),
		get(13, held(ownerA, 1, 9)),
	}},
	{"tokens are revisions", Promise{Tokens: TokensRising}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 17, 10)),
		release(1, ownerA, 17, done),
		acquire(1, ownerB, 10, granted(ownerB, 40, 10)),
	}},
	{"a refusal to a third party puts the lapse on record", Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(11, ownerB, 1, 10, lost),
		crash(0),
		get(1, free),
	}},
	{"a refusal to a third party does not put the lapse on record", Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(11, ownerB, 1, 10, lost),
		crash(0),
		get(1, held(ownerA, 1, 9)),
		get(10, free),
	}},
	{"a store's own timer puts the lapse on record", Promise{LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		pass(10),
		crash(100),
		acquire(102, ownerB, 10, delayed(1)),
		acquire(103, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"it had none", Promise{LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		pass(10),
		crash(100),
		acquire(109, ownerB, 10, held(ownerA, 1, 1)),
		get(110, delayed(3)),
	}},
	{"a lapse of what was held on is on record at the next restart", Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(50),
		pass(60),
		crash(0),
		renew(0, ownerA, 1, 10, lapsed),
		acquire(0, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"a late sweep ends it between the last answer and the crash", Promise{Late: 2 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, held(ownerA, 1, 0)),
		crash(0),
		get(0, free),
	}},
	{"a retry says what is left of a longer TTL", Promise{}, []turn{
		acquire(0, ownerA, 20, granted(ownerA, 1, 20)),
		acquire(0, ownerA, 10, granted(ownerA, 1, 20)),
		acquire(4, ownerA, 10, granted(ownerA, 1, 16)),
		get(19, held(ownerA, 1, 1)),
		get(20, free),
	}},
	{"a renewal says what is left of a longer TTL, rounded up", Promise{Granularity: second, Late: 2 * second}, []turn{
		acquire(0, ownerA, 19.5, granted(ownerA, 1, 19.5)),
		renew(4, ownerA, 1, 10, granted(ownerA, 1, 16)),
		get(19.9, held(ownerA, 1, 0.1)),
		get(22, free),
	}},
	{"what remains is said in seconds", Promise{Granularity: second, LockDelay: 2 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(4.5, ownerB, 10, held(ownerA, 1, 5)),
		acquire(4.5, ownerB, 10, held(ownerA, 1, 6)),
		get(9.5, held(ownerA, 1, 0)),
		acquire(10.5, ownerB, 10, delayed(1)),
		acquire(10.5, ownerB, 10, delayed(2)),
		acquire(11.5, ownerB, 10, delayed(0)),
	}},
	{"expiries are rounded up, and grants say until when", Promise{Late: second}, []turn{
		acquire(0.5, ownerA, 10, granted(ownerA, 1, 10.5)),
		renew(0.7, ownerA, 1, 10, granted(ownerA, 1, 10.3)),
		get(10.9, held(ownerA, 1, 0.1)),
		get(11, free),
	}},
	{"a renewal says what is left of a TTL that never ends", Promise{Late: 2 * second}, []turn{
		{q: Ask{Op: OpAcquire, Owner: ownerA, TTL: math.MaxInt64}, a: Said{Code: CodeGranted, Token: 1, Holder: ownerA, TTL: math.MaxInt64}},
		renew(4, ownerA, 1, 10, Said{Code: CodeGranted, Token: 1, Holder: ownerA, TTL: math.MaxInt64 - 4*second}),
	}},
	{"a tenure that may be over is renewed, and had been over", Promise{RenewAfterLapse: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(11, ownerB, 1, 10, lost),
		crash(0),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		get(4, free),
	}},
	{"a tenure that may be over is renewed, and had not been over", Promise{RenewAfterLapse: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(11, ownerB, 1, 10, lost),
		crash(0),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		get(4, held(ownerA, 1, 6)),
	}},
	{"no token is left, and the store wrote down the lapse", Promise{Tokens: TokensRising}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, math.MaxUint64, 10)),
		acquire(11, ownerB, 10, invalid),
		crash(0),
		get(1, free),
	}},
	{"a steady clock lets a tenure end as if nothing had been", Promise{SteadyClock: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		renew(1, ownerA, 1, 2, granted(ownerA, 1, 2)),
		crash(4),
		acquire(4, ownerB, 10, held(ownerA, 1, 6)),
		crash(9),
		renew(9, ownerA, 1, 4, granted(ownerA, 1, 4)),
		get(12, held(ownerA, 1, 1)),
		crash(12),
		acquire(13, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"a lapse that nobody was told of is one all the same on a steady clock", Promise{SteadyClock: true}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(11),
		renew(11, ownerA, 1, 10, lapsed),
		crash(11),
		acquire(11, ownerA, 10, granted(ownerA, 2, 10)),
	}},
	{"a lock delay goes on over a restart with a steady clock", Promise{SteadyClock: true, LockDelay: 3 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		get(11, delayed(2)),
		crash(12),
		acquire(12, ownerB, 10, delayed(1)),
		acquire(13, ownerB, 10, granted(ownerB, 2, 10)),
	}},
	{"a sweep may be late, with a restart in between", Promise{SteadyClock: true, Late: 2 * second}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		crash(11),
		renew(11.5, ownerA, 1, 10, granted(ownerA, 1, 10)),
		crash(22),
		get(22, held(ownerA, 1, 0)),
		get(23.5, free),
	}},
	{"a malformed request is refused for what else is true", Promise{}, []turn{
		acquire(0, ownerA, 10, granted(ownerA, 1, 10)),
		acquire(1, ownerB, 0, held(ownerA, 1, 9)),
		renew(1, Owner{}, 1, 10, lost),
		release(1, ownerA, 0, lost),
	}},
}

func TestContractAllowsWhatIsPromised(t *testing.T) {
	for _, row := range tolerances {
		c := NewContract(row.promise)
		for i, turn := range row.turns {
			if c.happen(row.turns, i) {
				continue
			}
			if b, broken := c.Judge(turn.q, turn.a); broken {
				t.Errorf("%s: turn %d breaks %v: want %s", row.name, i, b.Rule, b.Want)
			}
		}
	}
}
