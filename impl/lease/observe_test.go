package lease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Each event, in order, as "instant kind holder token op latency margin".
func TestTheObserverIsToldOfATermFromEndToEnd(t *testing.T) {
	slow := func(s *stage, ctx context.Context, req Request, call func() (Grant, error)) (Grant, error) {
		g, err := call()
		time.Sleep(100 * ms)
		return g, err
	}
	fence := fencerFunc(func(context.Context, Token) error { time.Sleep(50 * ms); return nil })
	var got []string
	var causes []error
	watch := observerFn(func(e Event) {
		got = append(got, fmt.Sprint(e.At, " ", e.Kind, " ", e.Holder.Seq, " ", e.Token, " ", e.Op, " ", e.Latency, " ", e.Margin))
		if e.Resource != "db" {
			t.Errorf("event %+v", e)
		}
		if e.Kind == EventTermEnded || e.Kind == EventCall && e.Err != nil {
			causes = append(causes, e.Err)
		}
	})
	playWith(t, tenSeconds, ElectorConfig{Fencers: []Fencer{fence}, Observer: watch}, slow, func(s *stage) {
		ctx, cancel := context.WithCancel(s.Context())
		done := s.run(ctx, func(ctx context.Context, term Term) error {
			<-ctx.Done()
			time.Sleep(200 * ms)
			return nil
		})
		s.until(5 * sec)
		if err := s.memory.Delete(ctx, "db"); err != nil {
			t.Fatal(err)
		}
		s.until(6200 * ms)
		cancel()
		<-done
		// Sent at 0s, 3s and 6s; the deadline of the first, 9s, is 5.9s ahead at 3.1s.
		want := []string{
			"100ms call 1 1 acquire 100ms 0s",
			"100ms granted 1 1 none 0s 0s",
			"150ms call 1 1 fence 50ms 0s",
			"150ms term began 1 1 none 0s 0s",
			"3.1s call 1 1 renew 100ms 0s",
			"3.1s renewed 1 1 none 0s 5.9s",
			"6.1s call 1 1 renew 100ms 0s",
			"6.1s term ended 1 1 none 0s 0s",
			"6.3s work stopped 1 1 none 0s 0s",
		}
		diff(t, "events", got, want)
	})
	if len(causes) != 2 || !errors.Is(causes[0], ErrNotHeld) || !errors.Is(causes[1], ErrRefused) {
		t.Errorf("errors %v, want the refusal and the end by it", causes)
	}
}

func TestEventKindsHaveNames(t *testing.T) {
	diff(t, "last", EventWorkStopped.String(), "work stopped")
	diff(t, "unknown", EventKind(77).String(), "event(77)")
}
