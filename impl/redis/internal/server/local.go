package server

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"fencepost/props/daemon"
)

// Local starts a server for an example, which has no test to end it with: on a
// socket in a directory of its own, with settings as [Start] takes them. The options
// are those of a client of it; stop ends it.
func Local(settings ...string) (o goredis.Options, stop func(), err error) {
	dir, err := os.MkdirTemp("", "fencepost-")
	if err != nil {
		return o, nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	cmd := exec.Command("redis-server", append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir}, settings...)...)
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return o, nil, fmt.Errorf("starting redis-server: %w", err)
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	for range 500 {
		if _, err := os.Stat(socket); err == nil {
			return goredis.Options{Network: "unix", Addr: socket}, stop, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return o, nil, fmt.Errorf("redis-server does not listen on %s after five seconds", socket)
}

// SkipExamples has go test leave the examples out where there is no server and
// none is required: unlike tests they cannot skip. It is for TestMain, after
// flag.Parse.
func SkipExamples() {
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv(daemon.Required) != "1" {
		flag.Set("test.skip", "^Example")
	}
}
