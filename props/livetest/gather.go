package livetest

import (
	"slices"
	"sync"

	"fencepost/props/kit"
)

// task is a check that waits more than it works, and may do so while others
// wait.
type task struct {
	name string
	run  func() kit.Outcome
}

// gathered makes checks of tasks that run at once: the first check that is run
// waits for all of them, and those after it have their outcomes. A check that is
// run again runs all again. begin is called before the first begins, and end when
// the last has ended.
func gathered(tasks []task, begin, end func()) []kit.Check {
	var mu sync.Mutex
	var outcomes []*kit.Outcome // nil where it was told
	checks := make([]kit.Check, len(tasks))
	for i, t := range tasks {
		checks[i] = kit.Check{Name: t.name, Run: func() kit.Outcome {
			mu.Lock()
			defer mu.Unlock()
			if outcomes == nil || outcomes[i] == nil {
				begin()
				outcomes = runAll(tasks)
				end()
			}
			out := outcomes[i]
			outcomes[i] = nil
			return *out
		}}
	}
	return checks
}

func runAll(tasks []task) []*kit.Outcome {
	outcomes := make([]*kit.Outcome, len(tasks))
	var wg sync.WaitGroup
	for i, t := range slices.All(tasks) {
		wg.Go(func() {
			out := kit.Guard(t.run)
			outcomes[i] = &out
		})
	}
	wg.Wait()
	return outcomes
}
