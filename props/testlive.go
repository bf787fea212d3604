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
// in real time.
func TestLiveStore(t *testing.T, open func(LiveEnv) lease.Store, o LiveOptions) {
	t.Helper()
	(&conformance{checks: plain(livetest.StoreChecks(open, o))}).run(real{t})
}

// TestLiveStorage checks the fenced storage that open makes against its real
// server, in real time.
func TestLiveStorage(t *testing.T, open func(LiveEnv) fence.KV, o LiveStorageOptions) {
	t.Helper()
	(&conformance{checks: plain(livetest.StorageChecks(open, o))}).run(real{t})
}
