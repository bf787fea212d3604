package etcd_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

// The leader of the cluster stands still until it is deposed and the lease is
// another's. Renewals wait at its door meanwhile: they are what it finds when it
// goes on, before it can know.
func TestADeposedMemberRenewsNothing(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	c := startCluster(t, 3, briskTick, briskElection)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	old, err := c.leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for i, m := range c.members {
		if i != old {
			others = append(others, m.Client)
		}
	}
	stuck := etcd.New(connect(t, c.members[old].Client), etcd.Options{})
	awake := etcd.New(connect(t, others...), etcd.Options{})
	g, err := stuck.Acquire(ctx, "r", alice, ttl)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.servers[old].Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	const waiting = 8
	answers := make(chan lease.Answer, waiting)
	for range waiting {
		go func() {
			grant, err := stuck.Renew(ctx, "r", alice, g.Token, ttl)
			answers <- lease.Answer{Grant: grant, Err: err}
		}()
	}
	for {
		_, err := awake.Acquire(ctx, "r", bob, time.Minute)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := c.servers[old].Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range waiting {
		// That there is no answer is as good.
		a := <-answers
		t.Log(a.Err)
		if a.Err == nil || ctx.Err() != nil {
			t.Errorf("a renewal that waited was answered %+v", a)
		}
	}
}
