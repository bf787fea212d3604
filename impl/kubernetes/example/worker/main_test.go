package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
	"fencepost/props/daemon"
)

// TestMain makes the test binary a worker too, with such arguments.
func TestMain(m *testing.M) {
	daemon.Main(m, func(args []string) error {
		os.Args = append(os.Args[:1], args...)
		main()
		return nil
	})
}

// cluster is an API server, and what a worker leaves there.
type cluster struct {
	kubeconfig string
	leases     coordinationv1.LeaseInterface
	maps       corev1.ConfigMapInterface
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	dir, port := t.TempDir(), strconv.Itoa(daemon.Port(t))
	url, ca := "https://127.0.0.1:"+port, filepath.Join(dir, "apiserver.crt")
	daemon.Start(t, daemon.Spec{
		Command: []string{daemon.Tool(t, "../../apiserver", "fencepost/impl/kubernetes/apiserver"), "--dir", dir, "--port", port},
		Ready:   daemon.Healthy(url+"/readyz", ca),
	})
	c := &cluster{kubeconfig: filepath.Join(dir, "kubeconfig")}
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"test": {Server: url, CertificateAuthority: ca}},
		Contexts:       map[string]*api.Context{"test": {Cluster: "test"}},
		CurrentContext: "test",
	}, c.kubeconfig)
	config := &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAFile: ca}, QPS: -1}
	leases, err1 := coordinationv1.NewForConfig(config)
	maps, err2 := corev1.NewForConfig(config)
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	c.leases, c.maps = leases.Leases("default"), maps.ConfigMaps("default")
	return c
}

// leader is the name of who has the lease, or "" once it was released.
func (c *cluster) leader(ctx context.Context) (string, error) {
	l, err := c.leases.Get(ctx, "worker", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	h, err := lease.ParseHolder(*l.Spec.HolderIdentity)
	return h.Node, err
}

// counted is the count, and the token that it was written under.
func (c *cluster) counted(ctx context.Context) (n int, token lease.Token, err error) {
	m, err := c.maps.Get(ctx, "worker-count", metav1.GetOptions{})
	if err != nil {
		return 0, 0, err
	}
	n, err = strconv.Atoi(m.Data["count"])
	under, err1 := strconv.ParseUint(m.Annotations[kubernetes.TokenAnnotation], 10, 64)
	return n, lease.Token(under), errors.Join(err, err1)
}

// work starts a worker, and returns once it leads and has counted beyond n.
func (c *cluster) work(t *testing.T, name string, n int) *daemon.Daemon {
	t.Helper()
	spec, err := daemon.Self([]string{"-kubeconfig", c.kubeconfig, "-name", name, "-ttl", "2s"})
	if err != nil {
		t.Fatal(err)
	}
	spec.Ready = func(ctx context.Context) error {
		leader, err := c.leader(ctx)
		if err != nil || leader != name {
			return fmt.Errorf("%q leads: %v", leader, err)
		}
		if now, _, err := c.counted(ctx); err != nil || now <= n {
			return fmt.Errorf("the count is %d: %v", now, err)
		}
		return nil
	}
	return daemon.Start(t, spec)
}

func TestAnotherWorkerGoesOnWithTheCount(t *testing.T) {
	c := startCluster(t)
	a := c.work(t, "a", 0)
	a.Kill()
	before, first, err := c.counted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if leader, err := c.leader(t.Context()); err != nil || leader != "a" {
		t.Fatalf("after a was killed %q leads: %v; want a, until the lease has lapsed", leader, err)
	}
	b := c.work(t, "b", before)
	b.Stop()
	if leader, err := c.leader(t.Context()); err != nil || leader != "" {
		t.Errorf("after b was asked to end %q leads: %v; want nobody", leader, err)
	}
	n, second, err := c.counted(t.Context())
	if err != nil || second <= first {
		t.Errorf("b counted under token %d, a under %d: %v", second, first, err)
	}
	// What a still had in hand.
	late := kubernetes.NewConfigMap(c.maps, "worker-count").Write(t.Context(), first, "count", strconv.Itoa(before+1))
	if again, _, err := c.counted(t.Context()); !errors.Is(late, lease.ErrStale) || again != n || err != nil {
		t.Errorf("a late write of a: %v, and the count is %d, %v; want it refused, and %d", late, again, err, n)
	}
}
