package kit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost/impl/clock"
	"fencepost/impl/lease"
	"fencepost/model"
	"fencepost/props/kit"
)

// thing remembers what becomes of its process.
type thing struct {
	env    kit.Env
	closed bool
}

func (t *thing) Close() { t.closed = true }

func TestDurableStateAndNothingElseSurvivesACrash(t *testing.T) {
	var made int
	lab := kit.NewLab(func(e kit.Env) *thing {
		n := kit.Durable(e, "n", func() *int { made++; return new(int) })
		*n++
		return &thing{env: e}
	}, nil)
	first := lab.Thing()
	dir := first.env.Dir()
	if err := os.WriteFile(filepath.Join(dir, "row"), []byte("33"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab.Restart()
	second := lab.Thing()
	if first == second || first.env.Context.Err() == nil || !first.closed {
		t.Error("the first process goes on")
	}
	if second.env.Context.Err() != nil || second.closed {
		t.Error("the second does not run")
	}
	if b, err := os.ReadFile(filepath.Join(second.env.Dir(), "row")); string(b) != "33" {
		t.Errorf("the directory holds %q, %v", b, err)
	}
	if n := kit.Durable(second.env, "n", func() *int { return nil }); made != 1 || *n != 2 {
		t.Errorf("made %d times, %d", made, *n)
	}
	lab.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left behind: %v", err)
	}
}

func TestWhatIsKeptMayBeMadeOfTheDirectoryAndOfWhatElseIsKept(t *testing.T) {
	var path string
	lab := kit.NewLab(func(e kit.Env) *thing {
		path = kit.Durable(e, "path", func() string {
			return filepath.Join(e.Dir(), kit.Durable(e, "name", func() string { return "rows" }))
		})
		return &thing{env: e}
	}, nil)
	defer lab.Close()
	if want := filepath.Join(lab.Thing().env.Dir(), "rows"); path != want {
		t.Errorf("kept %q, want %q", path, want)
	}
}

func TestNothingIsLeftBehindWhereAProcessCannotBeOpened(t *testing.T) {
	var dirs []string
	open := func(at int) func(kit.Env) *thing {
		return func(e kit.Env) *thing {
			dirs = append(dirs, e.Dir())
			if len(dirs) == at {
				e.Fatal(errors.New("no server"))
			}
			return &thing{env: e}
		}
	}
	for at, lives := range []func(){
		func() { kit.NewLab(open(1), nil) },
		func() {
			lab := kit.NewLab(open(2), nil)
			defer lab.Close()
			lab.Restart()
		},
	} {
		dirs = nil
		if err := kit.Attempt(lives); err == nil || len(dirs) != at+1 {
			t.Fatalf("%d: %v, in %q", at, err, dirs)
		}
		if _, err := os.Stat(dirs[at]); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d: the directory is left behind: %v", at, err)
		}
	}
}

func TestAStoreOfTooFewFunctionsIsNone(t *testing.T) {
	f := kit.Funcs{}
	for _, next := range []struct {
		field string
		set   func()
	}{
		{"Acquire", func() {
			f.Acquire = func(context.Context, string, string, time.Duration) (uint64, bool, error) { return 0, false, nil }
		}},
		{"Renew", func() {
			f.Renew = func(context.Context, string, string, uint64, time.Duration) (bool, error) { return false, nil }
		}},
		{"Release", func() { f.Release = func(context.Context, string, string, uint64) (bool, error) { return false, nil } }},
	} {
		var setup *kit.SetupError
		if err := kit.Attempt(func() { f.Store() }); !errors.As(err, &setup) || !strings.Contains(err.Error(), "Funcs."+next.field+" is nil: set it") {
			t.Errorf("without %s: %v", next.field, err)
		}
		next.set()
	}
	if f.Store() == nil {
		t.Error("all that is needed is there, and there is no store")
	}
}

func TestNothingIsNotOpened(t *testing.T) {
	for says, open := range map[string]func(kit.Env) lease.Store{
		"open returned nil":                 func(kit.Env) lease.Store { return nil },
		"open returned a nil *lease.Memory": func(kit.Env) lease.Store { var m *lease.Memory; return m },
	} {
		var setup *kit.SetupError
		if err := kit.Attempt(func() { kit.NewLab(open, nil) }); !errors.As(err, &setup) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("got %v, want: %s", err, says)
		}
	}
}

// Instants of two processes must not be comparable by accident: a store that
// compares them has to be noticed, whether its clock came back higher or lower.
func TestEachProcessHasAClockOfItsOwn(t *testing.T) {
	lab := kit.NewLab(func(e kit.Env) *thing { return &thing{env: e} }, nil)
	defer lab.Close()
	var born []time.Duration
	for range 4 {
		born = append(born, lab.Thing().env.Clock.Now())
		lab.Restart()
	}
	if !(born[1] < born[0] && born[1] < born[2] && born[3] < born[2]) || slices.Max(born) == slices.Min(born) {
		t.Errorf("clocks begin at %v", born)
	}
	before := lab.Thing().env.Clock.Now()
	lab.Advance(time.Second)
	if got := lab.Thing().env.Clock.Now() - before; got != time.Second {
		t.Errorf("a second is %v", got)
	}
}

// The clock goes on, and what the old process waited for does not.
func TestASteadyClockGoesOnOverARestart(t *testing.T) {
	lab := kit.NewLab(func(e kit.Env) *thing { return &thing{env: e} }, nil)
	defer lab.Close()
	lab.SteadyClock(true)
	lab.Advance(time.Second)
	before := lab.Thing().env.Clock
	at := before.Now()
	timer := before.Timer(at + time.Minute)
	for range 2 {
		lab.Restart()
		if got := lab.Thing().env.Clock.Now(); got != at {
			t.Errorf("the clock reads %v, and read %v before the restart", got, at)
		}
	}
	lab.Advance(time.Hour)
	if got := lab.Thing().env.Clock.Now(); got != at+time.Hour {
		t.Errorf("an hour is %v", got-at)
	}
	select {
	case <-timer.C():
		t.Error("a timer of a process that is gone has fired")
	default:
	}
	if got := before.Now(); got != at {
		t.Errorf("the clock of the process that is gone moved on by %v", got-at)
	}
}

func TestGivingUpIsAnErrorThatSaysWhy(t *testing.T) {
	cause := errors.New("no server")
	err := kit.Attempt(func() {
		kit.NewLab(func(e kit.Env) *thing { e.Fatal(cause); return nil }, nil)
	})
	var setup *kit.SetupError
	if !errors.As(err, &setup) || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if err := kit.Attempt(func() {}); err != nil {
		t.Errorf("got %v", err)
	}
	err = kit.Attempt(func() {
		kit.NewLab(func(e kit.Env) *thing {
			kit.Durable(e, "x", func() int { return 1 })
			kit.Durable(e, "x", func() string { return "" })
			return nil
		}, nil)
	})
	if err == nil || !strings.Contains(err.Error(), `"x" is a int, and was asked for as a string`) {
		t.Errorf("two things under one name: %v", err)
	}
}

func TestTheLogIsTheSameEveryTimeAndEnds(t *testing.T) {
	log := func() string {
		lab := kit.NewLab(func(e kit.Env) *thing { return &thing{env: e} }, nil)
		defer lab.Close()
		for i := range 100 {
			lab.Thing().env.Logger.Info("granted", "token", i)
		}
		return lab.Log()
	}
	a := log()
	if a != log() || strings.Count(a, "\n") != 19 || !strings.HasSuffix(a, "level=INFO msg=granted token=99") {
		t.Errorf("the log is\n%s", a)
	}
}

func TestOptionsThatMakeNoSenseAreRefusedByField(t *testing.T) {
	for field, o := range map[string]kit.Options{
		"Tokens":      {Tokens: model.TokensNone},
		"Granularity": {Granularity: -1},
		"MinTTL":      {MinTTL: 25 * time.Hour},
		"LockDelay":   {LockDelay: -1},
		"Late":        {Late: -1},
		"MaxTTL":      {MaxTTL: time.Minute, MinTTL: 20 * time.Second},
		"Calls":       {Calls: -1},
	} {
		var oe *kit.OptionsError
		if err := o.Validate(); !errors.As(err, &oe) || oe.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (kit.Options{Tokens: model.TokensRising, Late: time.Second}).Validate(); err != nil {
		t.Error(err)
	}
}

// Plain functions behave as the store that they are made from.
func TestPlainFunctionsAreAStore(t *testing.T) {
	memory, err := lease.NewMemory(clock.NewManual(0), lease.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	holder := func(s string) lease.Holder {
		h, err := lease.ParseHolder(s)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	closed := false
	funcs := kit.Funcs{
		Acquire: func(ctx context.Context, resource, h string, ttl time.Duration) (uint64, bool, error) {
			g, err := memory.Acquire(ctx, resource, holder(h), ttl)
			return uint64(g.Token), err == nil, nil
		},
		Renew: func(ctx context.Context, resource, h string, token uint64, ttl time.Duration) (bool, error) {
			_, err := memory.Renew(ctx, resource, holder(h), lease.Token(token), ttl)
			return err == nil, nil
		},
		Release: func(ctx context.Context, resource, h string, token uint64) (bool, error) {
			return memory.Release(ctx, resource, holder(h), lease.Token(token)) == nil, nil
		},
		Close: func() { closed = true },
	}
	store := funcs.Store()
	ctx, a, b := t.Context(), lease.Holder{Node: "a", Seq: 1}, lease.Holder{Node: "b", Seq: 1}
	g, err := store.Acquire(ctx, "shard", a, time.Second)
	if err != nil || g != (lease.Grant{Resource: "shard", Holder: a, Token: 1, TTL: time.Second}) {
		t.Fatalf("granted %+v, %v", g, err)
	}
	var held *lease.HeldError
	if _, err := store.Acquire(ctx, "shard", b, time.Second); !errors.As(err, &held) {
		t.Errorf("held: %v", err)
	}
	if _, err := store.Renew(ctx, "shard", b, 1, time.Second); !errors.Is(err, lease.ErrNotHeld) {
		t.Errorf("renewed by another: %v", err)
	}
	if err := store.Release(ctx, "shard", a, 1); err != nil {
		t.Errorf("released: %v", err)
	}
	var invalid *lease.InvalidError
	if _, err := store.Acquire(ctx, "shard", lease.Holder{}, time.Second); !errors.As(err, &invalid) {
		t.Errorf("nobody: %v", err)
	}
	if o := (kit.Options{}).For(store); !o.Terse || !o.NoGet {
		t.Errorf("what it lacks: %+v", o)
	}
	funcs.Get = func(ctx context.Context, resource string) (string, uint64, error) { return a.String(), 1, nil }
	if o := (kit.Options{}).For(funcs.Store()); !o.Terse || o.NoGet {
		t.Errorf("with Get: %+v", o)
	}
	if got, err := funcs.Store().Get(ctx, "shard"); err != nil || got.Holder != a || got.Token != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if o := (kit.Options{}).For(memory); o.Terse || o.NoGet {
		t.Errorf("a store of one's own lacks nothing: %+v", o)
	}
	store.(interface{ Close() }).Close()
	if !closed {
		t.Error("Close is not passed on")
	}
}

func TestALongLineOfTheLogIsCut(t *testing.T) {
	f := kit.Failure{Rule: "r", What: "w", Log: strings.Repeat("x", 10_000)}
	if got := f.Text(nil, ""); len(got) > 300 {
		t.Errorf("%d bytes", len(got))
	}
}
