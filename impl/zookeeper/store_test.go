package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"fencepost/impl/lease"
)

var (
	a = lease.Holder{Node: "a", Seq: 1, Nonce: 1}
	b = lease.Holder{Node: "b", Seq: 1, Nonce: 2}
)

func TestStore(t *testing.T) {
	s := serve(t)
	one, two := s.open(t), s.open(t)
	ctx := t.Context()
	g, err := one.Acquire(ctx, "x", a, time.Second)
	t.Log(g, err)
	_, err = two.Acquire(ctx, "x", b, time.Second)
	t.Log(err)
	o, err := two.Get(ctx, "x")
	t.Log(o, err)
	hints, err := two.Watch(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	<-hints
	t.Log("hint", time.Since(start))
	g2, err := two.Acquire(ctx, "x", b, time.Second)
	t.Log(g2, err)
	_, err = one.Renew(ctx, "x", a, g.Token, time.Second)
	t.Log(err)
	start = time.Now()
	for range 10 {
		if _, err := two.Renew(ctx, "x", b, g2.Token, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("renew", time.Since(start)/10)
	g3, err := one.Renew(ctx, "x", b, g2.Token, time.Second)
	t.Log(g3, err)
	g3, err = one.Acquire(ctx, "x", b, time.Second)
	t.Log(g3, err)
	t.Log(two.Release(ctx, "x", b, g2.Token))
	t.Log(two.Release(ctx, "x", b, g2.Token))
	_, err = one.Renew(ctx, "x", b, g2.Token, time.Second)
	t.Log(err)
	g4, err := one.Acquire(ctx, "x", b, time.Second)
	t.Log(g4, err)
	_, err = one.Acquire(ctx, "y", b, time.Hour)
	t.Log(err, errors.Is(err, lease.ErrNotHeld), lease.Refusal(err))
	g5, err := one.Acquire(ctx, "z", b, time.Minute)
	t.Log(g5, err)
	start = time.Now()
	s.Restart(ctx)
	t.Log("restart", time.Since(start))
	start = time.Now()
	o, err = one.Get(ctx, "z")
	t.Log(o, err, time.Since(start))
	g5, err = one.Renew(ctx, "z", b, g5.Token, time.Minute)
	t.Log(g5, err)
	t.Log(one.Delete(ctx, "z"))
	o, err = one.Get(ctx, "z")
	t.Log(o, err)
	g5, err = one.Acquire(ctx, "z", b, time.Minute)
	t.Log(g5, err)
}
