package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// A store often takes a hundred times as long to open as to call, and to restart
// it is to open it.
func TestTheQuickModeOpensAStoreRarelyAndCallsItAsOftenAsItSays(t *testing.T) {
	of := []string{"exact", "lock delay", "late, delay", "terse", "rising tokens"}
	if raced {
		of = of[:1]
	}
	for _, name := range of {
		v := variants()[name]
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			opens, races := 0, int64(0)
			open := func(e kit.Env) lease.Store {
				opens++
				return costs(v.open(e), &calls, 0)
			}
			for _, check := range Checks(open, v.o, kit.Effort{Seed: 1}) {
				o, c := opens, calls.Load()
				if out := check.Run(); out.Failure != nil || out.Unknown != "" {
					t.Errorf("%s: %+v", check.Name, out)
				}
				t.Logf("%-60s %4d opens %5d calls", check.Name, opens-o, calls.Load()-c)
				if strings.HasPrefix(check.Name, "concurrency/") {
					races += calls.Load() - c
				}
			}
			t.Logf("%d opens, %d calls", opens, calls.Load())
			// The rules and odd requests come on top. So do races, for some
			// milliseconds, where calls are as cheap as here.
			if n := calls.Load() - races; n > kit.DefaultCalls*11/10 || n < kit.DefaultCalls/2 {
				t.Errorf("%d calls, and the options say %d", n, kit.DefaultCalls)
			}
			if opens > 250 {
				t.Errorf("%d opens", opens)
			}
		})
	}
}

// crowded is right as long as there are few leases on it: with more, whoever
// asks gets what another holds.
type crowded struct {
	*lease.Memory
	seen map[string]bool
}

func (s crowded) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.seen[r] = true
	g, err := s.Memory.Acquire(ctx, r, h, ttl)
	var held *lease.HeldError
	if errors.As(err, &held) && len(s.seen) > 5 {
		if err := s.Memory.Delete(ctx, r); err != nil {
			return g, err
		}
		return s.Memory.Acquire(ctx, r, h, ttl)
	}
	return g, err
}

func TestWhatTakesOtherLeasesIsToldSo(t *testing.T) {
	open := func(e kit.Env) lease.Store { return crowded{right(0)(e), map[string]bool{}} }
	failing := 0
	for _, c := range slices.Concat(Lockstep(open, kit.Options{}, kit.Effort{Seed: 1}), []kit.Check{Exploration(open, kit.Options{}, kit.Effort{Seed: 1})}, Random(open, kit.Options{}, kit.Effort{Seed: 1})) {
		out := c.Run()
		f := out.Failure
		if f == nil {
			if !strings.HasPrefix(out.Skipped, "not reached: ") {
				t.Errorf("%s: %+v", c.Name, out)
			}
			continue
		}
		failing++
		text := f.Text(nil, "")
		for _, want := range []string{"on a fresh one the same steps break no rule", "(on a store ", "◄"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: it does not say %q:\n%s", c.Name, want, text)
			}
		}
		if f.File != nil {
			t.Errorf("%s: a file that does not replay", c.Name)
		}
		if again := c.Run().Failure; again == nil || again.Text(nil, "") != text {
			t.Errorf("%s: not the same twice", c.Name)
		}
		t.Logf("%s\n%s", c.Name, text)
	}
	if failing != 3 { // one of each kind
		t.Errorf("%d checks fail", failing)
	}
	// A script by itself is all right, and so are all that ask one thing of one
	// lease.
	for _, c := range Rules(open, kit.Options{}) {
		if out := c.Run(); out.Failure != nil {
			t.Errorf("%s: %+v", c.Name, out)
		}
	}
}

// costly counts the calls of a store, which take a while.
type costly struct {
	lease.Store
	calls *atomic.Int64
	takes time.Duration
}

// deleting is a costly store whose leases can be deleted.
type deleting struct {
	costly
	del kit.Deleter
}

func costs(s lease.Store, calls *atomic.Int64, takes time.Duration) lease.Store {
	c := costly{s, calls, takes}
	if del, ok := s.(kit.Deleter); ok {
		return deleting{c, del}
	}
	return c
}

// call waits without giving way to others: a machine that sleeps is slow to wake.
func (s costly) call() {
	s.calls.Add(1)
	spin(s.takes)
}

func spin(d time.Duration) {
	for began := time.Now(); d > 0 && time.Since(began) < d; {
	}
}

func (s costly) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.call()
	return s.Store.Acquire(ctx, r, h, ttl)
}

func (s costly) Renew(ctx context.Context, r string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	s.call()
	return s.Store.Renew(ctx, r, h, t, ttl)
}

func (s costly) Release(ctx context.Context, r string, h lease.Holder, t lease.Token) error {
	s.call()
	return s.Store.Release(ctx, r, h, t)
}

func (s costly) Get(ctx context.Context, r string) (lease.Observation, error) {
	s.call()
	return s.Store.Get(ctx, r)
}

func (s deleting) Delete(ctx context.Context, r string) error {
	s.call()
	return s.del.Delete(ctx, r)
}

// What takes as long as a small database on a disk.
func BenchmarkQuickModeOfASlowStore(b *testing.B) {
	var calls atomic.Int64
	opens := 0
	open := func(e kit.Env) lease.Store {
		opens++
		spin(5 * time.Millisecond)
		return costs(right(0)(e), &calls, 50*time.Microsecond)
	}
	for b.Loop() {
		for _, c := range Checks(open, kit.Options{}, kit.Effort{Seed: 1}) {
			if out := c.Run(); out.Failure != nil || out.Unknown != "" {
				b.Fatalf("%s: %+v", c.Name, out)
			}
		}
	}
	b.ReportMetric(float64(opens)/float64(b.N), "opens/op")
	b.ReportMetric(float64(calls.Load())/float64(b.N), "calls/op")
}
