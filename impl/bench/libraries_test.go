package bench

import (
	"context"
	"errors"
	"math"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"fencepost/impl/etcd"
	"fencepost/impl/lease"
)

// campaign waits until it leads, calls lead, gives the lead back and returns.
type campaign func(ctx context.Context, lead lead) error

// library makes a candidate that is connected, or will be.
type library func(ctx context.Context, j job) (campaign, error)

const (
	ours     = "fencepost"
	clientGo = "client-go"
	election = "etcd concurrency"
	reckless = "reckless"
)

// measured are the libraries in the order of the table.
var measured = []string{ours, clientGo, election}

var libraries = map[string]library{ours: withElector, clientGo: withClientGo, election: withElection, reckless: withNothing}

var errResigned = errors.New("told to resign")

// timing is what candidates and groups with this TTL run with.
func timing(ttl time.Duration) lease.Config {
	return lease.Config{TTL: ttl, MaxDriftRate: 0.01, SafetyMargin: 100 * time.Millisecond}
}

func withElector(_ context.Context, j job) (campaign, error) {
	client, err := j.Server.etcd()
	if err != nil {
		return nil, err
	}
	elector, err := lease.NewElector(etcd.New(client, etcd.Options{}), lease.ElectorConfig{Resource: j.Resource, Node: j.Name, Timing: timing(j.TTL), Clock: boot})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, lead lead) error {
		err := elector.Run(ctx, func(ctx context.Context, term lease.Term) error {
			lead(ctx.Done(), term.Deadline)
			return errResigned
		})
		if errors.Is(err, errResigned) {
			return nil
		}
		return err
	}, nil
}

func withClientGo(_ context.Context, j job) (campaign, error) {
	client, err := coordinationv1.NewForConfig(j.Server.kubernetes())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, lead lead) error {
		running, resign := context.WithCancel(ctx)
		defer resign()
		led := make(chan struct{})
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: "bench", Name: j.Resource},
				Client:     client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: j.Name},
			},
			// The defaults of its users, 15 s, 10 s and 2 s, in proportion.
			LeaseDuration: j.TTL, RenewDeadline: j.TTL * 2 / 3, RetryPeriod: j.TTL * 2 / 15,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					defer close(led)
					lead(ctx.Done(), forever)
					resign()
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		elector.Run(running)
		if ctx.Err() == nil {
			<-led // it does not wait for that itself
		}
		return nil
	}, nil
}

func withElection(ctx context.Context, j job) (campaign, error) {
	client, err := j.Server.etcd()
	if err != nil {
		return nil, err
	}
	var session *concurrency.Session
	return func(ctx context.Context, lead lead) error {
		if session == nil || closed(session.Done()) {
			var err error
			session, err = concurrency.NewSession(client, concurrency.WithTTL(int(j.TTL/time.Second)), concurrency.WithContext(ctx))
			if err != nil {
				return err
			}
		}
		e := concurrency.NewElection(session, "election/"+j.Resource)
		if err := e.Campaign(ctx, j.Name); err != nil {
			return err
		}
		lead(session.Done(), forever)
		return e.Resign(ctx)
	}, nil
}

// withNothing asks nobody, and must be caught.
func withNothing(context.Context, job) (campaign, error) {
	return func(ctx context.Context, lead lead) error {
		lead(ctx.Done(), forever)
		return nil
	}, nil
}

// forever is the deadline of who knows none.
func forever() time.Duration { return math.MaxInt64 }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
