package props

import (
	"testing"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/storetest"
)

// What the code under test is given, and what it promises.
type (
	// Env is the world that one process of the code under test lives in.
	Env = kit.Env
	// Options are what a lease store promises where correct stores differ.
	Options = kit.Options
	// Funcs is a lease store made of plain functions: see its Store method.
	Funcs = kit.Funcs
)

// Durable is what the code under test keeps under name and finds again after a
// crash: see [kit.Durable].
func Durable[T any](e Env, name string, make func() T) T { return kit.Durable(e, name, make) }

// TestStore checks the lease store that open makes, by every rule that a store
// must keep, in subtests that name them: one by one, with requests that make no
// sense, at random against the model and in a simulated world with candidates
// that believe, by every short sequence, from many goroutines at once, and
// over restarts. [Options] say what is promised where correct stores differ.
//
// open is called for each process of the store: once for each script, and
// again after each simulated crash, with the same durable state. The store's
// only time must be that of its [Env]; its only memory, what it finds there.
// A store with a Close method is closed at a crash too, so that the next process
// finds no lock of the last one. What Close writes, a crash would lose: let it
// write nothing, or that goes unnoticed.
//
// A failure says which rule was broken, by what, and where the counterexample
// was written: below testdata/fencepost in the directory of the test, to be
// replayed first from then on. The quick mode makes about [Options].Calls
// calls and does the same every time; -fencepost.long or FENCEPOST_LONG=1 makes
// a hundred times as many, from a new seed (FENCEPOST_SEED repeats one).
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
	c := conformance{checks: plain(storetest.Checks(open, o, e)), again: again, replay: storeReplay(open, o)}
	c.run(t)
}

func storeReplay(open func(Env) lease.Store, o Options) func(tester, string, []byte) kit.Outcome {
	return func(_ tester, path string, data []byte) kit.Outcome { return storetest.Replay(open, o, path, data) }
}
