package redis

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
)

// eventually waits for what another process brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 500 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("after ten seconds it does not hold that %s", what)
}

// What the server refuses to run has not happened, and is told as that.
func TestWhatTheServerRefusesIsNotDone(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	store := open(t, s, Options{})
	for _, c := range []struct {
		name       string
		begin, end func() error
	}{
		{"READONLY",
			func() error { return s.Control.ReplicaOf(ctx, "127.0.0.1", "1").Err() },
			func() error { return s.Control.ReplicaOf(ctx, "NO", "ONE").Err() }},
		{"OOM",
			func() error { return s.Control.ConfigSet(ctx, "maxmemory", "1").Err() },
			func() error { return s.Control.ConfigSet(ctx, "maxmemory", "0").Err() }},
		{"NOREPLICAS",
			func() error { return s.Control.ConfigSet(ctx, "min-replicas-to-write", "1").Err() },
			func() error { return s.Control.ConfigSet(ctx, "min-replicas-to-write", "0").Err() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.begin(); err != nil {
				t.Fatal(err)
			}
			_, err := store.Acquire(ctx, c.name, alice, time.Minute)
			if err2 := c.end(); err2 != nil {
				t.Fatal(err2)
			}
			if !errors.Is(err, ErrNotDone) {
				t.Errorf("%v; expected: nothing was done", err)
			}
			t.Logf("%v", err)
			if got, err := store.Get(ctx, c.name); err != nil || got.Token != 0 || !got.Holder.IsZero() {
				t.Errorf("%+v, %v; expected: nobody ever held it", got, err)
			}
		})
	}
}

// A request that was sent and not answered may have taken effect: the outcome is
// unknown. One that was never sent has none.
func TestATimeoutLeavesTheOutcomeUnknown(t *testing.T) {
	s := server.Start(t, server.Durable...)
	store := open(t, s, Options{})
	if _, err := store.Get(t.Context(), "r"); err != nil { // connects, and loads the script
		t.Fatal(err)
	}
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := store.Acquire(ctx, "r", alice, time.Minute)
	if err2 := s.Signal(syscall.SIGCONT); err2 != nil {
		t.Fatal(err2)
	}
	if err == nil || lease.Refusal(err) != lease.CodeNone || errors.Is(err, ErrNotDone) {
		t.Errorf("%v; expected: the outcome is unknown", err)
	}
	// And indeed: the server took it from its socket when it went on.
	eventually(t, "alice holds it", func() bool {
		got, err := store.Get(t.Context(), "r")
		return err == nil && got.Holder == alice && got.Token == 1
	})
	if _, err := store.Acquire(ctx, "r", bob, time.Minute); !errors.Is(err, ErrNotDone) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that had ended: %v; expected: nothing was done", err)
	}
}

func TestNobodyThereIsNotDone(t *testing.T) {
	rdb := Dial(goredis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	defer rdb.Close()
	store := newStore(rdb, clockLua, time.Microsecond, Options{})
	_, err := store.Acquire(t.Context(), "r", alice, time.Minute)
	if !errors.Is(err, ErrNotDone) {
		t.Errorf("%v; expected: nothing was done", err)
	}
}

// A batch to a server that has lost its scripts is made all the same, and each
// call is answered by itself.
func TestBatchLoadsTheScript(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	store := open(t, s, Options{})
	call := func(resource string, req lease.Request) lease.Call {
		return lease.Call{Resource: resource, Request: req}
	}
	if _, err := store.Acquire(ctx, "held", bob, time.Minute); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Control.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		got := store.Batch(ctx, []lease.Call{
			call("a", lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: time.Minute}),
			call("held", lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: time.Minute}),
			call("b", lease.Request{Op: lease.OpAcquire, TTL: time.Minute}),
			call("c", lease.Request{Op: lease.OpRelease, Holder: alice, Token: 1}),
		})
		want := lease.Grant{Resource: "a", Holder: alice, Token: 1, TTL: time.Minute}
		if got[0].Err != nil || got[0].Grant != want {
			t.Errorf("%+v; expected: %+v", got[0], want)
		}
		for i, code := range []lease.Code{lease.CodeNone, lease.CodeHeld, lease.CodeInvalid, lease.CodeLost} {
			if c := lease.Refusal(got[i].Err); c != code {
				t.Errorf("answer %d: %v; expected: %v", i, got[i].Err, code)
			}
		}
	}
}
