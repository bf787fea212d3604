package storetest

import (
	"slices"
	"sync"
	"time"

	"fencepost/props/kit"
	"fencepost/props/script"
)

// Checks are all there are for the store that open makes, the plainest first:
// whoever mends what the first failure says has mended most of the others. A
// call that takes [kit.Silence] ends them all: those after it are skipped.
func Checks(open script.Open, o kit.Options, e kit.Effort) []kit.Check {
	return checks(open, o, e, kit.Silence)
}

// checks are those of a store whose calls return within limit, or never do.
func checks(open script.Open, o kit.Options, e kit.Effort, limit time.Duration) []kit.Check {
	o = paced(open, o, kit.NewWatch(limit))
	w := kit.NewWatch(limit)
	open = kit.Watched(w, open)
	checks := slices.Concat(
		Rules(open, o),
		[]kit.Check{Many(open, o, e)},
		Malformed(open, o),
		Watch(open, o),
		Lockstep(open, o, e),
		[]kit.Check{Exploration(open, o, e)},
		Random(open, o, e),
		Concurrency(open, o, e),
		[]kit.Check{Linearizability(open, o, e)},
		Shared(open, o, e),
	)
	for i, c := range checks {
		checks[i].Run = func() kit.Outcome { return hinted(o, c.Run()) }
	}
	return w.Over(checks)
}

// watched is one check of what open makes, by itself.
func watched(open script.Open, check func(script.Open) kit.Outcome) kit.Outcome {
	w := kit.NewWatch(kit.Silence)
	return w.Run(func() kit.Outcome { return check(kit.Watched(w, open)) })
}

// once is f for many checks: the first that asks runs it. (sync.OnceValue panics
// where open has ended the goroutine; here the next one runs it again.)
func once[T any](f func() T) func() T {
	var mu sync.Mutex
	var ran *T
	return func() T {
		mu.Lock()
		defer mu.Unlock()
		if ran == nil {
			v := f()
			ran = &v
		}
		return *ran
	}
}
