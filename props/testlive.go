package props

import (
	"testing"

	"fencepost/impl/fence"
	"fencepost/impl/lease"
	"fencepost/props/livetest"
)

type (
	// LiveEnv is the world of one process of a store or storage on a real
	// server. See [livetest.Env].
	LiveEnv = livetest.Env
	// LiveOptions are what a store on a real server promises, and how to get at
	// that server. See [livetest.Options].
	LiveOptions = livetest.Options
	// LiveStorageOptions are the same for a storage. See
	// [livetest.StorageOptions].
	LiveStorageOptions = livetest.StorageOptions
)

// TestLiveStore checks the lease store that open makes against its real server,
// in real time: each rule by itself (rules), with requests that come late, twice,
// malformed or given up; TTLs from the least up, each held for all of it (ttl);
// tokens over releases, lapses and deletions (tokens); hints and batches where
// the store has them (watch, batch); sixteen goroutines of three processes that
// contend for three leases, whose history some order must explain (storm);
// electors that resign and are killed, of which never two believe at once
// (believers); and what the server still knows when it was killed and is back
// (restart). [LiveOptions] say what is promised where correct stores differ, and
// how to kill the server.
//
// open is called for each process of the store, of which several live at once on
// one server, and again after a restart. Each lease has a name that nobody used
// before, so that the server need not be empty. A store with connections or
// goroutines of its own gives them up in a method Close. open gives up by
// [LiveEnv.Fatal], not by t, since it runs in goroutines of its own.
//
// What mostly waits does so at once: the whole takes about twenty TTLs, and a few
// restarts. A failure says which rule was broken, by what; a store is convicted
// only where no instants between the calls and their returns explain its
// answers, never because the machine was slow. Where that proves nothing after
// three attempts the check says unknown, which fails the test too. The history
// that convicts is written below testdata/fencepost, for fencepost check.
//
// Real time cannot show everything: that an expiry is exact, what happens between
// two steps of one call, what clocks that drift do. [TestStore] does, for a
// store whose clock can be given to it; it takes well under a second, and
// comes first.
func TestLiveStore(t *testing.T, open func(LiveEnv) lease.Store, o LiveOptions) {
	t.Helper()
	testLiveStore(real{t}, open, o)
}

func testLiveStore(t tester, open func(LiveEnv) lease.Store, o LiveOptions) {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	(&conformance{checks: plain(livetest.StoreChecks(open, o))}).run(t)
}

// TestLiveStorage checks the fenced storage that open makes against its real
// server, over several connections at once: that it admits no token below the
// highest it has seen, on any key and by any connection; that a fence bars all
// lower ones, also those under way, and changes nothing; that what is refused
// leaves nothing behind (rules); that writes of two leaders that cross a fence
// have an order that explains what they were told, and what is read afterwards
// (race); and that both tokens and data outlive the server (restart). Where
// [LiveStorageOptions].Lease is set, tokens are those of real leases, and one
// that was released or never granted is refused (lease).
//
// open gives the same data each time, by another connection; the checks use keys
// that nobody used before, and tokens above all that were. It need not be empty,
// but nobody else writes to it meanwhile.
func TestLiveStorage(t *testing.T, open func(LiveEnv) fence.KV, o LiveStorageOptions) {
	t.Helper()
	testLiveStorage(real{t}, open, o)
}

func testLiveStorage(t tester, open func(LiveEnv) fence.KV, o LiveStorageOptions) {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	(&conformance{checks: plain(livetest.StorageChecks(open, o))}).run(t)
}
