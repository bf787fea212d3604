package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// What is commonly done wrong on ZooKeeper is convicted by the check that is
// named here.
func testLiveChecksCatchWrongStores(t *testing.T, s *server) {
	conn := s.dial(t)
	for _, test := range []struct {
		name  string
		wrong func(*zookeeper.Store) lease.Store
		check string
	}{
		{"pings keep a lease that nobody renews", func(s *zookeeper.Store) lease.Store { return newPinging(s) }, "rules/lapse"},
		{"a release deletes whatever is there", func(s *zookeeper.Store) lease.Store { return careless{s} }, "rules/release-only-by-the-holder"},
		{"a sequence number is the token, and its parent is cleaned up", func(store *zookeeper.Store) lease.Store { return counting{store, conn} }, "rules/next-token"},
		{"the server grants a shorter timeout, and nobody looks", func(s *zookeeper.Store) lease.Store { return capped{s} }, "ttl/1999ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := s.promises()
			o.Restart, o.NoRestart = nil, "another check is meant to convict"
			open := func(env props.LiveEnv) lease.Store { return test.wrong(s.open(t)) }
			f, err := kit.Convict(livetest.StoreChecks(open, o), test.check)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("caught: %v", f)
		})
	}
}

// pinging renews by itself, for as long as the process lives.
type pinging struct {
	*zookeeper.Store
	ctx   context.Context
	end   context.CancelFunc
	pings sync.WaitGroup
}

func newPinging(s *zookeeper.Store) *pinging {
	p := &pinging{Store: s}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

func (p *pinging) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := p.Store.Acquire(ctx, resource, holder, ttl)
	if err == nil {
		p.pings.Go(func() {
			for ; err == nil; _, err = p.Store.Renew(p.ctx, resource, holder, g.Token, ttl) {
				select {
				case <-time.After(ttl / 3):
				case <-p.ctx.Done():
					return
				}
			}
		})
		return g, nil
	}
	return g, err
}

func (p *pinging) Close() {
	p.end()
	p.pings.Wait()
	p.Store.Close()
}

// careless deletes without looking at the holder or the version.
type careless struct{ *zookeeper.Store }

func (c careless) Release(ctx context.Context, resource string, _ lease.Holder, token lease.Token) error {
	if token == 0 {
		return &lease.InvalidError{Resource: resource, Op: lease.OpRelease}
	}
	return c.Store.Delete(ctx, resource)
}

// capped is what a lease is where maxSessionTimeout is the least that there is.
type capped struct{ *zookeeper.Store }

func (c capped) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := c.Store.Acquire(ctx, resource, holder, min(ttl, 2*tick))
	g.TTL = ttl
	return g, err
}

// counting has the number of a sequential node for a token, in a parent that is
// removed with its last child, as a container is.
type counting struct {
	*zookeeper.Store
	conn *zk.Conn
}

func (c counting) parent(resource string) string { return "/counting-" + resource }

func (c counting) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := c.Store.Acquire(ctx, resource, holder, ttl)
	if err != nil {
		return g, err
	}
	acl := zk.WorldACL(zk.PermAll)
	if _, err := c.conn.Create(c.parent(resource), nil, 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return lease.Grant{}, err
	}
	path, err := c.conn.Create(c.parent(resource)+"/", []byte(strconv.FormatUint(uint64(g.Token), 10)), zk.FlagSequence, acl)
	if err != nil {
		return lease.Grant{}, err
	}
	n, err := strconv.ParseUint(path[len(path)-10:], 10, 64)
	g.Token = lease.Token(n + 1)
	return g, err
}

func (c counting) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	path := fmt.Sprintf("%s/%010d", c.parent(resource), token-1)
	data, _, err := c.conn.Get(path)
	if err != nil {
		return &lease.LostError{Resource: resource, Holder: holder, Token: token}
	}
	real, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		return err
	}
	if err := c.Store.Release(ctx, resource, holder, lease.Token(real)); err != nil {
		return err
	}
	if err := c.conn.Delete(path, -1); err != nil {
		return err
	}
	return c.conn.Delete(c.parent(resource), -1)
}

var _ kit.Deleter = (*zookeeper.Store)(nil)
