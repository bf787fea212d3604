package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// polled hides that a Memory can be watched.
type polled struct{ Store }

func TestLeadersSeesEachChangeByHintOrByPoll(t *testing.T) {
	for name, c := range map[string]struct {
		store func(*Memory) Store
		want  []string
	}{
		// The lapse of bob's tenure, at 24.5s, is no hint.
		"watched": {func(m *Memory) Store { return m }, []string{"0s  0", "1.5s alice#1.a11ce 1", "2.5s  1", "4.5s bob#1.b0b 2", "25s  2"}},
		"polled":  {func(m *Memory) Store { return polled{m} }, []string{"0s  0", "2s alice#1.a11ce 1", "3s  1", "5s bob#1.b0b 2", "25s  2"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			clk := clock.Monotonic()
			m := newMemory(t, clk, MemoryOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			var got []string
			done := make(chan struct{})
			go func() {
				defer close(done)
				for o, err := range Leaders(ctx, c.store(m), LeadersConfig{Resource: "db", Clock: clk}) {
					if err != nil {
						t.Error(err)
					}
					got = append(got, fmt.Sprint(clk.Now(), " ", o.Holder, " ", o.Token))
				}
			}()
			time.Sleep(1500 * ms)
			m.Acquire(ctx, "db", alice, 10*sec)
			time.Sleep(sec)
			m.Release(ctx, "db", alice, 1)
			time.Sleep(2 * sec)
			m.Acquire(ctx, "db", bob, 10*sec)
			time.Sleep(10*sec - 1)
			m.Renew(ctx, "db", bob, 2, 10*sec+1) // no change
			time.Sleep(15 * sec)
			cancel()
			<-done
			if name == "watched" {
				// Looks are a second apart from the last hint at 4.5s on.
				c.want[4] = "24.5s  2"
			}
			diff(t, name, got, c.want)
		})
	}
}

// failing answers the first looks with errors, and hangs in one.
type failing struct {
	Store
	looks *int
}

func (f failing) Get(ctx context.Context, resource string) (Observation, error) {
	switch *f.looks++; *f.looks {
	case 1:
		return Observation{}, errLost
	case 2:
		<-ctx.Done()
		return Observation{}, ctx.Err()
	}
	return f.Store.Get(ctx, resource)
}

func TestLeadersGoesOnAfterErrorsAndEndsWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.Monotonic()
		var errs []error
		for o, err := range Leaders(t.Context(), failing{newMemory(t, clk, MemoryOptions{}), new(int)}, LeadersConfig{Resource: "db", Clock: clk, Poll: sec, Timeout: 4 * sec}) {
			if diff(t, "resource", o.Resource, "db"); err == nil {
				break
			}
			errs = append(errs, err)
		}
		if len(errs) != 2 || !errors.Is(errs[0], errLost) || !errors.Is(errs[1], context.DeadlineExceeded) {
			t.Errorf("errors %v", errs)
		}
		diff(t, "ends at", clk.Now(), 6*sec)
	})
}

func TestALeadersConfigThatMakesNoSenseIsRefused(t *testing.T) {
	store := newMemory(t, clock.NewManual(0), MemoryOptions{})
	for _, c := range []struct {
		store Store
		cfg   LeadersConfig
		field string
	}{
		{nil, LeadersConfig{Resource: "db"}, "store"},
		{store, LeadersConfig{}, "Resource"},
		{store, LeadersConfig{Resource: "db", Poll: -1}, "Poll"},
		{store, LeadersConfig{Resource: "db", Timeout: -1}, "Timeout"},
	} {
		n := 0
		for _, err := range Leaders(t.Context(), c.store, c.cfg) {
			n++
			if e, ok := errors.AsType[*ConfigError](err); !ok || e.Field != c.field {
				t.Errorf("%+v: %v, want an error about %s", c.cfg, err, c.field)
			}
		}
		diff(t, "values", n, 1)
	}
}
