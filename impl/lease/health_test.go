package lease

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

type observerFn func(Event)

func (f observerFn) Observe(e Event) { f(e) }

// stuckLogger blocks for ever in the record that at counts down to.
type stuckLogger struct {
	mu   sync.Mutex
	at   int
	gate <-chan struct{}
}

func (h *stuckLogger) Enabled(context.Context, slog.Level) bool { return true }
func (h *stuckLogger) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *stuckLogger) WithGroup(string) slog.Handler            { return h }
func (h *stuckLogger) Handle(context.Context, slog.Record) error {
	h.block()
	return nil
}

func (h *stuckLogger) block() {
	h.mu.Lock()
	h.at--
	stuck := h.at == 0
	h.mu.Unlock()
	if stuck {
		<-h.gate
	}
}

func (h *stuckLogger) blocked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at <= 0
}

// A full pipe behind the Logger, a deadlocked Observer: whichever of their calls it
// is that never returns, a term is over when the window is.
func TestNoLoggerOrObserverKeepsATermAlive(t *testing.T) {
	for _, observes := range []bool{false, true} {
		reached := 0
		for at := 1; at <= 12; at++ {
			h := &stuckLogger{at: at}
			opts := ElectorConfig{Logger: slog.New(h)}
			if observes {
				opts = ElectorConfig{Observer: observerFn(func(Event) { h.block() })}
			}
			// The answers to some renewals are lost, so that there is something to log.
			lossy := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
				if g, err := call(); req.Op != OpRenew || s.clk.Now()%(2*sec) == 0 {
					return g, err
				}
				return Grant{}, errLost
			}
			playWith(t, tenSeconds, opts, lossy, func(s *stage) {
				h.gate = s.gate // of the bubble
				ctx, cancel := context.WithCancel(s.Context())
				ends := make(chan time.Duration, 100)
				until := make(chan time.Duration, 100)
				done := s.run(ctx, func(ctx context.Context, term Term) error {
					<-ctx.Done()
					if term.Valid() || s.e.IsLeader() {
						t.Error("the context ended before belief did")
					}
					ends <- s.clk.Now()
					until <- term.Deadline()
					return nil
				})
				s.until(60 * sec)
				if h.blocked() {
					reached++
					if s.e.IsLeader() {
						t.Errorf("observes %v, call %d: leads at 60s", observes, at)
					}
					if err := s.e.Health(); !errors.Is(err, ErrWedged) || !strings.Contains(err.Error(), "Logger or Observer") {
						t.Errorf("observes %v, call %d: health %v", observes, at, err)
					}
				}
				select {
				case end := <-ends:
					diff(t, "the context ends at the deadline", end, <-until)
				default:
					if h.blocked() && at > 3 {
						t.Errorf("observes %v, call %d: the context goes on", observes, at)
					}
				}
				close(s.gate)
				cancel()
				<-done
			})
		}
		if reached != 12 {
			t.Errorf("observes %v: blocked in %d calls of 12", observes, reached)
		}
	}
}

// An operator's word is not held up either.
func TestResignWaitsForNoLogger(t *testing.T) {
	h := &stuckLogger{at: 1}
	playWith(t, tenSeconds, ElectorConfig{Logger: slog.New(h)}, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		h.gate = s.gate // of the bubble
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			s.note("stop under %d, resigned: %v", term.Token, errors.Is(context.Cause(ctx), ErrResigned))
			return nil
		})
		s.until(2 * sec)
		diff(t, "stuck", h.blocked(), true)
		diff(t, "leads", s.e.IsLeader(), true)
		s.e.Resign()
		diff(t, "leads on", s.e.IsLeader(), false)
		s.script("0s acquire", "2s stop under 1, resigned: true")
		close(s.gate)
		cancel()
		<-done
	})
}

func TestHealthSaysWhatIsLate(t *testing.T) {
	var brokenFrom time.Duration
	broken := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		if req.Op == OpRenew && s.clk.Now() >= brokenFrom {
			return hang(ctx)
		}
		return call()
	}
	// Healthy: renewals in time; a store that is down while nobody leads.
	brokenFrom = never
	play(t, broken, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		if err := s.e.Health(); err != nil {
			t.Errorf("before Run: %v", err)
		}
		done := s.run(ctx, s.untilDone)
		for at := sec; at <= 30*sec; at += sec {
			if s.until(at - 1); s.e.Health() != nil {
				t.Errorf("at %v: %v", at, s.e.Health())
			}
		}
		cancel()
		<-done
		if err := s.e.Health(); err != nil {
			t.Errorf("after Run: %v", err)
		}
	})
	// A renewal is due at 3s, the deadline at 9s: three quarters are over at 7.5s.
	brokenFrom = 0
	play(t, broken, nil, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, s.stopping(20*sec)) // until 29s
		for _, c := range []struct {
			at   time.Duration
			late string
			from time.Duration
		}{
			{7500 * ms, "", 0}, {7500*ms + 1, "a renewal", 3 * sec}, {9*sec - 1, "a renewal", 3 * sec},
			{9 * sec, "", 0}, {10 * sec, "", 0}, {10*sec + 1, "the work has not returned", 9 * sec}, {29*sec - 1, "the work has not returned", 9 * sec},
		} {
			s.until(c.at)
			switch e, ok := errors.AsType[*WedgedError](s.e.Health()); {
			case ok != (c.late != ""):
				t.Errorf("at %v: %v, want %q", c.at, s.e.Health(), c.late)
			case ok && (!strings.HasPrefix(e.Late, c.late) || e.Since != c.from || e.For != c.at-c.from || e.Resource != "db" || !errors.Is(e, ErrWedged)):
				t.Errorf("at %v: %+v, want %q since %v", c.at, e, c.late, c.from)
			}
		}
		cancel()
		<-done
	})
}
