package kubernetes_test

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
	binary := build(t)
	dir, port := t.TempDir(), daemon.Port(t)
	s := &server{config: &rest.Config{
		Host:            "https://127.0.0.1:" + strconv.Itoa(port),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "apiserver.crt")},
		QPS:             -1, // else client-go makes calls wait
	}}
	s.Daemon = daemon.Start(t, daemon.Spec{
		Command: []string{binary, "--dir", dir, "--port", strconv.Itoa(port)},
		Ready:   s.ready,
	})
	return s
}

// build gives the path of the server's binary, which Go keeps in its cache. The
// first time it takes minutes.
func build(t testing.TB) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-n", "fencepost/impl/kubernetes/apiserver")
	cmd.Dir = "apiserver"
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

func (s *server) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+"/readyz", nil)
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
