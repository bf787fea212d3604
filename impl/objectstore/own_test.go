package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

// Tokens start at FirstToken where there is no object, and go on where there is.
func TestFirstTokenIsThatOfALeaseWithoutAnObject(t *testing.T) {
	m := newMemory()
	for _, c := range []struct {
		first, want lease.Token
		resource    string
	}{{34, 34, "a"}, {1, 35, "a"}, {90, 36, "a"}, {0, 1, "b"}} {
		s := mustStore(t, m, objectstore.Options{Clock: new(clock.Manual), FirstToken: c.first})
		g, err := s.Acquire(t.Context(), c.resource, holder("a"), time.Second)
		if err != nil || g.Token != c.want {
			t.Fatalf("first %d: %+v, %v; want token %d", c.first, g, err, c.want)
		}
		if err := s.Release(t.Context(), c.resource, holder("a"), g.Token); err != nil {
			t.Fatal(err)
		}
	}
}

// heedless writes without a condition what makes the lease so.
type heedless struct {
	*memory
	status string
}

func (h heedless) PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	in.Body = bytes.NewReader(body)
	if strings.Contains(string(body), `"status":"`+h.status+`"`) {
		in.IfMatch = nil
	}
	return h.memory.PutObject(ctx, in, o...)
}

// What a process that slept does to a lease that b has taken over meanwhile is
// refused, since what it remembers is out of date.
func TestWhatASleeperDoesOnWhatItRemembersIsRefused(t *testing.T) {
	asleep := map[string]func(context.Context, *objectstore.Store) error{
		"running": func(ctx context.Context, s *objectstore.Store) error {
			_, err := s.Renew(ctx, "r", holder("a"), 1, time.Second)
			return err
		},
		"free": func(ctx context.Context, s *objectstore.Store) error {
			return s.Release(ctx, "r", holder("a"), 1)
		},
	}
	for status, wakes := range asleep {
		refused := func(o objectstore.Objects, m *memory) error {
			clk := new(clock.Manual)
			a, b := mustStore(t, o, objectstore.Options{Clock: new(clock.Manual)}), mustStore(t, m, objectstore.Options{Clock: clk})
			if _, err := a.Acquire(t.Context(), "r", holder("a"), time.Second); err != nil {
				return err
			}
			b.Get(t.Context(), "r")
			clk.Advance(time.Minute)
			if _, err := b.Acquire(t.Context(), "r", holder("b"), time.Minute); err != nil {
				return err
			}
			if err := wakes(t.Context(), a); !errors.Is(err, lease.ErrNotHeld) {
				return fmt.Errorf("a is told %v", err)
			}
			if o, err := b.Get(t.Context(), "r"); err != nil || o.Holder != holder("b") {
				return fmt.Errorf("held by %v, %v", o.Holder, err)
			}
			return nil
		}
		m := newMemory()
		if err := refused(m, m); err != nil {
			t.Errorf("%s: %v", status, err)
		}
		m = newMemory()
		if err := refused(heedless{m, status}, m); err == nil {
			t.Errorf("%s: one that writes it without If-Match goes uncaught", status)
		}
	}
}

// late gives the next answer to a question only after then has run.
type late struct {
	*memory
	then func()
}

func (l *late) GetObject(ctx context.Context, in *s3.GetObjectInput, o ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	out, err := l.memory.GetObject(ctx, in, o...)
	if then := l.then; then != nil {
		l.then = nil
		then()
	}
	return out, err
}

// What shows token 1 was asked for before token 2 was granted, so it does not mean
// that the object was set back.
func TestAnAnswerThatWasOvertakenIsDropped(t *testing.T) {
	m := &late{memory: newMemory()}
	s := mustStore(t, m, objectstore.Options{Clock: new(clock.Manual)})
	if _, err := s.Acquire(t.Context(), "r", holder("a"), time.Second); err != nil {
		t.Fatal(err)
	}
	m.then = func() {
		if err := s.Release(t.Context(), "r", holder("a"), 1); err != nil {
			t.Error(err)
		}
		if _, err := s.Acquire(t.Context(), "r", holder("b"), time.Second); err != nil {
			t.Error(err)
		}
	}
	if o, err := s.Get(t.Context(), "r"); err != nil || o.Holder != holder("b") || o.Token != 2 || m.then != nil {
		t.Errorf("%+v, %v; want b under token 2", o, err)
	}
}
