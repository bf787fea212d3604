package etcd

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/lease"
)

// opsPerTxn is what a server accepts in one transaction by default
// (--max-txn-ops).
const opsPerTxn = 128

// renewal is one call of a renew on its way.
type renewal struct {
	call   *lease.Call
	answer *lease.Answer

	tenure tenure // as last read
	term   uint64 // of raft, when it was

	kept  clientv3.LeaseID // what was kept alive before that
	alive alive
}

func (r *renewal) owned() bool {
	return r.tenure.holder == r.call.Holder && r.tenure.token == r.call.Token
}

// renew makes all of calls, which are renewals, at once.
//
// The order. The etcd lease that the leader key is attached to is known, or read
// first. A keep-alive that was answered proves that this lease lived at that
// instant, and it counts from then. It does not prove that the key was still
// there, nor attached to it, nor that whoever answered leads the cluster. All
// that is proved by a read after it, by way of a quorum: the create
// revision is the token, so the key has been there since the grant; it is
// attached to the same lease, to which no key returns once it has left; and the
// raft term is that of the answer, so the renewal is known to the leader of the cluster.
//
// About the term. A member says in each answer in which term the last entry was
// that it has applied. A read by quorum under the leader of term t shows t at
// least, because that leader's first entry comes before what is read. A
// keep-alive shows at most the term of the leader that noted it. Where both are
// the same number it is t: a leader of a later term would have kept the quorum
// from confirming the read.
func (s *Store) renew(ctx context.Context, calls []lease.Call) []lease.Answer {
	answers := make([]lease.Answer, len(calls))
	pending := make([]*renewal, 0, len(calls))
	var unknown []*renewal
	for i := range calls {
		c := &calls[i]
		if c.Holder.IsZero() || c.Token == 0 || c.TTL <= 0 {
			answers[i].Err = &lease.InvalidError{Resource: c.Resource, Op: lease.OpRenew}
			continue
		}
		r := &renewal{call: c, answer: &answers[i]}
		if t, ok := s.known.find(c.Resource, c.Holder, c.Token); ok {
			r.tenure = t
			pending = append(pending, r)
		} else {
			unknown = append(unknown, r)
		}
	}
	pending = append(pending, s.readAll(ctx, unknown)...)
	for range attempts {
		if pending = s.refuse(ctx, pending); len(pending) == 0 {
			return answers
		}
		pending = s.attempt(ctx, pending)
	}
	for _, r := range pending {
		r.answer.Err = failed(lease.OpRenew, r.call.Resource, errBusy)
	}
	return answers
}

// refuse answers those that do not own their lease, and returns the others.
func (s *Store) refuse(ctx context.Context, renewals []*renewal) []*renewal {
	return slices.DeleteFunc(renewals, func(r *renewal) (answered bool) {
		if r.owned() {
			return false
		}
		c := r.call
		s.known.forget(c.Resource, c.Token)
		// The record key is read only here. That time has gone by since does not
		// matter: a create revision never comes back.
		st, err := s.look(ctx, c.Resource)
		if err != nil {
			r.answer.Err = failed(lease.OpRenew, c.Resource, err)
		} else {
			r.answer.Err = st.refuse(c.Resource, c.Holder, c.Token)
		}
		return true
	})
}

// renewed reports whether the keep-alive did what the rule asks: see
// [Store.renew].
func (r *renewal) renewed() bool {
	return r.owned() && r.alive.seconds > 0 && r.tenure.lease == r.kept && r.term == r.alive.term
}

// attempt answers what it can, and returns what is to be tried again.
func (s *Store) attempt(ctx context.Context, renewals []*renewal) []*renewal {
	ids := make([]clientv3.LeaseID, len(renewals))
	for i, r := range renewals {
		r.kept, ids[i] = r.tenure.lease, r.tenure.lease
	}
	alives, err := s.keepAlive(ctx, ids)
	for i, a := range alives {
		renewals[i].alive = a
	}
	for _, r := range renewals[len(alives):] {
		r.answer.Err = failed(lease.OpRenew, r.call.Resource, err)
	}
	renewals = s.readAll(ctx, renewals[:len(alives)])
	return slices.DeleteFunc(renewals, func(r *renewal) (answered bool) {
		c := r.call
		switch {
		case !r.renewed():
			return false
		case r.alive.seconds < seconds(c.TTL):
			if err := s.lengthen(ctx, r); err != nil {
				r.answer.Err = failed(lease.OpRenew, c.Resource, err)
				return true
			}
			return false
		}
		s.known.set(c.Resource, r.tenure)
		r.answer.Grant = lease.Grant{Resource: c.Resource, Holder: c.Holder, Token: c.Token, TTL: sure(c.TTL, r.alive.seconds)}
		return true
	})
}

// lengthen attaches the leader key to an etcd lease with the TTL that is asked
// for, which is longer than that of the one it is attached to. The create
// revision stays. The tenure then ends no earlier than before once that lease is
// kept alive, which is the next attempt's: until then the new TTL counts from a
// moment ago.
//
// That the old lease is still the one keeps two of these, with different TTLs,
// from undoing each other.
func (s *Store) lengthen(ctx context.Context, r *renewal) error {
	c := r.call
	l, err := s.client.Grant(ctx, seconds(c.TTL))
	if err != nil {
		return err
	}
	leader := s.LeaderKey(c.Resource)
	resp, err := s.client.Txn(ctx).
		If(s.Guard(c.Resource, c.Token), clientv3.Compare(clientv3.LeaseValue(leader), "=", r.tenure.lease)).
		Then(clientv3.OpPut(leader, c.Holder.String(), clientv3.WithLease(l.ID))).
		Else(clientv3.OpGet(leader)).
		Commit()
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		s.discard(ctx, l.ID)
		r.tenure, err = readTenure(resp.Responses[0].GetResponseRange().GetKvs())
		return err
	}
	s.discard(ctx, r.tenure.lease)
	r.tenure.lease = l.ID
	return nil
}

// readAll reads the tenure of each by way of a quorum, many at once, answers
// those of which that fails, and returns the others.
func (s *Store) readAll(ctx context.Context, renewals []*renewal) []*renewal {
	ok := make([]*renewal, 0, len(renewals))
	for len(renewals) > 0 {
		n := min(opsPerTxn, len(renewals))
		ops := make([]clientv3.Op, n)
		for i, r := range renewals[:n] {
			ops[i] = clientv3.OpGet(s.LeaderKey(r.call.Resource))
		}
		resp, err := s.client.Txn(ctx).Then(ops...).Commit()
		for i, r := range renewals[:n] {
			if err == nil {
				r.tenure, r.answer.Err = readTenure(resp.Responses[i].GetResponseRange().GetKvs())
				r.term = resp.Header.GetRaftTerm()
			} else {
				r.answer.Err = err
			}
			if r.answer.Err != nil {
				r.answer.Err = failed(lease.OpRenew, r.call.Resource, r.answer.Err)
				continue
			}
			ok = append(ok, r)
		}
		renewals = renewals[n:]
	}
	return ok
}
