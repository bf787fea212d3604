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
			if turn.restart {
				c.Restart(turn.q.At)
				continue
			}
			if b, broken := c.Judge(turn.q, turn.a); broken {
				t.Errorf("%s: turn %d breaks %v: want %s", row.name, i, b.Rule, b.Want)
			}
		}
	}
}
