package mylease

import (
	"context"
	"errors"
	"time"

	"fencepost/impl/lease"
)

// Client is a leader election with a ticker, as one writes it over a lock
// service: it campaigns, works while it leads, and campaigns again.
type Client struct {
	Store    lease.Store
	Resource string
	Node     string
	Nonce    uint64 // drawn at random when the process starts
	TTL      time.Duration
	// Window is how much of a TTL it acts for, counted from the *send* of the
	// request that was granted. What is left is for the store's clock to be
	// fast, and for the work to notice.
	Window func(ttl time.Duration) time.Duration
	Lead   func(ctx context.Context, token uint64) error
}

// Run campaigns until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	// A holder is good for one term: nothing that was sent in an earlier one
	// counts for the next.
	me := lease.Holder{Node: c.Node, Seq: 1, Nonce: c.Nonce}
	for ctx.Err() == nil {
		sent := time.Now()
		grant, err := call(ctx, c.pace(), func(ctx context.Context) (lease.Grant, error) {
			return c.Store.Acquire(ctx, c.Resource, me, c.TTL)
		})
		if err == nil {
			c.term(ctx, grant, sent.Add(c.Window(min(c.TTL, grant.TTL))))
			me = me.Next()
			continue
		}
		select {
		case <-time.After(c.pace()):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// pace is how often it calls the store, and how long it waits for an answer: of
// several renewals in a window all but one may get lost.
func (c *Client) pace() time.Duration { return c.Window(c.TTL) / 6 }

type renewal struct {
	sent time.Time
	ttl  time.Duration
	err  error
}

// term leads under grant until deadline, which each renewal moves.
func (c *Client) term(ctx context.Context, grant lease.Grant, deadline time.Time) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	if !time.Now().Before(deadline) {
		stop() // granted too late to be of use
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		if work.Err() == nil {
			c.Lead(work, uint64(grant.Token))
		}
	}()
	over := time.NewTimer(time.Until(deadline))
	defer over.Stop()
	tick := time.NewTicker(c.pace())
	defer tick.Stop()
	renewals := make(chan renewal)
	for {
		select {
		case <-over.C:
			stop()
		case <-tick.C:
			if work.Err() == nil {
				go c.renew(work, grant, renewals)
			}
		case r := <-renewals:
			switch {
			case errors.Is(r.err, lease.ErrNotHeld):
				stop() // it is known to be over
			case r.err == nil && work.Err() == nil && time.Now().Before(deadline):
				if d := r.sent.Add(c.Window(min(c.TTL, r.ttl))); d.After(deadline) {
					deadline = d
					over.Reset(time.Until(deadline))
				}
			}
		case <-worked:
			// Not before: whoever is granted the lease next works at once.
			call(context.WithoutCancel(ctx), c.pace(), func(ctx context.Context) (struct{}, error) {
				return struct{}{}, c.Store.Release(ctx, c.Resource, grant.Holder, grant.Token)
			})
			return
		}
	}
}

// renew renews once, and tells renewals of it while the work goes on, however
// late: that the lease is lost is never too late to know.
func (c *Client) renew(work context.Context, grant lease.Grant, renewals chan<- renewal) {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(work, c.pace())
	defer cancel()
	g, err := c.Store.Renew(ctx, c.Resource, grant.Holder, grant.Token, c.TTL)
	select {
	case renewals <- renewal{sent, g.TTL, err}:
	case <-work.Done():
	}
}

// call calls f, and waits for limit at most, whether f heeds its context or
// not.
func call[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		defer cancel()
		v, err := f(ctx)
		answers <- answer{v, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}
