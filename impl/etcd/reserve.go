package etcd

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/lease"
)

// reserve is what whoever waits for a resource and watches it has ready for the
// moment at which its leader goes: an etcd lease to which no key is attached. To
// take over is one write to the cluster's log then, instead of two and a read.
//
// It is a hint, and what is forgotten ends by itself.
type reserve struct {
	mu         sync.Mutex
	byResource map[string]*spare
}

type spare struct {
	watches int              // of the resource, here
	id      clientv3.LeaseID // 0: none
	seconds int64            // its TTL
	vacant  bool             // the leader key was deleted, and nobody has asked since
}

// watch counts a watch, until its end is called.
func (r *reserve) watch(resource string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byResource == nil {
		r.byResource = map[string]*spare{}
	}
	sp := r.byResource[resource]
	if sp == nil {
		sp = &spare{}
		r.byResource[resource] = sp
	}
	sp.watches++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if sp.watches--; sp.watches == 0 {
			delete(r.byResource, resource)
		}
	}
}

// saw notes whether the leader key of resource is gone.
func (r *reserve) saw(resource string, vacant bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sp := r.byResource[resource]; sp != nil {
		sp.vacant = vacant
	}
}

// take gives what is ready for a resource that is vacant, once.
func (r *reserve) take(resource string, seconds int64) (id clientv3.LeaseID, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sp := r.byResource[resource]
	if sp == nil || !sp.vacant || sp.id == 0 || sp.seconds != seconds {
		return 0, false
	}
	id, sp.id, sp.vacant = sp.id, 0, false
	return id, true
}

// wanted reports whether anybody watches resource, and what is ready for it.
func (r *reserve) wanted(resource string) (have spare, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sp := r.byResource[resource]; sp != nil {
		return *sp, true
	}
	return spare{}, false
}

// put reports whether it took id: not if nobody watches any more, or another was
// faster.
func (r *reserve) put(resource string, old, id clientv3.LeaseID, seconds int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sp := r.byResource[resource]
	if sp == nil || sp.id != old {
		return false
	}
	sp.id, sp.seconds = id, seconds
	return true
}

// prepare has an etcd lease ready for whoever was refused resource and watches it.
// Where that fails an acquire makes one of its own.
func (s *Store) prepare(ctx context.Context, resource string, seconds int64) {
	have, ok := s.reserve.wanted(resource)
	if !ok {
		return
	}
	if have.id != 0 && have.seconds == seconds {
		if alive, err := s.keepAlive(ctx, []clientv3.LeaseID{have.id}); err != nil || alive[0].seconds > 0 {
			return
		}
	}
	l, err := s.client.Grant(ctx, seconds)
	if err == nil && !s.reserve.put(resource, have.id, l.ID, seconds) {
		s.discard(ctx, l.ID)
	}
}

// succeed makes a new tenure on what is ready, if there is anything and the resource
// was seen to become vacant. Where it is not ok nothing is known, and the acquire
// looks: it finds this holder's tenure if there is one.
//
// The TTL counts from the keep-alive. That whoever noted it led the cluster is
// proved by the write after it, as [Store.renew] has it proved by a read: an entry
// of the log that came after it and has the same raft term.
func (s *Store) succeed(ctx context.Context, resource string, holder lease.Holder, seconds int64) (token lease.Token, ok bool, err error) {
	id, ok := s.reserve.take(resource, seconds)
	if !ok {
		return 0, false, nil
	}
	alive, err := s.keepAlive(ctx, []clientv3.LeaseID{id})
	if err != nil || alive[0].seconds < seconds {
		return 0, false, nil // nothing was done yet
	}
	resp, err := s.begin(ctx, resource, holder, id)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case !resp.Succeeded:
		if !s.reserve.put(resource, 0, id, seconds) {
			s.discard(ctx, id)
		}
		return 0, false, nil
	}
	// The revision of the transaction is the create revision of its keys.
	token = lease.Token(resp.Header.Revision)
	s.known.set(resource, tenure{holder: holder, token: token, lease: id})
	return token, resp.Header.GetRaftTerm() == alive[0].term, nil
}

// begin attaches a new leader key to an etcd lease, unless there is a leader key.
func (s *Store) begin(ctx context.Context, resource string, holder lease.Holder, id clientv3.LeaseID) (*clientv3.TxnResponse, error) {
	leader := s.LeaderKey(resource)
	return s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(leader), "=", 0)).
		Then(clientv3.OpPut(leader, holder.String(), clientv3.WithLease(id)), clientv3.OpPut(s.recordKey(resource), record{Holder: holder}.text())).
		Commit()
}
