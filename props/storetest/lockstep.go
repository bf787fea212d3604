package storetest

import (
	"math/rand/v2"
	"strings"

	"fencepost/props/kit"
	"fencepost/props/script"
)

const (
	lockstepSteps = 40 // of a script: long enough for a few tenures to follow one another
	lockstepPart  = 15 // of a hundred calls, for each of the two
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
	stays := o
	stays.Volatile = true
	return []kit.Check{
		{Name: "lockstep/requests", Run: func() kit.Outcome { return lockstep(open, stays, effort, 1) }},
		{Name: "lockstep/restarts", Run: func() kit.Outcome {
			if why := restarts.missing(o); why != "" {
				return kit.Outcome{Skipped: why}
			}
			return lockstep(open, o, effort, 2)
		}},
	}
}

// lockstep plays the scripts of one stream of random numbers.
func lockstep(open script.Open, o kit.Options, effort kit.Effort, stream uint64) (out kit.Outcome) {
	err := kit.Attempt(func() {
		var seen script.Coverage
		src := rand.NewPCG(effort.Seed, stream)
		for range max(o.Budget(effort, lockstepPart)/lockstepSteps, 1) {
			r := script.RunRandom(open, o, src, lockstepSteps)
			if r.Breach != nil {
				out = kit.Outcome{Failure: minimized(open, o, r)}
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
		return kit.Outcome{Unknown: err.Error()}
	}
	return out
}

// minimized tells the shortest script that breaks the rule that r breaks.
func minimized(open script.Open, o kit.Options, r script.Result) *kit.Failure {
	steps := make([]script.Step, len(r.Lines))
	for i, l := range r.Lines {
		steps[i] = l.Step
	}
	steps = script.Minimize(open, o, steps, r.Breach.Rule)
	if short := script.Run(open, o, steps); short.Breach != nil {
		r = short // else the store does not do the same twice
	}
	return failure(r)
}
