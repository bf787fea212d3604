package etcd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/lease"
)

// Store is a [lease.Store] in etcd. No answer depends on what it remembers: any
// number of them, in any number of processes, work on the same leases.
//
// The error of a request that was not refused, such as that of its context or
// one of the client, leaves the outcome unknown. An acquire that ended so may
// leave an etcd lease behind, with a tenure or without. It ends by itself, after
// the TTL: nothing here renews what nobody asks to have renewed, and to revoke
// it could take away what a retry was granted meanwhile.
//
// All methods are safe for concurrent use.
type Store struct {
	client  *clientv3.Client
	prefix  string
	known   known
	reserve reserve
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Batcher = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// Options say where a [Store] keeps its leases.
type Options struct {
	// Prefix begins all keys. Default "fencepost/".
	Prefix string
}

// New is the store behind client, which stays the caller's to close.
func New(client *clientv3.Client, opts Options) *Store {
	return &Store{client: client, prefix: cmp.Or(opts.Prefix, "fencepost/")}
}

const (
	// attempts bounds how often a request is tried that finds the lease changed
	// under its hands. Each time it is somebody else's request that went through.
	attempts = 5
	// maxSeconds is the longest TTL of etcd; longer ones are cut to it, and
	// their grants say so.
	maxSeconds = 9_000_000_000
)

// seconds is ttl in the unit of etcd, rounded up.
func seconds(ttl time.Duration) int64 {
	s := int64(ttl / time.Second)
	if ttl%time.Second > 0 {
		s++
	}
	return min(s, maxSeconds)
}

// sure is what of the TTL that was asked for the server gives: all of it, but
// for TTLs of centuries.
func sure(asked time.Duration, granted int64) time.Duration {
	if asked > maxSeconds*time.Second {
		return maxSeconds * time.Second
	}
	return min(asked, time.Duration(min(granted, maxSeconds))*time.Second)
}

// Acquire grants resource to holder for ttl, rounded up to what etcd can do.
// The refusals are *[lease.HeldError] and *[lease.InvalidError]. An acquire that
// is refused leaves nothing behind in etcd, unless the resource is watched by the
// same Store: then one etcd lease is kept ready for the moment at which its
// leader goes, for as long as acquires are refused. It ends by itself, a TTL later.
func (s *Store) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	if holder.IsZero() || ttl <= 0 {
		return lease.Grant{}, &lease.InvalidError{Resource: resource, Op: lease.OpAcquire}
	}
	if token, ok, err := s.succeed(ctx, resource, holder, seconds(ttl)); err != nil {
		return lease.Grant{}, failed(lease.OpAcquire, resource, err)
	} else if ok {
		return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: sure(ttl, seconds(ttl))}, nil
	}
	for range attempts {
		// It looks first, since most attempts of a candidate are refused: an etcd
		// lease that is granted and revoked is two writes to the cluster's log.
		st, err := s.look(ctx, resource)
		switch {
		case err != nil:
			return lease.Grant{}, failed(lease.OpAcquire, resource, err)
		case st.tenure.holder == holder:
			renew := lease.Request{Op: lease.OpRenew, Holder: holder, Token: st.tenure.token, TTL: ttl}
			a := s.renew(ctx, []lease.Call{{Resource: resource, Request: renew}})[0]
			if lease.Refusal(a.Err) == lease.CodeNone {
				return a.Grant, a.Err
			}
		case st.held():
			left, ok, err := s.remaining(ctx, st.tenure.lease)
			if err != nil {
				return lease.Grant{}, failed(lease.OpAcquire, resource, err)
			}
			if ok {
				s.prepare(ctx, resource, seconds(ttl))
				return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: st.tenure.holder, Token: st.tenure.token, Remaining: left}
			}
		default:
			g, ok, err := s.create(ctx, resource, holder, ttl)
			if ok || err != nil {
				return g, err
			}
		}
	}
	return lease.Grant{}, failed(lease.OpAcquire, resource, errBusy)
}

// create makes a new tenure, unless there is one by now.
func (s *Store) create(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (g lease.Grant, ok bool, err error) {
	l, err := s.client.Grant(ctx, seconds(ttl))
	if err != nil {
		return g, false, failed(lease.OpAcquire, resource, err)
	}
	resp, err := s.begin(ctx, resource, holder, l.ID)
	switch {
	case err != nil:
		return g, false, failed(lease.OpAcquire, resource, err)
	case !resp.Succeeded:
		s.discard(ctx, l.ID)
		return g, false, nil
	}
	// The revision of the transaction is the create revision of its keys.
	token := lease.Token(resp.Header.Revision)
	s.known.set(resource, tenure{holder: holder, token: token, lease: l.ID})
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: sure(ttl, l.TTL)}, true, nil
}

// discard revokes an etcd lease to which no key is attached, nor ever will be.
// Where that fails it ends by itself.
func (s *Store) discard(ctx context.Context, id clientv3.LeaseID) {
	_, _ = s.client.Revoke(ctx, id)
}

// Renew extends holder's tenure under token to at least ttl from now. The
// refusals are *[lease.LapsedError], *[lease.LostError] and
// *[lease.InvalidError].
func (s *Store) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	req := lease.Request{Op: lease.OpRenew, Holder: holder, Token: token, TTL: ttl}
	a := s.renew(ctx, []lease.Call{{Resource: resource, Request: req}})[0]
	return a.Grant, a.Err
}

// Release ends holder's tenure under token; its refusals are those of
// [Store.Renew]. The etcd lease is revoked, or, where the resource is watched by the
// same Store, left to end by itself.
func (s *Store) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	if holder.IsZero() || token == 0 {
		return &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
	}
	s.known.forget(resource, token)
	leader := s.LeaderKey(resource)
	resp, err := s.client.Txn(ctx).
		If(s.Guard(resource, token), clientv3.Compare(clientv3.Value(leader), "=", holder.String())).
		Then(clientv3.OpDelete(leader, clientv3.WithPrevKV()), clientv3.OpPut(s.recordKey(resource), record{Holder: holder, Released: token}.text())).
		Else(s.ops(resource)...).
		Commit()
	if err != nil {
		return failed(lease.OpRelease, resource, err)
	}
	if !resp.Succeeded {
		st, err := s.read(resource, resp)
		if err != nil {
			return failed(lease.OpRelease, resource, err)
		}
		return st.refuse(resource, holder, token)
	}
	if _, watched := s.reserve.wanted(resource); watched {
		// Somebody may be waiting, whose write a revocation would hold up.
		return nil
	}
	if was := resp.Responses[0].GetResponseDeleteRange().GetPrevKvs(); len(was) == 1 {
		s.discard(ctx, clientv3.LeaseID(was[0].Lease))
	}
	return nil
}

// Get says who holds resource.
func (s *Store) Get(ctx context.Context, resource string) (lease.Observation, error) {
	for range attempts {
		st, err := s.look(ctx, resource)
		if err != nil {
			return lease.Observation{}, failed(lease.OpGet, resource, err)
		}
		if !st.held() {
			return lease.Observation{Resource: resource, Token: st.latest()}, nil
		}
		left, ok, err := s.remaining(ctx, st.tenure.lease)
		if err != nil {
			return lease.Observation{}, failed(lease.OpGet, resource, err)
		}
		if ok {
			return lease.Observation{Resource: resource, Holder: st.tenure.holder, Token: st.tenure.token, Remaining: left}, nil
		}
	}
	return lease.Observation{}, failed(lease.OpGet, resource, errBusy)
}

// remaining is what is left of an etcd lease, by the second, rounded up; not ok
// once there is none.
func (s *Store) remaining(ctx context.Context, id clientv3.LeaseID) (left time.Duration, ok bool, err error) {
	resp, err := s.client.TimeToLive(ctx, id)
	if err != nil {
		return 0, false, err
	}
	if resp.GrantedTTL == 0 {
		return 0, false, nil
	}
	// A member that became leader a moment ago takes leases to last for ever; one
	// that has run out may show less than nothing until it is revoked.
	left = time.Duration(max(0, min(resp.TTL, resp.GrantedTTL, maxSeconds-1))+1) * time.Second
	return left, true, nil
}

func failed(op lease.Op, resource string, err error) error {
	return fmt.Errorf("lease %q in etcd: %v: %w", resource, op, err)
}
