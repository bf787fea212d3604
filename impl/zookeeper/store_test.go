package zookeeper_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
)

var (
	a = lease.Holder{Node: "a", Seq: 1, Nonce: 1}
	b = lease.Holder{Node: "b", Seq: 1, Nonce: 2}
)

func acquire(t *testing.T, s *zookeeper.Store, resource string, h lease.Holder, ttl time.Duration) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), resource, h, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tenure finds the node of the latest tenure, and its pulses, as an operator would.
func tenure(t *testing.T, conn *zk.Conn, resource string) (path string, pulses []string, stat *zk.Stat) {
	t.Helper()
	record := "/fencepost/lease-" + resource
	names, _, err := conn.Children(record)
	if err != nil || len(names) != 1 {
		t.Fatalf("below %s: %q, %v", record, names, err)
	}
	path = record + "/" + names[0]
	pulses, stat, err = conn.Children(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, pulses, stat
}

func testTheTokenIsTheCzxidOfTheTenure(t *testing.T, s *server) {
	store, conn := s.open(t), s.dial(t)
	last := lease.Token(0)
	for range 3 {
		g := acquire(t, store, "czxid", a, time.Minute)
		if _, err := store.Renew(t.Context(), "czxid", a, g.Token, time.Minute); err != nil {
			t.Fatal(err)
		}
		_, _, stat := tenure(t, conn, "czxid")
		if lease.Token(stat.Czxid) != g.Token || g.Token <= last {
			t.Errorf("token %d after %d; czxid %d", g.Token, last, stat.Czxid)
		}
		if err := store.Release(t.Context(), "czxid", a, g.Token); err != nil {
			t.Fatal(err)
		}
		last = g.Token
	}
}

// An operator may delete all of a lease, or part: it is free, and the next token
// is higher.
func testADeletionFreesTheLeaseAndKeepsTheCount(t *testing.T, s *server) {
	store, conn := s.open(t), s.dial(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	last := acquire(t, store, "deleted", a, time.Minute)
	for _, test := range []struct {
		name   string
		depth  int // how much is left: of record, tenure and pulse
		lapsed bool
	}{{"the pulse", 2, true}, {"the tenure", 1, false}, {"all", 0, false}} {
		tenure, pulses, _ := tenure(t, conn, "deleted")
		must(conn.Delete(tenure+"/"+pulses[0], -1))
		if test.depth < 2 {
			must(conn.Delete(tenure, -1))
		}
		if test.depth < 1 {
			must(conn.Delete(path.Dir(tenure), -1))
		}
		if o, err := store.Get(t.Context(), "deleted"); !o.Holder.IsZero() || err != nil {
			t.Errorf("%s deleted: held by %v, %v", test.name, o.Holder, err)
		}
		_, err := store.Renew(t.Context(), "deleted", a, last.Token, time.Minute)
		if _, lapsed := errors.AsType[*lease.LapsedError](err); !errors.Is(err, lease.ErrNotHeld) || lapsed != test.lapsed {
			t.Errorf("%s deleted: renew: %v", test.name, err)
		}
		next := acquire(t, store, "deleted", a, time.Minute)
		if next.Token <= last.Token {
			t.Errorf("%s deleted: token %d after %d", test.name, next.Token, last.Token)
		}
		last = next
	}
}

func testALapseIsToldFromALoss(t *testing.T, s *server) {
	store := s.open(t)
	hints, err := store.Watch(t.Context(), "lapsed")
	if err != nil {
		t.Fatal(err)
	}
	g := acquire(t, store, "lapsed", a, 4*tick)
	for o := (lease.Observation{Holder: a}); !o.Holder.IsZero(); {
		<-hints // of the grant, then of the lapse, though nobody asks meanwhile
		if o, err = store.Get(t.Context(), "lapsed"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		_, err = store.Renew(t.Context(), "lapsed", a, g.Token, time.Second)
		if lapsed, ok := errors.AsType[*lease.LapsedError](err); !ok || lapsed.Token != g.Token {
			t.Errorf("after the lapse: %v", err)
		}
	}
	next := acquire(t, store, "lapsed", b, time.Minute)
	_, err = store.Renew(t.Context(), "lapsed", a, g.Token, time.Second)
	if lost, ok := errors.AsType[*lease.LostError](err); !ok || lost.Current != b || lost.Latest != next.Token {
		t.Errorf("after the next grant: %v", err)
	}
}

// A renewal with another TTL is a pulse more, and the longest counts.
func testARenewalWithAnotherTTLNeverShortens(t *testing.T, s *server) {
	store, conn := s.open(t), s.dial(t)
	g := acquire(t, store, "prolonged", a, 10*time.Second)
	for _, ttl := range []time.Duration{time.Minute, 10 * time.Second, 10 * time.Second} {
		if renewed, err := store.Renew(t.Context(), "prolonged", a, g.Token, ttl); err != nil || renewed.Token != g.Token {
			t.Fatal(renewed, err)
		}
	}
	_, pulses, _ := tenure(t, conn, "prolonged")
	long := 0
	for _, p := range pulses {
		if strings.HasPrefix(p, "pulse-60000-") {
			long++
		}
	}
	if long != 1 || len(pulses) != 3 {
		t.Errorf("pulses: %q; want the first, that of a minute, and that of the last TTL", pulses)
	}
	if err := store.Release(t.Context(), "prolonged", a, g.Token); err != nil {
		t.Fatal(err)
	}
	acquire(t, store, "prolonged", b, 10*time.Second)
}

func testATTLThatNoSessionCanLastIsInvalid(t *testing.T, s *server) {
	store := s.open(t)
	g := acquire(t, store, "too-long-x", a, time.Minute)
	for _, ttl := range []time.Duration{2*time.Minute + 1, 1 << 62} {
		if _, err := store.Acquire(t.Context(), "too-long-y", a, ttl); lease.Refusal(err) != lease.CodeInvalid {
			t.Errorf("acquire for %v: %v", ttl, err)
		}
		if _, err := store.Renew(t.Context(), "too-long-x", a, g.Token, ttl); lease.Refusal(err) != lease.CodeInvalid {
			t.Errorf("renew for %v: %v", ttl, err)
		}
	}
	acquire(t, store, "too-long-y", b, 2*time.Minute)
}

func testAnyTextNamesAResource(t *testing.T, s *server) {
	store := s.open(t)
	tokens := map[lease.Token]string{}
	for _, resource := range []string{"", ".", "..", "a/b", "a%2Fb", "/", "\x00", "\xff", "é", "a b", "zookeeper"} {
		g := acquire(t, store, resource, a, time.Minute)
		if other, ok := tokens[g.Token]; ok {
			t.Errorf("%q and %q are one lease", resource, other)
		}
		tokens[g.Token] = resource
		if err := store.Release(t.Context(), resource, a, g.Token); err != nil {
			t.Errorf("%q: %v", resource, err)
		}
	}
}

// A server that hangs holds up neither a call beyond its context nor the end of
// the store: see also TestCloseIsBoundedWhateverTheServerDoes.
func testCallsAndCloseEndWhileTheServerHangs(t *testing.T, s *server) {
	store := s.open(t)
	g := acquire(t, store, "hanging", a, time.Minute)
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer s.Signal(syscall.SIGCONT)
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, errAcquire := store.Acquire(ctx, "hanging-too", a, time.Minute)
	_, errRenew := store.Renew(ctx, "hanging", a, g.Token, time.Minute)
	errRelease := store.Release(ctx, "hanging", a, g.Token)
	_, errGet := store.Get(ctx, "hanging")
	for _, err := range []error{errAcquire, errRenew, errRelease, errGet} {
		if !errors.Is(err, context.DeadlineExceeded) || lease.Refusal(err) != lease.CodeNone {
			t.Errorf("a call: %v", err)
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the calls took %v", took)
	}
	start = time.Now()
	store.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	if _, err := store.Get(t.Context(), "hanging"); err == nil {
		t.Error("a closed store answers")
	}
	if _, err := store.Watch(t.Context(), "hanging"); err == nil {
		t.Error("a closed store watches")
	}
}

func testClosingTheStoreEndsNoTenure(t *testing.T, s *server) {
	one, two := s.open(t), s.open(t)
	hints, err := one.Watch(t.Context(), "closed")
	if err != nil {
		t.Fatal(err)
	}
	g := acquire(t, one, "closed", a, time.Minute)
	one.Close()
	for range hints { // it is closed
	}
	if o, err := two.Get(t.Context(), "closed"); o.Holder != a || err != nil {
		t.Errorf("held by %v, %v", o.Holder, err)
	}
	if _, err := two.Renew(t.Context(), "closed", a, g.Token, time.Minute); err != nil {
		t.Error(err)
	}
}
