package kubernetes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
)

// clientGo is a candidate of client-go's leaderelection.
type clientGo struct {
	leads, ended chan struct{}
	stop         context.CancelFunc
}

func (s *server) clientGo(t *testing.T, identity string) *clientGo {
	t.Helper()
	client, err := coordinationv1.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c := &clientGo{make(chan struct{}), make(chan struct{}), stop}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "mixed", Namespace: "default"},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.leads) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		elector.Run(ctx)
	}()
	t.Cleanup(c.end)
	return c
}

// end releases the lease, where c has it.
func (c *clientGo) end() {
	c.stop()
	<-c.ended
}

func (c *clientGo) mustLead(t *testing.T) {
	t.Helper()
	select {
	case <-c.leads:
	case <-time.After(20 * time.Second):
		t.Fatal("client-go's candidate does not lead")
	}
}

// A lease of client-go's leaderelection is left alone, unless a migration is
// declared: then each waits for the other, and tokens rise over all of it.
func TestClientGo(t *testing.T) {
	s := startServer(t)
	ours := mustStore(t, s.leases(t, "default"), kubernetes.Options{})
	migrating := mustStore(t, s.leases(t, "default"), kubernetes.Options{Foreign: true})

	first := s.clientGo(t, "pod-1")
	first.mustLead(t)
	_, err := ours.Acquire(t.Context(), "mixed", holder("a"), time.Second)
	if foreign, ok := errors.AsType[*kubernetes.ForeignError](err); !ok || !errors.Is(err, kubernetes.ErrForeign) || foreign.Identity != "pod-1" {
		t.Errorf("without Foreign: %v; want a *ForeignError that names pod-1", err)
	}
	if _, err := ours.Get(t.Context(), "mixed"); !errors.Is(err, kubernetes.ErrForeign) {
		t.Errorf("Get without Foreign: %v; want ErrForeign", err)
	}
	_, err = migrating.Acquire(t.Context(), "mixed", holder("a"), time.Second)
	if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Holder.Node != "pod-1" || held.Token != 0 {
		t.Errorf("with Foreign: %v; want held by pod-1, without a token", err)
	}

	first.end()
	held, err := migrating.Acquire(t.Context(), "mixed", holder("a"), 2*time.Second)
	if err != nil {
		t.Fatalf("after pod-1's release: %v", err)
	}
	second := s.clientGo(t, "pod-2")
	for range 6 { // longer than the lease, which is renewed
		time.Sleep(500 * time.Millisecond)
		if _, err := migrating.Renew(t.Context(), "mixed", holder("a"), held.Token, 2*time.Second); err != nil {
			t.Fatalf("renewal while pod-2 campaigns: %v", err)
		}
	}
	select {
	case <-second.leads:
		t.Fatal("pod-2 leads while a holds the lease")
	default:
	}
	// It renews no more, and pod-2 takes over, the annotation with the rest.
	second.mustLead(t)
	if _, err := migrating.Renew(t.Context(), "mixed", holder("a"), held.Token, time.Second); !errors.Is(err, lease.ErrNotHeld) {
		t.Errorf("renewal after pod-2 took over: %v; want lost", err)
	}
	if o, err := mustStore(t, s.leases(t, "default"), kubernetes.Options{Foreign: true}).Get(t.Context(), "mixed"); err != nil || o.Holder.Node != "pod-2" || o.Token != 0 {
		t.Errorf("Get: %+v, %v; want pod-2 without a token, not a's", o, err)
	}
	second.end()
	again, err := migrating.Acquire(t.Context(), "mixed", holder("b"), time.Second)
	if err != nil || again.Token <= held.Token {
		t.Errorf("after pod-2's release: %+v, %v; want a token above %d", again, err, held.Token)
	}
}
