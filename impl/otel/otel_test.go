package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/impl/otel"
)

// recorded is what an observer made of events, one line an instrument and set
// of attributes: sums, and of histograms how many and their sum.
func recorded(t *testing.T, opts otel.Options, events ...lease.Event) []string {
	t.Helper()
	reader := sdk.NewManualReader()
	o, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter(otel.Scope), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		o.Observe(e)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	say := func(m metricdata.Metrics, set attribute.Set, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%s[%s] %s %s", strings.TrimPrefix(m.Name, "fencepost.lease."), set.Encoded(attribute.DefaultEncoder()), fmt.Sprintf(format, args...), m.Unit))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					say(m, p.Attributes, "%d", p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					say(m, p.Attributes, "%d of %v", p.Count, p.Sum)
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestEachEventIsCountedAsWhatItIs(t *testing.T) {
	events := []lease.Event{
		{Kind: lease.EventCall, Resource: "db", Op: lease.OpAcquire, Latency: 250 * time.Millisecond, Err: &lease.HeldError{}},
		{Kind: lease.EventCall, Resource: "db", Op: lease.OpAcquire, Latency: 500 * time.Millisecond},
		{Kind: lease.EventCall, Resource: "db", Op: lease.OpRenew, Latency: time.Second, Err: context.DeadlineExceeded},
		{Kind: lease.EventCall, Resource: "db", Op: lease.OpFence, Latency: 2 * time.Second, Err: fmt.Errorf("disk: %w", lease.ErrStale)},
		{Kind: lease.EventGranted, Resource: "db"},
		{Kind: lease.EventTermBegan, Resource: "db"},
		{Kind: lease.EventRenewed, Resource: "db", Margin: 3 * time.Second},
		{Kind: lease.EventRenewed, Resource: "db", Margin: 5 * time.Second},
		{Kind: lease.EventTermBegan, Resource: "web"},
		{Kind: lease.EventTermEnded, Resource: "db", Err: fmt.Errorf("it: %w", lease.ErrLapsed)},
		{Kind: lease.EventWorkStopped, Resource: "db"},
	}
	want := []string{
		"call.duration[op=acquire,outcome=ok,resource=db] 1 of 0.5 s",
		"call.duration[op=acquire,outcome=refused,resource=db] 1 of 0.25 s",
		"call.duration[op=fence,outcome=stale,resource=db] 1 of 2 s",
		"call.duration[op=renew,outcome=unknown,resource=db] 1 of 1 s",
		"is_leader[resource=db] 0 {term}",
		"is_leader[resource=web] 1 {term}",
		"renewal.margin[resource=db] 2 of 8 s",
		"transitions[cause=lapsed,resource=db,to=follower] 1 {transition}",
		"transitions[resource=db,to=leader] 1 {transition}",
		"transitions[resource=web,to=leader] 1 {transition}",
	}
	if got := recorded(t, otel.Options{}, events...); !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got, want := recorded(t, otel.Options{NoResource: true}, events...)[4], "is_leader[] 1 {term}"; got != want {
		t.Errorf("without resources: %q, want %q", got, want)
	}
}

func TestWhyATermEndedIsTold(t *testing.T) {
	for err, want := range map[error]string{
		lease.ErrLapsed: "lapsed", lease.ErrRefused: "refused", lease.ErrBarrier: "barrier", lease.ErrResigned: "resigned",
		context.Canceled: "stopped", errors.New("deployed anew"): "stopped",
	} {
		got := recorded(t, otel.Options{NoResource: true}, lease.Event{Kind: lease.EventTermEnded, Err: err})
		if line := "transitions[cause=" + want + ",to=follower] 1 {transition}"; !slices.Contains(got, line) {
			t.Errorf("%v: %q, want %q", err, got, line)
		}
	}
}

type observerFunc func(lease.Event)

func (f observerFunc) Observe(e lease.Event) { f(e) }

func ExampleNew() {
	reader := sdk.NewManualReader() // an exporter in production
	observer, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter(otel.Scope), otel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, _ := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	began := make(chan struct{}) // lead does not wait for the observer: here it has to
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: "db", Node: "alice", Timing: lease.Config{TTL: time.Minute},
		Observer: observerFunc(func(e lease.Event) {
			observer.Observe(e)
			if e.Kind == lease.EventTermBegan {
				close(began)
			}
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := errors.New("done")
	elector.Run(context.Background(), func(context.Context, lease.Term) error {
		<-began
		var all metricdata.ResourceMetrics
		reader.Collect(context.Background(), &all)
		for _, m := range all.ScopeMetrics[0].Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "fencepost.lease.is_leader" {
				fmt.Println(m.Name, sum.DataPoints[0].Value)
			}
		}
		return done
	})
	// Output:
	// fencepost.lease.is_leader 1
}
