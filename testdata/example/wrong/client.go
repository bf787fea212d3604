package wrong

import (
	"context"
	"time"

	"fencepost/impl/lease"
)

// Client renews by a ticker and stops when a renewal fails: it knows no deadline
// of its own. While a renewal neither fails nor succeeds, since the network
// swallowed it and the call ignores its context, it leads on, whoever has the
// lease by then. (And it must stop at the first error, which with a deadline it
// need not.)
type Client struct {
	Store    lease.Store
	Resource string
	Me       lease.Holder
	TTL      time.Duration
	Lead     func(ctx context.Context, token uint64) error
}

func (c *Client) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if grant, err := c.Store.Acquire(ctx, c.Resource, c.Me, c.TTL); err == nil {
			c.lead(ctx, grant)
			c.Me = c.Me.Next()
		}
		select {
		case <-time.After(c.TTL / 10):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (c *Client) lead(ctx context.Context, grant lease.Grant) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Lead(work, uint64(grant.Token))
	}()
	tick := time.NewTicker(c.TTL / 3)
	defer tick.Stop()
	for work.Err() == nil {
		select {
		case <-tick.C:
			call, cancel := context.WithTimeout(work, c.TTL/3)
			if _, err := c.Store.Renew(call, c.Resource, c.Me, grant.Token, c.TTL); err != nil {
				stop()
			}
			cancel()
		case <-done:
			stop()
		case <-ctx.Done():
			stop()
		}
	}
	<-done
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.TTL/3)
	defer cancel()
	c.Store.Release(release, c.Resource, c.Me, grant.Token)
}
