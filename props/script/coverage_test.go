package script

import (
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/props/kit"
)

func TestCoverageCountsWhatARunReached(t *testing.T) {
	o := kit.Options{LockDelay: 5 * time.Second}
	var c Coverage
	c.Add(Run(memoryWith(5*time.Second), o, Parse(`
		renew a 10s           # no-op
		acquire a 10s         # grant
		acquire a 10s         # retry
		acquire b 10s         # held
		renew a 10s           # renewal
		renew b of a 10s      # lapsed or lost, under the latest token
		restart               # while held
		advance 9.999999999s
		acquire b 10s         # held, just before the end
		advance 1ns
		renew a 10s           # lapsed, at the end
		acquire b 10s         # delayed, at the end
		restart               # not held; the lock delay starts anew
		advance 5s
		acquire b 10s         # grant, a takeover
		release a             # lost, for its token
		release b             # release
		acquire b 0s          # invalid
		acquire b 10s         # grant, no takeover
		delete
		get`)))
	want := Coverage{Scripts: 1, Steps: 21, NoOps: 1, Grants: 3, Takeovers: 1, Retries: 1, Renewals: 1, Releases: 1,
		Held: 2, Delayed: 1, Lapsed: 2, Lost: 1, Invalid: 1, AtTheEnd: 2, JustBefore: 1, HeldRestart: 1, Deletions: 1}
	if c != want {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if missed := c.Missed(o); missed != nil {
		t.Errorf("it missed %v", missed)
	}
	if got, want := c.String(), "1 scripts, 21 steps: 3 grants (1 takeovers), 1 renewals, 1 releases, 7 refusals, 1 restarts while held"; got != want {
		t.Errorf("it says %q", got)
	}
}

func TestABatchSaysWhatItMissed(t *testing.T) {
	var c Coverage
	all := c.Missed(kit.Options{LockDelay: 1})
	if len(all) != 12 {
		t.Errorf("nothing at all misses %d things: %v", len(all), all)
	}
	if less := c.Missed(kit.Options{Volatile: true}); len(less) != 10 || slices.ContainsFunc(less, func(s string) bool {
		return strings.Contains(s, "restart") || strings.Contains(s, "lock delay")
	}) {
		t.Errorf("it misses what cannot be: %v", less)
	}
	c.Add(Run(memory, kit.Options{}, Parse("acquire a 10s\nadvance 10s\nacquire a 10s")))
	if missed := c.Missed(kit.Options{}); !slices.Contains(missed, "a takeover of a lapsed lease") || slices.Contains(missed, "a lease granted") {
		t.Errorf("it missed %v", missed)
	}
}

// What is worth asking after a restart is asked when the tenure ends by the
// clock that the store has.
func TestCoverageFollowsTheStoresClockOverARestart(t *testing.T) {
	steps := Parse("acquire a 10s\nadvance 4s\nrestart\nadvance 6s\nacquire b 10s\nadvance 4s\nget")
	for _, v := range []struct {
		open   Open
		o      kit.Options
		atEnd  int
		grants int
	}{
		{memory, kit.Options{}, 1, 1},                                  // asked at 14s who holds it
		{rig{steady: true}.open, kit.Options{SteadyClock: true}, 1, 2}, // b asked at 10s
	} {
		r := Run(v.open, v.o, steps)
		var c Coverage
		c.Add(r)
		if r.Breach != nil || c.AtTheEnd != v.atEnd || c.Grants != v.grants || c.HeldRestart != 1 {
			t.Errorf("steady %t: %+v", v.o.SteadyClock, c)
		}
	}
}
