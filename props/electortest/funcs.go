package electortest

import (
	"context"
	"hash/fnv"
	"strings"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// Funcs is the Store of e as plain functions, for a client that does not use
// fencepost's types. A holder is any string. ok is false where the store
// refuses; after an error the outcome is unknown. The TTL granted is not told:
// such a client goes with [Options].FullTTL.
func (e Env) Funcs() kit.Funcs {
	return kit.Funcs{
		Acquire: func(ctx context.Context, resource, holder string, ttl time.Duration) (uint64, bool, error) {
			g, err := e.Store.Acquire(ctx, resource, holderOf(holder), ttl)
			ok, err := verdict(err)
			return uint64(g.Token), ok, err
		},
		Renew: func(ctx context.Context, resource, holder string, token uint64, ttl time.Duration) (bool, error) {
			_, err := e.Store.Renew(ctx, resource, holderOf(holder), lease.Token(token), ttl)
			return verdict(err)
		},
		Release: func(ctx context.Context, resource, holder string, token uint64) (bool, error) {
			return verdict(e.Store.Release(ctx, resource, holderOf(holder), lease.Token(token)))
		},
		Get: func(ctx context.Context, resource string) (string, uint64, error) {
			o, err := e.Store.Get(ctx, resource)
			return o.Holder.String(), uint64(o.Token), err
		},
	}
}

// holderOf is a holder for any name: the one that it is the text of, or else
// one of its own.
func holderOf(name string) lease.Holder {
	if h, err := lease.ParseHolder(name); err == nil {
		return h
	}
	sum := fnv.New64a()
	sum.Write([]byte(name))
	return lease.Holder{Node: strings.ReplaceAll(name, "#", "/"), Seq: 1, Nonce: sum.Sum64()}
}

// verdict tells a refusal from an error.
func verdict(err error) (ok bool, _ error) {
	switch lease.Refusal(err) {
	case lease.CodeHeld, lease.CodeDelayed, lease.CodeLapsed, lease.CodeLost:
		return false, nil
	}
	return err == nil, err
}
