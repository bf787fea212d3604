package sim

import (
	"testing"

	"fencepost/model"
)

func TestApplyAllocatesNothing(t *testing.T) {
	schedules, actions := benchSchedules(t)
	for seed := range uint64(16) {
		for _, s := range []*Schedule{scrambled(seed, 300), generated(t, Raw(), seed, 125)} { // calms too
			schedules, actions = append(schedules, s), actions+len(s.Actions)
		}
	}
	for name, opts := range map[string]Options{
		"bare":      {},
		"monitored": {Monitor: true, Trace: &Trace{Events: make([]model.Event, 0, 1<<16)}},
		"lockstep":  {Monitor: true, Lockstep: true},
	} {
		worlds, scratch := worldsOf(schedules, opts), new(World)
		if n := testing.AllocsPerRun(3, func() { replay(schedules, worlds, scratch) }); n != 0 {
			t.Errorf("%s: %v allocations over %d actions, want none", name, n, actions)
		}
	}
}
