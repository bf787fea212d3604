package storetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/judge"
	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/script"
	"fencepost/props/sim"
)

// drawn is how many schedules each right store has to pass.
func drawn() int {
	if os.Getenv("FENCEPOST_LONG") != "" {
		return 3000
	}
	if raced {
		return 30
	}
	return 300
}

// seeds is of how many seeds batches are run.
func seeds() uint64 {
	if os.Getenv("FENCEPOST_LONG") != "" {
		return 100
	}
	return 1
}

func TestRightStoresPassRandomSchedules(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSimulated(v.open, v.o)
			defer w.store.Close()
			if w.shortest() > longest {
				t.Skipf("no schedules have TTLs of %v", w.shortest())
			}
			trial := judge.Trial{Subject: w.subject, Want: harmful, Config: w.suit}
			profiles := w.profiles()
			for i := range drawn() {
				f, err := trial.Run(judge.Source(77, i), &profiles[i%2], randomMinSteps, randomMaxSteps)
				if err != nil {
					t.Fatal(err)
				}
				if f != nil {
					out := w.shorten(f, w.calls+100_000)
					t.Fatalf("schedule %d:\n%s\n%s", i, tell(out), out.More)
				}
			}
			if raced {
				return // too few to have met everything
			}
			b := randomBatch{counts: trial.Counts, volatile: w.o.Volatile, undecided: trial.Undecided}
			for _, h := range harms {
				if out := b.outcome(h); out.Unknown != "" {
					t.Errorf("%s: %s", h.check(), out.Unknown)
				}
			}
		})
	}
}

func TestTheQuickModeKnowsOfRightStoresAndKeepsToItsBudget(t *testing.T) {
	for name, v := range variants() {
		if v.o.MinTTL > longest {
			continue // see below for what is said of it
		}
		for seed := range seeds() {
			calls := 0
			if raced {
				v.o.Calls = 4000
			}
			open := func(e kit.Env) lease.Store { return counting(v.open(e), &calls) }
			for _, c := range Random(open, v.o, kit.Effort{Seed: seed}) {
				out := c.Run()
				switch {
				case out.Failure != nil:
					t.Errorf("%s, seed %d: %s:\n%s", name, seed, c.Name, tell(out.Failure))
				case out.Unknown != "" || out.Covered == "":
					t.Errorf("%s, seed %d: %s: %+v", name, seed, c.Name, out)
				}
			}
			if budget := v.o.Budget(kit.Effort{}, randomPart); calls > budget || calls < budget/2 {
				t.Errorf("%s, seed %d: %d calls of %d", name, seed, calls, budget)
			}
		}
	}
}

// wrongInTime are stores that do one thing wrong, and the invariants that may
// be the first to break.
func wrongInTime() map[string]struct {
	f   fault
	may model.Set
} {
	type wrong = struct {
		f   fault
		may model.Set
	}
	tokens, owned, history := model.SetOf(model.TokenMonotonicity), model.SetOf(model.BeliefOwnership), model.SetOf(model.Linearizability)
	return map[string]wrong{
		"token reused after a release": {fault{handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			r, rep := r.Handle(now, 0, q)
			if rep.Code == lease.CodeReleased {
				r.Token--
			}
			return r, rep
		}}, tokens | model.SetOf(model.Continuity)},
		"renewed by anybody": {fault{handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			if q.Op == lease.OpRenew && q.Token == r.Token && r.Held(now) {
				r.Holder = q.Holder
			}
			return r.Handle(now, 0, q)
		}}, tokens | owned | history},
		"released by anybody": {fault{handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			if q.Op == lease.OpRelease && r.Held(now) {
				q.Holder, q.Token = r.Holder, r.Token
			}
			return r.Handle(now, 0, q)
		}}, owned},
		"lapses a second early": {fault{handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			r, rep := r.Handle(now+min(time.Second, r.TTL/2), 0, q)
			if rep.Code == lease.CodeGranted {
				r.Expires -= min(time.Second, r.TTL/2)
			}
			return r, rep
		}}, owned | history},
		"a renewal shortens": {fault{handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			r, rep := r.Handle(now, 0, q)
			if rep.Code == lease.CodeGranted {
				r.Expires = now + q.TTL
			}
			return r, rep
		}}, owned | history},
		"a restart forgets the counter": {fault{restart: func(lease.Record, time.Duration) lease.Record { return lease.Record{} }}, tokens | owned},
		"a restart ends what goes on":   {fault{o: kit.Options{SteadyClock: true}, restart: func(r lease.Record, now time.Duration) lease.Record { r.Expires = min(r.Expires, now); return r }}, owned | history},
		"a restart starts the TTL anew": {fault{o: kit.Options{SteadyClock: true}, restart: func(r lease.Record, now time.Duration) lease.Record { return lease.Restore(r.Durable, now) }}, tokens | history | model.SetOf(model.Availability)},
		"a restart frees":               {fault{restart: func(r lease.Record, _ time.Duration) lease.Record { return r.Delete() }}, owned | history},
	}
}

func TestAStoreThatDoesHarmIsConvictedInTheQuickMode(t *testing.T) {
	for name, w := range wrongInTime() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed := 0
			for _, c := range Random(w.f.open(), w.f.o, kit.Effort{Seed: 1}) {
				out := c.Run()
				if out.Failure == nil {
					if !strings.HasPrefix(out.Skipped, "not reached: ") {
						t.Errorf("%s: %+v", c.Name, out)
					}
					continue
				}
				failed++
				f := out.Failure
				var v model.Invariant
				if err := v.UnmarshalText([]byte(f.Rule)); err != nil || !w.may.Has(v) || c.Name != "random/"+f.Rule {
					t.Errorf("%s breaks %s: %s", c.Name, f.Rule, f.What)
				}
				if f.Says == "" || f.What == "" || f.Read == "" || f.More == "" || len(f.Story) == 0 || len(f.Story) > storyMoments+1 || !strings.Contains(strings.Join(f.Story, "\n"), "◄") {
					t.Errorf("%s: not told:\n%s", c.Name, tell(f))
				}
				s, err := sim.ReadSchedule(bytes.NewReader(f.File.Data), f.File.Name)
				if err != nil || len(s.Actions) > 12 {
					t.Errorf("%s: %v, actions: %d", c.Name, err, len(s.Actions))
				}
				again := Replay(w.f.open(), w.f.o, f.File.Name, f.File.Data)
				if again.Failure == nil || again.Failure.What != f.What || again.Failure.File.Name != f.File.Name {
					t.Errorf("%s: replayed: %+v", c.Name, again)
				}
				rightly := opened(rightStore)
				if w.f.o.SteadyClock {
					rightly = steadily(nil, 0)
				}
				if right := Replay(rightly, w.f.o, f.File.Name, f.File.Data); right.Covered == "" {
					t.Errorf("%s: replayed with a right store: %+v", c.Name, right)
				}
				if os.Getenv("FENCEPOST_SHOW") != "" {
					fmt.Printf("=== %s: %s, %d actions\n%s\n", name, c.Name, len(s.Actions), f.Text([]string{"x"}, "go test"))
				}
			}
			if failed != 1 {
				t.Errorf("%d checks fail, want the one of what broke first", failed)
			}
		})
	}
}

func rightStore(e kit.Env) *lease.Memory { return right(0)(e) }

// counting counts the calls of a store, and can do no more than it.
func counting(s lease.Store, calls *int) lease.Store {
	if d, ok := s.(kit.Deleter); ok {
		return struct {
			counted
			kit.Deleter
		}{counted{s, calls}, countedDeleter{d, calls}}
	}
	return counted{s, calls}
}

type counted struct {
	lease.Store
	calls *int
}

func (c counted) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	*c.calls++
	return c.Store.Acquire(ctx, r, h, ttl)
}

func (c counted) Renew(ctx context.Context, r string, h lease.Holder, t lease.Token, ttl time.Duration) (lease.Grant, error) {
	*c.calls++
	return c.Store.Renew(ctx, r, h, t, ttl)
}

func (c counted) Release(ctx context.Context, r string, h lease.Holder, t lease.Token) error {
	*c.calls++
	return c.Store.Release(ctx, r, h, t)
}

func (c counted) Get(ctx context.Context, r string) (lease.Observation, error) {
	*c.calls++
	return c.Store.Get(ctx, r)
}

type countedDeleter struct {
	kit.Deleter
	calls *int
}

func (c countedDeleter) Delete(ctx context.Context, r string) error {
	*c.calls++
	return c.Deleter.Delete(ctx, r)
}

func TestAPanicIsTold(t *testing.T) {
	open := func(e kit.Env) lease.Store { return panicsAtTakeover{right(0)(e)} }
	for _, c := range Random(open, kit.Options{}, kit.Effort{Seed: 1}) {
		out := c.Run()
		switch f := out.Failure; {
		case c.Name != "random/no-panic":
			if !strings.Contains(out.Skipped, "see random/no-panic") {
				t.Errorf("%s: %+v", c.Name, out)
			}
		case f == nil || f.What != "the store panicked: row without a holder" || !strings.Contains(f.More, "panicsAtTakeover"):
			t.Errorf("%s: %+v", c.Name, out)
		case Replay(open, kit.Options{}, f.File.Name, f.File.Data).Failure == nil:
			t.Errorf("not again")
		}
	}
}

type panicsAtTakeover struct{ *lease.Memory }

func (p panicsAtTakeover) Acquire(ctx context.Context, r string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	g, err := p.Memory.Acquire(ctx, r, h, ttl)
	if g.Token > 1 {
		panic("row without a holder")
	}
	return g, err
}

func TestWhatCannotBeSimulatedIsSaid(t *testing.T) {
	gaveUp := func(e kit.Env) lease.Store { e.Fatal(context.DeadlineExceeded); return nil }
	boots := 0
	gaveUpLater := func(e kit.Env) lease.Store {
		if boots++; boots > 3 {
			e.Fatal(context.DeadlineExceeded)
		}
		return right(0)(e)
	}
	memory := opened(right(0))
	for name, c := range map[string]struct {
		open             script.Open
		o                kit.Options
		unknown, skipped string
	}{
		"cannot be set up":       {gaveUp, kit.Options{}, "could not be set up", ""},
		"nor later":              {gaveUpLater, kit.Options{}, "could not be set up", ""},
		"TTLs of an hour":        {memory, kit.Options{MinTTL: time.Hour}, "", "TTLs of 2h0m0s"},
		"no calls":               {memory, kit.Options{Calls: 1}, "raise Options.Calls", ""},
		"keeps a lease for ever": {fault{handle: neverLapses}.open(), kit.Options{Late: 2 * time.Minute}, "", "not reached"},
	} {
		out := Random(c.open, c.o, kit.Effort{Seed: 1})[0].Run()
		if out.Failure != nil || !strings.Contains(out.Unknown, c.unknown) || !strings.Contains(out.Skipped, c.skipped) || c.unknown+c.skipped == "" {
			t.Errorf("%s: %+v", name, out)
		}
	}
	for name, c := range map[string]struct{ data, want string }{
		"no schedule":   {`{"subject": "external", "actions": [{"do": "nothing"}]}`, "x.json:1"},
		"another store": {kept(t), "lock delay of 3s"},
	} {
		if out := Replay(memory, kit.Options{}, "x.json", []byte(c.data)); !strings.Contains(out.Unknown, c.want) {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func neverLapses(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
	if r.Status == lease.Running {
		r.Expires = max(r.Expires, now+time.Second)
	}
	return r.Handle(now, 0, q)
}

// kept is a schedule as a file.
func kept(t *testing.T) string {
	t.Helper()
	s := sim.Schedule{Name: "x", Subject: sim.SubjectExternal, Config: sim.Config{Clients: 1, Lease: lease.Config{TTL: time.Second, LockDelay: 3 * time.Second}},
		Actions: []sim.Action{{ID: 1, Kind: sim.Tick, Who: sim.ClientNode(0)}}}
	b, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// peculiar are stores that keep to what they promise in a way that the built-in
// one does not.
func peculiar() map[string]fault {
	const late = 700 * time.Millisecond
	return map[string]fault{
		"renews what lapsed": {o: kit.Options{RenewAfterLapse: true}, handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			if own := q.Holder == r.Holder && q.Token == r.Token; q.Op == lease.OpRenew && own && q.TTL > 0 && r.Status != lease.Free && !r.Held(now) {
				r.Status, r.Expires = lease.Running, now+1
			}
			return r.Handle(now, 0, q)
		}},
		"lapses late": {o: kit.Options{Late: late}, handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			r, rep := r.Handle(now, 0, q)
			if rep.Code == lease.CodeGranted {
				r.Expires = max(r.Expires, now+q.TTL+late)
			}
			return r, rep
		}},
		"lapses late, with a lock delay": {o: kit.Options{Late: late, LockDelay: 4 * time.Second}, delay: 4 * time.Second, handle: func(now time.Duration, r lease.Record, q lease.Request) (lease.Record, lease.Reply) {
			r, rep := r.Handle(now, 4*time.Second, q)
			if rep.Code == lease.CodeGranted {
				r.Expires = max(r.Expires, now+q.TTL+late)
			}
			return r, rep
		}},
		"takes its time after a restart": {o: kit.Options{Late: late}, restart: func(r lease.Record, now time.Duration) lease.Record {
			r = lease.Restore(r.Durable, now)
			if r.Status == lease.Running {
				r.Expires += late
			}
			return r
		}},
	}
}

func TestStoresThatAreRightInTheirOwnWayPassRandomSchedules(t *testing.T) {
	for name, f := range peculiar() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if raced {
				f.o.Calls = 8000
			}
			for seed := range seeds() {
				for _, c := range Random(f.open(), f.o, kit.Effort{Seed: seed}) {
					if out := c.Run(); out.Covered == "" {
						t.Errorf("seed %d, %s: %s%s", seed, c.Name, out.Unknown, out.Skipped)
						if out.Failure != nil {
							t.Errorf("%s\n%s", tell(out.Failure), out.Failure.More)
						}
					}
				}
			}
		})
	}
	// Undeclared, what they do is wrong.
	for name, f := range peculiar() {
		w := newSimulated(f.open(), kit.Options{LockDelay: f.o.LockDelay})
		trial := judge.Trial{Subject: w.subject, Want: harmful, Config: w.suit}
		profiles, failed := w.profiles(), false
		for i := 0; i < 300 && !failed; i++ {
			broken, err := trial.Run(judge.Source(1, i), &profiles[i%2], randomMinSteps, randomMaxSteps)
			if err != nil {
				t.Fatal(err)
			}
			failed = broken != nil
		}
		if w.store.Close(); !failed {
			t.Errorf("%s: nobody minds", name)
		}
	}
}

// A schedule without the lock delay that the store has would show it refusing
// what it is right to refuse, and could not be replayed.
func TestShorteningKeepsToWhatTheOptionsSay(t *testing.T) {
	o := kit.Options{LockDelay: 8 * time.Second, MinTTL: 3 * time.Second}
	var failure *kit.Failure
	for _, c := range Random(mutant.RightStore(2*time.Second), o, kit.Effort{Seed: 1}) {
		if f := c.Run().Failure; f != nil {
			failure = f
		}
	}
	if failure == nil || failure.File == nil {
		t.Fatalf("a lock delay of 2s passes for one of 8s: %v", failure)
	}
	s, err := sim.ReadSchedule(bytes.NewReader(failure.File.Data), failure.File.Name)
	if err != nil {
		t.Fatal(err)
	}
	if s.Config.Lease.LockDelay != o.LockDelay || s.Config.Lease.TTL < o.MinTTL {
		t.Errorf("shortened to %+v", s.Config.Lease)
	}
	if out := Replay(mutant.RightStore(2*time.Second), o, failure.File.Name, failure.File.Data); out.Failure == nil {
		t.Errorf("it does not replay: %+v", out)
	}
}
