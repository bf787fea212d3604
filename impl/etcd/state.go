package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	mvccpb "go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/lease"
)

// errBusy gives up a request that found the lease changed each time it was
// tried, or etcd changing its leader. A later one may fare better.
var errBusy = errors.New("it changed under each attempt, or etcd changes its leader; try again")

// ErrForeign marks a key that no [Store] has written: another program uses the
// same prefix. No lease under such a key is granted, renewed or released.
var ErrForeign = errors.New("key was not written by a lease store")

// LeaderKey is the key that is there while resource is held. Its create revision
// is the token.
func (s *Store) LeaderKey(resource string) string { return s.prefix + "leader/" + resource }

func (s *Store) recordKey(resource string) string { return s.prefix + "record/" + resource }

// Guard holds while resource carries token: put it among the conditions of a
// transaction, and the transaction lands only then. It holds from the grant
// until the lease is released, deleted or has lapsed; for token 0 it never does.
func (s *Store) Guard(resource string, token lease.Token) clientv3.Cmp {
	if token == 0 {
		// The create revision of a key that is not there is 0: that must not
		// let through whoever holds nothing.
		return clientv3.Compare(clientv3.CreateRevision(s.LeaderKey(resource)), "<", 0)
	}
	return clientv3.Compare(clientv3.CreateRevision(s.LeaderKey(resource)), "=", int64(token))
}

// tenure is what a leader key says; the zero tenure that there is none.
type tenure struct {
	holder lease.Holder
	token  lease.Token
	lease  clientv3.LeaseID
}

// record is the text of a record key. While the tenure has not been released
// its token is the revision of the key itself.
type record struct {
	Holder   lease.Holder `json:"holder"`
	Released lease.Token  `json:"released,omitempty"`
}

func (r record) text() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a holder and a number always have a text
	}
	return string(b)
}

// state is a lease as both of its keys have it at one revision.
type state struct {
	tenure tenure
	last   record
	token  lease.Token // of last
}

func (st state) held() bool { return st.tenure.token != 0 }

func (st state) latest() lease.Token { return max(st.tenure.token, st.token) }

// refuse says why holder does not hold the lease under token.
func (st state) refuse(resource string, holder lease.Holder, token lease.Token) error {
	if !st.held() && st.token == token && st.last.Holder == holder && st.last.Released == 0 {
		return &lease.LapsedError{Resource: resource, Holder: holder, Token: token}
	}
	return &lease.LostError{Resource: resource, Holder: holder, Token: token, Current: st.tenure.holder, Latest: st.latest()}
}

// ops read what [Store.read] takes in.
func (s *Store) ops(resource string) []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(s.LeaderKey(resource)), clientv3.OpGet(s.recordKey(resource))}
}

// look reads the lease, by way of a quorum.
func (s *Store) look(ctx context.Context, resource string) (state, error) {
	resp, err := s.client.Txn(ctx).Then(s.ops(resource)...).Commit()
	if err != nil {
		return state{}, err
	}
	return s.read(resource, resp)
}

func (s *Store) read(resource string, resp *clientv3.TxnResponse) (st state, err error) {
	st.tenure, err = readTenure(resp.Responses[0].GetResponseRange().GetKvs())
	if err != nil {
		return state{}, err
	}
	for _, kv := range resp.Responses[1].GetResponseRange().GetKvs() {
		if err := json.Unmarshal(kv.Value, &st.last); err != nil {
			return state{}, fmt.Errorf("%w: %s: %w", ErrForeign, kv.Key, err)
		}
		st.token = lease.Token(kv.ModRevision)
		if st.last.Released != 0 {
			st.token = st.last.Released
		}
	}
	return st, nil
}

func readTenure(kvs []*mvccpb.KeyValue) (tenure, error) {
	if len(kvs) == 0 {
		return tenure{}, nil
	}
	kv := kvs[0]
	holder, err := lease.ParseHolder(string(kv.Value))
	if err != nil || holder.IsZero() || kv.Lease == 0 {
		return tenure{}, fmt.Errorf("%w: %s is %q, attached to lease %d: %w", ErrForeign, kv.Key, kv.Value, kv.Lease, err)
	}
	return tenure{holder: holder, token: lease.Token(kv.CreateRevision), lease: clientv3.LeaseID(kv.Lease)}, nil
}
