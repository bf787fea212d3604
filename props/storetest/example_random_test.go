package storetest_test

import (
	"fmt"
	"maps"

	"fencepost/impl/lease"
	"fencepost/props/kit"
	"fencepost/props/storetest"
)

// rowsOnDisk is the disk of a store.
type rowsOnDisk map[string]lease.Durable

func (t rowsOnDisk) Save(resource string, d lease.Durable) error {
	t[resource] = d
	return nil
}

// open is one process of a store that keeps its rows over a crash, but for
// what forget makes of it.
func open(forget func(rowsOnDisk)) func(kit.Env) lease.Store {
	return func(e kit.Env) lease.Store {
		rows := kit.Durable(e, "rows", func() rowsOnDisk { return rowsOnDisk{} })
		forget(rows)
		store, err := lease.NewMemory(e.Clock, lease.MemoryOptions{State: maps.Clone(rows), Journal: rows})
		if err != nil {
			e.Fatal(err)
		}
		return store
	}
}

// A store that forgets its rows with its process, tokens and all.
func ExampleRandom() {
	for _, c := range storetest.Random(open(func(t rowsOnDisk) { clear(t) }), kit.Options{}, kit.Effort{Seed: 1}) {
		if f := c.Run().Failure; f != nil {
			fmt.Println(c.Name)
			fmt.Println(f.What)
			again := storetest.Replay(open(func(rowsOnDisk) {}), kit.Options{}, f.File.Name, f.File.Data)
			fmt.Println("once mended:", again.Failure == nil)
		}
	}
	// Output:
	// random/token-monotonicity
	// C2 was granted token 1 where 2 came next
	// once mended: true
}
