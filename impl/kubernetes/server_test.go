package kubernetes_test

import (
	"path/filepath"
	"strconv"
	"testing"

	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"fencepost/impl/kubernetes"
	"fencepost/props/daemon"
)

// server is an API server that ends with the test. Where Go can build, there is
// one.
type server struct {
	*daemon.Daemon
	config *rest.Config
}

func startServer(t testing.TB) *server {
	t.Helper()
	dir, port := t.TempDir(), daemon.Port(t)
	s := &server{config: &rest.Config{
		Host:            "https://127.0.0.1:" + strconv.Itoa(port),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "apiserver.crt")},
		QPS:             -1, // else client-go makes calls wait
	}}
	s.Daemon = daemon.Start(t, daemon.Spec{
		// To build it takes minutes the first time.
		Command: []string{daemon.Tool(t, "apiserver", "fencepost/impl/kubernetes/apiserver"), "--dir", dir, "--port", strconv.Itoa(port)},
		Ready:   daemon.Healthy(s.config.Host+"/readyz", s.config.CAFile),
	})
	return s
}

// leases are those of one namespace.
func (s *server) leases(t testing.TB, namespace string) coordinationv1.LeaseInterface {
	t.Helper()
	client, err := coordinationv1.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Leases(namespace)
}

func (s *server) configMaps(t testing.TB, namespace string) corev1.ConfigMapInterface {
	t.Helper()
	client, err := corev1.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	return client.ConfigMaps(namespace)
}

func mustStore(t testing.TB, leases kubernetes.Leases, opts kubernetes.Options) *kubernetes.Store {
	t.Helper()
	s, err := kubernetes.New(leases, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
