package kubernetes_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"fencepost/impl/kubernetes"
)

// memory is what an API server does with leases, in memory and at once, so that
// rules can be checked in fake time: it enforces resource versions and UIDs,
// and counts revisions as etcd does. That the real one does the same is for
// TestMemoryDoesAsTheServer.
type memory struct {
	mu       sync.Mutex
	revision uint64
	objects  map[string]*coordination.Lease
}

var _ kubernetes.Leases = (*memory)(nil)

func newMemory() *memory { return &memory{revision: 1, objects: map[string]*coordination.Lease{}} }

func (m *memory) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordination.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, ok := m.objects[name]
	if !ok {
		return nil, apierrors.NewNotFound(coordination.Resource("leases"), name)
	}
	return l.DeepCopy(), nil
}

func (m *memory) Create(ctx context.Context, l *coordination.Lease, _ metav1.CreateOptions) (*coordination.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.objects[l.Name] != nil {
		return nil, apierrors.NewAlreadyExists(coordination.Resource("leases"), l.Name)
	}
	return m.put(l, types.UID("uid-"+strconv.FormatUint(m.revision+1, 10))), nil
}

func (m *memory) Update(ctx context.Context, l *coordination.Lease, _ metav1.UpdateOptions) (*coordination.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	is, ok := m.objects[l.Name]
	switch {
	case !ok && l.UID == "":
		return m.put(l, types.UID("uid-"+strconv.FormatUint(m.revision+1, 10))), nil
	case !ok || l.UID != "" && l.UID != is.UID || l.ResourceVersion != is.ResourceVersion:
		return nil, apierrors.NewConflict(coordination.Resource("leases"), l.Name, errors.New("the object has been modified"))
	}
	return m.put(l, is.UID), nil
}

// put stores a copy of l, and gives one. It is called under mu.
func (m *memory) put(l *coordination.Lease, uid types.UID) *coordination.Lease {
	m.revision++
	l = l.DeepCopy()
	l.UID, l.ResourceVersion = uid, strconv.FormatUint(m.revision, 10)
	m.objects[l.Name] = l
	return l.DeepCopy()
}

func (m *memory) delete(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok {
		m.revision++
		delete(m.objects, name)
	}
}

// names are those of all leases, in order.
func (m *memory) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

func (m *memory) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errors.New("nothing is watched in memory")
}
