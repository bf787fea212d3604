package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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

// A leader that is cut off from the others goes on answering keep-alives until
// it notices. They renew nothing, since no quorum confirms them.
func TestWithoutAQuorumNothingIsRenewed(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, briskTick, briskElection)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader, err := c.leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, c.members[leader].Client)
	store := etcd.New(client, etcd.Options{})
	g, err := store.Acquire(ctx, "r", alice, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(ctx, store.LeaderKey("r"))
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatal(resp, err)
	}
	others := slices.Delete(slices.Clone(c.servers), leader, leader+1)
	for _, server := range others {
		if err := server.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, server := range others {
		for !standsStill(t, server.Pid()) {
			time.Sleep(time.Millisecond)
		}
	}
	short, end := context.WithTimeout(ctx, time.Second)
	_, err = client.KeepAliveOnce(short, clientv3.LeaseID(resp.Kvs[0].Lease))
	t.Logf("a bare keep-alive: %v", err)
	grant, err := store.Renew(short, "r", alice, g.Token, time.Minute)
	end()
	if err == nil || lease.Refusal(err) != lease.CodeNone {
		t.Errorf("without a quorum a renewal was answered %+v, %v", grant, err)
	}
	for _, server := range others {
		if err := server.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	for {
		again, err := store.Renew(ctx, "r", alice, g.Token, time.Minute)
		if err == nil {
			if again != g {
				t.Errorf("renewed: %+v, want %+v", again, g)
			}
			return
		}
		if lease.Refusal(err) != lease.CodeNone || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// standsStill reports whether a process has stopped after a SIGSTOP: its threads
// do when they next run, which on a busy machine takes a while.
func standsStill(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		t.Skipf("cannot tell whether process %d stands still: no /proc here: %v", pid, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			t.Fatal(err)
		}
		// "pid (name) state ..."
		if _, state, _ := bytes.Cut(text, []byte(") ")); !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return true
}
