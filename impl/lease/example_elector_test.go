package lease_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// candidate is an elector on a store of its own.
func candidate(observer lease.Observer) (*lease.Memory, *lease.Elector) {
	store, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	if err != nil {
		panic(err)
	}
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: "scheduler", Node: "node-1", Nonce: 1, // no Nonce outside of examples
		Timing:   lease.Config{TTL: 10 * time.Second, SafetyMargin: time.Second, RetryInterval: time.Millisecond},
		Observer: observer,
	})
	if err != nil {
		panic(err)
	}
	return store, elector
}

// An operator hands over: the work stops, the lease is released, and the node
// campaigns again after the others.
func ExampleElector_Resign() {
	_, elector := candidate(nil)
	errDone := errors.New("done")
	err := elector.Run(context.Background(), func(ctx context.Context, term lease.Term) error {
		if term.Token == 2 {
			return errDone
		}
		elector.Resign()
		<-ctx.Done()
		fmt.Println("handed over:", errors.Is(context.Cause(ctx), lease.ErrResigned), term.Valid())
		return nil
	})
	fmt.Println(err)
	// Output:
	// handed over: true false
	// done
}

func ExampleElector_Leader() {
	_, elector := candidate(nil)
	errDone := errors.New("done")
	elector.Run(context.Background(), func(ctx context.Context, term lease.Term) error {
		leader, err := elector.Leader(ctx)
		fmt.Println(leader.Holder, leader.Token, err)
		return errDone
	})
	leader, err := elector.Leader(context.Background())
	fmt.Println(leader.Holder.IsZero(), leader.Token, err)
	// Output:
	// node-1#1.1 1 <nil>
	// true 1 <nil>
}

// A liveness probe: the platform restarts a process whose elector is stuck.
func ExampleElector_Health() {
	_, elector := candidate(nil)
	live := func(w http.ResponseWriter, _ *http.Request) {
		if err := elector.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
	w := httptest.NewRecorder()
	live(w, httptest.NewRequest("GET", "/livez", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 ok
}

func ExampleWedgedError() {
	var err error = &lease.WedgedError{Resource: "db", Late: "a renewal has not been confirmed", Since: 3 * time.Second, For: 5 * time.Second}
	fmt.Println(errors.Is(err, lease.ErrWedged))
	fmt.Println(err)
	// Output:
	// true
	// lease "db": a renewal has not been confirmed for 5s (since 3s on the elector's clock); restart the process if it does not recover
}

// A router follows the leader without being a candidate.
func ExampleLeaders() {
	store, elector := candidate(nil)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error)
	for leader, err := range lease.Leaders(ctx, store, lease.LeadersConfig{Resource: "scheduler"}) {
		switch {
		case err != nil:
			fmt.Println("the store does not say:", err)
		case leader.Holder.IsZero():
			fmt.Println("nobody leads")
			go func() {
				done <- elector.Run(ctx, func(ctx context.Context, _ lease.Term) error {
					<-ctx.Done()
					return nil
				})
			}()
		default:
			fmt.Println(leader.Holder.Node, "leads under token", leader.Token)
			stop()
		}
	}
	<-done
	// Output:
	// nobody leads
	// node-1 leads under token 1
}

// gauge is what a dashboard shows.
type gauge struct{ terms, leading int }

func (g *gauge) Observe(e lease.Event) {
	switch e.Kind {
	case lease.EventTermBegan:
		g.terms++
		g.leading++
	case lease.EventTermEnded:
		g.leading--
	}
}

func ExampleObserver() {
	var g gauge
	_, elector := candidate(&g)
	elector.Run(context.Background(), func(context.Context, lease.Term) error { return errors.New("done") })
	fmt.Printf("%+v\n", g) // Run has returned, so nothing observes any more
	// Output: {terms:1 leading:0}
}

// Work that takes its time to stop keeps the lease from its successor meanwhile.
func ExampleElectorConfig_drain() {
	clk := clock.Monotonic() // clock.Boot() in production
	store, _ := lease.NewMemory(clk, lease.MemoryOptions{})
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: "scheduler", Node: "node-1", Clock: clk,
		Timing: lease.Config{TTL: 15 * time.Second, MaxDriftRate: 0.01, SafetyMargin: time.Second},
		Drain:  time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, shutdown := context.WithCancel(context.Background())
	err = elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		shutdown()
		<-ctx.Done()
		held, _ := store.Get(context.Background(), "scheduler")
		fmt.Println("valid:", term.Valid(), "and held by", held.Holder.Node, "while the last job ends")
		return nil
	})
	held, _ := store.Get(context.Background(), "scheduler")
	fmt.Printf("%v, and held by %q\n", err, held.Holder.Node)
	// Output:
	// valid: false and held by node-1 while the last job ends
	// context canceled, and held by ""
}

// A store that hangs costs a look its time, and the stream goes on.
func ExampleLeadersConfig() {
	cfg := lease.LeadersConfig{Resource: "scheduler", Clock: clock.Monotonic(), Poll: time.Millisecond, Timeout: 2 * time.Millisecond}
	for _, err := range lease.Leaders(context.Background(), hung{}, cfg) {
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
		fmt.Println(err)
		break
	}
	// Output:
	// true
	// lease "scheduler": get: after 2ms: context deadline exceeded: read tcp: context deadline exceeded
}

// hung is a store whose connection hangs.
type hung struct{ lease.Store }

func (hung) Get(ctx context.Context, _ string) (lease.Observation, error) {
	<-ctx.Done()
	return lease.Observation{}, fmt.Errorf("read tcp: %w", context.Cause(ctx))
}
