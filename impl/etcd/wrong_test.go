package etcd_test

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// plain is the right store without what it offers beyond the four methods; the
// wrong ones below replace one of them.
type plain struct {
	lease.Store
	client *clientv3.Client
	key    func(resource string) string
}

// careless deletes the leader key without comparing: one node frees another's
// lease.
type careless struct{ plain }

func (s careless) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	_, err := s.client.Delete(ctx, s.key(resource))
	return err
}

// restless has the mod revision of the leader key as the token, which each
// renewal writes again.
type restless struct{ plain }

func (s restless) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	resp, err := s.client.Get(ctx, s.key(resource))
	if err != nil {
		return lease.Grant{}, err
	}
	if len(resp.Kvs) == 1 && resp.Kvs[0].ModRevision == int64(token) {
		token = lease.Token(resp.Kvs[0].CreateRevision)
	} else {
		token++ // refused
	}
	g, err := s.Store.Renew(ctx, resource, holder, token, ttl)
	if err != nil {
		return g, err
	}
	put, err := s.client.Put(ctx, s.key(resource), holder.String(), clientv3.WithLease(clientv3.LeaseID(resp.Kvs[0].Lease)))
	if err != nil {
		return g, err
	}
	g.Token = lease.Token(put.Header.Revision)
	return g, nil
}

// leaseID has the ID of the etcd lease as the token. Each member of the cluster
// counts its own up, from a number of its own.
type leaseID struct{ plain }

func (s leaseID) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if err != nil {
		return g, err
	}
	resp, err := s.client.Get(ctx, s.key(resource))
	if err != nil {
		return g, err
	}
	if len(resp.Kvs) == 1 {
		g.Token = lease.Token(resp.Kvs[0].Lease)
	}
	return g, nil
}

// truncating asks etcd for whole seconds, rounded down, and promises the rest.
type truncating struct{ plain }

func (s truncating) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, max(ttl.Truncate(time.Second), min(ttl, time.Second)))
	if err == nil {
		g.TTL = ttl
	}
	return g, err
}

// Each wrong store is caught by the check that is about its fault.
func TestWrongStoresAreCaught(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, briskTick, briskElection)
	// Members in the order of falling lease IDs, so that a takeover by the next
	// process gets a lower one.
	first := map[string]clientv3.LeaseID{}
	for _, e := range c.endpoints() {
		l, err := connect(t, e).Grant(t.Context(), 60)
		if err != nil {
			t.Fatal(err)
		}
		first[e] = l.ID
	}
	endpoints := c.endpoints()
	slices.SortFunc(endpoints, func(a, b string) int { return int(min(1, max(-1, first[b]-first[a]))) })

	for _, wrong := range []struct {
		name, check string
		make        func(plain) lease.Store
	}{
		{"deletes without comparing", "rules/release-only-by-the-holder", func(p plain) lease.Store { return careless{p} }},
		{"mod revision as token", "rules/renew-prolongs", func(p plain) lease.Store { return restless{p} }},
		{"lease ID as token", "rules/takeover", func(p plain) lease.Store { return leaseID{p} }},
		{"truncated seconds", "ttl/1999ms", func(p plain) lease.Store { return truncating{p} }},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			t.Parallel()
			var opened int
			open := func(env props.LiveEnv) lease.Store {
				client, err := dial(endpoints[opened%len(endpoints)])
				if err != nil {
					env.Fatal(err)
				}
				opened++
				context.AfterFunc(env.Context, func() { client.Close() })
				s := etcd.New(client, etcd.Options{})
				return wrong.make(plain{s, client, s.LeaderKey})
			}
			checks := livetest.StoreChecks(open, livetest.Options{Options: promises(time.Second)})
			i := slices.IndexFunc(checks, func(c kit.Check) bool { return c.Name == wrong.check })
			if i < 0 {
				t.Fatalf("there is no check %s", wrong.check)
			}
			o := checks[i].Run()
			if o.Failure == nil {
				t.Fatalf("%s did not catch it: %+v", wrong.check, o)
			}
			t.Logf("caught: %v", o.Failure)
		})
	}
}
