package lease

import (
	"context"
	"log/slog"
	"time"

	"fencepost/impl/clock"
)

// hints watches a resource for as long as its context lasts: once a watch breaks
// it makes another, with back-off.
type hints struct {
	clk      clock.Clock
	watcher  Watcher
	resource string
	backoff  time.Duration // after the first failure; then twice as long, up to 64 times
	log      *slog.Logger
	c        chan struct{} // a value for each hint, but no more than one that waits
	done     chan struct{} // closed at the end
}

// watch starts to watch resource at store, where the store can tell; where it
// cannot, c never has anything and done is closed.
func watch(ctx context.Context, clk clock.Clock, store Store, resource string, backoff time.Duration, log *slog.Logger) *hints {
	h := &hints{clk: clk, resource: resource, backoff: backoff, log: log, c: make(chan struct{}, 1), done: make(chan struct{})}
	watcher, ok := store.(Watcher)
	if !ok {
		close(h.done)
		return h
	}
	h.watcher = watcher
	go h.run(ctx)
	return h
}

func (h *hints) run(ctx context.Context) {
	defer close(h.done)
	timer := h.clk.Timer(never)
	defer timer.Stop()
	for failed := 0; ctx.Err() == nil; {
		came, err := h.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if failed++; came {
			failed = 1 // it worked for a while
		}
		pause := h.backoff << min(failed-1, 6)
		h.log.WarnContext(ctx, "watch broken: polling until it is made again", "again in", pause, "err", err)
		timer.Reset(add(h.clk.Now(), pause))
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
	}
}

// once watches until that breaks, and says whether anything came of it.
func (h *hints) once(ctx context.Context) (came bool, err error) {
	from, err := h.watcher.Watch(ctx, h.resource)
	if err != nil {
		return false, err
	}
	h.hint() // of what changed before anybody watched
	for {
		select {
		case _, ok := <-from:
			if !ok {
				return came, nil
			}
			came = true
			h.hint()
		case <-ctx.Done():
			return came, nil
		}
	}
}

func (h *hints) hint() {
	select {
	case h.c <- struct{}{}:
	default:
	}
}

// pace bounds how often hints are followed: in bursts of a few within each
// interval, so that a store whose hints say nothing cannot make a candidate flood
// it.
type pace struct {
	interval time.Duration
	from     time.Duration // the interval that runs
	spent    int
	waiting  bool // a hint came, and was not followed yet
}

// next is when the hint that waits may be followed, if most are allowed in an
// interval.
func (p *pace) next(most int) time.Duration {
	switch {
	case !p.waiting:
		return never
	case p.spent >= most:
		return p.from + p.interval
	}
	return 0
}

// follow reports whether to follow a hint now.
func (p *pace) follow(now time.Duration, most int) bool {
	if now >= p.next(most) {
		if p.waiting = false; now >= p.from+p.interval {
			p.from, p.spent = now, 0
		}
		p.spent++
		return true
	}
	return false
}
