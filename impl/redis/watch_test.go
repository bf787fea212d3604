package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"fencepost/impl/redis/internal/server"
)

// hinted waits for a hint.
func hinted(t *testing.T, hints <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, ok := <-hints:
		if !ok {
			t.Fatalf("the watch has ended; expected a hint of %s", what)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no hint of %s within ten seconds", what)
	}
}

// drained takes hints until none has come for a while.
func drained(hints <-chan struct{}) {
	for {
		select {
		case <-hints:
		case <-time.After(200 * time.Millisecond):
			return
		}
	}
}

// After a connection was lost, whatever was missed is hinted at.
func TestWatchHintsAfterAReconnect(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	store := open(t, s, Options{})
	hints, err := store.Watch(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	hinted(t, hints, "the subscription")
	drained(hints)
	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	hinted(t, hints, "the new subscription")
}

// Renewals are no news, and neither are other leases.
func TestWatchDoesNotHintAtRenewals(t *testing.T) {
	s := server.Start(t, server.Durable...)
	ctx := t.Context()
	store := open(t, s, Options{})
	if _, err := store.Acquire(ctx, "r", alice, time.Minute); err != nil {
		t.Fatal(err)
	}
	hints, err := store.Watch(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	hinted(t, hints, "the subscription")
	drained(hints)
	if _, err := store.Renew(ctx, "r", alice, 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Acquire(ctx, "another", bob, time.Minute); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hints:
		t.Error("a renewal, or another lease, was hinted at")
	case <-time.After(200 * time.Millisecond):
	}
	if err := store.Release(ctx, "r", alice, 1); err != nil {
		t.Fatal(err)
	}
	hinted(t, hints, "the release")
}

// Close ends what is watched, and what is asked for after it.
func TestCloseEndsWatches(t *testing.T) {
	s := server.Start(t, server.Durable...)
	store := open(t, s, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	hints, err := store.Watch(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	for range hints {
	}
	if _, err := store.Watch(ctx, "r"); !errors.Is(err, ErrClosed) {
		t.Errorf("%v; expected: closed", err)
	}
	cancel() // after the end, it is no second one
	store.Close()
}
