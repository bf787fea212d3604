package zookeeper_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
)

// brief is the TTL of the sessions that are made to end during a call. The
// sessions of other timeouts are left alone.
const brief = 3 * tick

// attempts is how often a test tries what a busy machine may be too slow for.
const attempts = 5

// stalling is a store whose next multi in a session of brief comes too late, or
// has its answer lost, once armed: the session has ended meanwhile.
type stalling struct {
	*zookeeper.Store
	before, after atomic.Bool // whether to stall before the multi is sent, or is answered
	stalls        atomic.Int32
}

func openStalling(t *testing.T, s *server) *stalling {
	t.Helper()
	st := &stalling{}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &stallingConn{Conn: conn, of: st}, err
	}
	store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	st.Store = store
	return st
}

type stallingConn struct {
	net.Conn
	of     *stalling
	writes atomic.Int32 // the lasting connection reads and writes at once
	brief  atomic.Bool
}

func (c *stallingConn) Write(b []byte) (int, error) {
	n := c.writes.Add(1)
	if n == 1 { // length, version, zxid, and then the timeout
		c.brief.Store(binary.BigEndian.Uint32(b[16:]) == uint32(brief.Milliseconds()))
	}
	if n == 2 && c.brief.Load() && c.of.before.Swap(false) {
		c.stall()
	}
	return c.Conn.Write(b)
}

func (c *stallingConn) Read(b []byte) (int, error) {
	if c.writes.Load() == 2 && c.brief.Load() && c.of.after.Swap(false) {
		if _, err := c.Conn.Read(b); err != nil {
			return 0, err
		}
		c.stall()
		return 0, errors.New("the answer is lost")
	}
	return c.Conn.Read(b)
}

// stall lasts until the session is over, whatever the server adds to it.
func (c *stallingConn) stall() {
	c.of.stalls.Add(1)
	time.Sleep(brief + 5*tick)
}

func testAnAttemptWhoseSessionEndedBeforeItIsMadeAgain(t *testing.T, s *server) {
	store, conn := openStalling(t, s), s.dial(t)
	for range 2 { // the lease is new, and then it is not
		store.before.Store(true)
		g := acquire(t, store.Store, "late", a, brief)
		_, _, stat := tenure(t, conn, "late")
		if lease.Token(stat.Czxid) != g.Token {
			t.Errorf("token %d; czxid %d", g.Token, stat.Czxid)
		}
		if err := store.Release(t.Context(), "late", a, g.Token); err != nil && !errors.Is(err, lease.ErrNotHeld) {
			t.Fatal(err)
		}
	}
	if n := store.stalls.Load(); n != 2 {
		t.Errorf("%d attempts were late; want 2: this test shows nothing", n)
	}
}

// Somebody may have seen the tenure, so that another token would explain nothing.
func testAGrantWhoseSessionEndedUntoldIsUnknown(t *testing.T, s *server) {
	store, conn := openStalling(t, s), s.dial(t)
	acquire(t, store.Store, "told", b, time.Minute) // makes the root
	for i := range attempts {
		resource := fmt.Sprintf("untold-%d", i)
		store.after.Store(true)
		g, err := store.Acquire(t.Context(), resource, a, brief)
		if store.stalls.Load() == 0 {
			continue // the session had ended before
		}
		if err == nil || lease.Refusal(err) != lease.CodeNone {
			t.Errorf("granted %+v, or refused: %v", g, err)
		}
		_, _, stat := tenure(t, conn, resource) // it was made
		if next := acquire(t, store.Store, resource, a, time.Minute); next.Token <= lease.Token(stat.Czxid) {
			t.Errorf("token %d after %d", next.Token, stat.Czxid)
		}
		return
	}
	t.Error("no answer was lost: this test shows nothing")
}

func testARenewalWhoseSessionEndedUnderItIsRefused(t *testing.T, s *server) {
	store := openStalling(t, s)
	for range attempts {
		g := acquire(t, store.Store, "stalled", a, brief)
		store.before.Store(true)
		_, err := store.Renew(t.Context(), "stalled", a, g.Token, brief)
		if lapsed, ok := errors.AsType[*lease.LapsedError](err); !ok || lapsed.Token != g.Token {
			t.Fatalf("renewed, or %v", err)
		}
		if !store.before.Swap(false) {
			return
		}
	}
	t.Error("no renewal was late: this test shows nothing")
}
