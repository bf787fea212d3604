package redis

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/lease"
	"fencepost/impl/redis/internal/server"
)

var (
	alice = lease.Holder{Node: "alice", Seq: 1, Nonce: 0xa11ce}
	bob   = lease.Holder{Node: "bob", Seq: 1, Nonce: 0xb0b}
)

// dial is a client that ends with the test.
func dial(t testing.TB, s *server.Server) *goredis.Client {
	t.Helper()
	rdb := Dial(goredis.Options{Addr: s.Addr})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// open is a store that ends with the test.
func open(t testing.TB, s *server.Server, o Options) *Store {
	t.Helper()
	store, err := New(t.Context(), dial(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}
