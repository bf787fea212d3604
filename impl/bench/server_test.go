package bench

import (
	"path/filepath"
	"strconv"
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
	s := server{Port: daemon.Port(t), Dir: t.TempDir()}
	config := s.kubernetes()
	daemon.Start(t, daemon.Spec{
		Command: []string{daemon.Tool(t, "../kubernetes/apiserver", "fencepost/impl/kubernetes/apiserver"), "--dir", s.Dir, "--port", strconv.Itoa(s.Port)},
		Ready:   daemon.Healthy(config.Host+"/readyz", config.CAFile),
	})
	return s
}
