package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fencepost/impl/clock"
)

// Real goroutines in real time, half a second of it, for the race detector: they
// campaign, hand over, are watched, asked and lost, all at once. Whatever the
// scheduler does, a token is led under once, an elector leads once at a time, and
// no context ends before belief.
func TestElectorsWithEverybodyAtThemAtOnce(t *testing.T) {
	clk := clock.Monotonic()
	m := newMemory(t, clk, MemoryOptions{})
	cfg := Config{TTL: 100 * ms, MaxDriftRate: 0.01, SafetyMargin: 10 * ms, RetryInterval: 2 * ms}
	ctx, cancel := context.WithTimeout(t.Context(), 500*ms)
	defer cancel()
	var led sync.Map
	var terms atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		var store Store = m
		if i%2 == 1 {
			store = polled{m}
		}
		e, err := NewElector(store, ElectorConfig{
			Resource: "db", Node: fmt.Sprint("node-", i), Timing: cfg, Clock: clk, Nonce: uint64(i + 1), Drain: 5 * ms,
			Logger: slog.New(slog.DiscardHandler), Observer: observerFn(func(Event) {}),
		})
		if err != nil {
			t.Fatal(err)
		}
		var here atomic.Int32
		all.Go(func() {
			e.Run(ctx, func(ctx context.Context, term Term) error {
				terms.Add(1)
				if _, twice := led.LoadOrStore(term.Token, true); twice || here.Add(1) != 1 {
					t.Errorf("%v under token %d: twice, or beside itself", term.Holder, term.Token)
				}
				defer here.Add(-1)
				if term.Token%3 == 0 {
					return nil
				}
				<-ctx.Done()
				if term.Valid() {
					t.Errorf("%v under token %d: valid after its context", term.Holder, term.Token)
				}
				return nil
			})
		})
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(ms)
				e.Health()
				e.Leader(ctx)
				if e.IsLeader() && n%3 == 0 {
					e.Resign()
				}
			}
		})
	}
	all.Go(func() {
		last := Token(0)
		for o, err := range Leaders(ctx, m, LeadersConfig{Resource: "db", Clock: clk, Poll: 5 * ms}) {
			if err != nil || o.Token < last {
				t.Errorf("token %d after %d: %v", o.Token, last, err)
			}
			last = o.Token
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(20 * ms)
			m.Delete(ctx, "db")
		}
	})
	all.Wait()
	if terms.Load() < 3 {
		t.Errorf("%d terms", terms.Load())
	}
}
