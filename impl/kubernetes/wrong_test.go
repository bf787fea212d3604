package kubernetes_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	fakecoordination "k8s.io/client-go/kubernetes/typed/coordination/v1/fake"
	clienttesting "k8s.io/client-go/testing"

	"fencepost/impl/kubernetes"
	"fencepost/impl/lease"
	"fencepost/props"
	"fencepost/props/kit"
	"fencepost/props/livetest"
)

// fakeLeases is client-go's fake clientset, as far as leases go: what
// k8s.io/client-go/kubernetes/fake.NewSimpleClientset makes of its parts.
func fakeLeases(t testing.TB) kubernetes.Leases {
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	fake := &clienttesting.Fake{}
	fake.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
	fake.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := tracker.Watch(action.GetResource(), action.GetNamespace())
		return err == nil, w, err
	})
	return (&fakecoordination.FakeCoordinationV1{Fake: fake}).Leases("default")
}

// stamped gives objects the resource versions that the fake leaves out. What it
// does not do, to compare them, it still does not.
type stamped struct {
	kubernetes.Leases
	revision *atomic.Int64
}

func (s stamped) stamp(l *coordination.Lease) *coordination.Lease {
	l = l.DeepCopy()
	l.ResourceVersion = strconv.FormatInt(s.revision.Add(1), 10)
	return l
}

func (s stamped) Create(ctx context.Context, l *coordination.Lease, o metav1.CreateOptions) (*coordination.Lease, error) {
	return s.Leases.Create(ctx, s.stamp(l), o)
}

func (s stamped) Update(ctx context.Context, l *coordination.Lease, o metav1.UpdateOptions) (*coordination.Lease, error) {
	return s.Leases.Update(ctx, s.stamp(l), o)
}

// withoutUID updates what was deleted, and so creates it again.
type withoutUID struct{ kubernetes.Leases }

func (w withoutUID) Update(ctx context.Context, l *coordination.Lease, o metav1.UpdateOptions) (*coordination.Lease, error) {
	l = l.DeepCopy()
	l.UID = ""
	return w.Leases.Update(ctx, l, o)
}

// dated judges a lapse by renewTime, which another machine wrote, on a clock
// that is ahead of that one's.
type dated struct {
	lease.Store
	leases kubernetes.Leases
	ahead  time.Duration
}

func (s dated) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if lease.Refusal(err) != lease.CodeHeld {
		return g, err
	}
	l, err := s.leases.Get(ctx, kubernetes.ObjectName(resource), metav1.GetOptions{})
	if err != nil {
		return g, err
	}
	duration := time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	if time.Now().Add(s.ahead).After(l.Spec.RenewTime.Add(duration)) {
		l.Spec.HolderIdentity = nil
		if _, err := s.leases.Update(ctx, l, metav1.UpdateOptions{}); err != nil {
			return g, err
		}
	}
	return s.Store.Acquire(ctx, resource, holder, ttl)
}

// counting has leaseTransitions as the token.
type counting struct {
	lease.Store
	leases kubernetes.Leases
	true   *sync.Map // the store's token by holder and its own
}

type tenure struct {
	holder lease.Holder
	token  lease.Token
}

func (s counting) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, ttl)
	if err != nil {
		return g, err
	}
	l, err := s.leases.Get(ctx, kubernetes.ObjectName(resource), metav1.GetOptions{})
	if err != nil {
		return g, err
	}
	token := lease.Token(*l.Spec.LeaseTransitions) + 1
	s.true.Store(tenure{holder, token}, g.Token)
	g.Token = token
	return g, nil
}

func (s counting) Renew(ctx context.Context, resource string, holder lease.Holder, token lease.Token, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Renew(ctx, resource, holder, s.of(holder, token), ttl)
	g.Token = token
	return g, err
}

func (s counting) Release(ctx context.Context, resource string, holder lease.Holder, token lease.Token) error {
	return s.Store.Release(ctx, resource, holder, s.of(holder, token))
}

func (s counting) of(holder lease.Holder, token lease.Token) lease.Token {
	if t, ok := s.true.Load(tenure{holder, token}); ok {
		return t.(lease.Token)
	}
	return 1
}

// truncating keeps whole seconds, rounded down, and promises the rest.
type truncating struct{ lease.Store }

func (s truncating) Acquire(ctx context.Context, resource string, holder lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := s.Store.Acquire(ctx, resource, holder, max(ttl.Truncate(time.Second), min(ttl, time.Second)))
	if err == nil {
		g.TTL = ttl
	}
	return g, err
}

// Each wrong store is caught by the check that is about its fault.
func TestWrongStoresAreCaught(t *testing.T) {
	s := startServer(t)
	leases := s.leases(t, "default")
	fake := stamped{fakeLeases(t), new(atomic.Int64)}
	var transitions sync.Map
	var f fleet
	t.Cleanup(f.watches.Wait)
	watched := func(e props.LiveEnv) lease.Store {
		return f.add(e.Context, mustStore(t, leases, kubernetes.Options{}))
	}
	for _, wrong := range []struct {
		name, check string
		open        func(n int64, e props.LiveEnv) lease.Store
	}{
		{"client-go's fake clientset", "rules/takeover", func(int64, props.LiveEnv) lease.Store { return mustStore(t, fake, kubernetes.Options{}) }},
		{"an update without the UID", "tokens/after-a-deletion", func(int64, props.LiveEnv) lease.Store { return mustStore(t, withoutUID{leases}, kubernetes.Options{}) }},
		{"renewTime judged on a clock ahead", "rules/acquire-held-is-refused", func(n int64, e props.LiveEnv) lease.Store {
			return dated{watched(e), leases, time.Duration(n) * 10 * time.Second}
		}},
		{"leaseTransitions as token", "tokens/after-a-deletion", func(_ int64, e props.LiveEnv) lease.Store { return counting{watched(e), leases, &transitions} }},
		{"truncated seconds", "ttl/1999ms", func(_ int64, e props.LiveEnv) lease.Store { return truncating{watched(e)} }},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			o := livetest.Options{Options: promises(), Delete: func(ctx context.Context, resource string) error {
				return leases.Delete(ctx, kubernetes.ObjectName(resource), metav1.DeleteOptions{})
			}}
			checks := livetest.StoreChecks(func(e props.LiveEnv) lease.Store { return wrong.open(opened.Add(1), e) }, o)
			f, err := kit.Convict(checks, wrong.check)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("caught: %v", f)
		})
	}
}

// The fake clientset gives no resource versions at all, which is refused before
// anybody believes to lead on the strength of it.
func TestNoLeaseWithoutResourceVersions(t *testing.T) {
	s := mustStore(t, fakeLeases(t), kubernetes.Options{})
	_, err := s.Acquire(t.Context(), "scheduler", holder("a"), time.Second)
	if v, ok := errors.AsType[*kubernetes.VersionError](err); !ok || v.Name != "scheduler" {
		t.Fatalf("acquired of a server without resource versions: %v", err)
	}
}
