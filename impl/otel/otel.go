// Package otel makes OpenTelemetry metrics of what happens to the candidates for
// leases.
//
// It must not know how a lease is kept: it is told of events, as any
// [lease.Observer], and counts them. Start at [New].
package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"fencepost/impl/lease"
)

// Scope is the name for the meter that [New] is given.
const Scope = "fencepost/impl/otel"

// Observer records, with the attributes in brackets:
//
//	fencepost.lease.is_leader        1 while a term runs, else 0 [resource]
//	fencepost.lease.transitions      terms that began and ended [resource, to: leader or follower;
//	                                 cause of an end: lapsed, refused, resigned, barrier, stopped]
//	fencepost.lease.call.duration    seconds from request to answer [resource, op;
//	                                 outcome: ok, refused, stale or unknown]
//	fencepost.lease.renewal.margin   seconds that were left of the term when a renewal was
//	                                 confirmed [resource]: near 0 there is trouble ahead
//
// What a Group drops where it is told too slowly is not counted.
type Observer struct {
	opts        Options
	leader      metric.Int64UpDownCounter
	transitions metric.Int64Counter
	calls       metric.Float64Histogram
	margin      metric.Float64Histogram
}

var _ lease.Observer = (*Observer)(nil)

// Options are what an [Observer] may be told.
type Options struct {
	// NoResource leaves the resource out of the attributes, for whoever has
	// thousands of leases: fencepost.lease.is_leader is then how many terms run.
	NoResource bool
}

// bounds are those of the histograms, in seconds: calls take milliseconds and
// margins are part of a TTL.
var bounds = metric.WithExplicitBucketBoundaries(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

// New is an observer that records with meter. The error is the meter's.
func New(meter metric.Meter, opts Options) (*Observer, error) {
	o := &Observer{opts: opts}
	var errs [4]error
	o.leader, errs[0] = meter.Int64UpDownCounter("fencepost.lease.is_leader",
		metric.WithUnit("{term}"), metric.WithDescription("Terms that run: 1 where this candidate leads, else 0."))
	o.transitions, errs[1] = meter.Int64Counter("fencepost.lease.transitions",
		metric.WithUnit("{transition}"), metric.WithDescription("Terms that began or ended."))
	o.calls, errs[2] = meter.Float64Histogram("fencepost.lease.call.duration",
		metric.WithUnit("s"), metric.WithDescription("From the sending of a request to its answer, or to when it was given up."), bounds)
	o.margin, errs[3] = meter.Float64Histogram("fencepost.lease.renewal.margin",
		metric.WithUnit("s"), metric.WithDescription("What was left of the term when a renewal was confirmed."), bounds)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return o, nil
}

// Observe implements [lease.Observer].
func (o *Observer) Observe(e lease.Event) {
	ctx := context.Background()
	switch e.Kind {
	case lease.EventCall:
		o.calls.Record(ctx, e.Latency.Seconds(), o.with(e, attribute.String("op", e.Op.String()), attribute.String("outcome", outcome(e.Err))))
	case lease.EventTermBegan:
		o.leader.Add(ctx, 1, o.with(e))
		o.transitions.Add(ctx, 1, o.with(e, attribute.String("to", "leader")))
	case lease.EventTermEnded:
		o.leader.Add(ctx, -1, o.with(e))
		o.transitions.Add(ctx, 1, o.with(e, attribute.String("to", "follower"), attribute.String("cause", cause(e.Err))))
	case lease.EventRenewed:
		o.margin.Record(ctx, e.Margin.Seconds(), o.with(e))
	}
}

func (o *Observer) with(e lease.Event, more ...attribute.KeyValue) metric.MeasurementOption {
	if !o.opts.NoResource {
		more = append(more, attribute.String("resource", e.Resource))
	}
	return metric.WithAttributes(more...)
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, lease.ErrStale):
		return "stale"
	case lease.Refusal(err) != lease.CodeNone:
		return "refused"
	}
	return "unknown"
}

func cause(err error) string {
	for _, c := range []struct {
		err  error
		name string
	}{{lease.ErrLapsed, "lapsed"}, {lease.ErrRefused, "refused"}, {lease.ErrBarrier, "barrier"}, {lease.ErrResigned, "resigned"}} {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "stopped" // the context of Run has ended, with any cause
}
