package nats_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fencepost/impl/nats"
	"fencepost/props/daemon"
)

func TestMain(m *testing.M) { daemon.Main(m, member.serve) }

// member is one server, and what it has to know.
type member struct {
	Name, Dir string
	Port      int
	Route     int   // its own port for the others; 0: alone
	Routes    []int // of all
}

func (m member) serve() error {
	s, err := m.start()
	if err != nil {
		return err
	}
	s.WaitForShutdown()
	return nil
}

func (m member) start() (*server.Server, error) {
	o := &server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: m.Port, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: m.Dir, SyncAlways: true,
	}
	if m.Route > 0 {
		o.Cluster = server.ClusterOpts{Name: "fencepost", Host: "127.0.0.1", Port: m.Route}
		for _, r := range m.Routes {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", r)})
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	return s, nil
}

// cluster is a running NATS of one server process or several.
type cluster struct {
	members []member
	servers []*daemon.Daemon
}

// buckets that a cluster has from the start.
const (
	leases = "leases"
	data   = "data"
)

func startCluster(tb testing.TB, n int) *cluster {
	tb.Helper()
	c := &cluster{}
	var routes []int
	for i := range n {
		m := member{Name: fmt.Sprintf("m%d", i), Dir: tb.TempDir(), Port: daemon.Port(tb)}
		if n > 1 {
			m.Route = daemon.Port(tb)
			routes = append(routes, m.Route)
		}
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		m.Routes = routes
		spec, err := daemon.Self(m)
		if err != nil {
			tb.Fatal(err)
		}
		spec.Ready = c.ready
		c.servers = append(c.servers, daemon.Launch(tb, spec))
	}
	// Only with a majority does any of them answer.
	for _, s := range c.servers {
		if err := s.Await(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

// ready returns nil once both buckets are there and answer.
func (c *cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	js, err := dial(c.url())
	if err != nil {
		return err
	}
	defer js.Conn().Close()
	for _, name := range []string{leases, data} {
		if err := nats.CreateBucket(ctx, js, name, len(c.members)); err != nil {
			return err
		}
	}
	return nil
}

// restart kills server i, and returns once the cluster answers again.
func (c *cluster) restart(ctx context.Context, i int) error { return c.servers[i].Restart(ctx) }

func (c *cluster) url() string {
	var all []string
	for _, m := range c.members {
		all = append(all, fmt.Sprintf("nats://127.0.0.1:%d", m.Port))
	}
	return strings.Join(all, ",")
}

func dial(url string) (jetstream.JetStream, error) {
	// A server that comes back is to be found again soon.
	conn, err := natsgo.Connect(url, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(50*time.Millisecond), natsgo.ReconnectJitter(0, 0))
	if err != nil {
		return nil, err
	}
	return jetstream.New(conn)
}

func connect(tb testing.TB, url string) jetstream.JetStream {
	tb.Helper()
	js, err := dial(url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(js.Conn().Close)
	return js
}
