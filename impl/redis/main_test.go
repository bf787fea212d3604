package redis_test

import (
	"flag"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/impl/redis"
	"fencepost/props/daemon"
)

// TestMain leaves the examples out where there is no server: unlike tests they
// cannot skip.
func TestMain(m *testing.M) {
	flag.Parse()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv(daemon.Required) != "1" {
		flag.Set("test.skip", "^Example")
	}
	os.Exit(m.Run())
}

// local is a client of a server for one example, set as it should be, and what
// ends both.
func local() (rdb *goredis.Client, stop func()) {
	dir, err := os.MkdirTemp("", "fencepost-")
	if err != nil {
		log.Fatal(err)
	}
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	rdb = redis.Dial(goredis.Options{Network: "unix", Addr: socket})
	return rdb, func() {
		rdb.Close()
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
}
