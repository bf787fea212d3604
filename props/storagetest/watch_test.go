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
	for _, c := range checks(open, Options{}, effort, time.Second) {
		out := c.Run()
		switch f := out.Failure; {
		case f != nil && f.Rule == everyCallReturns.String():
			told++
			if last := f.Story[len(f.Story)-1]; len(f.Story) > storyLines || !strings.Contains(last, "(no answer)  ◄ must return") {
				t.Errorf("%s:\n%s", f.What, joined(f.Story))
			}
			t.Logf("%s: %v\n%s", c.Name, f, joined(f.Story))
		case strings.Contains(out.Skipped, "an earlier call never returned"):
			skipped++
		}
	}
	if told != 1 || skipped < 10 {
		t.Errorf("told %d times, and %d checks were skipped", told, skipped)
	}
}

// What stands in for a storage is no storage; nor does one that waits to be opened
// or to be closed hold up more than a check.
func TestWhatCannotBeOpenedIsUnknown(t *testing.T) {
	for says, open := range map[string]func(kit.Env) fence.KV{
		"open returned nil":                  func(kit.Env) fence.KV { return nil },
		"open returned a nil *fence.Storage": func(kit.Env) fence.KV { return (*fence.Storage)(nil) },
		"Funcs.Write is nil: set it":         func(kit.Env) fence.KV { return Funcs{}.KV() },
	} {
		for _, c := range Checks(open, Options{}, effort) {
			if out := c.Run(); out.Skipped == "" && !strings.HasSuffix(out.Unknown, says) {
				t.Errorf("%s came to %+v, want: %s", c.Name, out, says)
			}
		}
	}
}

func TestWhatIsWaitedForAtTheEndsOfAProcessIsTold(t *testing.T) {
	for what, open := range map[string]func(kit.Env) fence.KV{
		"open":  func(kit.Env) fence.KV { select {} },
		"Close": func(kit.Env) fence.KV { return Funcs{Write: admit, Close: func() { select {} }}.KV() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const limit = time.Second
			o := Options{Volatile: true, NoRead: true}.known(open, limit)
			f := checks(open, o, effort, limit)[0].Run().Failure
			if f == nil || f.Rule != everyCallReturns.String() || f.What != what+" did not return in 1s" || f.More == "" {
				t.Errorf("told %+v", f)
			}
		})
	}
}

// admit writes whatever comes.
func admit(context.Context, uint64, string, string) (bool, error) { return true, nil }
