package kubernetes_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props"
)

// promises are those of processes that watch the lease from before it is taken,
// as candidates do: then each renewal is seen when it comes.
func promises() props.Options {
	return props.Options{
		Tokens:          model.TokensRising,
		Granularity:     time.Second,
		MinTTL:          kubernetes.MinTTL,
		Late:            time.Second, // that a busy machine needs until a watch tells, and the allowance for drift
		RenewAfterLapse: true,
	}
}

// fleet is processes of which each watches all leases that one of them has asked
// about.
type fleet struct {
	mu        sync.Mutex
	processes []*watching
	resources []string
	watches   sync.WaitGroup
}

// watching is one of them.
type watching struct {
	*kubernetes.Store
	ctx   context.Context
	fleet *fleet
}

func (f *fleet) add(ctx context.Context, s *kubernetes.Store) *watching {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &watching{s, ctx, f}
	f.processes = append(f.processes, w)
	for _, resource := range f.resources {
		w.watch(resource)
	}
	return w
}

func (f *fleet) know(resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.resources, resource) {
		return
	}
	f.resources = append(f.resources, resource)
	for _, w := range f.processes {
		w.watch(resource)
	}
}

// watch watches until the process ends. Where that has ended, nothing does.
func (w *watching) watch(resource string) {
	if hints, err := w.Store.Watch(w.ctx, resource); err == nil {
		w.fleet.watches.Go(func() {
			for range hints { // closed with the process
			}
		})
	}
}

func (w *watching) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	w.fleet.know(resource)
	return w.Store.Acquire(ctx, resource, holder, ttl)
}

func (w *watching) Get(ctx context.Context, resource string) (lease.Observation, error) {
	w.fleet.know(resource)
	return w.Store.Get(ctx, resource)
}

func TestStore(t *testing.T) {
	s := startServer(t)
	leases := s.leases(t, "default")
	var f fleet
	t.Cleanup(f.watches.Wait)
	props.TestLiveStore(t, func(e props.LiveEnv) lease.Store {
		return f.add(e.Context, mustStore(t, s.leases(t, "default"), kubernetes.Options{}))
	}, props.LiveOptions{
		Options: promises(),
		Latency: time.Second, // the server and its etcd share the machine with all that asks them
		Restart: s.Restart,
		Delete: func(ctx context.Context, resource string) error {
			return leases.Delete(ctx, kubernetes.ObjectName(resource), metav1.DeleteOptions{})
		},
	})
}
