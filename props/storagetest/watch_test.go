package storagetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// A lock that a refusal does not give back is told by the first check that waits
// for it, and the others do not wait.
func TestACallThatNeverReturnsIsTold(t *testing.T) {
	open := func(e kit.Env) fence.KV {
		var mu sync.Mutex
		return &faulty{KV: journaled(e), write: func(kv fence.KV, ctx context.Context, token lease.Token, key, value string) error {
			mu.Lock()
			err := kv.Write(ctx, token, key, value)
			if !errors.Is(err, fence.ErrStale) {
				mu.Unlock()
			}
			return err
		}}
	}
	told, skipped := 0, 0
	for _, c := range checks(open, Options{}, effort, 200*time.Millisecond) {
		out := c.Run()
		switch f := out.Failure; {
		case f != nil && f.Rule == everyCallReturns.String():
			told++
			if last := f.Story[len(f.Story)-1]; len(f.Story) > storyLines || !strings.Contains(last, "(no answer)  ◄ must return") {
				t.Errorf("%s:\n%s", f.What, joined(f.Story))
			}
			t.Logf("%s: %v\n%s", c.Name, f, joined(f.Story))
		case strings.Contains(out.Skipped, "does not return"):
			skipped++
		}
	}
	if told != 1 || skipped < 10 {
		t.Errorf("told %d times, and %d checks were skipped", told, skipped)
	}
}
