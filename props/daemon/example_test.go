//go:build unix

package daemon_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"fencepost/props/daemon"
)

// A server of its own for a test, which a later step of it may kill.
func ExampleStart() {
	_ = func(t *testing.T) {
		path := daemon.Find(t, "apt-get install redis-server", "redis-server")
		port := daemon.Port(t)
		server := daemon.Start(t, daemon.Spec{
			Command: []string{path, "--port", fmt.Sprint(port), "--appendonly", "yes", "--appendfsync", "always"},
			Dir:     daemon.Dir(t, "redis"),
			User:    "redis",
			Ready: func(ctx context.Context) error {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
				if err == nil {
					c.Close()
				}
				return err
			},
		})
		if err := server.Restart(t.Context()); err != nil { // kill -9, and start
			t.Fatal(err)
		}
	}
	// Output:
}
