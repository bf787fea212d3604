package nats_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/nats"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// plain is the right store without what it offers beyond the four methods; the
// wrong ones below replace some.
type plain struct {
	lease.Store
	js jetstream.JetStream
}

// homemade is what is found most on the web: a bucket whose TTL is that of the
// lease, Create to acquire and Put to renew, whatever the revision is.
type homemade struct {
	plain
	kv jetstream.KeyValue
}

func (s homemade) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	revision, err := s.kv.Create(ctx, nats.Key(resource), []byte(holder.String()))
	if err == nil {
		return lease.Grant{Resource: resource, Holder: holder, Token: lease.Token(revision), TTL: ttl}, nil
	}
	e, err := s.kv.Get(ctx, nats.Key(resource))
	if err != nil {
		return lease.Grant{}, err
	}
	by, err := lease.ParseHolder(string(e.Value()))
	if err != nil {
		return lease.Grant{}, err
	}
	return lease.Grant{}, &lease.HeldError{Resource: resource, Holder: by, Token: lease.Token(e.Revision()), Remaining: ttl}
}

func (s homemade) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	_, err := s.kv.Put(ctx, nats.Key(resource), []byte(holder.String()))
	return lease.Grant{Resource: resource, Holder: holder, Token: token, TTL: ttl}, err
}

// restless has the revision of the last renewal as the token.
type restless struct{ plain }

func (s restless) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	seen, err := s.Get(ctx, resource)
	if err != nil {
		return lease.Grant{}, err
	}
	g, err := s.Store.Renew(ctx, resource, holder, seen.Token, ttl)
	if err != nil {
		return g, err
	}
	kv, err := s.js.KeyValue(ctx, leases)
	if err != nil {
		return g, err
	}
	e, err := kv.Get(ctx, nats.Key(resource))
	if err != nil {
		return g, err
	}
	g.Token = lease.Token(e.Revision())
	return g, nil
}

// truncating asks for whole seconds, rounded down as the server does with the
// TTLs of messages, and promises the rest.
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
	c := startCluster(t, 1)
	kv, err := connect(t, c.url()).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "homemade", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []struct {
		name, check string
		make        func(plain) lease.Store
	}{
		{"Put renews whatever the revision", "rules/renew-only-by-the-holder", func(p plain) lease.Store { return homemade{p, kv} }},
		{"revision of the last renewal as token", "rules/renew-prolongs", func(p plain) lease.Store { return restless{p} }},
		{"truncated seconds", "ttl/1999ms", func(p plain) lease.Store { return truncating{p} }},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			t.Parallel()
			right := opener(c.url(), nats.Options{})
			open := func(env props.LiveEnv) lease.Store { return wrong.make(plain{right(env), open(env, c.url())}) }
			o := livetest.Options{Options: promises()}
			o.Granularity, o.MinTTL = time.Second, time.Second
			caught(t, livetest.StoreChecks(open, o), wrong.check)
		})
	}
}

func caught(t *testing.T, checks []kit.Check, name string) {
	t.Helper()
	f, err := kit.Convict(checks, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("caught: %v", f)
}

// perKey guards each key with a token of its own, since JetStream compares the
// revision of one key only: a fence bars nothing from the others.
type perKey struct {
	fence.KV
	open func(name string) (fence.KV, error)
}

func (s perKey) Write(ctx context.Context, token lease.Token, key, value string) error {
	kv, err := s.open(fmt.Sprintf("key-%x", key))
	if err != nil {
		return err
	}
	return kv.Write(ctx, token, key, value)
}

func (s perKey) Read(ctx context.Context, key string) (string, bool, error) {
	kv, err := s.open(fmt.Sprintf("key-%x", key))
	if err != nil {
		return "", false, err
	}
	return kv.Read(ctx, key)
}

func TestAWrongStorageIsCaught(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	checks := livetest.StorageChecks(func(env props.LiveEnv) fence.KV {
		js := open(env, c.url())
		storage := func(name string) (fence.KV, error) { return nats.NewStorage(env.Context, js, data, name) }
		all, err := storage("all")
		if err != nil {
			env.Fatal(err)
		}
		return perKey{all, storage}
	}, livetest.StorageOptions{})
	caught(t, checks, "rules/a-fence-bars")
}
