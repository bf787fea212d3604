package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"fencepost/impl/clock"
)

// Leader asks the store who holds the lease: nobody, where the Holder is zero. By
// the time the answer is here it may be another. The errors are those of
// [Store].Get.
func (e *Elector) Leader(ctx context.Context) (Observation, error) {
	return e.store.Get(ctx, e.opts.Resource)
}

// LeadersConfig is what [Leaders] may be told.
type LeadersConfig struct {
	// Resource is the lease to look at. Required.
	Resource string
	// Clock is what Poll and Timeout count on. Default [clock.Boot].
	Clock clock.Clock
	// Poll passes between two looks, but for those that a [Watcher] asks for. A
	// lapse is no hint, so that this is how late it is seen. Default 1s.
	Poll time.Duration
	// Timeout is how long a look may take before it is given up. Default ten times
	// Poll; the error matches [context.DeadlineExceeded].
	Timeout time.Duration
	// Logger is told of watches that break. Default: nobody.
	Logger *slog.Logger
}

// Leaders is who holds a lease, for those that do not campaign for it: first as it
// is now, and then each change of holder or token, as far as it is seen. Of several
// changes between two looks only the last is; the tokens tell how many there were,
// where they rise by one.
//
// It looks at store when a [Watcher] hints at a change, if store is one, and at
// least every [LeadersConfig.Poll]. An error of a look, with a zero Observation
// but for the resource, comes when it is met, and again with each look; the stream
// goes on after it. It ends when ctx does, or with a *[ConfigError] if cfg makes no
// sense. A goroutine serves it while it is ranged over.
func Leaders(ctx context.Context, store Store, cfg LeadersConfig) iter.Seq2[Observation, error] {
	return func(yield func(Observation, error) bool) {
		if err := cfg.validate(store); err != nil {
			yield(Observation{Resource: cfg.Resource}, err)
			return
		}
		cfg = cfg.withDefaults()
		ctx, cancel := context.WithCancel(ctx)
		hints := watch(ctx, cfg.Clock, store, cfg.Resource, cfg.Poll, cfg.Logger)
		defer func() {
			cancel()
			<-hints.done
		}()
		timer := cfg.Clock.Timer(never)
		defer timer.Stop()
		var last Observation
		for first := true; ctx.Err() == nil; {
			seen, err := cfg.look(ctx, store)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				if !yield(Observation{Resource: cfg.Resource}, err) {
					return
				}
			case first || seen.Holder != last.Holder || seen.Token != last.Token:
				if first, last = false, seen; !yield(seen, nil) {
					return
				}
			}
			timer.Reset(add(cfg.Clock.Now(), cfg.Poll))
			select {
			case <-timer.C():
			case <-hints.c:
			case <-ctx.Done():
			}
		}
	}
}

func (c LeadersConfig) validate(store Store) error {
	switch {
	case store == nil:
		return &ConfigError{Field: "store", Reason: "must be set"}
	case c.Resource == "":
		return &ConfigError{Field: "Resource", Reason: "must be set"}
	case c.Poll < 0 || c.Poll > maxDuration:
		return &ConfigError{Field: "Poll", Reason: fmt.Sprintf("%v is not between 0 and %v", c.Poll, maxDuration)}
	case c.Timeout < 0 || c.Timeout > maxDuration:
		return &ConfigError{Field: "Timeout", Reason: fmt.Sprintf("%v is not between 0 and %v", c.Timeout, maxDuration)}
	}
	return nil
}

func (c LeadersConfig) withDefaults() LeadersConfig {
	if c.Clock == nil {
		c.Clock = clock.Boot()
	}
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 10*c.Poll)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler)).With("resource", c.Resource)
	return c
}

// look asks store, and gives up by the clock.
func (c LeadersConfig) look(ctx context.Context, store Store) (Observation, error) {
	call, cancel := context.WithCancelCause(ctx)
	timer := c.Clock.Timer(add(c.Clock.Now(), c.Timeout))
	var guard sync.WaitGroup
	guard.Go(func() {
		select {
		case <-timer.C():
			cancel(context.DeadlineExceeded)
		case <-call.Done():
		}
	})
	seen, err := store.Get(call, c.Resource)
	if cause := context.Cause(call); err != nil && errors.Is(cause, context.DeadlineExceeded) && ctx.Err() == nil {
		err = fmt.Errorf("lease %q: get: after %v: %w: %w", c.Resource, c.Timeout, cause, err)
	}
	cancel(nil)
	guard.Wait()
	timer.Stop()
	return seen, err
}
