package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"fencepost/props/kit"
	"fencepost/props/script"
)

const (
	lockstepSteps = 40 // of a script: long enough for a few tenures to follow one another
	lockstepPart  = 15 // of a hundred calls, for each of the two checks
)

// Lockstep are random scripts played beside the model, which judges each
// answer: "lockstep/requests", and "lockstep/restarts" where the store crashes
// in between, apart so that a fault at restarts hides no other. The scripts are
// those of effort.Seed, and as many as the options' Calls allow. The first that
// breaks a rule is made as short as possible, and told. A batch that never got
// to see, say, a takeover has not checked it and is Unknown.
//
// The options must be valid: [kit.Options.Validate].
func Lockstep(open script.Open, o kit.Options, effort kit.Effort) []kit.Check {
	requests := func() kit.Outcome {
		stays := o
		stays.Volatile = true
		out, _ := lockstep(open, stays, effort, 1)
		return out
	}
	return []kit.Check{
		{Name: "lockstep/requests", Run: requests},
		{Name: "lockstep/restarts", Run: func() kit.Outcome {
			if why := restarts.missing(o); why != "" {
				return kit.Outcome{Skipped: why}
			}
			out, steps := lockstep(open, o, effort, 2)
			if out.Failure != nil && !slices.ContainsFunc(steps, func(s script.Step) bool { return s.Do == script.Restart }) {
				// Nothing that a restart has to do with, nor worth telling twice.
				if requests().Failure != nil {
					return kit.Outcome{Skipped: fmt.Sprintf("not reached: the store breaks %s without a restart, see lockstep/requests", out.Failure.Rule)}
				}
			}
			return out
		}},
	}
}

// lockstep plays the scripts of one stream of random numbers. Those steps are
// what a failure has left.
func lockstep(open script.Open, o kit.Options, effort kit.Effort, stream uint64) (out kit.Outcome, steps []script.Step) {
	err := kit.Attempt(func() {
		var seen script.Coverage
		src := rand.NewPCG(effort.Seed, stream)
		for range max(o.Budget(effort, lockstepPart)/lockstepSteps, 1) {
			r := script.RunRandom(open, o, src, lockstepSteps)
			if r.Breach != nil {
				r = minimized(open, o, r)
				out, steps = kit.Outcome{Failure: failure(r)}, stepsOf(r)
				file := script.File(r, r.Breach.Rule.String(), "", o)
				out.Failure.File = &file
				return
			}
			seen.Add(r)
		}
		out = kit.Outcome{Covered: seen.String()}
		if missed := seen.Missed(o); len(missed) > 0 {
			out = kit.Outcome{Unknown: "the scripts never came to " + strings.Join(missed, ", ") + ": raise Options.Calls"}
		}
	})
	if err != nil {
		return kit.Outcome{Unknown: err.Error()}, nil
	}
	return out, steps
}

// minimized is the shortest script that breaks the rule that r breaks.
func minimized(open script.Open, o kit.Options, r script.Result) script.Result {
	steps := script.Minimize(open, o, stepsOf(r), r.Breach.Rule)
	if short := script.Run(open, o, steps); short.Breach != nil {
		return short
	}
	return r // the store does not do the same twice
}

func stepsOf(r script.Result) []script.Step {
	steps := make([]script.Step, len(r.Lines))
	for i, l := range r.Lines {
		steps[i] = l.Step
	}
	return steps
}
