package main

import (
	"context"
	"sync"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
)

// pause is a process that stands still.
type pause struct{ mu sync.RWMutex }

func (p *pause) hold(clk clock.Clock, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	timer := clk.Timer(clk.Now() + d)
	defer timer.Stop()
	<-timer.C()
}

func (p *pause) wait() {
	p.mu.RLock()
	defer p.mu.RUnlock()
}

// freezing is a store that nobody reaches while the process stands still.
type freezing struct {
	lease.Store
	pause *pause
}

func (f freezing) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	f.pause.wait()
	return f.Store.Acquire(ctx, resource, holder, ttl)
}

func (f freezing) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	f.pause.wait()
	return f.Store.Renew(ctx, resource, holder, token, ttl)
}

func (f freezing) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	f.pause.wait()
	return f.Store.Release(ctx, resource, holder, token)
}
