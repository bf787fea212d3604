package livetest

import (
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
)

// memory is a server that processes share, such as lease.Memory with a journal.
type memory struct {
	journal journal
	now     lease.Store
}

// journal is durable state.
type journal map[string]lease.Durable

func newMemory(t *testing.T) *lease.Memory {
	t.Helper()
	m, err := lease.NewMemory(clock.Boot(), lease.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// quick are options with TTLs so short that the checks take seconds.
var quick = Options{Options: kit.Options{MinTTL: 100 * time.Millisecond, SteadyClock: true}, TTL: 200 * time.Millisecond, Latency: 50 * time.Millisecond}

func TestARightStoreHolds(t *testing.T) {
	m := newMemory(t)
	for _, c := range StoreChecks(func(Env) lease.Store { return m }, quick) {
		out := kit.Guard(c.Run)
		switch {
		case out.Failure != nil:
			t.Errorf("%s: %s", c.Name, out.Failure.Text(nil, ""))
		case out.Unknown != "":
			t.Errorf("%s: unknown: %s", c.Name, out.Unknown)
		default:
			t.Logf("%s: %s%s", c.Name, out.Covered, out.Skipped)
		}
	}
}
