package redis_test

import (
	"flag"
	"log"
	"os"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/redis"
	"fencepost/impl/redis/internal/server"
)

func TestMain(m *testing.M) {
	flag.Parse()
	server.SkipExamples()
	os.Exit(m.Run())
}

// local is a client of a server for one example, set as it should be, and what
// ends both.
func local() (rdb *goredis.Client, stop func()) {
	o, end, err := server.Local(server.Durable...)
	if err != nil {
		log.Fatal(err)
	}
	rdb = redis.Dial(o)
	return rdb, func() {
		rdb.Close()
		end()
	}
}
