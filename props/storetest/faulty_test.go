package storetest

import (
	"context"
	"maps"
	"sync"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// row is a lease as the store keeps it.
type row = lease.Record

// fault is one thing that a store does wrong. Each field that is nil is done
// right.
type fault struct {
	name  string
	check string // that names it
	o     kit.Options

	handle   func(now time.Duration, r row, q lease.Request) (row, lease.Reply)
	restart  func(old row, now time.Duration) row
	delete   func(row) row
	others   func(r row) row // what becomes of every other lease at a grant
	purge    func(r row) row // and at a deletion
	reboot   func(map[string]row, time.Duration)
	resource func(string) string
	holder   func(lease.Holder) lease.Holder // as it is kept
	grant    func(lease.Grant) lease.Grant
	ended    func(op lease.Op) error // under a context that has ended
	err      func(error) error
	delay    time.Duration
}

// faulty is a store of records with one fault.
type faulty struct {
	fault
	clk  clock.Clock
	mu   sync.Mutex
	recs map[string]row
	disk *map[string]row
}

func (f fault) open() script.Open {
	return func(e kit.Env) lease.Store {
		disk := kit.Durable(e, "disk", func() *map[string]row { return &map[string]row{} })
		s := &faulty{fault: f, clk: e.Clock, disk: disk, recs: map[string]row{}}
		for k, r := range *disk {
			if f.restart != nil {
				s.recs[k] = f.restart(r, e.Clock.Now())
			} else {
				s.recs[k] = lease.Restore(r.Durable, e.Clock.Now())
			}
		}
		if f.reboot != nil && len(s.recs) > 0 {
			f.reboot(s.recs, e.Clock.Now())
		}
		*disk = maps.Clone(s.recs)
		return s
	}
}

func (s *faulty) do(ctx context.Context, resource string, q lease.Request) (lease.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		if s.ended != nil {
			return lease.Reply{}, s.ended(q.Op)
		}
		return lease.Reply{}, err
	}
	key := resource
	if s.resource != nil {
		key = s.resource(resource)
	}
	asked := q.Holder
	if s.holder != nil {
		q.Holder = s.holder(q.Holder)
	}
	r := s.recs[key]
	var rep lease.Reply
	if s.handle != nil {
		r, rep = s.handle(s.clk.Now(), r, q)
	} else {
		r, rep = r.Handle(s.clk.Now(), s.delay, q)
	}
	s.recs[key] = r
	if s.others != nil && rep.Code == lease.CodeGranted {
		s.change(key, s.others)
	}
	*s.disk = maps.Clone(s.recs)
	rep.Holder = asked
	err := rep.Err(resource)
	if s.err != nil && err != nil {
		err = s.err(err)
	}
	return rep, err
}

func (s *faulty) change(key string, how func(row) row) {
	for k, r := range s.recs {
		if k != key {
			s.recs[k] = how(r)
		}
	}
}

func (s *faulty) granted(resource string, rep lease.Reply, err error) (lease.Grant, error) {
	if err != nil {
		return lease.Grant{}, err
	}
	g := lease.Grant{Resource: resource, Holder: rep.Holder, Token: rep.Token, TTL: rep.TTL}
	if s.fault.grant != nil {
		g = s.fault.grant(g)
	}
	return g, nil
}

func (s *faulty) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	rep, err := s.do(ctx, r, lease.Request{Op: lease.OpAcquire, Holder: h, TTL: ttl})
	return s.granted(r, rep, err)
}

func (s *faulty) Renew(ctx context.Context, r string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	rep, err := s.do(ctx, r, lease.Request{Op: lease.OpRenew, Holder: h, Token: t, TTL: ttl})
	return s.granted(r, rep, err)
}

func (s *faulty) Release(ctx context.Context, r string, h lease.Holder, t lease.Token) error {
	_, err := s.do(ctx, r, lease.Request{Op: lease.OpRelease, Holder: h, Token: t})
	return err
}

func (s *faulty) Get(ctx context.Context, r string) (lease.Observation, error) {
	rep, err := s.do(ctx, r, lease.Request{Op: lease.OpGet})
	return lease.Observation{Resource: r, Holder: rep.Current, Token: rep.Token, Remaining: rep.Remaining}, err
}

func (s *faulty) Delete(ctx context.Context, r string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault.delete != nil {
		s.recs[r] = s.fault.delete(s.recs[r])
	} else {
		s.recs[r] = s.recs[r].Delete()
	}
	if s.purge != nil {
		s.change(r, s.purge)
	}
	*s.disk = maps.Clone(s.recs)
	return nil
}

// on makes a fault of one operation, and leaves the others right.
func on(op lease.Op, delay time.Duration, f func(now time.Duration, r row, q lease.Request) (row, lease.Reply)) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		if q.Op == op {
			return f(now, r, q)
		}
		return r.Handle(now, delay, q)
	}
}

// after changes what the right answer to op leaves behind, where it is code.
func after(op lease.Op, code lease.Code, f func(now time.Duration, before, r row, rep *lease.Reply) row) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return on(op, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		next, rep := r.Handle(now, 0, q)
		if rep.Code == code {
			next = f(now, r, next, &rep)
		}
		return next, rep
	})
}

// asHolder has a request of op pass a check that it should not: it is served as
// the holder's own under its token, where may says so.
func asHolder(op lease.Op, may func(now time.Duration, r row, q lease.Request) (holder, token bool)) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return on(op, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		asked := q
		holder, token := may(now, r, q)
		if holder {
			q.Holder = r.Holder
		}
		if token {
			q.Token = r.Token
		}
		next, rep := r.Handle(now, 0, q)
		rep.Holder, rep.Asked = asked.Holder, asked.Token
		if rep.Code == lease.CodeGranted {
			rep.Token = asked.Token
		}
		return next, rep
	})
}

// sameHolder takes holders for one another.
func sameHolder(same func(a, b lease.Holder) bool) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		if same(r.Holder, q.Holder) && !q.Holder.IsZero() {
			q.Holder = r.Holder
		}
		return r.Handle(now, 0, q)
	}
}

// cutTTL has a store keep less of a TTL than it was asked for.
func cutTTL(op lease.Op, unit time.Duration) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return on(op, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		ttl := q.TTL
		if ttl > 0 {
			q.TTL = max(ttl/unit*unit, 1)
		}
		next, rep := r.Handle(now, 0, q)
		if rep.Code == lease.CodeGranted {
			rep.TTL = ttl
		}
		return next, rep
	})
}

func sameNode(a, b lease.Holder) bool { return a.Node == b.Node }

// lenient grants a request that makes no sense as if it were this one.
func lenient(op lease.Op, fix func(r row, q *lease.Request)) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return on(op, 0, func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		asked := q
		fix(r, &q)
		next, rep := r.Handle(now, 0, q)
		rep.Holder, rep.Asked = asked.Holder, asked.Token
		return next, rep
	})
}

// capTTL has a store keep a lease for no longer than most, whatever it grants.
func capTTL(most time.Duration) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		ttl := q.TTL
		q.TTL = min(ttl, most)
		next, rep := r.Handle(now, 0, q)
		if rep.Code == lease.CodeGranted {
			rep.TTL = ttl
		}
		return next, rep
	}
}

// forgets has a store drop a lease, its counter too, so long after it came to be
// in that state. A release makes Expires the instant of it.
func forgets(in lease.Status, after time.Duration) func(time.Duration, row, lease.Request) (row, lease.Reply) {
	return func(now time.Duration, r row, q lease.Request) (row, lease.Reply) {
		if r.Token > 0 && r.Status == in && now-r.Expires >= after {
			r = row{}
		}
		next, rep := r.Handle(now, 0, q)
		if rep.Code == lease.CodeReleased {
			next.Expires = now
		}
		return next, rep
	}
}

// forgetful is a store that keeps so many leases in one state, and drops the
// one that came to be in it first.
type forgetful struct {
	lease.Handler
	keeps int
	only  lease.Status
	e     kit.Env
	recs  map[string]row
	queue []string
}

func (s *forgetful) handle(ctx context.Context, c lease.Call) (lease.Reply, error) {
	if err := ctx.Err(); err != nil {
		return lease.Reply{}, err
	}
	r := s.recs[c.Resource]
	next, rep := r.Handle(s.e.Clock.Now(), 0, c.Request)
	s.recs[c.Resource] = next
	if next.Status == s.only && next.Status != r.Status || next.Token != r.Token && s.only == lease.Running {
		s.queue = append(s.queue, c.Resource)
		if len(s.queue) > s.keeps {
			if old := s.queue[0]; s.recs[old].Status == s.only {
				delete(s.recs, old)
			}
			s.queue = s.queue[1:]
		}
	}
	return rep, nil
}
