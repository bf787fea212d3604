package kubernetes

import (
	"context"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"fencepost/impl/lease"
)

// Watcher is the part of [Leases] that [Store.Watch] needs.
type Watcher interface {
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// rewatch is how long a watch that could not be made again waits before it tries
// once more.
const rewatch = time.Second

// Watch implements [lease.Watcher] by a watch on the one object. While it lasts
// the store also takes note of each renewal when it comes, and so of a lapse on
// time. A watch that the server ends, as it does every few minutes, is made
// anew, with a hint for what may have been missed; one whose resource version is
// too old cannot be, since each starts from the present.
//
// The channel is closed, and nothing is left running, once ctx has ended.
func (s *Store) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	w, err := s.watch(ctx, resource)
	if err != nil {
		return nil, fmt.Errorf("lease %q: watch: %w", resource, err)
	}
	// Room for one: a hint that was not taken yet stands for those that follow.
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		for known := (*coordination.Lease)(nil); ; {
			known = s.follow(ctx, w, resource, known, hints)
			w.Stop()
			if w = s.again(ctx, resource); w == nil {
				return
			}
			hint(hints)
		}
	}()
	return hints, nil
}

func (s *Store) watch(ctx context.Context, resource string) (watch.Interface, error) {
	return s.leases.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, ObjectName(resource)).String(),
	})
}

// again is a watch made anew, or nil once ctx has ended.
func (s *Store) again(ctx context.Context, resource string) watch.Interface {
	for ctx.Err() == nil {
		w, err := s.watch(ctx, resource)
		if err == nil {
			return w
		}
		pause := s.clk.Timer(s.clk.Now() + rewatch)
		select {
		case <-pause.C():
		case <-ctx.Done():
		}
		pause.Stop()
	}
	return nil
}

// follow takes note of what w tells until it ends, and gives what was there
// last.
func (s *Store) follow(ctx context.Context, w watch.Interface, resource string, known *coordination.Lease, hints chan<- struct{}) *coordination.Lease {
	for {
		select {
		case <-ctx.Done():
			return known
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return known
			}
			l, ok := e.Object.(*coordination.Lease)
			if !ok {
				continue
			}
			if e.Type == watch.Deleted {
				known = nil
				hint(hints)
				continue
			}
			// Asked for before anything: an event never says that the server went back.
			_, _ = s.sights.saw(resource, l, lease.Sight{}, s.clk.Now())
			if known == nil || !sameTenure(known, l) || held(known) != held(l) {
				hint(hints)
			}
			known = l
		}
	}
}

// held reports whether l names a holder, lapsed or not.
func held(l *coordination.Lease) bool {
	return l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != ""
}

func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}
