package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"fencepost/props/daemon"
)

// server is an API server and the etcd in it, as their clients know them.
type server struct {
	Port int
	Dir  string
}

// etcd does not connect yet.
func (s server) etcd() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(s.Dir, "client:0")}, Logger: zap.NewNop()})
}

func (s server) kubernetes() *rest.Config {
	return &rest.Config{
		Host:            "https://127.0.0.1:" + strconv.Itoa(s.Port),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(s.Dir, "apiserver.crt")},
		QPS:             -1, // else client-go makes calls wait
	}
}

// startServer gives a server that ends with the test.
func startServer(t testing.TB) server {
	t.Helper()
	binary := build(t)
	s := server{Port: daemon.Port(t), Dir: t.TempDir()}
	daemon.Start(t, daemon.Spec{
		Command: []string{binary, "--dir", s.Dir, "--port", strconv.Itoa(s.Port)},
		Ready:   s.ready,
	})
	return s
}

// build gives the path of the server's binary, which Go keeps in its cache. The
// first time it takes minutes.
func build(t testing.TB) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-n", "fencepost/impl/kubernetes/apiserver")
	cmd.Dir = "../kubernetes/apiserver"
	// By its own go.mod alone, so that it is built once, whatever else there is in a workspace.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the API server cannot be built: %v\n%s", err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

func (s server) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.kubernetes())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.kubernetes().Host+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", resp.Status)
	}
	return nil
}
