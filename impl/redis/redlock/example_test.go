package redlock_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/clock"
	"fencepost/impl/redis"
	"fencepost/impl/redis/internal/server"
	"fencepost/impl/redis/redlock"
)

func TestMain(m *testing.M) {
	flag.Parse()
	server.SkipExamples()
	os.Exit(m.Run())
}

// What Redlock answers: for how long, and no number that a storage could compare.
func ExampleLock() {
	var servers []*goredis.Client
	for range 5 {
		o, stop, err := server.Local(server.Forgetful...)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer stop()
		rdb := redis.Dial(o)
		defer rdb.Close()
		servers = append(servers, rdb)
	}
	ctx := context.Background()
	lock := redlock.New(servers, clock.Boot(), 100*time.Millisecond)
	validity, ok := lock.Acquire(ctx, "report", "a value that nobody else ever used", 30*time.Second)
	fmt.Println("alice:", ok, validity < 30*time.Second-300*time.Millisecond)
	_, ok = lock.Acquire(ctx, "report", "another value", 30*time.Second)
	fmt.Println("bob:", ok)
	fmt.Println("released:", lock.Release(ctx, "report", "a value that nobody else ever used"))
	// Output:
	// alice: true true
	// bob: false
	// released: true
}
