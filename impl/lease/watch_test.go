package lease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"fencepost/impl/clock"
)

// hinted reports whether a hint waits, and takes it.
func hinted(t *testing.T, hints <-chan struct{}) bool {
	t.Helper()
	select {
	case _, open := <-hints:
		if !open {
			t.Fatal("the channel is closed")
		}
		return true
	default:
		return false
	}
}

func TestMemoryHintsAtEachChangeOfHolderAndAtNoRenewal(t *testing.T) {
	clk := clock.NewManual(0)
	m := newMemory(t, clk, MemoryOptions{})
	hints, err := m.Watch(t.Context(), "db")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"a grant", func() { ask(t.Context(), m, "db", acquire(alice, 10*sec)) }, true},
		{"a retry", func() { ask(t.Context(), m, "db", acquire(alice, 10*sec)) }, false},
		{"a renewal", func() { ask(t.Context(), m, "db", renew(alice, 1, 20*sec)) }, false},
		{"a refusal", func() { ask(t.Context(), m, "db", acquire(bob, 10*sec)) }, false},
		{"a release", func() { ask(t.Context(), m, "db", release(alice, 1)) }, true},
		{"another resource", func() { ask(t.Context(), m, "other", acquire(alice, 10*sec)) }, false},
		{"the next grant", func() { ask(t.Context(), m, "db", acquire(bob, 10*sec)) }, true},
		{"a lapse nobody knows of", func() { clk.Advance(20 * sec) }, false},
		{"a lapse that is told", func() { ask(t.Context(), m, "db", Request{Op: OpGet}) }, true},
		{"a grant after the lapse", func() { ask(t.Context(), m, "db", acquire(bob, 10*sec)) }, true},
		{"a deletion", func() { m.Delete(t.Context(), "db") }, true},
		{"a deletion of nothing", func() { m.Delete(t.Context(), "db") }, false},
		{"two changes come as one", func() {
			ask(t.Context(), m, "db", acquire(bob, 10*sec))
			ask(t.Context(), m, "db", release(bob, 4))
		}, true},
		{"and no more", func() {}, false},
	} {
		c.do()
		if got := hinted(t, hints); got != c.want {
			t.Errorf("%s: hinted %t, want %t", c.name, got, c.want)
		}
	}
}

func TestMemoryHintsOnlyAtWhatIsDurable(t *testing.T) {
	journal := &mapJournal{}
	m := newMemory(t, clock.NewManual(0), MemoryOptions{Journal: journal})
	hints, _ := m.Watch(t.Context(), "db")
	journal.fail = errors.New("disk full")
	ask(t.Context(), m, "db", acquire(alice, 10*sec))
	if hinted(t, hints) {
		t.Error("hinted at a grant that was not made")
	}
	journal.fail = nil
	ask(t.Context(), m, "db", acquire(alice, 10*sec))
	if !hinted(t, hints) {
		t.Error("no hint at the grant that was")
	}
}

func TestMemoryEndsAWatchWithItsContextAndLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, clock.NewManual(0), MemoryOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		ended, err := m.Watch(ctx, "db")
		if err != nil {
			t.Fatal(err)
		}
		other, _ := m.Watch(t.Context(), "db")
		cancel()
		synctest.Wait()
		if _, open := <-ended; open {
			t.Error("a value came, want the channel closed")
		}
		ask(t.Context(), m, "db", acquire(alice, 10*sec))
		if !hinted(t, other) {
			t.Error("the other watch ended too")
		}
		if n := len(m.watchers.byResource["db"]); n != 1 {
			t.Errorf("%d watches are left, want 1", n)
		}
		if _, err := m.Watch(ctx, "db"); !errors.Is(err, context.Canceled) {
			t.Errorf("watching under a context that has ended: %v", err)
		}
	})
}

func TestMemoryWatchesWhileItChanges(t *testing.T) {
	m := newMemory(t, clock.NewManual(0), MemoryOptions{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				hints, err := m.Watch(ctx, "db")
				if err != nil {
					t.Error(err)
				}
				ask(t.Context(), m, "db", acquire(alice, 10*sec))
				m.Delete(t.Context(), "db")
				cancel()
				for range hints {
				}
			}
		})
	}
	wg.Wait()
	if n := len(m.watchers.byResource); n != 0 {
		t.Errorf("%d resources are still watched, want none", n)
	}
}
