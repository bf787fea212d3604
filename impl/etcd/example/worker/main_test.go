package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
	"fencepost/props/daemon"
)

// process is what the test binary can be besides: a worker with such arguments,
// or an etcd.
type process struct {
	Args              []string
	Dir, Client, Peer string
}

func TestMain(m *testing.M) { daemon.Main(m, process.run) }

func (p process) run() error {
	if p.Dir == "" {
		os.Args = append(os.Args[:1], p.Args...)
		main()
		return nil
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel = p.Dir, "error"
	client, peer := []url.URL{{Scheme: "http", Host: p.Client}}, []url.URL{{Scheme: "http", Host: p.Peer}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	return <-e.Err()
}

func start(t *testing.T, p process, ready func(context.Context) error) *daemon.Daemon {
	t.Helper()
	spec, err := daemon.Self(p)
	if err != nil {
		t.Fatal(err)
	}
	spec.Ready = ready
	return daemon.Start(t, spec)
}

// shared is what the workers have in common: an etcd.
type shared struct {
	address string
	store   *etcd.Store
	data    *etcd.Storage
}

func startEtcd(t *testing.T) *shared {
	t.Helper()
	p := process{Dir: t.TempDir(), Client: fmt.Sprintf("127.0.0.1:%d", daemon.Port(t)), Peer: fmt.Sprintf("127.0.0.1:%d", daemon.Port(t))}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	start(t, p, daemon.Healthy("http://"+p.Client+"/readyz", ""))
	s := &shared{address: p.Client, store: etcd.New(client, etcd.Options{})}
	s.data = etcd.NewStorage(s.store, "worker", "example/worker/")
	return s
}

func (s *shared) count(ctx context.Context) (int, error) {
	text, _, err := s.data.Read(ctx, "count")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// work starts a worker, and returns once it leads and has counted beyond n, with
// the token under which it does.
func (s *shared) work(t *testing.T, name string, n int) (*daemon.Daemon, lease.Token) {
	t.Helper()
	var token lease.Token
	d := start(t, process{Args: []string{"-endpoints", s.address, "-name", name, "-ttl", "2s"}}, func(ctx context.Context) error {
		o, err := s.store.Get(ctx, "worker")
		if err != nil || o.Holder.Node != name {
			return fmt.Errorf("%v leads: %v", o.Holder, err)
		}
		if now, err := s.count(ctx); err != nil || now <= n {
			return fmt.Errorf("the count is %d: %v", now, err)
		}
		token = o.Token
		return nil
	})
	return d, token
}

func TestAnotherWorkerGoesOnWithTheCount(t *testing.T) {
	s := startEtcd(t)
	a, first := s.work(t, "a", 0)
	a.Kill()
	if o, err := s.store.Get(t.Context(), "worker"); err != nil || o.Holder.Node != "a" {
		t.Fatalf("after a was killed: %+v, %v; want it held by a, until the lease has lapsed", o, err)
	}
	before, err := s.count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, second := s.work(t, "b", before)
	if second <= first {
		t.Errorf("b leads under token %d, after a under %d", second, first)
	}
	b.Stop()
	if o, err := s.store.Get(t.Context(), "worker"); err != nil || !o.Holder.IsZero() {
		t.Errorf("after b was asked to end: %+v, %v; want it held by nobody", o, err)
	}
	n, err := s.count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// What a still had in hand.
	late := s.data.Write(t.Context(), first, "count", strconv.Itoa(before+1))
	if again, err := s.count(t.Context()); !errors.Is(late, lease.ErrStale) || again != n || err != nil {
		t.Errorf("a late write of a: %v, and the count is %d, %v; want it refused, and %d", late, again, err, n)
	}
}
