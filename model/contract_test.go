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
	for range 20_000 {
		delay := r.Int64N(3) * 4
		c, s := NewContract(Promise{LockDelay: delay}), LeaseSpec{LockDelay: delay}
		now := int64(100)
		for range 30 {
			switch r.IntN(12) {
			case 0:
				now = r.Int64N(100)
				c.Restart(now)
				s.Restart(now)
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
