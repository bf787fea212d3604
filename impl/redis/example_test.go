package redis_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
	"fencepost/impl/redis"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// A singleton worker whose writes are fenced: the storage is told of the token
// before the work begins.
func ExampleNew() {
	rdb, stop := local() // redis.Dial(goredis.Options{Addr: "redis.internal:6379"})
	defer stop()
	ctx := context.Background()

	store, err := redis.New(ctx, rdb, redis.Options{})
	if err != nil {
		fmt.Println(err) // names the setting of the server that is not safe
		return
	}
	defer store.Close()
	report := redis.NewStorage(rdb, "", "nightly-report")
	elector, err := lease.NewElector(store, lease.ElectorConfig{
		Resource: "nightly-report", Node: "alice",
		Timing:  lease.Config{TTL: 15 * time.Second, MaxDriftRate: 0.01, SafetyMargin: time.Second},
		Fencers: []lease.Fencer{report},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := errors.New("the report is written")
	err = elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
		if err := report.Write(ctx, term.Token, "2026-11-30", "all is well"); err != nil {
			return err
		}
		return done
	})
	fmt.Println(err)
	fmt.Println(report.Read(ctx, "2026-11-30"))
	// Output:
	// the report is written
	// all is well true <nil>
}

func ExampleDial() {
	rdb := redis.Dial(goredis.Options{Addr: "redis.internal:6379"})
	defer rdb.Close()
	fmt.Println("sends again:", rdb.Options().MaxRetries > 0)
	fmt.Println("heeds deadlines:", rdb.Options().ContextTimeoutEnabled)
	// Output:
	// sends again: false
	// heeds deadlines: true
}

// Check before you deploy: each setting under which a token could be issued
// twice is named.
func ExampleCheck() {
	rdb, stop := local()
	defer stop()
	ctx := context.Background()
	fmt.Println(redis.Check(ctx, rdb))

	rdb.ConfigSet(ctx, "appendfsync", "everysec")
	if setting, ok := errors.AsType[*redis.SettingError](redis.Check(ctx, rdb)); ok {
		fmt.Printf("%s is %s: %s\n", setting.Setting, setting.Value, setting.Todo)
	}
	// Output:
	// <nil>
	// appendfsync is everysec: CONFIG SET appendfsync always, and in redis.conf
}

// A token that was taken over is refused, in the store and in the storage.
func ExampleStorage() {
	rdb, stop := local()
	defer stop()
	ctx := context.Background()
	store, err := redis.New(ctx, rdb, redis.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := redis.NewStorage(rdb, "", "orders")

	first, _ := store.Acquire(ctx, "orders", alice, time.Minute)
	fmt.Println(orders.Write(ctx, first.Token, "42", "paid"))
	store.Delete(ctx, "orders") // an operator, who thinks that alice is dead
	second, _ := store.Acquire(ctx, "orders", bob, time.Minute)
	fmt.Println(orders.Fence(ctx, second.Token))
	fmt.Println(orders.Write(ctx, first.Token, "42", "cancelled"))
	// Output:
	// <nil>
	// <nil>
	// token 1 is stale: the storage has seen 2; stop, and acquire the lease anew
}

// A script of your own writes only under a token that is not stale.
func ExampleStale() {
	rdb, stop := local()
	defer stop()
	ctx := context.Background()
	balance := redis.NewStorage(rdb, "", "ledger")
	credit := goredis.NewScript(redis.Guard + `
local stale = admit(KEYS[1], ARGV[1])
if stale then return stale end
return redis.call('INCRBY', KEYS[2], ARGV[2])`)

	for _, token := range []lease.Token{33, 34, 33} {
		keys := []string{balance.GuardKey(), "fencepost:{ledger}:balance"}
		n, err := credit.Run(ctx, rdb, keys, uint64(token), 100).Int()
		fmt.Println(n, redis.Stale(err, token))
	}
	// Output:
	// 100 <nil>
	// 200 <nil>
	// 0 token 33 is stale: the storage has seen 34; stop, and acquire the lease anew
}

// Whoever holds many leases renews them in one round trip.
func ExampleStore_Batch() {
	rdb, stop := local()
	defer stop()
	ctx := context.Background()
	store, err := redis.New(ctx, rdb, redis.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var calls []lease.Call
	for _, shard := range []string{"shard-1", "shard-2"} {
		calls = append(calls, lease.Call{Resource: shard, Request: lease.Request{Op: lease.OpAcquire, Holder: alice, TTL: time.Minute}})
	}
	for _, a := range store.Batch(ctx, calls) {
		fmt.Println(a.Grant.Resource, a.Grant.Token, a.Err)
	}
	// Output:
	// shard-1 1 <nil>
	// shard-2 1 <nil>
}

// A candidate that waits is woken by the release.
func ExampleStore_Watch() {
	rdb, stop := local()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := redis.New(ctx, rdb, redis.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	g, _ := store.Acquire(ctx, "shard-1", alice, time.Minute)
	hints, err := store.Watch(ctx, "shard-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	<-hints // that it watches from now on
	store.Release(ctx, "shard-1", alice, g.Token)
	<-hints
	fmt.Println(store.Get(ctx, "shard-1"))
	// Output:
	// {shard-1  1 0s} <nil>
}
