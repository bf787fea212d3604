package mutant_test

import (
	"fmt"
	"slices"

	"fencepost/props/kit"
	"fencepost/props/mutant"
	"fencepost/props/storagetest"
)

// What it is like to see a wrong storage convicted.
func ExampleWrongStorages() {
	all := mutant.WrongStorages()
	w := all[slices.IndexFunc(all, func(w mutant.WrongStorage) bool { return w.Name == "fence-not-durable" })]
	fmt.Println(w.Breaks)
	for _, c := range storagetest.Checks(w.Open, storagetest.Options{}, kit.Effort{}) {
		if c.Name != w.Convicted {
			continue
		}
		f := c.Run().Failure
		fmt.Println(f.Rule)
		for _, line := range f.Story {
			fmt.Println(line)
		}
	}
	// Output:
	// The highest token is saved with each write, and not with a fence: after a restart the barrier is gone.
	// restart-keeps-the-highest-token
	// successor    fences under token 2        acknowledged
	// the storage  restarts
	// predecessor  writes x=old under token 1  landed  ◄ must be refused: token 2 was seen by a fence before the restart
}
