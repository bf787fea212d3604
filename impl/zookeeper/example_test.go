package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/lease"
	"fencepost/impl/zookeeper"
)

// A worker of which only one may run. Its writes are refused once another has
// taken over, however late they come.
func Example() {
	if err := singleton(context.Background(), []string{"zk1:2181", "zk2:2181", "zk3:2181"}); err != nil {
		log.Fatal(err)
	}
}

func singleton(ctx context.Context, servers []string) error {
	store, err := zookeeper.Open(zookeeper.Options{Servers: servers})
	if err != nil {
		return err
	}
	defer store.Close()
	data := store.Storage("/reports")
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: "reports",
		Node:     "worker-1",
		Timing:   lease.Config{TTL: 15 * time.Second},
		Fencers:  []lease.Fencer{data},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		defer stop() // a single report will do here
		return data.Write(ctx, term.Token, "last", "Tuesday's")
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// The leader changes what it likes in the ensemble, as long as the lease is its own.
func ExampleStore_Check() {
	store, err := zookeeper.Open(zookeeper.Options{Servers: []string{"zk1:2181"}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	conn, _, err := zk.Connect([]string{"zk1:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := handOver(context.Background(), store, conn); err != nil {
		log.Fatal(err)
	}
}

func handOver(ctx context.Context, store *zookeeper.Store, conn *zk.Conn) error {
	me := lease.Holder{Node: "worker-1", Seq: 1, Nonce: 0x5eed}
	g, err := store.Acquire(ctx, "reports", me, 15*time.Second)
	if err != nil {
		return err
	}
	own, err := store.Check(ctx, "reports", g.Token)
	if err != nil {
		return err
	}
	move := func() error {
		_, err := conn.Multi(own, &zk.CreateRequest{Path: "/job-", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence})
		return err
	}
	fmt.Println(move())
	if err := store.Release(ctx, "reports", me, g.Token); err != nil {
		return err
	}
	fmt.Println(errors.Is(move(), zk.ErrBadVersion)) // the lease is not carried any more
	return nil
}

// Where the lease is kept elsewhere, the highest token seen guards a multi.
func ExampleStorage_Check() {
	store, err := zookeeper.Open(zookeeper.Options{Servers: []string{"zk1:2181"}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	conn, _, err := zk.Connect([]string{"zk1:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := guarded(context.Background(), store, conn, 33, 34); err != nil {
		log.Fatal(err)
	}
}

func guarded(ctx context.Context, store *zookeeper.Store, conn *zk.Conn, mine, next lease.Token) error {
	data := store.Storage("/jobs")
	highest, err := data.Check(ctx, mine) // the barrier of a leader
	if err != nil {
		return err
	}
	if err := data.Fence(ctx, next); err != nil { // that of its successor
		return err
	}
	_, err = conn.Multi(highest, &zk.CreateRequest{Path: "/jobs/job-", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence})
	fmt.Println(errors.Is(err, zk.ErrBadVersion)) // too late
	return nil
}

// The examples run against a real server.
func testExamples(t *testing.T, s *server) {
	if err := singleton(t.Context(), []string{s.address}); err != nil {
		t.Error(err)
	}
	store := s.open(t)
	if v, ok, err := store.Storage("/reports").Read(t.Context(), "last"); v != "Tuesday's" || !ok || err != nil {
		t.Errorf("%q, %v, %v", v, ok, err)
	}
	conn := s.dial(t)
	if err := errors.Join(handOver(t.Context(), store, conn), guarded(t.Context(), store, conn, 33, 34)); err != nil {
		t.Error(err)
	}
}
