package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// watching is a right store with another Watch.
type watching struct {
	*lease.Memory
	watch func(m *lease.Memory, ctx context.Context, resource string) (<-chan struct{}, error)
}

func (w watching) Watch(ctx context.Context, resource string) (<-chan struct{}, error) {
	return w.watch(w.Memory, ctx, resource)
}

func TestEachWrongWatchFailsTheCheckThatNamesIt(t *testing.T) {
	silent := func(_ *lease.Memory, ctx context.Context, _ string) (<-chan struct{}, error) {
		c := make(chan struct{})
		context.AfterFunc(ctx, func() { close(c) })
		return c, nil
	}
	for _, c := range []struct {
		name  string
		watch func(m *lease.Memory, ctx context.Context, resource string) (<-chan struct{}, error)
		want  []string
	}{
		{"sends nothing", silent, []string{
			"watch/a-release-is-hinted", "watch/a-change-of-holder-is-hinted", "watch/a-deletion-is-hinted", "watch/every-watcher-is-hinted"}},
		{"does not end", func(m *lease.Memory, ctx context.Context, resource string) (<-chan struct{}, error) {
			return m.Watch(context.WithoutCancel(ctx), resource)
		}, []string{"watch/the-end-of-the-context-ends-the-watch"}},
		{"ends at once", func(m *lease.Memory, ctx context.Context, resource string) (<-chan struct{}, error) {
			c := make(chan struct{})
			close(c)
			return c, nil
		}, []string{"watch/a-release-is-hinted", "watch/a-change-of-holder-is-hinted", "watch/a-deletion-is-hinted", "watch/every-watcher-is-hinted"}},
		{"watches the wrong lease", func(m *lease.Memory, ctx context.Context, resource string) (<-chan struct{}, error) {
			return m.Watch(ctx, resource+"?")
		}, []string{"watch/a-release-is-hinted", "watch/a-change-of-holder-is-hinted", "watch/a-deletion-is-hinted", "watch/every-watcher-is-hinted"}},
		{"cannot", func(*lease.Memory, context.Context, string) (<-chan struct{}, error) { return nil, context.Canceled }, []string{
			"watch/a-release-is-hinted", "watch/a-change-of-holder-is-hinted", "watch/a-deletion-is-hinted", "watch/every-watcher-is-hinted", "watch/the-end-of-the-context-ends-the-watch"}},
	} {
		open := func(e kit.Env) lease.Store { return watching{right(0)(e), c.watch} }
		var failed []string
		for _, check := range watchChecks(open, kit.Options{}, time.Millisecond) {
			if out := check.Run(); out.Failure != nil {
				failed = append(failed, check.Name)
			}
		}
		if !slices.Equal(failed, c.want) {
			t.Errorf("a watch that %s fails %v, want %v", c.name, failed, c.want)
		}
	}
}
