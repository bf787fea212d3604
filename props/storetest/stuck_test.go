package storetest

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/script"
)

// short is a limit that right calls keep to, and that is not waited for long.
const short = time.Second

// base is a right store that remembers.
func base(e kit.Env) *lease.Memory {
	m, err := lease.NewMemory(e.Clock, lease.MemoryOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return m
}

// waiting acquires as a mutex locks: it returns when it has the lease.
type waiting struct {
	lease.Store
	clk clock.Clock
}

func (s waiting) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	for {
		g, err := s.Store.Acquire(ctx, resource, h, ttl)
		held, ok := err.(*lease.HeldError)
		if !ok {
			return g, err
		}
		timer := s.clk.Timer(s.clk.Now() + held.Remaining)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return lease.Grant{}, ctx.Err()
		}
	}
}

func openWaiting(e kit.Env) lease.Store { return waiting{base(e), e.Clock} }

// locked takes its lock twice to release.
type locked struct {
	lease.Store
	mu *sync.Mutex
}

func (s locked) Release(ctx context.Context, resource string, h lease.Holder, token lease.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Lock()
	return s.Store.Release(ctx, resource, h, token)
}

func openLocked(e kit.Env) lease.Store { return locked{base(e), new(sync.Mutex)} }

// stuckClose never ends.
type stuckClose struct{ lease.Store }

func (stuckClose) Close() { select {} }

func returns(f *kit.Failure) bool { return f != nil && f.Rule == kit.RuleReturns }

// marked is the line with the mark.
func marked(t *testing.T, f *kit.Failure) string {
	t.Helper()
	i := slices.IndexFunc(f.Story, func(line string) bool { return strings.Contains(line, "◄") })
	if i < 0 || len(f.Story) > 12 {
		t.Fatalf("%v:\n%s", f, strings.Join(f.Story, "\n"))
	}
	return f.Story[i]
}

// The first check that comes to the call tells of it, and those after it do not
// wait.
func TestAStoreThatIsWaitedForIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		open         script.Open
		what, inside string
		line         string
	}{
		"waits for the lease": {openWaiting, "acquire did not return in 1s", "waiting.Acquire", "acquires for"},
		"deadlocks":           {openLocked, "release did not return in 1s", "locked.Release", "releases under token"},
		"never closes":        {func(e kit.Env) lease.Store { return stuckClose{base(e)} }, "Close did not return in 1s", "stuckClose.Close", "Close does not return"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told *kit.Failure
			skipped, all := 0, checks(c.open, kit.Options{Volatile: true}, kit.Effort{Seed: 1}, short)
			at := ""
			for _, check := range all {
				out := check.Run()
				switch f := out.Failure; {
				case returns(f) && told == nil:
					told, at = f, check.Name
					if again := check.Run(); again.Failure != f {
						t.Errorf("asked again it comes to %+v", again)
					}
				case told != nil && out.Skipped == "not reached: an earlier call never returned, see "+at:
					skipped++
				case told != nil:
					t.Errorf("%s came to %+v", check.Name, out)
				}
			}
			if told == nil || skipped < 50 {
				t.Fatalf("told %v, and %d of %d checks were skipped", told, skipped, len(all))
			}
			if !strings.HasSuffix(told.What, c.what) || !strings.Contains(told.More, c.inside) || strings.Contains(told.More, "storetest.(*") {
				t.Errorf("%s\n%s", told.What, told.More)
			}
			if line := marked(t, told); !strings.Contains(line, c.line) {
				t.Errorf("%s", line)
			}
			t.Logf("%s\n%s", at, told.Text(nil, ""))
		})
	}
}

// Each kind of check tells by itself, as where it is the first to come to the
// call.
func TestEachKindOfCheckTellsOfACallThatIsWaitedFor(t *testing.T) {
	for _, group := range []string{"rules/", "malformed/acquire-with", "lockstep/", "explore", "random/", "concurrency/one-of", "concurrency/tokens", "linearizability"} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			var tells *kit.Failure
			for _, c := range checks(openWaiting, kit.Options{}, kit.Effort{Seed: 1}, short) {
				if strings.HasPrefix(c.Name, group) && tells == nil {
					if out := c.Run(); returns(out.Failure) {
						tells = out.Failure
					}
				}
			}
			if tells == nil {
				t.Fatal("untold")
			}
			if line := marked(t, tells); !strings.Contains(line, "acquires") {
				t.Errorf("%s", line)
			}
			t.Logf("%v\n%s\n%.600s", tells, strings.Join(tells.Story, "\n"), tells.More)
		})
	}
}

// jumpy panics at the n-th acquire that another one is refused, and may leave a
// lock behind.
type jumpy struct {
	lease.Store
	mu    *sync.Mutex
	n     *int
	leave bool
}

func (s jumpy) Acquire(ctx context.Context, resource string, h lease.Holder, ttl time.Duration) (lease.Grant, error) {
	s.mu.Lock()
	if !s.leave {
		defer s.mu.Unlock()
	}
	g, err := s.Store.Acquire(ctx, resource, h, ttl)
	if err != nil {
		if *s.n++; *s.n > 5 {
			panic("index out of range")
		}
	}
	if s.leave {
		s.mu.Unlock()
	}
	return g, err
}

func TestAPanicAmongCallersIsTold(t *testing.T) {
	for _, leave := range []bool{false, true} {
		open := func(e kit.Env) lease.Store { return jumpy{base(e), new(sync.Mutex), new(int), leave} }
		for _, c := range checks(open, kit.Options{}, kit.Effort{Seed: 1}, short) {
			if c.Name != "linearizability" && c.Name != "concurrency/one-of-many-acquires-wins" {
				continue
			}
			out := c.Run()
			f := out.Failure
			if f == nil || f.Rule != kit.RulePanic || f.What != "panic: index out of range" || !strings.Contains(f.More, "jumpy.Acquire") {
				t.Fatalf("%s came to %+v", c.Name, out)
			}
			if line := marked(t, f); !strings.Contains(line, "panic: index out of range") {
				t.Errorf("%s", line)
			}
			t.Logf("%s\n%s", c.Name, f.Text(nil, ""))
			if leave {
				break // no check after it
			}
		}
	}
}

func TestWhatCannotBeOpenedIsUnknown(t *testing.T) {
	for says, open := range map[string]script.Open{
		"open returned nil":           func(kit.Env) lease.Store { return nil },
		"Funcs.Acquire is nil":        func(kit.Env) lease.Store { return kit.Funcs{}.Store() },
		"to give up, call Env.Fatal":  func(kit.Env) lease.Store { runtime.Goexit(); return nil },
		"open returned a nil *lease.": func(kit.Env) lease.Store { return (*lease.Memory)(nil) },
	} {
		for _, c := range checks(open, kit.Options{}, kit.Effort{Seed: 1}, short) {
			if out := c.Run(); out.Skipped == "" && !strings.Contains(out.Unknown, says) {
				t.Errorf("%s came to %+v, want: %s", c.Name, out, says)
				break
			}
		}
	}
}

func TestChecksOfARightStoreLeaveNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, c := range checks(func(e kit.Env) lease.Store { return base(e) }, kit.Options{Volatile: true, Calls: 1000}, kit.Effort{Seed: 1}, short) {
		if out := c.Run(); out.Failure != nil {
			t.Errorf("%s came to %+v", c.Name, out)
		}
	}
	// The last to end may be on their way, for as long as the machine lets others
	// run: only one that does not end is waited for to the last.
	for limit := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines before, and %d after", before, runtime.NumGoroutine())
		}
	}
}
