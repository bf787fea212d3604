package redis

import (
	"bytes"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
	"fencepost/linearizability"
	"fencepost/linearizability/record"
)

// What a failover to an asynchronous replica loses: a token is issued twice, and
// the storage takes both for the leader. The check objects to the replica
// beforehand; here it is overruled.
func TestAFailoverIssuesATokenTwice(t *testing.T) {
	primary := server.Start(t, append([]string{"--repl-diskless-sync-delay", "0"}, server.Durable...)...)
	host, port, _ := strings.Cut(primary.Addr, ":")
	replica := server.Start(t, append([]string{"--replicaof", host, port}, server.Durable...)...)
	ctx := t.Context()
	accepted := Options{Accept: []string{"connected_slaves"}}
	rdb := Dial(goredis.Options{Addr: primary.Addr, PoolSize: 1}) // WAIT is about the writes of its connection
	defer rdb.Close()
	old, err := New(ctx, rdb, accepted)
	if err != nil {
		t.Fatal(err)
	}

	var history bytes.Buffer
	clk := clock.Boot()
	began := clk.Now()
	rec, err := linearizability.NewRecorder(&history, linearizability.DefaultMeta(), func() time.Duration { return clk.Now() - began })
	if err != nil {
		t.Fatal(err)
	}
	before := record.Store(old, rec)
	g, err := before.Acquire(ctx, "r", alice, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Release(ctx, "r", alice, g.Token); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has the release", func() bool {
		v, err := replica.Control.HGet(ctx, "fencepost:{r}:lease", "status").Result()
		return err == nil && v == "free"
	})
	// It is promoted by somebody who does not reach the primary, as some do that do.
	if err := replica.Control.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	first, err := before.Acquire(ctx, "r", alice.Next(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	// WAIT finds it out, when the token has been issued and seen by all who ask.
	if n := rdb.Wait(ctx, 1, 50*time.Millisecond).Val(); n != 0 {
		t.Fatalf("WAIT: %d replicas have it; the story is of nothing", n)
	}
	after := record.Store(open(t, replica, Options{}), rec)
	second, err := after.Acquire(ctx, "r", bob, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if first.Token != 2 || second.Token != 2 {
		t.Errorf("tokens %d and %d; expected: 2, twice", first.Token, second.Token)
	}
	// No storage can tell them apart.
	kv := &fence.Storage{}
	for _, g := range []lease.Grant{first, second, first} {
		if err := kv.Write(ctx, g.Token, "k", g.Holder.Node); err != nil {
			t.Errorf("%v: %v; expected: it lands", g.Holder, err)
		}
	}
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := linearizability.Read(&history, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	v, err := linearizability.Check(ctx, h, linearizability.Options{Model: linearizability.Model{Name: linearizability.ModelLease}})
	if err != nil {
		t.Fatal(err)
	}
	if v.Result != linearizability.Violated {
		t.Errorf("%v: %s; expected: violated", v.Result, v.Reason)
	}
	t.Logf("%v: %s", v.Result, v.Reason)
}
