package zookeeper_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"fencepost/impl/zookeeper"
	"fencepost/props/daemon"
)

// tick is the unit in which the server under test counts sessions down: a
// session lasts two of them at least, and up to one more than it should.
const tick = 50 * time.Millisecond

type server struct {
	*daemon.Daemon
	address string
}

// serve starts a ZooKeeper server of the test's own.
func serve(t testing.TB) *server {
	t.Helper()
	const install = "apt-get install zookeeper"
	java := daemon.Find(t, "apt-get install default-jre-headless", "java")
	jar := daemon.Find(t, install, "/usr/share/java/zookeeper.jar")
	const user = "zookeeper"
	dir, port := daemon.Dir(t, user), daemon.Port(t)
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("clientPortAddress=127.0.0.1\nclientPort=%d\ndataDir=%s\ntickTime=%d\nmaxSessionTimeout=120000\nmaxClientCnxns=0\nadmin.enableServer=false\n",
		port, dir, tick.Milliseconds())
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := &server{address: fmt.Sprintf("127.0.0.1:%d", port)}
	s.Daemon = daemon.Start(t, daemon.Spec{
		Command: []string{java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-cp", filepath.Dir(jar) + "/*:/etc/zookeeper/conf", "org.apache.zookeeper.server.ZooKeeperServerMain", config},
		Dir:  dir,
		User: user,
		Ready: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}})
			if err != nil {
				return err
			}
			defer store.Close()
			_, err = store.Get(ctx, "ready")
			return err
		},
	})
	return s
}

// open makes a store on the server that ends with the test.
func (s *server) open(t testing.TB) *zookeeper.Store {
	t.Helper()
	store, err := zookeeper.Open(zookeeper.Options{Servers: []string{s.address}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// dial makes a plain connection to the server that ends with the test.
func (s *server) dial(t testing.TB) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.address}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
