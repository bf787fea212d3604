package props

import (
	"testing"

	"fencepost/impl/fence"
	"fencepost/props/kit"
	"fencepost/props/storagetest"
)

// StorageOptions are what a fenced storage promises where correct ones differ.
type StorageOptions = storagetest.Options

// StorageFuncs is a fenced storage made of plain functions: see its KV
// method.
type StorageFuncs = storagetest.Funcs

// TestStorage checks the fenced storage that open makes: that it admits no
// token below the highest it has seen (or, by [StorageOptions], none but the
// one its lease carries), forgets neither that nor what landed over a crash,
// and decides and writes in one step. As [TestStore] does, it runs a subtest
// for each rule, and keeps counterexamples.
func TestStorage(t *testing.T, open func(Env) fence.KV, o StorageOptions) {
	t.Helper()
	testStorage(real{t}, open, o)
}

func testStorage(t tester, open func(Env) fence.KV, o StorageOptions) {
	t.Helper()
	if err := o.Validate(); err != nil {
		t.Fatalf("%v", err)
	}
	e, again := effortOf(t)
	c := conformance{checks: plain(storagetest.Checks(open, o, e)), again: again, quick: tooSlow(e, o.Calls),
		replay: func(_ tester, path string, data []byte) kit.Outcome { return storagetest.Replay(open, o, path, data) }}
	c.run(t)
}
