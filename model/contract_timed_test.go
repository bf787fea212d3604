package model

import (
	"math/rand/v2"
	"os"
	"testing"
)

// timedOf is q and its answer as the timed specification has them. There is no
// word there for a get that tells the lock delay from a lease that is free.
func timedOf(q Ask, a Said) TimedOp {
	op := TimedOp{
		Kind: [...]TimedKind{OpAcquire: TimedAcquire, OpRenew: TimedRenew, OpRelease: TimedRelease, OpGet: TimedGet}[q.Op],
		Call: q.At, Return: q.At, Owner: int32(q.Owner.Node), Token: q.Token, TTL: q.TTL,
	}
	switch a.Code {
	case CodeGranted:
		op.Token = a.Token
	case CodeHeld:
		op.Outcome, op.Holder, op.HolderToken = TimedHeld, int32(a.Holder.Node), a.Token
		if q.Op == OpGet {
			op.Outcome = TimedOK
		}
	case CodeDelayed:
		op.Outcome = TimedDelay
	case CodeLapsed, CodeLost:
		op.Outcome = TimedRefused
	}
	return op
}

// contractAnswers yields the answers to q that the two are compared on.
func contractAnswers(q Ask, last uint64) func(yield func(Said) bool) {
	return func(yield func(Said) bool) {
		switch q.Op {
		case OpAcquire:
			for token := max(last, 1) - 1; token <= last+2; token++ {
				if !yield(Said{Code: CodeGranted, Token: token, Holder: q.Owner, TTL: q.TTL}) {
					return
				}
			}
			_ = yield(Said{Code: CodeDelayed}) && yield(Said{Code: CodeHeld}) &&
				yield(Said{Code: CodeHeld, Holder: Owner{1, 0, 1}}) && yield(Said{Code: CodeHeld, Holder: Owner{2, 0, 1}}) &&
				yield(Said{Code: CodeHeld, Holder: Owner{3, 0, 1}})
		case OpRenew:
			_ = yield(Said{Code: CodeGranted, Token: q.Token, Holder: q.Owner, TTL: q.TTL}) && yield(Said{Code: CodeLapsed}) && yield(Said{Code: CodeLost})
		case OpRelease:
			_ = yield(Said{Code: CodeReleased}) && yield(Said{Code: CodeLapsed}) && yield(Said{Code: CodeLost})
		case OpGet:
			if !yield(Said{Code: CodeFree}) {
				return
			}
			for n := range Node(3) {
				for token := range last + 2 {
					if !yield(Said{Code: CodeHeld, Holder: Owner{n + 1, 0, 1}, Token: token}) {
						return
					}
				}
			}
		}
	}
}

// The timed specification follows sets of zones, and shares nothing with the
// contract but the rules. Where every instant is known, and no TTL is rounded,
// both must allow the very same answers. The one exception is where the contract
// blurs: there it may allow more, and must not allow less.
func TestContractAllowsWhatTheTimedSpecificationAllows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[Code][2]int{}
	runs := 400
	if os.Getenv("FENCEPOST_LONG") != "" {
		runs = 20_000
	}
	for range runs {
		p := Promise{Terse: true, Tokens: TokenRule(r.IntN(2)), Late: []int64{0, 0, 2, 5}[r.IntN(4)],
			LockDelay: []int64{0, 0, 3, 7}[r.IntN(4)], RenewAfterLapse: r.IntN(4) == 0, SteadyClock: r.IntN(3) == 0}
		timed := TimedParams{Tokens: p.Tokens, First: 1, Late: p.Late, LockDelay: p.LockDelay, RenewAfterLapse: p.RenewAfterLapse}
		c, states := NewContract(p), timed.Init()
		step := func(op TimedOp) (next []TimedState) {
			for _, s := range states {
				next = timed.AppendStep(next, s, op)
			}
			return next
		}
		now, last := int64(10), uint64(0)
		var path []any
		lax := false
		for range 40 {
			switch r.IntN(10) {
			case 0:
				lax = lax || blurs(&c, now)
				c.Restart(now, now)
				if !p.SteadyClock { // of which a TimedRestart is the opposite
					states = step(TimedOp{Kind: TimedRestart, Call: now, Return: now})
				}
				path = append(path, "restart")
			case 1:
				if r.IntN(4) == 0 {
					c.Delete()
					states = step(TimedOp{Kind: TimedDelete, Call: now, Return: now})
					path = append(path, "delete")
				}
			case 2, 3, 4, 5:
				now += r.Int64N(6)
			}
			q := contractAsk(r, now, last, 3, 5, 8)
			if q.Op == OpRenew && q.Token == 0 || q.Op == OpRelease && q.Token == 0 {
				continue
			}
			var ok []Said
			var after []Contract
			for a := range contractAnswers(q, last) {
				next := c
				b, broken := next.Judge(q, a)
				legal := len(step(timedOf(q, a))) > 0
				if legal == broken && (legal || !lax) {
					t.Fatalf("%+v\n%+v\n%+v answered %+v: timed specification allows it: %t, contract: %v (want %s)\ncontract %+v\ntimed %+v",
						p, path, q, a, legal, b.Rule, b.Want, c, states)
				}
				n := seen[a.Code]
				if broken {
					n[0]++
				} else if legal {
					n[1]++
					ok, after = append(ok, a), append(after, next)
				}
				seen[a.Code] = n
			}
			if len(ok) == 0 {
				t.Fatalf("%+v\n%+v\nno answer to %+v is right", p, path, q)
			}
			i := r.IntN(len(ok))
			c, states = after[i], step(timedOf(q, ok[i]))
			if a := ok[i]; a.Code == CodeGranted {
				last = a.Token
			}
			path = append(path, q, ok[i])
		}
	}
	for _, code := range []Code{CodeGranted, CodeReleased, CodeHeld, CodeDelayed, CodeFree, CodeLapsed, CodeLost} {
		if n := seen[code]; n[0] == 0 || n[1] == 0 {
			t.Errorf("%v was refused %d times and allowed %d times: want both", code, n[0], n[1])
		}
	}
}

// blurs reports whether a restart after a crash at now makes the contract laxer
// than the timed specification: with renewals after a lapse it leaves open
// whether the tenure goes on or may be revived, and the contract keeps one
// interval for the ends of both.
func blurs(c *Contract, now int64) bool {
	return c.Promise.RenewAfterLapse && c.runs && c.canLapse(now)
}
