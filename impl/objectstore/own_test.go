package objectstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/impl/objectstore"
)

func holder(node string) lease.Holder { return lease.Holder{Node: node, Seq: 1, Nonce: 1} }

// twice sends each write again, as a proxy does that lost the answer.
type twice struct{ *memory }

func (m twice) PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	m.memory.PutObject(ctx, in, o...)
	return nil, refusal(412, "PreconditionFailed")
}

func TestOwnWriteIsKnownAfterACopyOfIt(t *testing.T) {
	s := mustStore(t, twice{newMemory()}, objectstore.Options{Clock: new(clock.Manual)})
	g, err := s.Acquire(t.Context(), "r", holder("a"), time.Second)
	if err != nil || g.Token != 1 {
		t.Fatalf("%+v, %v; want it granted under token 1", g, err)
	}
	if err := s.Release(t.Context(), "r", holder("a"), 1); err != nil {
		t.Fatal(err)
	}
}

// With a drift of 20% a lease of 8 s is left alone for 8/(1-0.2) = 10 s, from when
// it was first seen.
func TestTakeoverWaitsForTTLAndDrift(t *testing.T) {
	m, clk := newMemory(), new(clock.Manual)
	a := mustStore(t, m, objectstore.Options{Clock: new(clock.Manual), MaxDriftRate: 0.2})
	b := mustStore(t, m, objectstore.Options{Clock: clk, MaxDriftRate: 0.2})
	if _, err := a.Acquire(t.Context(), "r", holder("a"), 8*time.Second); err != nil {
		t.Fatal(err)
	}
	clk.Advance(time.Hour)
	for _, step := range []struct{ advance, remaining time.Duration }{{0, 10 * time.Second}, {10*time.Second - 1, 1}} {
		clk.Advance(step.advance)
		_, err := b.Acquire(t.Context(), "r", holder("b"), time.Second)
		if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Remaining != step.remaining {
			t.Fatalf("after %v more: %v; want held for another %v", step.advance, err, step.remaining)
		}
	}
	clk.Advance(1)
	if g, err := b.Acquire(t.Context(), "r", holder("b"), time.Second); err != nil || g.Token != 2 {
		t.Fatalf("after 10 s: %+v, %v; want token 2", g, err)
	}
	if _, err := a.Renew(t.Context(), "r", holder("a"), 1, time.Second); !errors.Is(err, lease.ErrNotHeld) {
		t.Fatalf("a renews: %v; want it refused", err)
	}
}

// Whoever has seen token 1 does not grant it again after the object was deleted.
func TestRegressionIsRefusedUntilRaised(t *testing.T) {
	m := newMemory()
	s := mustStore(t, m, objectstore.Options{Clock: new(clock.Manual)})
	if _, err := s.Acquire(t.Context(), "r", holder("a"), time.Second); err != nil {
		t.Fatal(err)
	}
	m.delete(s.Key("r"))
	if _, err := s.Acquire(t.Context(), "r", holder("b"), time.Second); !errors.Is(err, objectstore.ErrRegressed) {
		t.Fatalf("after a deletion: %v; want %v", err, objectstore.ErrRegressed)
	}
	if err := s.Raise(t.Context(), "r", 7); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Acquire(t.Context(), "r", holder("b"), time.Second); err != nil || g.Token != 8 {
		t.Fatalf("after Raise(7): %+v, %v; want token 8", g, err)
	}
}
