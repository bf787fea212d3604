package explore

import (
	"slices"
	"strings"
	"testing"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/sim"
)

func TestClaimSaysNoMoreThanWasFound(t *testing.T) {
	for _, c := range []struct {
		found model.Exploration
		want  string
	}{
		{model.Exploration{States: 110_892, Depth: 31, Complete: true}, "complete: 110,892 states, which are all that schedules of any length reach in this world"},
		{model.Exploration{States: 1234, Depth: 1, Bounded: "states"}, "bounded at 1,234 states: every schedule of up to 1 action was covered, and nothing broke; nothing is known of longer ones"},
		{model.Exploration{States: 99, Depth: 7, Failed: true, FailDepth: 7}, "belief-safety breaks within 7 actions, and nothing breaks within fewer"},
		{model.Exploration{States: 1, Depth: 5, Failed: true, FailDepth: 7, Bounded: "memory"}, "belief-safety breaks within 7 actions, perhaps within fewer: bounded at 1 state: every schedule of up to 5 actions was covered"},
	} {
		r := Report{Found: c.found, First: model.Violation{Invariant: model.BeliefSafety}}
		if got := r.Claim(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestAccuracyGivesTheProbability(t *testing.T) {
	r := Report{Found: model.Exploration{Collision: 3.3e-10}}
	if got := r.Accuracy(); !strings.Contains(got, "a probability of 3.3e-10 at most") {
		t.Errorf("hashed states: %s", got)
	}
	r.Found.Exact = true
	if got := r.Accuracy(); !strings.Contains(got, "exactly") {
		t.Errorf("exact states: %s", got)
	}
}

// TestEveryInvariantIsSettledOnce: an invariant is judged, or it is said why
// it is not.
func TestEveryInvariantIsSettledOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		report Report
		off    model.Set
	}{
		{"nothing but what whole histories tell", Report{Judged: Judgeable, Fair: &Wait{}, Config: sim.Config{Lease: lease.Config{Barrier: true}}},
			model.SetOf(model.Linearizability)},
		{"no barrier", Report{Judged: Judgeable, Fair: &Wait{}}, model.SetOf(model.Linearizability, model.Barrier)},
		{"a window too short for a promise", Report{Judged: Judgeable, Config: sim.Config{Lease: lease.Config{Barrier: true}}},
			model.SetOf(model.Linearizability, model.Availability)},
		{"one only", Report{Judged: model.SetOf(model.Durability)}, ^model.SetOf(model.Durability)},
	} {
		judged, others := c.report.Settled()
		for v := range model.Invariants() {
			n := 0
			for _, u := range others {
				if u.Invariant == v && u.Why != "" {
					n++
				}
			}
			if want := c.off.Has(v); judged.Has(v) == want || (n == 1) != want {
				t.Errorf("%s: %v: judged %t, and %d reasons why not", c.name, v, judged.Has(v), n)
			}
		}
	}
}

func TestFaultsAreReadAsWritten(t *testing.T) {
	for i := range len(faultNames) {
		f := Faults(1) << i
		got, err := ParseFaults(f.Names())
		if err != nil || got != f || f&AllFaults == 0 {
			t.Errorf("%v reads as %v: %v", f, got, err)
		}
	}
	if len(AllFaults.Names()) != len(faultNames) || Faults(0).String() != "none" || (Loss|Drifting).String() != "loss, drift" {
		t.Errorf("all are %v; none are %v; two are %v", AllFaults, Faults(0), Loss|Drifting)
	}
	_, err := ParseFaults([]string{"loss", "locusts"})
	if err == nil || !strings.Contains(err.Error(), `"locusts"`) || !strings.Contains(err.Error(), "storage-crash") {
		t.Errorf("the error does not name what is wrong and what there is: %v", err)
	}
}

func TestVerdictsAreReadAsWritten(t *testing.T) {
	for _, v := range []Verdict{Unknown, Holds, Violated} {
		b, err := v.MarshalText()
		var got Verdict
		if err != nil || got.UnmarshalText(b) != nil || got != v {
			t.Errorf("%v is written %s and reads as %v: %v", v, b, got, err)
		}
	}
	if err := new(Verdict).UnmarshalText([]byte("perhaps")); err == nil || !strings.Contains(err.Error(), "holds") {
		t.Errorf("no verdict is read as one, or the error lists none: %v", err)
	}
}

func TestOptionsAreAPhrase(t *testing.T) {
	o := Default()
	if got, want := o.String(), "2 clients, up to 2 messages in flight, a TTL of 4 ticks of 400ms, a drift bound of 1/4, writes to 1 key"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	o.Clients, o.Drift, o.LockDelay, o.Barrier, o.Keys = 1, 1, 2, true, 2
	if got, want := o.String(), "1 client, up to 2 messages in flight, a TTL of 4 ticks of 400ms, true clocks, a lock delay of 2 ticks, the barrier, writes to 2 keys"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestTheLongestWaitIsSeenInReplay: the schedule that is written for the state
// which waits longest shows just that wait, under every invariant.
func TestTheLongestWaitIsSeenInReplay(t *testing.T) {
	o := Default()
	o.Messages = 1
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.Lead(t.Context(), r.Fair.Key)
	if err != nil {
		t.Fatal(err)
	}
	before := s.Run(o.Subject, sim.Options{Monitor: true})
	r.Fair.Waiting(s)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	after := s.Run(o.Subject, sim.Options{Monitor: true, Lockstep: true})
	if took := after.World.Now() - before.World.Now(); took != r.Fair.Longest || r.Fair.Longest < o.Tick() || after.Violated != 0 {
		t.Errorf("replay waits %v, the report says %v; violated: %v", took, r.Fair.Longest, after.Violated)
	}
	if last := s.Actions[len(s.Actions)-1]; last.Kind != sim.Calm || slices.ContainsFunc(s.Actions[:len(s.Actions)-1], func(a sim.Action) bool { return a.ID == last.ID }) {
		t.Errorf("the last action is %v with id %d", last, last.ID)
	}
}

func TestDigitsAreGroupedByThree(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", 100200300: "100,200,300"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is written %s, not %s", n, got, want)
		}
	}
}
