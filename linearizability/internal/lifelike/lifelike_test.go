package lifelike

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/linearizability"
)

// faulty is a service with everything that can happen to a correct one.
func faulty(seed uint64) Config {
	return Config{
		Seed: seed, Leases: 2, Drift: 2_000_000, Early: 5 * time.Millisecond, Late: 10 * time.Millisecond,
		LockDelay: 300 * time.Millisecond, TTLs: []time.Duration{time.Second, 400 * time.Millisecond},
		Storage: true, Leads: true, Unknown: 0.08, Duplicates: 0.05, Restarts: 0.005, Deletes: 0.002,
	}
}

func TestEqualConfigsMakeEqualHistories(t *testing.T) {
	for _, eps := range []time.Duration{0, time.Millisecond} {
		c := faulty(7)
		c.Eps = eps
		h := c.History()
		if !reflect.DeepEqual(h, c.History()) {
			t.Errorf("eps %v: two runs differ", eps)
		}
		if c.Seed = 8; reflect.DeepEqual(h.Events, c.History().Events) {
			t.Errorf("eps %v: another seed makes the same history", eps)
		}
	}
}

func TestHistoriesAreWellFormedAndHaveNoProofAgainstThem(t *testing.T) {
	for seed := range uint64(12) {
		c := faulty(seed)
		switch seed % 4 {
		case 1:
			c.Eps = 2 * time.Millisecond
		case 2:
			c.RenewAfterLapse, c.Anchor = true, linearizability.AnchorCall
		case 3:
			c.Leases, c.Barrier, c.Tokens = 1, true, linearizability.TokensRising
		}
		h := c.History()
		if err := h.Validate(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if p := Proof(h); p != "" {
			t.Errorf("seed %d: %s", seed, p)
		}
	}
}

// TestEverythingHappens: a simulation in which nothing goes wrong shows
// nothing.
func TestEverythingHappens(t *testing.T) {
	c := faulty(1)
	c.Operations = 20_000
	seen := make(map[string]int)
	word := func(e linearizability.Event, name string) string { s, _ := e.Field(name).Word(); return s }
	for e := range c.Events() {
		what := e.F + " " + e.Type.String()
		if e.Type == linearizability.Fail {
			what = e.F + " " + word(e, "error")
		}
		seen[what]++
		if what == "get ok" && word(e, "owner") == "" {
			seen["get nobody"]++
		}
	}
	for what, least := range map[string]int{
		"acquire ok": 500, "acquire held": 500, "acquire delay": 30, "acquire info": 100, "acquire not-sent": 5,
		"renew ok": 1000, "renew lapsed": 5, "renew lost": 100, "renew info": 30, "release ok": 200, "release lost": 100,
		"get ok": 300, "get nobody": 50, "write ok": 1000, "write stale": 100, "write info": 30, "fence ok": 50, "read ok": 200,
		"restart ok": 30, "restart-storage info": 30, "delete ok": 10, "lead ok": 500, "partition info": 20,
	} {
		if seen[what] < least {
			t.Errorf("%s: %d times, want %d", what, seen[what], least)
		}
	}
}

func TestAStreamCanBeLeft(t *testing.T) {
	n := 0
	for range (Config{Operations: 1 << 40}).Events() {
		if n++; n == 1000 {
			break
		}
	}
}

func TestEachBugCanBeProven(t *testing.T) {
	for _, b := range Bugs {
		t.Run(b.Name, func(t *testing.T) {
			for seed := range uint64(300) {
				c := b.In(Config{Seed: seed, Operations: 200})
				if Proof(c.History()) != "" {
					c.Bug = ""
					if p := Proof(c.History()); p != "" {
						t.Errorf("seed %d without the bug: %s", seed, p)
					}
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		Config
		want string
	}{
		{Config{TTLs: []time.Duration{1}}, "TTLs"},
		{Config{Drift: -1}, "Drift"},
		{Config{Drift: 1, TTLs: []time.Duration{time.Millisecond}}, "Drift"},
		{Config{Drift: 1000, LockDelay: time.Microsecond}, "lock delay"},
		{Config{Early: time.Second}, "Early"},
		{Config{Eps: -1}, "Eps"},
		{Config{Bug: "none such"}, "no bug"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error about %s", err, c.want)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestClockStaysWithinItsBound holds the wandering clock to the fastest and the
// slowest there may be, and to the exact time where it does not drift.
func TestClockStaysWithinItsBound(t *testing.T) {
	if c := (&clock{}); c.after(100, 50) != 150 {
		t.Error("a clock without drift drifts")
	}
	const drift = 100_000_000 // a tenth
	// By hand: 11 on a clock that is a tenth fast takes 10, and 9 on one that is
	// a tenth slow as well; a nanosecond more or less does not come out even.
	for _, e := range [][3]int64{{11, 10, 12}, {9, 9, 10}, {0, 0, 0}, {990, 900, 1100}} {
		if f, s := fastest(e[0], drift), slowest(e[0], drift); f != e[1] || s != e[2] {
			t.Errorf("%d takes %d to %d, want %d to %d", e[0], f, s, e[1], e[2])
		}
	}
	c := clock{rng: Config{}.source(), drift: drift, stretch: 1000}
	differ := 0
	for i := range int64(2000) {
		from, d := i*300, 1+i*7
		at := c.after(from, d)
		if at-from < fastest(d, drift)-20 || at-from > slowest(d, drift)+20 {
			t.Fatalf("%d after %d it is %d", d, from, at)
		}
		if again := c.after(from, d); again != at {
			t.Fatalf("%d after %d it is %d, and %d", d, from, at, again)
		}
		if at-from != d {
			differ++
		}
		c.forget(from)
	}
	if differ < 1000 {
		t.Errorf("it drifted %d times of 2000", differ)
	}
}

func TestQueueIsInOrder(t *testing.T) {
	rng := Config{}.source()
	var q queue
	var want, got [][2]int64
	for i := range int64(1000) {
		at := rng.Int64N(50)
		want = append(want, [2]int64{at, i})
		q.push(at, func() { got = append(got, [2]int64{at, i}) })
	}
	for len(q.heap) > 0 {
		q.pop().run()
	}
	slices.SortFunc(want, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(got, want) {
		t.Error("steps come out of order")
	}
}

func BenchmarkEvents(b *testing.B) {
	c := Config{Operations: 100_000, Storage: true, Leads: true, Unknown: 0.05}
	for b.Loop() {
		for range c.Events() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e5, "ns/operation")
}
