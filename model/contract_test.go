package model

import (
	"math/rand/v2"
	"testing"
)

// contractAsk is a random request of few candidates, often one that makes
// sense, at now.
func contractAsk(r *rand.Rand, now int64, last uint64, ttls ...int64) Ask {
	q := Ask{Op: OpAcquire + Op(r.IntN(4)), Owner: Owner{Node: Node(1 + r.IntN(3)), Seq: 1}, At: now}
	if q.Op == OpAcquire || q.Op == OpRenew {
		q.TTL = ttls[r.IntN(len(ttls))]
	}
	if q.Op == OpRenew || q.Op == OpRelease {
		q.Token = last
		if r.IntN(4) == 0 {
			q.Token = uint64(max(0, int64(last)+r.Int64N(4)-2))
		}
	}
	if q.Op == OpGet {
		q.Owner = Owner{}
	}
	return q
}

// specSays is the answer of s to q.
func specSays(s *LeaseSpec, q Ask) Said {
	a := s.Step(&Event{Op: q.Op, Owner: q.Owner, Asked: q.Token, TTL: q.TTL, Local: q.At})
	said := Said{Code: a.Code, Token: a.Token, Holder: a.Holder, Remaining: a.Remaining}
	if a.Code == CodeGranted {
		said.TTL = q.TTL
	}
	return said
}

func TestContractAllowsWhatTheSpecificationAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		delay, steady := r.Int64N(3)*4, r.IntN(3) == 0
		c, s := NewContract(Promise{LockDelay: delay, SteadyClock: steady}), LeaseSpec{LockDelay: delay}
		now := int64(100)
		for range 30 {
			switch r.IntN(12) {
			case 0:
				was := now
				if !steady { // else nothing ever happened, as far as the specification goes
					now = r.Int64N(100)
					s.Restart(now)
				}
				c.Restart(was, now)
			case 1:
				if r.IntN(3) == 0 {
					c.Delete()
					s.Delete()
				}
			case 2, 3, 4:
				now += r.Int64N(6)
			}
			q := contractAsk(r, now, s.Issued, 3, 5, 8, 0)
			before := c
			a := specSays(&s, q)
			if b, broken := c.Judge(q, a); broken {
				t.Fatalf("%+v answered %+v breaks %v: want %s\nin %+v", q, a, b.Rule, b.Want, before)
			}
		}
	}
}

// A store that keeps a lease for any time from what its grant says to what the
// promise allows answers like the specification asked for that TTL.
func TestContractAllowsTTLsWithinThePromise(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 3_000 {
		p := Promise{Granularity: r.Int64N(4), MinTTL: r.Int64N(5), Late: r.Int64N(3), LockDelay: r.Int64N(2) * 4, SteadyClock: r.IntN(3) == 0}
		c, s := NewContract(p), LeaseSpec{LockDelay: p.LockDelay}
		now := int64(100)
		for range 30 {
			if now += max(0, r.Int64N(9)-4); r.IntN(10) == 0 {
				was := now
				if !p.SteadyClock {
					now = r.Int64N(100)
					s.Restart(now)
				}
				c.Restart(was, now)
			}
			q := contractAsk(r, now, s.Issued, 1, 3, 5, 8)
			keeps := max(q.TTL, p.MinTTL)
			if g := max(p.Granularity, 1); keeps%g > 0 {
				keeps += g - keeps%g
			}
			var said int64
			asked := q
			if q.TTL > 0 {
				said = 1 + r.Int64N(keeps+p.Late)
				asked.TTL = said + r.Int64N(keeps+p.Late-said+1)
			}
			a := Said{Code: CodeInvalid}
			if q.TTL == 0 || q.TTL >= p.MinTTL || r.IntN(2) == 0 {
				if a = specSays(&s, asked); a.Code == CodeGranted {
					if a.TTL = said; r.IntN(3) == 0 {
						a.TTL = a.Remaining // which is at least that
					}
				}
			}
			before := c
			if b, broken := c.Judge(q, a); broken {
				t.Fatalf("%+v answered %+v breaks %v: want %s\nin %+v", q, a, b.Rule, b.Want, before)
			}
		}
	}
}

// excused reports whether the specification's answer a, to q, may also be m,
// which differs from it in one field.
func excused(q Ask, a, m Said) bool {
	lapsedOrLost := func(c Code) bool { return c == CodeLapsed || c == CodeLost }
	switch {
	case lapsedOrLost(a.Code) && lapsedOrLost(m.Code) && a.Code != m.Code:
		return true // one evidence
	case a.Code == CodeInvalid && m.Code == CodeInvalid:
		return true // such a refusal has no details that could be wrong
	case a.Code == CodeInvalid && lapsedOrLost(m.Code) && (q.Op == OpRenew || q.Op == OpRelease):
		return true // true of whoever does not hold it
	case m.TTL < a.TTL && m.TTL > 0:
		return true // a store may cap TTLs
	case m.TTL > a.TTL && m.TTL <= a.Remaining:
		return true // what is left of a longer one
	case m.Token == 0 && a.Token != 0 && (a.Code == CodeReleased || a.Code == CodeDelayed || a.Code == CodeFree || lapsedOrLost(a.Code)):
		return true // not said
	case m.Remaining == 0 && a.Remaining != 0 && (a.Code == CodeGranted || lapsedOrLost(a.Code)):
		return true // not said
	}
	return false
}

// inexact reports whether c leaves open what the specification knows: whether
// a lapse that nobody was told of was on record at a restart.
func inexact(c *Contract) bool {
	return c.nlapses > 0 && (c.runs || c.nlapses > 1 || c.lapses[0].lo < c.lapses[0].hi)
}

// variants yields each answer that differs from a in one field.
func variants(a Said) func(yield func(Said) bool) {
	return func(yield func(Said) bool) {
		var all []Said
		for code := CodeNone; code <= CodeInvalid; code++ {
			m := a
			m.Code = code
			all = append(all, m)
		}
		for _, token := range []uint64{0, 1, a.Token - 1, a.Token + 1} {
			m := a
			m.Token = token
			all = append(all, m)
		}
		for n := range Node(5) {
			m := a
			m.Holder = Owner{Node: n, Seq: 1}
			if n == 0 {
				m.Holder = Owner{}
			}
			all = append(all, m)
		}
		for _, d := range []int64{-a.TTL - 1, -a.TTL, -1, 1} {
			m := a
			m.TTL += d
			all = append(all, m)
		}
		for _, d := range []int64{-a.Remaining, -1, 1} {
			m := a
			m.Remaining += d
			all = append(all, m)
		}
		for _, m := range all {
			if m != a && !yield(m) {
				return
			}
		}
	}
}

func TestContractRefusesEveryOtherAnswer(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	convicted := map[Rule]int{}
	for range 200 {
		delay, steady := r.Int64N(3)*4, r.IntN(3) == 0
		c, s := NewContract(Promise{LockDelay: delay, SteadyClock: steady}), LeaseSpec{LockDelay: delay}
		now := int64(100)
		for range 30 {
			switch r.IntN(12) {
			case 0:
				was := now
				if !steady { // else nothing ever happened, as far as the specification goes
					now = r.Int64N(100)
					s.Restart(now)
				}
				c.Restart(was, now)
			case 1:
				if r.IntN(3) == 0 {
					c.Delete()
					s.Delete()
				}
			case 2, 3, 4:
				now += r.Int64N(6)
			}
			q := contractAsk(r, now, s.Issued, 3, 5, 8, 0)
			a := specSays(&s, q)
			for m := range variants(a) {
				// TTL means nothing but in a grant.
				if excused(q, a, m) || m.TTL != a.TTL && a.Code != CodeGranted || inexact(&c) {
					continue
				}
				try := c
				b, broken := try.Judge(q, m)
				if !broken {
					t.Fatalf("%+v answered %+v breaks nothing, and the right answer is %+v\nin %+v", q, m, a, c)
				}
				if b.Want == "" || try.Promise != c.Promise {
					t.Fatalf("%+v answered %+v breaks %v, and nothing is wanted", q, m, b.Rule)
				}
				convicted[b.Rule]++
			}
			if b, broken := c.Judge(q, a); broken {
				t.Fatalf("%+v answered %+v breaks %v", q, a, b.Rule)
			}
		}
	}
	for rule := range Rules() {
		if convicted[rule] == 0 && rule != RuleAnswers {
			t.Errorf("no answer broke %v", rule)
		}
	}
}
