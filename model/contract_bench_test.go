package model

import "testing"

// judgeTurns is the life of one lease, over and over: a new ownership, a
// refusal, a look, a renewal, and a lapse.
func judgeTurns(c *Contract, n int) (broken bool) {
	at, token := int64(n)*20, uint64(n)+1
	a, b := Owner{1, 0, 1}, Owner{2, 0, 1}
	if n%2 == 1 {
		a, b = b, a
	}
	for _, turn := range [...]struct {
		q Ask
		a Said
	}{
		{Ask{Op: OpAcquire, Owner: a, TTL: 10, At: at}, Said{Code: CodeGranted, Token: token, Holder: a, TTL: 10}},
		{Ask{Op: OpAcquire, Owner: b, TTL: 10, At: at + 1}, Said{Code: CodeHeld, Token: token, Holder: a, Remaining: 9}},
		{Ask{Op: OpGet, At: at + 2}, Said{Code: CodeHeld, Token: token, Holder: a, Remaining: 8}},
		{Ask{Op: OpRenew, Owner: a, Token: token, TTL: 10, At: at + 3}, Said{Code: CodeGranted, Token: token, Holder: a, TTL: 10}},
		{Ask{Op: OpRelease, Owner: a, Token: token, At: at + 13}, Said{Code: CodeLapsed, Token: token}},
	} {
		_, no := c.Judge(turn.q, turn.a)
		broken = broken || no
	}
	return broken
}

const turnsJudged = 5

func TestJudgeAllocatesNothing(t *testing.T) {
	c, n := NewContract(Promise{LockDelay: 5}), 0
	broken := false
	if got := testing.AllocsPerRun(100, func() {
		broken = judgeTurns(&c, n) || broken
		n++
	}); got != 0 || broken {
		t.Errorf("%v allocations a lease, broken: %t; want none", got, broken)
	}
}

func BenchmarkJudge(b *testing.B) {
	c, n := NewContract(Promise{LockDelay: 5}), 0
	for b.Loop() {
		if judgeTurns(&c, n) {
			b.Fatal("broken")
		}
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/turnsJudged, "ns/answer")
}
