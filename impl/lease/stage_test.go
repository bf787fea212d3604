package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fencepost/impl/clock"
)

// proxy stands between an Elector and its store: on decides about each call, and
// may make it, once or late or never.
type proxy struct {
	Store
	on func(ctx context.Context, req Request, call func() (Grant, error)) (Grant, error)
}

func (p proxy) Acquire(ctx context.Context, resource string, h Holder, ttl time.Duration) (Grant, error) {
	return p.on(ctx, acquire(h, ttl), func() (Grant, error) { return p.Store.Acquire(ctx, resource, h, ttl) })
}

func (p proxy) Renew(ctx context.Context, resource string, h Holder, token Token, ttl time.Duration) (Grant, error) {
	return p.on(ctx, renew(h, token, ttl), func() (Grant, error) { return p.Store.Renew(ctx, resource, h, token, ttl) })
}

func (p proxy) Release(ctx context.Context, resource string, h Holder, token Token) error {
	_, err := p.on(ctx, release(h, token), func() (Grant, error) { return Grant{}, p.Store.Release(ctx, resource, h, token) })
	return err
}

type fencerFunc func(ctx context.Context, token Token) error

func (f fencerFunc) Fence(ctx context.Context, token Token) error { return f(ctx, token) }

// hang is a call that ends with its context.
func hang(ctx context.Context) (Grant, error) {
	<-ctx.Done()
	return Grant{}, context.Cause(ctx)
}

var errLost = errors.New("connection reset")

// stage is one elector of node alice in a bubble of fake time, with everything
// that matters written down as "instant what".
type stage struct {
	*testing.T
	clk    clock.Clock
	memory *Memory
	e      *Elector
	gate   chan struct{} // closed when what ignores its context may go on

	mu  sync.Mutex
	log []string
}

// play runs f in a bubble, where the store and the elector, at 10s, a window of
// 9s, renewals after 3s and retries each second, start at 0. on and fencers may
// be nil.
func play(t *testing.T, on hook, fencers []Fencer, f func(s *stage)) {
	t.Helper()
	playWith(t, tenSeconds, ElectorConfig{Fencers: fencers}, on, f)
}

// hook decides about a call that the elector makes.
type hook func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error)

func playWith(t *testing.T, cfg Config, opts ElectorConfig, on hook, f func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, clk: clock.Monotonic(), gate: make(chan struct{})}
		s.memory = newMemory(t, s.clk, MemoryOptions{})
		if on == nil {
			on = func(_ *stage, _ context.Context, _ Request, call func() (Grant, error)) (Grant, error) { return call() }
		}
		store := proxy{s.memory, func(ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
			s.note("%v", req.Op)
			return on(s, ctx, req, call)
		}}
		var err error
		opts.Resource, opts.Node, opts.Nonce = "db", alice.Node, alice.Nonce
		opts.Timing, opts.Clock = cfg, s.clk
		s.e, err = NewElector(store, opts)
		if err != nil {
			t.Fatal(err)
		}
		f(s)
	})
}

func (s *stage) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprint(s.clk.Now(), " ", fmt.Sprintf(format, args...)))
}

// script checks all that was noted. Of one instant a test may note only what
// follows from each other, for else its order is the scheduler's.
func (s *stage) script(want ...string) {
	s.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	diff(s.T, "what happened", s.log, want)
}

// count is how often what was noted.
func (s *stage) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.log {
		if _, rest, _ := strings.Cut(line, " "); rest == what {
			n++
		}
	}
	return n
}

// until lets the others get on with it until the clock reads at.
func (s *stage) until(at time.Duration) {
	time.Sleep(at - s.clk.Now()) // in the bubble
	synctest.Wait()
}

// run starts Run and gives what it returns.
func (s *stage) run(ctx context.Context, lead func(context.Context, Term) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := s.e.Run(ctx, lead)
		s.note("returned")
		done <- err
	}()
	return done
}

// untilDone is work that notes when it starts and when it is told to stop.
func (s *stage) untilDone(ctx context.Context, term Term) error {
	s.note("lead under %d", term.Token)
	<-ctx.Done()
	if term.Valid() || s.e.IsLeader() {
		s.Errorf("at %v: valid %v, leader %v although %v", s.clk.Now(), term.Valid(), s.e.IsLeader(), context.Cause(ctx))
	}
	s.note("stop")
	return ctx.Err()
}
