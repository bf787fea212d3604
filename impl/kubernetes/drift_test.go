package kubernetes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/clock"
	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
)

func holder(node string) lease.Holder { return lease.Holder{Node: node, Seq: 1, Nonce: 1} }

// process is a store on a clock of its own.
func process(t *testing.T, m *memory, rate float64) (*kubernetes.Store, *clock.Manual) {
	t.Helper()
	clk := new(clock.Manual)
	return mustStore(t, m, kubernetes.Options{Clock: clk, MaxDriftRate: rate}), clk
}

// With a drift of 20% a lease of 8 s is left alone for 8/(1-0.2) = 10 s.
func TestTakeoverWaitsForDurationAndDrift(t *testing.T) {
	m := newMemory()
	a, _ := process(t, m, 0.2)
	b, clk := process(t, m, 0.2)
	old, err := a.Acquire(t.Context(), "r", holder("a"), 8*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	// However long ago that was, b has not seen it yet.
	clk.Advance(time.Hour)
	for _, step := range []struct{ advance, remaining time.Duration }{
		{0, 10 * time.Second}, {3 * time.Second, 7 * time.Second}, {7*time.Second - 1, 1},
	} {
		clk.Advance(step.advance)
		_, err := b.Acquire(t.Context(), "r", holder("b"), time.Second)
		held, ok := errors.AsType[*lease.HeldError](err)
		if !ok || held.Remaining != step.remaining || held.Holder != holder("a") || held.Token != old.Token {
			t.Fatalf("after %v more: %v; want held by a under token %d for another %v", step.advance, err, old.Token, step.remaining)
		}
	}
	clk.Advance(1)
	g, err := b.Acquire(t.Context(), "r", holder("b"), time.Second)
	if err != nil || g.Token <= old.Token {
		t.Fatalf("after 10 s: %+v, %v; want it granted under a token above %d", g, err, old.Token)
	}
}

// A renewal that b has not seen makes the resource version that b saw another.
func TestTakeoverFailsAfterAnUnseenRenewal(t *testing.T) {
	m := newMemory()
	a, _ := process(t, m, 0)
	b, clk := process(t, m, 0)
	g, err := a.Acquire(t.Context(), "r", holder("a"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b.Acquire(t.Context(), "r", holder("b"), time.Second)
	clk.Advance(time.Hour)
	if _, err := a.Renew(t.Context(), "r", holder("a"), g.Token, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	_, err = b.Acquire(t.Context(), "r", holder("b"), time.Second)
	if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Holder != holder("a") {
		t.Fatalf("b: %v; want held by a", err)
	}
}

// late gives the next answer to a question only after then has run.
type late struct {
	*memory
	then func()
}

func (l *late) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordination.Lease, error) {
	out, err := l.memory.Get(ctx, name, o)
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return out, err
}

// The renewal was seen at 1 s, so that it lapses at 9 s. An answer from before,
// which comes at 5 s, does not make it new.
func TestAnAnswerThatWasOvertakenIsDropped(t *testing.T) {
	m := &late{memory: newMemory()}
	a, _ := process(t, m.memory, 1e-12)
	clk := new(clock.Manual)
	b := mustStore(t, m, kubernetes.Options{Clock: clk, MaxDriftRate: 1e-12})
	g, err := a.Acquire(t.Context(), "r", holder("a"), 8*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	m.then = func() {
		if _, err := a.Renew(t.Context(), "r", holder("a"), g.Token, 8*time.Second); err != nil {
			t.Error(err)
		}
		clk.Advance(time.Second)
		if o, err := b.Get(t.Context(), "r"); err != nil || o.Remaining != 8*time.Second {
			t.Errorf("at 1 s: %+v, %v; want 8 s more", o, err)
		}
		clk.Advance(4 * time.Second)
	}
	if o, err := b.Get(t.Context(), "r"); err != nil || o.Remaining != 4*time.Second {
		t.Errorf("at 5 s: %+v, %v; want 4 s more", o, err)
	}
	clk.Advance(4 * time.Second)
	if _, err := b.Acquire(t.Context(), "r", holder("b"), time.Second); err != nil {
		t.Errorf("at 9 s: %v; want it granted", err)
	}
}

// The retry of an acquire whose answer was lost finds its token, before the
// first renewal and after, in the process that asked and in another.
func TestRetryFindsItsToken(t *testing.T) {
	m := newMemory()
	a, _ := process(t, m, 0)
	g, err := a.Acquire(t.Context(), "r", holder("a"), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		other, _ := process(t, m, 0)
		for _, s := range []*kubernetes.Store{other, a} {
			again, err := s.Acquire(t.Context(), "r", holder("a"), 10*time.Second)
			if err != nil || again.Token != g.Token {
				t.Fatalf("again: %+v, %v; want token %d", again, err, g.Token)
			}
		}
	}
}

// A resource that cannot be an object's name has one that can, of its own.
func TestObjectNames(t *testing.T) {
	seen := map[string]string{}
	for _, resource := range []string{"scheduler", "Scheduler", "a/b", "a_b", "", " ", "a..b", "orders.example.com"} {
		name := kubernetes.ObjectName(resource)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %q", resource, other, name)
		}
		seen[name] = resource
	}
	for _, resource := range []string{"scheduler", "orders.example.com"} {
		if name := kubernetes.ObjectName(resource); name != resource {
			t.Errorf("%q is %q; want itself", resource, name)
		}
	}
}
