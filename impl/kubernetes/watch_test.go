package kubernetes_test

import (
	"context"
	"testing"
	"time"

	"fencepost/impl/kubernetes"
)

// A watch outlasts the server, and hints at what may have been missed.
func TestWatchOutlastsARestart(t *testing.T) {
	s := startServer(t)
	store := mustStore(t, s.leases(t, "default"), kubernetes.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	hints, err := store.Watch(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	hinted := func(by string) {
		t.Helper()
		select {
		case _, ok := <-hints:
			if !ok {
				t.Fatalf("%s: the watch has ended", by)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s gave no hint", by)
		}
	}
	g, err := store.Acquire(t.Context(), "r", holder("a"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	hinted("a creation")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	hinted("a restart")
	// What the new watch begins with may be one more, and is taken here.
	select {
	case <-hints:
	case <-time.After(time.Second):
	}
	if err := store.Release(t.Context(), "r", holder("a"), g.Token); err != nil {
		t.Fatal(err)
	}
	hinted("a release")
	cancel()
	for range hints { // closed, or the test hangs
	}
}
