package etcd_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"fencepost/props/daemon"
)

func TestMain(m *testing.M) { daemon.Main(m, member.serve) }

// member is one server of a cluster, and what it has to know.
type member struct {
	Name, Dir, Client, Peer string
	Initial                 string // all members: name=peer URL, ...
	Tick, Election          uint   // milliseconds; 0: the defaults of etcd
	Log                     string // level; default: errors
}

func (m member) serve() error {
	e, err := m.start()
	if err != nil {
		return err
	}
	return <-e.Err()
}

func (m member) start() (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.LogLevel = m.Name, m.Dir, cmp.Or(m.Log, "error")
	client, peer := []url.URL{{Scheme: "http", Host: m.Client}}, []url.URL{{Scheme: "http", Host: m.Peer}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = client, client
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = peer, peer
	cfg.InitialCluster = m.Initial
	if m.Tick > 0 {
		cfg.TickMs, cfg.ElectionMs = m.Tick, m.Election
	}
	return embed.StartEtcd(cfg)
}

// cluster is a running etcd of one server process or several.
type cluster struct {
	members []member
	servers []*daemon.Daemon
}

// brisk are election timeouts which allow for TTLs of one second.
const (
	briskTick     = 50
	briskElection = 500
)

func members(tb testing.TB, n int, tick, election uint) []member {
	all := make([]member, n)
	var initial []string
	for i := range all {
		all[i] = member{
			Name: fmt.Sprintf("m%d", i), Dir: tb.TempDir(), Tick: tick, Election: election,
			Client: fmt.Sprintf("127.0.0.1:%d", daemon.Port(tb)), Peer: fmt.Sprintf("127.0.0.1:%d", daemon.Port(tb)),
		}
		initial = append(initial, all[i].Name+"=http://"+all[i].Peer)
	}
	for i := range all {
		all[i].Initial = strings.Join(initial, ",")
	}
	return all
}

func startCluster(tb testing.TB, n int, tick, election uint) *cluster {
	tb.Helper()
	c := &cluster{members: members(tb, n, tick, election)}
	for _, m := range c.members {
		spec, err := daemon.Self(m)
		if err != nil {
			tb.Fatal(err)
		}
		spec.Ready = m.ready
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

func (c *cluster) endpoints() []string {
	var all []string
	for _, m := range c.members {
		all = append(all, m.Client)
	}
	return all
}

// ready returns nil once m answers a read by quorum.
func (m member) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client, err := dial(m.Client)
	if err != nil {
		return err
	}
	_, err = client.Get(ctx, "ready")
	return errors.Join(err, client.Close())
}

// restart kills server i, and returns once it answers again.
func (c *cluster) restart(ctx context.Context, i int) error { return c.servers[i].Restart(ctx) }

// leader is the number of the server that leads.
func (c *cluster) leader(ctx context.Context) (int, error) {
	for i, m := range c.members {
		client, err := dial(m.Client)
		if err != nil {
			return 0, err
		}
		st, err := client.Status(ctx, m.Client)
		client.Close()
		if err == nil && st.Leader == st.Header.MemberId {
			return i, nil
		}
	}
	return 0, fmt.Errorf("nobody leads %v", c.endpoints())
}

// dial does not connect yet.
func dial(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints,
		Logger:    zap.NewNop(),
		// A server that comes back is to be found again soon.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}, MinConnectTimeout: time.Second,
		})},
	})
}

func connect(tb testing.TB, endpoints ...string) *clientv3.Client {
	tb.Helper()
	client, err := dial(endpoints...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { client.Close() })
	return client
}
