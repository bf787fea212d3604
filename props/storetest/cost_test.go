package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// cost is what all checks of a store came to.
type cost struct{ opens, calls int }

func quick(t testing.TB, open script.Open, o kit.Options) (c cost) {
	t.Helper()
	counted := func(e kit.Env) lease.Store {
		c.opens++
		return counting(open(e), &c.calls)
	}
	for _, check := range Checks(counted, o, kit.Effort{Seed: 1}) {
		before := c
		if out := check.Run(); out.Failure != nil || out.Unknown != "" {
			t.Errorf("%s: %+v", check.Name, out)
		}
		t.Logf("%-60s %4d opens %5d calls", check.Name, c.opens-before.opens, c.calls-before.calls)
	}
	return c
}

// A store often takes a hundred times as long to open as to call.
func TestTheQuickModeOpensAStoreAsRarelyAsItCallsItAsOftenAsItSays(t *testing.T) {
	of := []string{"exact", "lock delay", "late, delay", "terse", "rising tokens"}
	if raced {
		of = of[:1]
	}
	for _, name := range of {
		v := variants()[name]
		t.Run(name, func(t *testing.T) {
			c := quick(t, v.open, v.o)
			// The checks of Concurrency end with a round, and those of the rules
			// and odd requests come on top.
			if most := kit.DefaultCalls * 13 / 10; c.calls > most || c.calls < kit.DefaultCalls/2 {
				t.Errorf("%d calls, of %d", c.calls, most)
			}
			if c.opens > 250 {
				t.Errorf("%d opens", c.opens)
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

// slow takes as long as a small database on a disk: to open, and to call.
type slow struct{ lease.Store }

func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

const callTakes = 50 * time.Microsecond

func (s slow) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	spin(callTakes)
	return s.Store.Acquire(ctx, r, h, ttl)
}

func (s slow) Renew(ctx context.Context, r string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	spin(callTakes)
	return s.Store.Renew(ctx, r, h, t, ttl)
}

func (s slow) Release(ctx context.Context, r string, h lease.Holder, t lease.Token) error {
	spin(callTakes)
	return s.Store.Release(ctx, r, h, t)
}

func (s slow) Get(ctx context.Context, r string) (lease.Observation, error) {
	spin(callTakes)
	return s.Store.Get(ctx, r)
}

func BenchmarkQuickModeOfASlowStore(b *testing.B) {
	open := func(e kit.Env) lease.Store {
		spin(5 * time.Millisecond)
		return slow{right(0)(e)}
	}
	for b.Loop() {
		for _, c := range Checks(open, kit.Options{}, kit.Effort{Seed: 1}) {
			if out := c.Run(); out.Failure != nil || out.Unknown != "" {
				b.Fatalf("%s: %+v", c.Name, out)
			}
		}
	}
}
