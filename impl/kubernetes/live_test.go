package kubernetes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props"
)

// promises are those of a store that watches each lease that it is asked about,
// as an elector does: then a renewal is seen when it comes.
func promises() props.Options {
	return props.Options{
		Tokens:      model.TokensRising,
		Granularity: time.Second,
		MinTTL:      kubernetes.MinTTL,
		// A process that is asked about a lease for the first time has not seen what
		// went before, and the checks ask some that late.
		Late:            time.Second,
		RenewAfterLapse: true,
	}
}

// watching is a store whose process watches each lease from when it first asks
// about it.
type watching struct {
	*kubernetes.Store
	ctx     context.Context
	mu      sync.Mutex
	watched map[string]bool
}

func (w *watching) watch(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[resource] {
		return
	}
	if hints, err := w.Store.Watch(w.ctx, resource); err == nil {
		w.watched[resource] = true
		go func() {
			for range hints { // until the process ends
			}
		}()
	}
}

func (w *watching) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	w.watch(resource)
	return w.Store.Acquire(ctx, resource, holder, ttl)
}

func (w *watching) Get(ctx context.Context, resource string) (lease.Observation, error) {
	w.watch(resource)
	return w.Store.Get(ctx, resource)
}

func TestStore(t *testing.T) {
	s := startServer(t)
	leases := s.leases(t, "default")
	props.TestLiveStore(t, func(e props.LiveEnv) lease.Store {
		return &watching{Store: mustStore(t, s.leases(t, "default"), kubernetes.Options{}), ctx: e.Context, watched: map[string]bool{}}
	}, props.LiveOptions{
		Options: promises(),
		Restart: s.Restart,
		Delete: func(ctx context.Context, resource string) error {
			return leases.Delete(ctx, kubernetes.ObjectName(resource), metav1.DeleteOptions{})
		},
	})
}
