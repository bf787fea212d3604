package props

import (
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/storetest"
)

// What the code under test is given, and what it promises. These are the types
// of package fencepost/props/kit, where their fields and methods are documented.
type (
	// Env is the world that one process of the code under test lives in: its
	// clock, and what it finds again after a crash. See [kit.Env].
	Env = kit.Env
	// Options are what a lease store promises where correct stores differ. See
	// [kit.Options].
	Options = kit.Options
	// Funcs is a lease store made of plain functions, by its method Store. See
	// [kit.Funcs].
	Funcs = kit.Funcs
	// Settler is offered by a store that works in the background, such as one
	// that ends leases by a timer: it is waited for whenever time has passed.
	// See [kit.Settler].
	Settler = kit.Settler
	// Deleter is offered by a store whose leases an operator can delete. See
	// [kit.Deleter].
	Deleter = kit.Deleter
	// Snapshotter is offered by a store that can be put back into an earlier
	// state: [ExploreStore] then goes much further. See [kit.Snapshotter].
	Snapshotter = kit.Snapshotter
)

// Durable is what the code under test keeps under name and finds again after a
// crash: see [kit.Durable].
func Durable[T any](e Env, name string, make func() T) T { return kit.Durable(e, name, make) }

// TestStore checks the lease store that open makes, by every rule that a store
// must keep, in subtests that name them: one by one, with requests that make no
// sense, at random against the model and in a simulated world with candidates
// that believe, by every short sequence, from many goroutines at once, and
// over restarts. [Options] say what is promised where correct stores differ;
// what is asked of every store stands at [lease.Store].
//
// open is called for each process of the store: some hundred times for a store
// as new, which then has many leases, one after the other and at once, and some
// hundred times after a simulated crash, with the same durable state. The store's
// only time must be that of its [Env]: it stands still during a call, and
// starts anew with each process, unless Options.SteadyClock says that it goes on.
// Its only memory is what it finds there; what a crash must not lose belongs into
// [Durable] or Env.Dir.
//
// A store with goroutines or locks of its own gives them up in a method Close,
// which is called where its process dies: the next one starts at once. It must
// write nothing: a crash would lose that, and it would go unnoticed. If the
// goroutines act upon time, the store also has a method Settle ([Settler]).
//
// A failure says which rule was broken, by what, and where the counterexample
// was written: below testdata/fencepost in the directory of the test, to be
// replayed first from then on. The quick mode makes about [Options].Calls
// calls, fewer by default where they take long, and does the same every time;
// -fencepost.long or FENCEPOST_LONG=1 makes a hundred times as many, from a new
// seed (FENCEPOST_SEED repeats one).
//
// A call that takes ten seconds of real time, while the clock of its Env stands
// still, waits for what will not come: it is told, and ends the checks. open
// gives up by Env.Fatal, not by t, since it runs in goroutines of its own.
//
// What cannot be seen: a panic in a goroutine of the store, or a map that two
// goroutines write, ends the test process as it would end the store's; a data
// race is the race detector's to find, so run with -race; and whether what was
// answered would survive a power cut, an fsync forgotten, nothing shows.
func TestStore(t *testing.T, open func(Env) lease.Store, o Options) {
	t.Helper()
	testStore(real{t}, open, o)
}

func testStore(t tester, open func(Env) lease.Store, o Options) {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	e, again := effortOf(t)
	c := conformance{checks: plain(storetest.Checks(open, o, e)), again: again, quick: tooSlow(e, o.Calls), replay: storeReplay(open, o)}
	c.run(t)
}

func storeReplay(open func(Env) lease.Store, o Options) func(tester, string, []byte) kit.Outcome {
	return func(_ tester, path string, data []byte) kit.Outcome { return storetest.Replay(open, o, path, data) }
}
