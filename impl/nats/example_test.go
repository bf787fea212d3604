package nats_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/lease"
	"fencepost/impl/nats"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// withServer runs a NATS server in this process, for as long as f takes.
func withServer(f func(ctx context.Context, js jetstream.JetStream) error) (err error) {
	dir, err := os.MkdirTemp("", "fencepost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s, err := member{Name: "m", Dir: dir, Port: port}.start()
	if err != nil {
		return err
	}
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the server does not start")
	}
	js, err := dial(s.ClientURL())
	if err != nil {
		return err
	}
	defer js.Conn().Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return f(ctx, js)
}

// A singleton worker on NATS, whose writes land only while nobody has followed it.
func Example() {
	err := withServer(func(ctx context.Context, js jetstream.JetStream) error {
		if err := errors.Join(nats.CreateBucket(ctx, js, "leases", 1), nats.CreateBucket(ctx, js, "reports", 1)); err != nil {
			return err
		}
		store, err := nats.New(ctx, js, "leases", nats.Options{})
		if err != nil {
			return err
		}
		storage, err := nats.NewStorage(ctx, js, "reports", "nightly")
		if err != nil {
			return err
		}
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

// A write of a deposed leader is refused.
func ExampleNewStorage() {
	err := withServer(func(ctx context.Context, js jetstream.JetStream) error {
		if err := nats.CreateBucket(ctx, js, "accounts", 1); err != nil {
			return err
		}
		storage, err := nats.NewStorage(ctx, js, "accounts", "shard-1")
		if err != nil {
			return err
		}
		if err := errors.Join(storage.Fence(ctx, 8), storage.Write(ctx, 8, "k", "bob's")); err != nil {
			return err
		}
		fmt.Println(storage.Write(ctx, 7, "k", "alice's"))
		value, _, err := storage.Read(ctx, "k")
		fmt.Println(value)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// token 7 is stale: the storage has seen 8; stop, and acquire the lease anew
	// bob's
}

// A candidate need not poll.
func ExampleStore_Watch() {
	err := withServer(func(ctx context.Context, js jetstream.JetStream) error {
		if err := nats.CreateBucket(ctx, js, "leases", 1); err != nil {
			return err
		}
		store, err := nats.New(ctx, js, "leases", nats.Options{})
		if err != nil {
			return err
		}
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
		next, err := store.Acquire(ctx, "shard-1", bob, 10*time.Second)
		fmt.Println("a higher token:", next.Token > g.Token)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: a higher token: true
}

// A bucket that the client's own call makes is refused.
func ExampleCreateBucket() {
	err := withServer(func(ctx context.Context, js jetstream.JetStream) error {
		if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "leases"}); err != nil {
			return err
		}
		_, err := nats.New(ctx, js, "leases", nats.Options{})
		fmt.Println(err != nil)
		if err := nats.CreateBucket(ctx, js, "leases", 1); err != nil {
			return err
		}
		_, err = nats.New(ctx, js, "leases", nats.Options{})
		return err
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// What can be a key is one, and else is hashed.
func ExampleKey() {
	fmt.Println(nats.Key("nightly-report"))
	fmt.Println(len(nats.Key("a report?")))
	// Output:
	// nightly-report
	// 74
}
