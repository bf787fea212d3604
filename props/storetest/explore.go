package storetest

import (
	"context"
	"fmt"

	"fencepost/props/kit"
	"fencepost/props/script"
)

const explorePart = 20 // of a hundred calls

// Exploration is the check "explore": every short sequence of requests,
// passages of time and restarts, as far as the budget goes.
func Exploration(open script.Open, o kit.Options, e kit.Effort) kit.Check {
	return kit.Check{Name: "explore", Run: func() kit.Outcome {
		return explore(context.Background(), open, o, script.ExploreOptions{Depth: 64, MaxCalls: o.Budget(e, explorePart)})
	}}
}

// Explore plays every sequence of steps that x allows. The first failure is by
// a shortest sequence.
func Explore(ctx context.Context, open script.Open, o kit.Options, x script.ExploreOptions) kit.Outcome {
	return watched(open, func(open script.Open) kit.Outcome { return explore(ctx, open, o, x) })
}

func explore(ctx context.Context, open script.Open, o kit.Options, x script.ExploreOptions) kit.Outcome {
	return kit.Try(func() kit.Outcome {
		found := script.Explore(ctx, open, o, x)
		switch {
		case found.Failure != nil:
			return hinted(o, kit.Outcome{Failure: failure(*found.Failure)})
		case found.Unfaithful != nil:
			return kit.Outcome{Unknown: fmt.Sprintf("Snapshot and Restore do not keep all of the store's state: put back into a snapshot it answers otherwise than after %v", found.Unfaithful)}
		case found.Depth == 0:
			return kit.Outcome{Unknown: "not even one step was explored: " + found.String() + "; raise the bound"}
		}
		return kit.Outcome{Covered: found.String()}
	})
}
