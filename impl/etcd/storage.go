package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Storage is a [fence.KV] in the etcd that has the lease: a write lands only
// while the lease carries its token, which the transaction itself compares. It
// is the rule of [fence.CompareAndSwap], with a lapse told by etcd: from then
// on nothing lands, though nobody has taken over yet.
//
// Where keys and values are not all there is to write, put [Store.Guard] among
// the conditions of a transaction of your own.
//
// All methods are safe for concurrent use. The refusal is a
// *[fence.NotCarriedError]; any other error of a write leaves its outcome
// unknown.
type Storage struct {
	store    *Store
	resource string
	prefix   string
}

var _ fence.KV = (*Storage)(nil)

// NewStorage is the storage under the lease on resource in s. Its keys begin
// with prefix, which is not that of the store.
func NewStorage(s *Store, resource, prefix string) *Storage {
	return &Storage{store: s, resource: resource, prefix: prefix}
}

// Write lands value under key if the lease carries token.
func (g *Storage) Write(ctx context.Context, token lease.Token, key, value string) error {
	return g.ifCarried(ctx, token, "write", clientv3.OpPut(g.prefix+key, value))
}

// Fence succeeds if the lease carries token. There is nothing to remember: once
// it does, it never again carries a lower one.
func (g *Storage) Fence(ctx context.Context, token lease.Token) error {
	return g.ifCarried(ctx, token, "fence")
}

func (g *Storage) ifCarried(ctx context.Context, token lease.Token, what string, then ...clientv3.Op) error {
	// The reads in Else make it a read by quorum also where there is nothing to
	// do: a transaction without any would be answered from the nearest member's
	// memory.
	resp, err := g.store.client.Txn(ctx).If(g.store.Guard(g.resource, token)).Then(then...).Else(g.store.ops(g.resource)...).Commit()
	if err == nil && resp.Succeeded {
		return nil
	}
	var st state
	if err == nil {
		st, err = g.store.read(g.resource, resp)
	}
	if err != nil {
		return fmt.Errorf("storage %q in etcd: %s under token %d: %w", g.prefix, what, token, err)
	}
	return &fence.NotCarriedError{Resource: g.resource, Token: token, Latest: st.latest()}
}

// Read gives the value that landed last under key, as a quorum has it.
func (g *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	resp, err := g.store.client.Get(ctx, g.prefix+key)
	if err != nil {
		return "", false, fmt.Errorf("storage %q in etcd: read of %q: %w", g.prefix, key, err)
	}
	if len(resp.Kvs) == 0 {
		return "", false, nil
	}
	return string(resp.Kvs[0].Value), true, nil
}
