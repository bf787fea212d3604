package props

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// All checks of a right store and a right storage pass, as subtests.
func TestLiveChecksPassWhatIsRight(t *testing.T) {
	m, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("store", func(t *testing.T) {
		TestLiveStore(t, func(LiveEnv) lease.Store { return m }, LiveOptions{
			Options: kit.Options{MinTTL: 100 * time.Millisecond, Volatile: true}, TTL: 200 * time.Millisecond, Latency: 50 * time.Millisecond,
		})
	})
	t.Run("storage", func(t *testing.T) {
		kv := fence.NewCompareAndSwap(m, "app")
		TestLiveStorage(t, func(LiveEnv) fence.KV { return kv }, LiveStorageOptions{
			Lease: func(LiveEnv) lease.Store { return m }, Resource: "app", Volatile: true,
		})
	})
}

// unowned frees a lease whoever asks.
type unowned struct{ *lease.Memory }

func (u unowned) Release(ctx context.Context, resource string, _ lease.Holder, _ lease.Token) error {
	return u.Delete(ctx, resource)
}

func TestLiveChecksTellWhatIsWrongAndWhere(t *testing.T) {
	t.Chdir(t.TempDir())
	m, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSheet("TestMine")
	testLiveStore(s, func(LiveEnv) lease.Store { return unowned{m} }, LiveOptions{
		Options: kit.Options{MinTTL: 100 * time.Millisecond}, TTL: 200 * time.Millisecond, Latency: 50 * time.Millisecond,
	})
	said := strings.Join(*s.lines, "\n")
	for _, want := range []string{
		"error TestMine/rules/release-only-by-the-holder: release-only-by-the-holder: b releases under token 1",
		"error TestMine/restart/keeps-the-tenure: unknown: nobody knows what a restart of the server loses",
		"(a history, for: go tool fencepost check --html page.html FILE)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
}

func TestLiveOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []struct {
		o    LiveOptions
		says string
	}{
		{LiveOptions{TTL: time.Second, Options: kit.Options{MinTTL: 2 * time.Second}}, "options: TTL: 1s is less than MinTTL, 2s"},
		{LiveOptions{TTL: time.Hour}, "options: TTL: 1h0m0s is not between"},
		{LiveOptions{Latency: -1}, "options: Latency: -1ns is not between"},
		{LiveOptions{NoRestart: "no", Restart: func(context.Context) error { return nil }}, "options: NoRestart: Restart is set"},
	} {
		err := c.o.Validate()
		if _, ok := errors.AsType[*kit.OptionsError](err); !ok || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: %v; want %q", c.o, err, c.says)
		}
	}
	for _, o := range []LiveStorageOptions{{Resource: "app"}, {TTL: -1}, {NoRead: true, NoFence: true}} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
