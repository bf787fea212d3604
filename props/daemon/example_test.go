//go:build unix

package daemon_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"fencepost/props/daemon"
)

// A server that is a Go package, in a process that a later step may kill.
func ExampleSelf() {
	type config struct{ Port int }
	serve := func(c config) error {
		return http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", c.Port), http.NotFoundHandler())
	}
	_ = func(m *testing.M) { daemon.Main(m, serve) } // TestMain
	_ = func(t *testing.T) {
		port := daemon.Port(t)
		spec, err := daemon.Self(config{port})
		if err != nil {
			t.Fatal(err)
		}
		spec.Ready = daemon.Healthy(fmt.Sprintf("http://127.0.0.1:%d/readyz", port), "")
		daemon.Start(t, spec).Kill()
	}
	// Output:
}

// An ensemble, which answers only together.
func ExampleLaunch() {
	_ = func(t *testing.T, members []daemon.Spec) {
		var servers []*daemon.Daemon
		for _, m := range members {
			servers = append(servers, daemon.Launch(t, m))
		}
		for _, s := range servers {
			if err := s.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Output:
}

// A server that is a Go command, in a module of its own.
func ExampleTool() {
	_ = func(t *testing.T) {
		dir, port := t.TempDir(), fmt.Sprint(daemon.Port(t))
		daemon.Start(t, daemon.Spec{
			Command: []string{daemon.Tool(t, "apiserver", "fencepost/impl/kubernetes/apiserver"), "--dir", dir, "--port", port},
			Ready:   daemon.Healthy("https://127.0.0.1:"+port+"/readyz", filepath.Join(dir, "apiserver.crt")),
		})
	}
	// Output:
}

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
