// Package server runs a redis-server of Debian's in tests, on loopback.
//
// It must not know what is kept there. Start at [Start].
package server

import (
	"context"
	"strconv"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/props/daemon"
)

// Server is one redis-server.
type Server struct {
	*daemon.Daemon
	Addr string
	// Control is a connection of an operator's, behind the store's back.
	Control *goredis.Client
}

// Durable are the settings under which nothing answered is lost.
var Durable = []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}

// Forgetful are those under which a restart finds nothing.
var Forgetful = []string{"--appendonly", "no", "--save", ""}

// Start starts one with settings, as the command line of redis-server has them,
// and ends it with the test. A machine without one skips the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	path := daemon.Find(t, "apt-get install redis-server", "redis-server")
	port := strconv.Itoa(daemon.Port(t))
	s := &Server{Addr: "127.0.0.1:" + port}
	s.Control = goredis.NewClient(&goredis.Options{Addr: s.Addr, MaxRetries: -1})
	t.Cleanup(func() { s.Control.Close() })
	command := append([]string{path, "--bind", "127.0.0.1", "--port", port, "--daemonize", "no"}, settings...)
	s.Daemon = daemon.Start(t, daemon.Spec{
		Command: command,
		Dir:     daemon.Dir(t, "redis"),
		User:    "redis",
		Ready:   func(ctx context.Context) error { return s.Control.Ping(ctx).Err() },
	})
	return s
}
