package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
)

// Storage is a fenced key-value storage in ZooKeeper: one node that carries the
// highest token seen, and one below it for each key. It belongs to one lease,
// which may be kept anywhere. It lives as long as the [Store] that made it.
//
// The node's data is set when a higher token comes, and never else, so that its
// version stands for the token: that is what a multi can compare. Whoever
// deletes the node, or sets its data, undoes the fencing.
type Storage struct {
	store *Store
	node  string
}

var _ fence.KV = (*Storage)(nil)

// Storage is the fenced storage whose node is of that path; it is made with the
// first token. Stores on one ensemble that name the same path share the data.
func (s *Store) Storage(path string) *Storage { return &Storage{s, path} }

// Fence bars all tokens below token from now on. The error is a
// *[fence.StaleTokenError], or the outcome is unknown.
func (g *Storage) Fence(ctx context.Context, token lease.Token) error {
	_, err := g.admit(ctx, token, nil)
	return err
}

// Write lands value under key if no higher token came before. Its errors are
// those of [Storage.Fence].
func (g *Storage) Write(ctx context.Context, token lease.Token, key, value string) error {
	path := g.key(key)
	_, err := g.admit(ctx, token, func() (any, error) {
		_, err := g.store.conn.get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			return &zk.CreateRequest{Path: path, Data: []byte(value), Acl: g.store.opts.ACL}, nil
		}
		return &zk.SetDataRequest{Path: path, Data: []byte(value), Version: -1}, err
	})
	return err
}

// Read gives the value that landed last under key.
func (g *Storage) Read(ctx context.Context, key string) (value string, ok bool, err error) {
	path := g.key(key)
	err = g.store.conn.sync(ctx, path)
	var n node
	if err == nil {
		n, err = g.store.conn.get(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("storage %s: zookeeper: read of %q: %w", g.node, key, err)
	}
	return string(n.data), true, nil
}

// Check fences token and gives the operation to put into each of the leader's
// own multis under it, beside whatever it changes in the ensemble. It is good
// for the whole term. Once a successor has fenced, the multi fails as a whole,
// with zk.ErrBadVersion for this operation: the token is stale.
func (g *Storage) Check(ctx context.Context, token lease.Token) (*zk.CheckVersionRequest, error) {
	version, err := g.admit(ctx, token, nil)
	if err != nil {
		return nil, err
	}
	return &zk.CheckVersionRequest{Path: g.node, Version: version}, nil
}

// admit makes token the highest seen, in one multi with the operation that more
// gives, if any; version is that of the node while it is.
func (g *Storage) admit(ctx context.Context, token lease.Token, more func() (any, error)) (version int32, err error) {
	fail := func(err error) (int32, error) {
		return 0, fmt.Errorf("storage %s: zookeeper: under token %d: %w", g.node, token, err)
	}
	for {
		op, version, err := g.raise(ctx, token)
		if errors.Is(err, fence.ErrStale) {
			return 0, err
		} else if err != nil {
			return fail(err)
		}
		ops := []any{op}
		if more != nil {
			op, err := more()
			if err != nil {
				return fail(err)
			}
			ops = append(ops, op)
		}
		// Also for a fence that changes nothing: only a majority knows whether
		// a higher token has come since the node was read.
		err = g.store.conn.multi(ctx, ops...)
		switch {
		case err == nil:
			return version, nil
		case !conflict(err):
			return fail(err)
		}
		if create, ok := op.(*zk.CreateRequest); ok && errors.Is(err, zk.ErrNoNode) {
			if err := g.store.conn.makeAll(ctx, parent(create.Path), g.store.opts.ACL); err != nil {
				return fail(err)
			}
		}
	}
}

// raise is the operation that lands nothing unless token may, by the rule of
// [fence.Guard], and the node's version after it. What it reads may be old: the
// highest token never falls, and the operation names the version.
func (g *Storage) raise(ctx context.Context, token lease.Token) (op any, version int32, err error) {
	n, err := g.store.conn.get(ctx, g.node)
	missing := errors.Is(err, zk.ErrNoNode)
	if err != nil && !missing {
		return nil, 0, err
	}
	var seen fence.Guard
	if !missing {
		highest, err := strconv.ParseUint(string(n.data), 10, 64)
		if err != nil {
			return nil, 0, fmt.Errorf("the node carries no token: %w", err)
		}
		seen.Highest = lease.Token(highest)
	}
	next, ok := seen.Admit(token)
	data := []byte(strconv.FormatUint(uint64(token), 10))
	switch {
	case !ok:
		return nil, 0, &fence.StaleTokenError{Token: token, Highest: seen.Highest}
	case missing:
		return &zk.CreateRequest{Path: g.node, Data: data, Acl: g.store.opts.ACL}, 0, nil
	case next == seen:
		return &zk.CheckVersionRequest{Path: g.node, Version: n.stat.Version}, n.stat.Version, nil
	}
	return &zk.SetDataRequest{Path: g.node, Data: data, Version: n.stat.Version}, n.stat.Version + 1, nil
}

func (g *Storage) key(key string) string { return g.node + "/key-" + url.PathEscape(key) }

// Check gives the operation that compares a multi of the leader's own with the
// lease itself: it holds while the lease carries token, and fails from the
// moment that the lease is granted anew, released or deleted, with zk.ErrNoNode
// or zk.ErrBadVersion for this operation. It needs no barrier. The error is a
// *[fence.NotCarriedError], or nothing is known.
//
// A multi cannot compare the czxid of a node. But the node of a tenure is named
// as no other ever is, and its version rises with the release.
func (s *Store) Check(ctx context.Context, resource string, token lease.Token) (*zk.CheckVersionRequest, error) {
	seen, err := s.look(ctx, resource)
	switch {
	case err != nil:
		return nil, told("check", resource, err)
	case token == 0 || seen.path == "" || seen.token != token || seen.ended != 0:
		return nil, &fence.NotCarriedError{Resource: resource, Token: token, Latest: seen.token}
	}
	return &zk.CheckVersionRequest{Path: seen.path, Version: 0}, nil
}
