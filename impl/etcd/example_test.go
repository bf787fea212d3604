package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

// withServer runs an etcd in this process, for as long as f takes.
func withServer(f func(ctx context.Context, client *clientv3.Client) error) error {
	dir, err := os.MkdirTemp("", "fencepost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var addr [2]string
	for i := range addr {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		addr[i] = l.Addr().String()
		l.Close()
	}
	m := member{Name: "m", Dir: dir, Client: addr[0], Peer: addr[1], Initial: "m=http://" + addr[1], Tick: briskTick, Election: briskElection, Log: "fatal"}
	server, err := m.start()
	if err != nil {
		return err
	}
	defer server.Close()
	client, err := dial(m.Client)
	if err != nil {
		return err
	}
	// Before the server: that waits for its clients.
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return f(ctx, client)
}

// A singleton worker on etcd, whose writes land only while it is the leader.
func Example() {
	err := withServer(func(ctx context.Context, client *clientv3.Client) error {
		store := etcd.New(client, etcd.Options{})
		storage := etcd.NewStorage(store, "nightly-report", "reports/")
		elector, err := lease.NewElector(store, lease.ElectorConfig{
			Resource: "nightly-report",
			Node:     "alice",
			Timing:   lease.Config{TTL: 15 * time.Second, MaxDriftRate: 0.01, SafetyMargin: time.Second},
			Fencers:  []lease.Fencer{storage},
		})
		if err != nil {
			return err
		}
		done := errors.New("the report is written")
		return elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
			if err := storage.Write(ctx, term.Token, "today", "all is well"); err != nil {
				return err
			}
			return done
		})
	})
	fmt.Println(err)
	// Output: the report is written
}

// Data of one's own is guarded in its own transaction: here two keys change at
// once, or neither does.
func ExampleStore_Guard() {
	err := withServer(func(ctx context.Context, client *clientv3.Client) error {
		store := etcd.New(client, etcd.Options{Prefix: "leases/"})
		g, err := store.Acquire(ctx, "accounts", alice, 10*time.Second)
		if err != nil {
			return err
		}
		transfer := func() error {
			resp, err := client.Txn(ctx).
				If(store.Guard("accounts", g.Token)).
				Then(clientv3.OpPut("accounts/1", "90"), clientv3.OpPut("accounts/2", "110")).
				Commit()
			if err == nil {
				fmt.Println("landed:", resp.Succeeded)
			}
			return err
		}
		return errors.Join(transfer(), store.Release(ctx, "accounts", alice, g.Token), transfer())
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// landed: true
	// landed: false
}

// A write of a deposed leader is refused, by what etcd itself has.
func ExampleStorage() {
	err := withServer(func(ctx context.Context, client *clientv3.Client) error {
		store := etcd.New(client, etcd.Options{})
		storage := etcd.NewStorage(store, "shard-1", "shard-1/")
		old, err := store.Acquire(ctx, "shard-1", alice, 10*time.Second)
		if err != nil {
			return err
		}
		// An operator takes the lease away, and bob gets it.
		if _, err := client.Delete(ctx, store.LeaderKey("shard-1")); err != nil {
			return err
		}
		g, err := store.Acquire(ctx, "shard-1", bob, 10*time.Second)
		if err != nil {
			return err
		}
		fmt.Println("a higher token:", g.Token > old.Token)
		if err := storage.Write(ctx, g.Token, "k", "bob's"); err != nil {
			return err
		}
		fmt.Println("stale:", errors.Is(storage.Write(ctx, old.Token, "k", "alice's"), lease.ErrStale))
		value, _, err := storage.Read(ctx, "k")
		fmt.Println(value)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// a higher token: true
	// stale: true
	// bob's
}

// Thousands of leases are renewed at once.
func ExampleStore_Batch() {
	err := withServer(func(ctx context.Context, client *clientv3.Client) error {
		store := etcd.New(client, etcd.Options{})
		var calls []lease.Call
		for i := range 500 {
			calls = append(calls, lease.Call{Resource: fmt.Sprintf("shard-%d", i), Request: lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: 10 * time.Second}})
		}
		for i, a := range store.Batch(ctx, calls) {
			calls[i].Op, calls[i].Token = lease.OpRenew, a.Grant.Token
		}
		renewed := 0
		for _, a := range store.Batch(ctx, calls) {
			if a.Err == nil {
				renewed++
			}
		}
		fmt.Println(renewed)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 500
}

// A candidate need not poll.
func ExampleStore_Watch() {
	err := withServer(func(ctx context.Context, client *clientv3.Client) error {
		store := etcd.New(client, etcd.Options{})
		g, err := store.Acquire(ctx, "shard-1", alice, 10*time.Second)
		if err != nil {
			return err
		}
		hints, err := store.Watch(ctx, "shard-1")
		if err != nil {
			return err
		}
		if err := store.Release(ctx, "shard-1", alice, g.Token); err != nil {
			return err
		}
		<-hints
		seen, err := store.Get(ctx, "shard-1")
		fmt.Println("held by nobody:", seen.Holder.IsZero())
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: held by nobody: true
}
