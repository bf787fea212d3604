package zookeeper_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
)

// guarded are the options of a store below root whose nodes are for those who
// know secret alone.
func (s *server) guarded(root, secret string) zookeeper.Options {
	return zookeeper.Options{
		Servers: []string{s.address},
		Root:    root,
		ACL:     zk.DigestACL(zk.PermAll, "fencepost", secret),
		Auth:    []zookeeper.Auth{{Scheme: "digest", Secret: []byte("fencepost:" + secret)}},
	}
}

func mustOpen(t *testing.T, o zookeeper.Options) *zookeeper.Store {
	t.Helper()
	store, err := zookeeper.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// Each connection shows the credential, and each node asks for it.
func testTheNodesAreForWhoHasTheCredential(t *testing.T, s *server) {
	ctx := t.Context()
	store := mustOpen(t, s.guarded("/guarded", "secret"))
	g, err := store.Acquire(ctx, "r", a, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Renew(ctx, "r", a, g.Token, time.Second); err != nil {
		t.Error(err)
	}
	other := s.guarded("/guarded", "another")
	other.Auth = append(other.Auth, s.guarded("", "secret").Auth...)
	for name, wrong := range map[string]zookeeper.Options{
		"no credential":      {Servers: other.Servers, Root: other.Root},
		"another credential": s.guarded("/guarded", "another"),
	} {
		stranger := mustOpen(t, wrong)
		_, err := stranger.Acquire(ctx, "r", b, time.Second)
		_, err1 := stranger.Get(ctx, "r")
		err2 := stranger.Release(ctx, "r", a, g.Token)
		for _, err := range []error{err, err1, err2} {
			if !errors.Is(err, zk.ErrNoAuth) || lease.Refusal(err) != lease.CodeNone {
				t.Errorf("%s: %v; want %v", name, err, zk.ErrNoAuth)
			}
		}
	}
	// Asked at once, when the connection has just been made.
	for range 20 {
		if o, err := mustOpen(t, other).Get(ctx, "r"); err != nil || o.Holder != a {
			t.Errorf("with both: %+v, %v; want a", o, err)
		}
	}
	conn := s.dial(t)
	if err := conn.AddAuth("digest", []byte("fencepost:secret")); err != nil {
		t.Fatal(err)
	}
	acl, _, err := conn.GetACL("/guarded/lease-r")
	if want := zk.DigestACL(zk.PermAll, "fencepost", "secret"); err != nil || len(acl) != 1 || acl[0] != want[0] {
		t.Errorf("the record has %v, %v; want %v", acl, err, want)
	}
	if err := store.Release(ctx, "r", a, g.Token); err != nil {
		t.Error(err)
	}
}

// cutting breaks at the first packet that shows a credential, if nobody has yet.
type cutting struct {
	net.Conn
	cut *atomic.Bool
}

func (c cutting) Write(p []byte) (int, error) {
	const atOp, auth = 8, 100 // after length and number
	if len(p) > atOp && bytes.HasPrefix(p[atOp:], []byte{0, 0, 0, auth}) && c.cut.CompareAndSwap(false, true) {
		c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

func testACredentialThatWasCutOffIsShownAgain(t *testing.T, s *server) {
	ctx := t.Context()
	if _, err := mustOpen(t, s.guarded("/cut", "secret")).Acquire(ctx, "r", a, time.Second); err != nil {
		t.Fatal(err)
	}
	var cut atomic.Bool
	o := s.guarded("/cut", "secret")
	o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return cutting{conn, &cut}, err
	}
	store := mustOpen(t, o)
	if _, err := store.Watch(ctx, "r"); err != nil {
		t.Error(err)
	}
	for {
		_, err := store.Get(ctx, "r")
		if errors.Is(err, zk.ErrConnectionClosed) {
			continue // it was asked of what was cut
		}
		if err != nil || !cut.Load() {
			t.Errorf("%v, and cut: %v", err, cut.Load())
		}
		return
	}
}

// What connects is Dial, and nothing else: here no server has the address.
func testEachConnectionIsMadeByDial(t *testing.T, s *server) {
	var dials atomic.Int64
	store := mustOpen(t, zookeeper.Options{
		Servers: []string{"zookeeper.invalid:2181"},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" || address != "zookeeper.invalid:2181" {
				t.Errorf("dials %s %s", network, address)
			}
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, s.address)
		},
	})
	g, err := store.Acquire(t.Context(), "dialled", a, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Renew(t.Context(), "dialled", a, g.Token, time.Second); err != nil {
		t.Error(err)
	}
	// One that is shared, one that took the lease up and one that renewed it.
	if n := dials.Load(); n < 3 {
		t.Errorf("dialled %d times; want 3", n)
	}
}
